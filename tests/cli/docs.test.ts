// Checks the documentation against the program.

import { existsSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { PAGES, ROOT, readDocument as read } from "../docs/pages.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { useConfigHome } from "../kit/process/config-home.ts";
import { anchor } from "../kit/reference/markdown.ts";
import { run } from "./kit.ts";

const home = useConfigHome();

function blocks(path: string, language: string): string[] {
  return [...read(path).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
    (found) => found[1] ?? "",
  );
}

test("every configuration in the documentation is valid", () => {
  const examples = PAGES.flatMap((path) => blocks(path, "json5"));
  expect(examples.length).toBeGreaterThan(3);
  const env = {
    ANTHROPIC_API_KEY: "key",
    GROQ_API_KEY: "key",
    READER_TOKEN: "a-reader-token-long-enough",
    BOT_TOKEN: "a-bot-token-that-is-long-enough",
    NTFY_TOPIC: "parley-7c1f0e2a9b",
    NTFY_TOKEN: "tk_7c1f0e2a9b",
  };
  for (const text of examples) {
    const loaded = home().load(text, { env });
    expect(loaded.ok ? "" : `${loaded.error}\n${text}`).toBe("");
  }
});

/**
 * Returns the paths of the folders in the tree of ARCHITECTURE.md. The indentation gives the parent folder.
 */
function foldersOfTree(): string[] {
  const tree = blocks("docs/internals/ARCHITECTURE.md", "").find((block) => block.includes("\nsrc/")) ?? "";
  const above: string[] = [];
  return tree.split("\n").flatMap((line) => {
    const [, indent = "", names = ""] = /^( *)((?:[\w-]+\/(?: {2}|$| ))+)/.exec(`${line} `) ?? [];
    const folders = names.split(/\s+/).filter((name) => name !== "");
    const depth = indent.length / 2;
    above.splice(depth, above.length, folders[0] ?? "");
    return folders.map((name) => [...above.slice(0, depth), name].join("").slice(0, -1));
  });
}

test("the tree in ARCHITECTURE.md has every folder of src but those of features, and only existing folders", () => {
  const existing = readdirSync(join(ROOT, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !path.startsWith("src/features/"));
  const drawn = foldersOfTree().filter((path) => path.startsWith("src/"));
  expect(drawn.toSorted()).toEqual(existing.toSorted());
});

test("the conversation in the README is the output of the demo", async () => {
  const picture = blocks("README.md", "")[0]?.trimEnd() ?? "";
  const { out } = await run(temporaryFolder(), ["demo"]);
  expect(out).toContain(picture);
});

/** Returns the anchors that a browser gives to the headings of a page. */
function anchorsOf(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, "");
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchor(heading));
  return [...headings, ...[...prose.matchAll(/<a id="(\w+)">/g)].map(([, id = ""]) => id)];
}

test("links between documents lead to an existing file and an existing heading", () => {
  const lost = PAGES.flatMap((path) =>
    [...read(path).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)]
      .map(([, to = ""]) => to)
      .filter((to) => {
        const [name = "", heading] = to.split("#");
        const target = name === "" ? path : join(path, "..", name);
        if (!existsSync(join(ROOT, target))) return true;
        return heading !== undefined && !anchorsOf(read(target)).includes(heading);
      })
      .map((to) => `${path}: ${to}`),
  );
  expect(lost).toEqual([]);
});

test("the list of documents names each document", () => {
  const list = read("docs/README.md");
  const links = [...list.matchAll(/\]\((?!https?:)([^)\s#]+)/g)].map(([, to = ""]) => join("docs", to));
  const documents = PAGES.filter((path) => path.startsWith("docs/") && path !== "docs/README.md");
  expect(documents.filter((path) => !links.includes(path))).toEqual([]);
});

test("every invariant is explained once, with existing files and tests", () => {
  const page = read("docs/internals/INVARIANTS.md");
  const sections = page.split(/^## /m).slice(1);
  expect(sections.map((section) => section.split(" ", 1)[0])).toEqual(
    Array.from({ length: 16 }, (_, at) => `I${at + 1}`),
  );
  for (const section of sections) {
    const [name = ""] = section.split(" ", 1);
    const tests = [...section.matchAll(/^- `(tests\/[^`]+)`: (.+)$/gm)];
    expect({ name, tests: tests.length >= 2 }).toEqual({ name, tests: true });
    // A long title is cut, with an ellipsis.
    const lost = tests.filter(([, path = "", title = ""]) => !read(path).includes(title.replace(/ …$/, "")));
    expect({ name, lost: lost.map(([line]) => line) }).toEqual({ name, lost: [] });
    // A test whose title does not name this invariant is no proof of it.
    const strange = tests.filter(([, , title = ""]) => !namesOf(title).includes(name));
    expect({ name, strange: strange.map(([line]) => line) }).toEqual({ name, strange: [] });
    const files = [...section.matchAll(/`(src\/[^`]+)`/g)].map(([, path = ""]) => path);
    expect({ name, gone: files.filter((path) => !existsSync(join(ROOT, path))) }).toEqual({ name, gone: [] });
  }
});

/** Returns the invariants that a title names: `I2, I4`, or a range like `I1-I5`. */
function namesOf(title: string): string[] {
  const ranges = [...title.matchAll(/\bI(\d+)-I(\d+)\b/g)].flatMap(([, from, to]) =>
    Array.from({ length: Number(to) - Number(from) + 1 }, (_, at) => `I${Number(from) + at}`),
  );
  return [...ranges, ...[...title.matchAll(/\bI\d+\b/g)].map(([name]) => name)];
}
