// The rules for source files. Each rule is checked on the real files, and on a bad example that it must
// reject.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { proseOf, wordProblems } from "./kit/tidy/prose.ts";
import * as rules from "./kit/tidy/rules.ts";
import { readTree, type SourceFact } from "./kit/tidy/source-tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const TEXT = /(\.(tsx?|js|json|md|svg|json5|yml|html|css|sh)|\/run|\/LICENSE|\/\.\w+)$/;
/** In a linked git worktree, `.git` is a file. */
const SKIPPED = ["node_modules", "dist", "coverage", ".git", "cache", ".temp"];
/** npm generates package-lock.json, so most rules ignore it. `packageProblems` checks it. */
const LOCK_FILE = "package-lock.json";

function textsBelow(folder: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const entry of readdirSync(root + folder, { withFileTypes: true })) {
    const path = `${folder}${entry.name}`;
    if (SKIPPED.includes(entry.name)) continue;
    if (entry.isDirectory()) {
      for (const [inner, text] of textsBelow(`${path}/`)) texts.set(inner, text);
    } else if (entry.isFile() && TEXT.test(`/${path}`) && entry.name !== LOCK_FILE) {
      texts.set(path, readFileSync(root + path, "utf8"));
    }
  }
  return texts;
}

const isSource = (path: string): boolean =>
  /^(src|tests|bench|bin|release|site|ui)\/.*\.([jt]s|tsx)$/.test(path);
const inTypeScript = ({ path }: SourceFact): boolean => /\.tsx?$/.test(path);

let texts: Map<string, string>;
let tree: SourceFact[];
beforeAll(() => {
  texts = textsBelow("");
  tree = readTree(new Map([...texts].filter(([path]) => isSource(path))));
});

test("every source file of the repository is checked", () => {
  expect(tree.length).toBeGreaterThan(20);
  expect(tree.filter(inTypeScript).every(({ text }) => text.length > 0)).toBe(true);
});

test("each file imports only what the import table in ARCHITECTURE.md allows", () => {
  expect(rules.importTable(tree)).toEqual([]);
});

test("nothing outside a feature's folder knows the feature, but the lists of features", () => {
  expect(rules.featureImports(tree)).toEqual([]);
});

test("the build has an entry for each worker that a module starts by its URL", () => {
  const build = texts.get("tsdown.config.ts") ?? "";
  expect(rules.unbuiltWorkers(tree, build)).toEqual([]);
  const started = readTree(new Map([["src/a/b.ts", 'new URL("./other-worker.ts", import.meta.url)']]));
  expect(rules.unbuiltWorkers(started, build)).toEqual(["src/a/other-worker.ts"]);
  const withoutEntries = rules.unbuiltWorkers(tree, "");
  expect(withoutEntries).toEqual([
    "src/features/replay/worker/replay-worker.ts",
    "src/store/sqlite/read-worker.ts",
    "src/store/transfer/backup-worker.ts",
    "src/tools/files/file-worker.ts",
  ]);
});

test("each journey in ARCHITECTURE.md names at most twelve files, and all of them exist", () => {
  const page = texts.get("docs/internals/ARCHITECTURE.md") ?? "";
  const [, ...journeys] = (page.split("## Journeys")[1]?.split("\n## ")[0] ?? "").split(/\n\*\*(?=An? )/);
  expect(journeys).toHaveLength(5);
  for (const journey of journeys) {
    const named = new Set([...journey.matchAll(/`([\w/.-]+\.tsx?)`/g)].map(([, path = ""]) => path));
    const missing = [...named].filter((path) => !tree.some((file) => `/${file.path}`.endsWith(`/${path}`)));
    expect({ journey: journey.slice(0, 20), missing, names: Math.min(named.size, 12) }).toEqual({
      journey: journey.slice(0, 20),
      missing: [],
      names: named.size,
    });
  }
});

test("no files import each other in a cycle", () => {
  expect(rules.cycles(tree)).toEqual([]);
});

test("only world.ts and config.ts use clock, timers, randomness and environment", () => {
  expect(rules.ambientCalls(tree)).toEqual([]);
});

test("only world/outgoing.ts makes outgoing HTTP requests", () => {
  expect(rules.outgoingCalls(tree)).toEqual([]);
});

