// What the documents say about the program is compared with the program.

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { useConfigHome } from "../kit/config-home.ts";
import { temporaryFolder } from "../kit/engine.ts";
import { run } from "./kit.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const home = useConfigHome();

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

const DOCUMENTS = [
  ...["README.md", "SECURITY.md", "CHANGELOG.md"],
  ...readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

function blocks(path: string, language: string): string[] {
  return [...read(path).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
    (found) => found[1] ?? "",
  );
}

test("every configuration in the documents is valid", () => {
  const examples = DOCUMENTS.flatMap((path) => blocks(path, "json5"));
  expect(examples.length).toBeGreaterThan(3);
  const env = { ANTHROPIC_API_KEY: "key", READER_TOKEN: "a-reader-token", BOT_TOKEN: "a-bot-token" };
  for (const text of examples) {
    const loaded = home().load(text, { env });
    expect(loaded.ok ? "" : `${loaded.error}\n${text}`).toBe("");
  }
});

test("every source file has its place in the architecture's tree", () => {
  const tree = blocks("docs/ARCHITECTURE.md", "").join("");
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    // These folders stand there as a whole.
    .filter(
      (path) =>
        !/^(cli|config|gateway.methods)\b./.test(path) ||
        path === "config.ts" ||
        path === join("cli", "run.ts"),
    );
  expect(files.filter((path) => !tree.includes(basename(path)))).toEqual([]);
});

test("the picture in the README is what the demo prints", async () => {
  const picture = blocks("README.md", "")[0]?.trimEnd() ?? "";
  const { out } = await run(temporaryFolder(), ["demo"]);
  expect(out).toContain(picture);
});

test("links between the documents lead somewhere", () => {
  const missing = DOCUMENTS.flatMap((path) =>
    [...read(path).matchAll(/\]\((?!https?:)([^)#]+)\)/g)]
      .map((found) => join(path, "..", found[1] ?? ""))
      .filter((target) => !readdirSync(join(ROOT, target, "..")).includes(basename(target))),
  );
  expect(missing).toEqual([]);
});
