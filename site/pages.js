// Lists the pages of the site: every document, in the groups and the order of docs/README.md.

import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
export const REPOSITORY = "https://github.com/parley-gateway/parley";

/** The pages outside of docs, and the index of docs, with their names on the site. */
const NAMES = {
  "README.md": "index.md",
  "docs/README.md": "documents.md",
  "CHANGELOG.md": "changelog.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security.md",
};

export const PAGES = [...Object.keys(NAMES), ...globSync("docs/**/*.md", { cwd: ROOT }).sort()].filter(
  (path, at, all) => all.indexOf(path) === at,
);

/** Returns the name on the site of a document: `docs/internals/FLOWS.md` becomes `internals/flows.md`. */
export const nameOf = (path) => NAMES[path] ?? path.replace(/^docs\//, "").toLowerCase();

/** Returns the address of a document below the site's base. */
export const addressOf = (path) => `/${nameOf(path).replace(/(^|\/)index\.md$|\.md$/, "$1")}`;

export const readText = (path) => readFileSync(`${ROOT}${path}`, "utf8");

export const titleOf = (path) => /^# (.+)$/m.exec(readText(path))?.[1] ?? path;

/** Returns the groups of docs/README.md. A page is in the first group that links to it. */
export function readGroups() {
  const seen = new Set(["README.md"]);
  return readText("docs/README.md")
    .split("\n\n")
    .flatMap((paragraph) => {
      const [, title, body] = /^\*\*(.+?)\.\*\*([\s\S]+)$/.exec(paragraph) ?? [];
      if (title === undefined) return [];
      const linked = [...body.matchAll(/\]\(([^)#]+)/g)].map(([, path]) => posix.join("docs", path));
      const pages = linked.filter((path) => !seen.has(path) && seen.add(path));
      return [{ title, pages }];
    });
}