test("no module is mocked, no test is focused, and none is skipped without a reason", () => {
  expect(rules.mocksAndSkips(tree)).toEqual([]);
});

test("a test of the page polls what it shows", () => {
  expect(rules.singleReads(tree)).toEqual([]);
});

test("every file is used", () => {
  expect(rules.unusedFiles(tree)).toEqual([]);
});

test("every export is used by another file", () => {
  expect(rules.unusedExports(tree)).toEqual([]);
});

test("files and lines are short", () => {
  expect(rules.sizes(tree)).toEqual([]);
});

test("comments name only files and folders that exist", () => {
  expect(rules.lostMentions(tree, [...texts.keys()])).toEqual([]);
});

test("a folder contains few files, and files with the same prefix are in a folder", () => {
  expect(rules.folders(tree.map(({ path }) => path))).toEqual([]);
});

test("every source file begins with its purpose, and no folder collects unrelated files", () => {
  expect(rules.headsAndFolders(tree)).toEqual([]);
});

test("a citation of another file's rule names that file, and tests name only existing rules", () => {
  expect(rules.namedRules(tree)).toEqual([]);
});

test("comments, titles, messages and labels use plain English", () => {
  expect(wordProblems(new Map([...texts].filter(([path]) => isSource(path))))).toEqual([]);
});

test("the page's style sheets take colours, sizes of type and spaces from the tokens", () => {
  expect(texts.has("ui/src/styles/tokens.css")).toBe(true);
  expect(rules.rawStyles(texts)).toEqual([]);
});

test("no file contains a path of a developer's machine", () => {
  expect(rules.machinePaths(texts)).toEqual([]);
});

test("packages are pinned exactly, and the lock file names no registry", () => {
  const read = (path: string) => readFileSync(root + path, "utf8");
  for (const folder of ["", "site/"])
    expect(rules.packageProblems(read(`${folder}package.json`), read(folder + LOCK_FILE))).toEqual([]);
});

type Rule = (tree: readonly SourceFact[]) => string[];
const plant = (rule: Rule, files: Record<string, string>): string[] =>
  rule(readTree(new Map(Object.entries(files))));

test("bad example: forbidden imports are found: of a file, of a package, a dynamic one, and of a missing file; types are free", () => {
  const files = {
    "src/main.ts": "import './gateway/a.ts';",
    "src/gateway/a.ts": "export const a = 1;\nimport '../store/s.ts';\nimport { c } from '../cli/c.ts';",
    "src/store/s.ts": "import { a } from '../gateway/a.ts';\nvoid import('../flows/f.ts');\nimport 'json5';",
    "src/flows/f.ts":
      "export type W = import('../world.ts').World;\nimport { type S } from '../world.ts';\nimport './gone.ts';",
    "src/world.ts": "export type World = 1;\nimport 'pino';",
    "src/core/c.ts": "import { join } from 'node:path';\nimport type { Pool } from 'pg';",
    "src/cli/c.ts": "import '../contract/client/node.ts';\nexport const c = 1;\nimport '../gateway/a.ts';",
    "src/contract/client/node.ts": "import '../../core/c.ts';",
    "src/drawer/d.ts": "export {};",
  };
  expect(plant(rules.importTable, files)).toEqual([
    "src/gateway/a.ts:3: gateway must not import ../cli/c.ts",
    "src/store/s.ts:1: store must not import ../gateway/a.ts",
    "src/store/s.ts:2: store must not import ../flows/f.ts",
    "src/store/s.ts:3: store must not import json5",
    "src/flows/f.ts:2: flows must not import ../world.ts",
    "src/flows/f.ts:3: ./gone.ts is no source file",
    "src/core/c.ts:1: core must not import node:path: core is pure",
    "src/cli/c.ts:3: cli must not import ../gateway/a.ts",
    "src/drawer/d.ts: the folder drawer is not in the import table",
  ]);
});

