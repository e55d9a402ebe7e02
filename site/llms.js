// Writes the documents for language models beside the built site: each page as Markdown, llms.txt (the list
// of them, in the form of llmstxt.org) and llms-full.txt (all of them in one file).

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { nameOf, PAGES, readGroups, readText, titleOf } from "./pages.js";

export function writeLlms(folder, site, description) {
  const groups = readGroups();
  const list = groups.map(({ title, pages }) => {
    const lines = pages.map((path) => `- [${titleOf(path)}](${site}${nameOf(path)})`);
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  const first = `- [Read this first](${site}${nameOf("README.md")})`;
  const start = `${first}\n- [All pages in one file](${site}llms-full.txt)`;
  writeFileSync(join(folder, "llms.txt"), `# Parley\n\n> ${description}\n\n${start}\n\n${list.join("\n")}`);
  const ordered = ["README.md", ...groups.flatMap(({ pages }) => pages)];
  const texts = ordered.map((path) => `<!-- ${site}${nameOf(path)} -->\n\n${readText(path).trimEnd()}\n`);
  writeFileSync(join(folder, "llms-full.txt"), texts.join("\n"));
  for (const path of PAGES) {
    mkdirSync(dirname(join(folder, nameOf(path))), { recursive: true });
    writeFileSync(join(folder, nameOf(path)), readText(path));
  }
}