test("bad example: a file that knows a feature is found", () => {
  const files = {
    "src/features/a/a.ts": 'const needs = { needs: ["b"] };\nimport "../b/b.ts";\nimport "../c/c.ts";',
    "src/features/b/b.ts": "export const b = 1;",
    "src/features/c/c.ts": "export const c = 1;",
    "src/core/d.ts": 'import type { b } from "../features/b/b.ts";',
    "tests/core/d.test.ts": 'import { c } from "../../src/features/c/c.ts";',
    "tests/features/c/c.test.ts": 'import { c } from "../../../src/features/c/c.ts";',
    "src/features.ts": 'import { b } from "./features/b/b.ts";',
  };
  expect(plant(rules.featureImports, files)).toEqual([
    "src/features/a/a.ts:3: knows the feature c",
    "src/core/d.ts:1: knows the feature b",
    "tests/core/d.test.ts:1: knows the feature c",
  ]);
});

test("bad example: an import cycle is found, and types make none", () => {
  const files = {
    "src/core/a.ts": "import { B } from './b.ts';",
    "src/core/b.ts": "export { C as B } from './c.ts';",
    "src/core/c.ts": "import './a.ts';\nexport type C = 1;",
    "src/core/d.ts": "import type { E } from './e.ts';\nexport type D = E;",
    "src/core/e.ts": "import type { D } from './d.ts';\nexport type E = D;",
  };
  expect(plant(rules.cycles, files)).toEqual([
    "cycle: src/core/a.ts -> src/core/b.ts -> src/core/c.ts -> src/core/a.ts",
  ]);
});

test("bad example: every use of clock, timers, randomness and environment in the wrong file is found, and nothing else", () => {
  const bad = [
    "Date.now();",
    "new Date();",
    "Date();",
    "[1].map(Math.random);",
    "performance.now();",
    "const { env } = process; process.env.X;",
    "setTimeout(() => 1, 1);",
    "globalThis.setInterval(() => 1, 1);",
    "new Promise(setImmediate);",
    "crypto.randomUUID();",
    "import { randomBytes as r } from 'node:crypto';",
    "import { setTimeout as sleep } from 'node:timers/promises';",
    "import { env } from 'node:process';",
    "AbortSignal.timeout(5);",
  ];
  const good = [
    "new Date(5);",
    "clock.now();",
    "world.random();",
    "const o = { setTimeout: 1 }; o.setTimeout;",
    "'Date.now()';",
  ];
  const files = Object.fromEntries([...bad, ...good].map((line, index) => [`src/core/f${index}.ts`, line]));
  const found = plant(rules.ambientCalls, files).map((line) => Number(/f(\d+)/.exec(line)?.[1]));
  expect([...new Set(found)]).toEqual(bad.map((_, index) => index));
  expect(
    plant(rules.ambientCalls, { "src/world.ts": bad.join("\n"), "tests/a.test.ts": "Date.now();" }),
  ).toEqual([]);
});

test("bad example: an outgoing HTTP request outside world/outgoing.ts is found, in whatever way it is written", () => {
  const bad = [
    "await fetch('http://a.example');",
    "globalThis.fetch('http://a.example');",
    "const ask = fetch; ask('x');",
    "const give = { fetch }; give;",
    "import { request } from 'node:http'; request('x');",
    "import https from 'node:https'; https.get('x');",
    "import * as http from 'http'; http.get('x');",
    "const { request } = await import('undici');",
    "import { plainHttp } from '../world/http.ts'; plainHttp().get('x');",
    "process.getBuiltinModule('node:https').get('x');",
    "new EventSource('x');",
  ];
  const good = [
    "import type { IncomingMessage } from 'node:http'; export type I = IncomingMessage;",
    "handler.fetch(request);",
    "use({ fetch: own });",
    "import { outgoingFetch } from '../world/outgoing.ts'; outgoingFetch('model', 'x');",
  ];
  const files = Object.fromEntries([...bad, ...good].map((line, index) => [`src/core/f${index}.ts`, line]));
  const house = {
    "src/world/http.ts": "export const plainHttp = 1;",
    "src/world/outgoing.ts": "fetch('x');",
  };
  const found = plant(rules.outgoingCalls, { ...files, ...house });
  const places = found.map((line) => Number(/f(\d+)/.exec(line)?.[1]));
  expect([...new Set(places)]).toEqual(bad.map((_, index) => index));
});

test("bad example: module mocks, focused tests and skips without a reason are found", () => {
  const text = [
    "vi.mock('../src/a.ts');",
    "test.only('a', () => {});",
    "describe.each([1]).only('a', () => {});",
    "test.skip('b', () => {});",
    "",
    "// Needs a second network card.",
    "test.skip('c', () => {});",
    "test('d', () => {});",
  ].join("\n");
  expect(plant(rules.mocksAndSkips, { "tests/a.test.ts": text })).toEqual([
    "tests/a.test.ts:1: vi.mock: drive real parts through fake edges",
    "tests/a.test.ts:2: test.only leaves out every other test",
    "tests/a.test.ts:4: test.skip without a reason beside it",
  ]);
});

test("bad example: a test that reads the page once is found, unless it expects that something is absent", () => {
  const text = [
    "expect(await page.title()).toBe('Inbox');",
    "expect(",
    "  await page.locator('p').first().innerText(),",
    ").toContain('ready');",
    "await expect.poll(() => page.title()).toBe('Inbox');",
    "expect(await page.content()).not.toContain('secret');",
    "expect(await sideways(page)).toBe(0);",
  ].join("\n");
  expect(plant(rules.singleReads, { "tests/ui/a.test.ts": text, "tests/b.test.ts": text })).toEqual([
    "tests/ui/a.test.ts:1: poll: expect.poll(() => …)",
    "tests/ui/a.test.ts:2: poll: expect.poll(() => …)",
  ]);
});

test("bad example: a file that only a test imports is found", () => {
  const files = {
    "bin/run.js": "await import('../src/main.ts');",
    "src/main.ts": "import './core/a.ts';\nnew Worker(new URL('./core/worker.ts', import.meta.url));",
    "src/core/a.ts": "",
    "src/core/worker.ts": "",
    "src/core/dead.ts": "",
    "tests/a.test.ts": "import '../src/core/dead.ts';\nimport './kit/k.ts';",
    "tests/kit/k.ts": "",
    "tests/kit/dead.ts": "",
  };
  expect(plant(rules.unusedFiles, files)).toEqual([
    "src/core/dead.ts: nothing that is started uses it",
    "tests/kit/dead.ts: nothing that is started uses it",
  ]);
});

test("bad example: an export that no other file imports is found, but not a type that its own file needs", () => {
  const files = {
    "src/core/a.ts": [
      "export const used = 1, unused = 2;",
      "export function alsoUnused() {}",
      "export interface Part { a: 1 }",
      "export type Whole = Part[];",
      "export type Lonely = 1;",
      "export { b as c } from './b.ts';",
      "export const onlyHere = 1; console.log(onlyHere);",
    ].join("\n"),
    "src/core/b.ts": "export const b = 1;",
    "tests/a.test.ts": "import { used as u, type Whole } from '../src/core/a.ts';",
  };
  expect(plant(rules.unusedExports, files)).toEqual([
    "src/core/a.ts:1: nobody imports unused",
    "src/core/a.ts:2: nobody imports alsoUnused",
    "src/core/a.ts:5: nobody imports Lonely",
    "src/core/a.ts:6: nobody imports c",
    "src/core/a.ts:7: nobody imports onlyHere",
  ]);
  const whole = {
    "src/core/a.ts": "export const a = 1;",
    "tests/a.test.ts": "import * as a from '../src/core/a.ts';",
  };
  expect(plant(rules.unusedExports, whole)).toEqual([]);
});

test("bad example: a file and a line that are too long are found", () => {
  const e = (times: number) => "é".repeat(times);
  const body = (lines: number) => Array.from({ length: lines }, () => "  go();").join("\n");
  const files = {
    "src/core/file.ts": body(rules.FILE_LINES_MAX + 1),
    "src/core/line.ts": `// ${e(rules.LINE_CHARACTERS_MAX - 2)}\n// ${e(rules.LINE_CHARACTERS_MAX - 3)}`,
    "tests/line.ts": `// ${e(rules.LINE_CHARACTERS_MAX)}\n// ${e(rules.TEST_LINE_CHARACTERS_MAX)}`,
  };
  expect(plant(rules.sizes, files)).toEqual([
    "src/core/file.ts: 601 lines",
    "src/core/line.ts:1: 111 characters",
    "tests/line.ts:2: 143 characters",
  ]);
});

test("bad example: a comment that names a missing file or folder is found", () => {
  const files = {
    "src/core/rules/a.ts":
      "// core/rules/a decides, core/a does not.\n// See b.ts and rules/a.ts.\nexport {};",
  };
  expect(plant((facts) => rules.lostMentions(facts, ["src/core/rules/a.ts"]), files)).toEqual([
    "src/core/rules/a.ts: core/a does not exist",
    "src/core/rules/a.ts: b.ts does not exist",
  ]);
});

test("bad example: a folder with too many files is found, and so are files that should be a folder", () => {
  const many = Array.from({ length: 21 }, (_, n) => `src/core/f${n}.ts`);
  const same = ["", "-read", "-write"].map((end) => `ui/src/flow/list${end}.tsx`);
  const tests = Array.from({ length: 21 }, (_, n) => `tests/core/rules/f${n}.test.ts`);
  const kit = Array.from({ length: 21 }, (_, n) => `tests/kit/f${n}.ts`);
  const others = ["src/core/a/list.ts", "tests/list-a.ts"];
  expect(rules.folders([...many, ...kit, ...same, ...tests, ...others])).toEqual([
    "tests/core/rules: 21 files",
    "src/core: 21 files",
    "tests/kit: 21 files",
    'ui/src/flow: the files that begin with "list" should be a folder',
  ]);
});

test("bad example: a file without a head comment, and a folder of unrelated files, are found", () => {
  const files = {
    "src/core/a.ts": "const a = 1;",
    "src/utils/b.ts": "// Owns b.",
    "bin/x.js": "#!/usr/bin/env node\n// Starts x.",
  };
  expect(plant(rules.headsAndFolders, files)).toEqual([
    "src/core/a.ts: begins without a comment on what it owns",
    "src/utils/b.ts: name the concept instead of utils, helpers or common",
  ]);
});

test("bad example: a citation without the cited file is found, and so is a test of a rule that does not exist", () => {
  const files = {
    "src/core/a.ts": "// Owns a.\n// A1: one. A2: two, as I2 wants it.",
    "src/core/d.ts": "// Owns d.\n// D1: one.\n// D1: another.",
    "src/core/b.ts":
      "// Owns b (A1 of a.ts, A1 and A2 of core/a.ts).\n// A1: its own.\n// B2: see B2, and A2.",
    "src/core/c.ts": "// Owns c (B2 of a.ts).\nconst rule = 1; // For A1, UTF8 and\n// A2.",
    "tests/core/a.test.ts": "test('x', f);\ntest(\"A1, I2: it is\", f);\n  test.each(`A1, A3: it is`, f);",
  };
  expect(plant(rules.namedRules, files).map((line) => line.replace(/\? .*/, ""))).toEqual([
    "src/core/b.ts: whose rule is A2",
    "src/core/c.ts: whose rule is B2",
    "src/core/c.ts: whose rule is A1",
    "src/core/c.ts: whose rule is A2",
    "src/core/d.ts: two rules D1",
    "tests/core/a.test.ts: no source file has a rule A3",
  ]);
});

test("bad example: sentences without a subject, discouraged words, wishes and outside references are found", () => {
  const bad = [
    "// What is left of it.",
    "// Owns a.\n// A1: Who asks is answered.",
    "/** Limit of so many rows. */",
    "// See SPEC 4.",
    "te" + 'st("should keep a reply", f);',
    'fail("gone", "whoever asks is refused");',
    "// Begins well. Which one is open.",
    "// Whatever is left of it is kept.",
    "// The run goes on.",
    "te" + 'st("is kept after a restart", f);',
  ];
  const good = ["// What is left? Nothing.", "// Says `What is it`.", 'test("a reply is kept", f);'];
  const named = (lines: readonly string[], name: string): [string, string][] =>
    lines.map((line, at) => [`${line.startsWith("test") ? "tests" : "src"}/${name}${at}.test.ts`, line]);
  const found = wordProblems(new Map([...named(bad, "bad"), ...named(good, "good")]));
  expect([...new Set(found.map((line) => /(\w+)\.test/.exec(line)?.[1]))]).toEqual(
    bad.map((_, at) => `bad${at}`),
  );
});

test("bad example: contract descriptions and generator labels that begin with a question word are found", () => {
  const texts = new Map([
    ["src/contract/methods/a.ts", 'about(text(), "Who gets its result. Absent: nobody.");\n// Says `Who`.'],
    ["src/config/schema/b.ts", '.describe(\n  "Default true. " +\n    "Which files count.",\n)'],
    ["src/cli/commands/c.ts", '.option("--all", "which rows to show")'],
    ["tests/kit/reference/d.ts", 'prose(`*Who has it:* ${entry}`);\ntable(["tool", "who has it"]);'],
    [
      "src/contract/methods/e.ts",
      'about(text(), "The session that gets it; tell who asked."); ask("Which channel?");',
    ],
  ]);
  expect(wordProblems(texts).map((line) => line.replace(/: a message begins with.*/, ""))).toEqual([
    "src/contract/methods/a.ts:1",
    "src/config/schema/b.ts:2",
    "src/cli/commands/c.ts:1",
    "tests/kit/reference/d.ts:1",
    "tests/kit/reference/d.ts:2",
  ]);
});

test("bad example: raw colours, sizes and spaces, and undefined values are found, and nothing else", () => {
  const bad = [
    "  color: #fff;",
    "  background: rgb(0 0 0 / 40%);",
    "  font-size: 13px;",
    "  font: 0.9em / 20px var(--a);",
    "  padding: var(--a) 12px;",
    "  margin-inline-start: -8px;",
    "  gap: 0 calc(4px + var(--a));",
    "  color: var(--b);",
  ];
  const good = [
    "#add:hover {",
    "  width: 12px;",
    "  margin: -1px 98px;",
    "  font: var(--a) / 20px var(--a);",
  ];
  const texts = new Map([
    ["ui/src/styles/tokens.css", ":root {\n  --a: 12px;\n  --c: #fff;\n}"],
    ["ui/src/b.css", bad.join("\n")],
    ["ui/src/c.css", good.join("\n")],
  ]);
  const found = rules.rawStyles(texts).map((line) => line.split(":").slice(0, 2).join(":"));
  expect(found).toEqual(bad.map((_, at) => `ui/src/b.css:${at + 1}`));
});

test("a title is found after any table, with its describe blocks, and a message is found anywhere", () => {
  const source = [
    'describe.each(["before", "after"] as const)("a crash %s it", () => {',
    '  test.each<[string, () => number]>([["(", () => one(two(3))], [/[)"]/, x]])("a run is kept", f);',
    "  test.each`a | b`(`a run is named`, f);",
    "});",
  ].join("\n");
  const titles = proseOf("tests/a.test.ts", source);
  expect(titles.map(({ line, text, context }) => [line, context, text])).toEqual([
    [2, "a crash %s it", "a run is kept"],
    [3, "a crash %s it", "a run is named"],
  ]);
  const code = [
    "// A head.",
    "",
    'const HINT = { way: "Stop the gateway, then try again." };',
    "const rows = sql`select key from sessions where key is not null`;",
    'const name = "slot wanted";',
  ].join("\n");
  const messages = proseOf("src/store/a.ts", code).filter(({ kind }) => kind === "message");
  expect(messages.map(({ line, text }) => [line, text])).toEqual([[3, "Stop the gateway, then try again."]]);
});

test("bad example: paths of a machine, unpinned packages and registries are found", () => {
  const bad = ["work/x", "home/ann/x", "Users/ann", "root/.npm"].map((path) => `see /${path}`);
  const good = ["./work/x", "https://example.org/work/", "~/home/ann", "src/root/x", "/homework"];
  const texts = new Map([["docs/a.md", [...bad, ...good].join("\n")]]);
  expect(rules.machinePaths(texts).map((line) => Number(line.split(":")[1]))).toEqual([1, 2, 3, 4]);
  const manifest = JSON.stringify({
    dependencies: { a: "1.2.3", b: "^1.2.3" },
    devDependencies: { c: "latest" },
  });
  expect(rules.packageProblems(manifest, '"resolved": "https://registry.example.org/a.tgz"')).toEqual([
    "package.json: b is not pinned exactly: ^1.2.3",
    "package.json: c is not pinned exactly: latest",
    "package-lock.json: names the registry https://registry.example.org",
  ]);
});
