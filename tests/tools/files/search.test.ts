// The results of grep and glob, and what they leave out.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fileTools } from "../../../src/tools/files/files.ts";
import { type ToolResult, toolResult } from "../../../src/tools/tool.ts";
import { agentSettings, MAIN_CHAIN, settingsWith } from "../app.ts";

let base: string;
let workspace: string;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "parley-search-"));
  workspace = join(base, "workspace");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function put(files: Readonly<Record<string, string | Buffer>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), text);
  }
}

async function call(name: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult> {
  const tool = fileTools.find((one) => one.spec.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const ctx = {
    agent: agentSettings("main", { workspace }),
    settings: settingsWith(),
    chain: MAIN_CHAIN,
    signal: signal ?? new AbortController().signal,
    engine: { newId: () => "id" },
  };
  return toolResult(await tool.execute(ctx, args, { callId: "c", attempt: 1, name, arguments: args }));
}

const globbed = async (pattern: string, more = {}) => (await call("glob", { pattern, ...more })).paths;

test("grep returns path, number and text of each matching line, in the order of the paths", async () => {
  put({ "b.txt": "one\r\nTwo\r\n", "a/c.txt": "two\nthree", "a.txt": "no", "bin.dat": Buffer.from("two\0") });
  expect(await call("grep", { pattern: "^two$", ignoreCase: true })).toEqual({
    status: "ok",
    matches: [
      { path: "a/c.txt", line: 1, text: "two" },
      { path: "b.txt", line: 2, text: "Two" },
    ],
  });
  expect(await call("grep", { pattern: "t", path: "a", glob: "*.{md,txt}" })).toMatchObject({
    matches: [
      { path: "a/c.txt", line: 1 },
      { path: "a/c.txt", line: 2 },
    ],
  });
  expect(await call("grep", { pattern: "o", path: "b.txt" })).toMatchObject({
    matches: [{ path: "b.txt" }, {}],
  });
});

test("a glob without a slash matches in every folder, one with a slash from the start of the search", async () => {
  put({
    "a.ts": "",
    "src/a.ts": "",
    "src/deep/b.tsx": "",
    "src/deep/[x].ts": "",
    "src/c.js": "",
    ".hidden/d.ts": "",
  });
  expect(await globbed("*.ts")).toEqual([".hidden/d.ts", "a.ts", "src/a.ts", "src/deep/[x].ts"]);
  expect(await globbed("src/*.{ts,js}")).toEqual(["src/a.ts", "src/c.js"]);
  expect(await globbed("src/**/?.ts*")).toEqual(["src/a.ts", "src/deep/b.tsx"]);
  expect(await globbed("**/[!a]*.ts*", { path: "src" })).toEqual(["src/deep/[x].ts", "src/deep/b.tsx"]);
  expect(await globbed("\\[x].ts")).toEqual(["src/deep/[x].ts"]);
});

test("SE2: .git and what .gitignore files exclude are left out, unless they are named as path", async () => {
  put({
    ".git/config": "text",
    ".gitignore": "# built\n/dist/\n*.log\n!keep.log\nnode_modules\n",
    "dist/a.txt": "text",
    "src/dist/a.txt": "text",
    "src/.gitignore": "/x.txt\n",
    "src/x.txt": "text",
    "src/y/x.txt": "text",
    "node_modules/p/a.txt": "text",
    "a.log": "text",
    "src/keep.log": "text",
  });
  const seen = ["src/dist/a.txt", "src/keep.log", "src/y/x.txt"];
  const { matches } = await call("grep", { pattern: "text" });
  expect((matches as { path: string }[]).map(({ path }) => path)).toEqual(seen);
  expect(await globbed("**/*.{txt,log}")).toEqual(seen);
  expect(await globbed("*", { path: "dist" })).toEqual(["dist/a.txt"]);
});

test("SE1: a search follows no link, and starts at no path outside the workspace", async () => {
  put({ "in/a.txt": "s3cret inside" });
  mkdirSync(join(base, "out"));
  writeFileSync(join(base, "out/a.txt"), "s3cret");
  symlinkSync(join(base, "out"), join(workspace, "link"));
  symlinkSync(join(base, "out/a.txt"), join(workspace, "file"));
  symlinkSync(".", join(workspace, "in/loop"));
  expect(await call("grep", { pattern: "s3cret" })).toMatchObject({ matches: [{ path: "in/a.txt" }] });
  expect(await globbed("**")).toEqual(["in/a.txt"]);
  for (const path of ["../out", "link", join(base, "out")])
    expect(await call("grep", { pattern: "s3cret", path })).toMatchObject({ code: "path_outside" });
});

test("a result that reaches its limit says so, and names the limit", async () => {
  put({ "a.txt": `${"x".repeat(1_000)}\n`.repeat(300), "b.txt": "x" });
  const few = await call("grep", { pattern: "x", limit: 2 });
  expect(few).toMatchObject({ truncated: true, matches: [{ text: "x".repeat(400) }, { line: 2 }] });
  expect(few.note).toContain("its limit of 2 matches");
  const many = await call("grep", { pattern: "x", limit: 1_000 });
  expect(many.note).toContain("its limit of 65536 bytes");
  expect((await call("glob", { pattern: "*", limit: 1 })).note).toContain("its limit of 1 paths");
});

test("an invalid pattern, a missing path and an aborted run are failures in words", async () => {
  put({ "a.txt": "x" });
  const wrong = await call("grep", { pattern: "(" });
  expect(wrong).toMatchObject({ code: "invalid_argument" });
  expect(wrong.error).toContain('pattern "(" is invalid');
  expect(await call("glob", { pattern: "[z-a]" })).toMatchObject({ code: "invalid_argument" });
  expect(await call("grep", { pattern: "x", path: "no" })).toMatchObject({ code: "file_not_found" });
  expect(await call("grep", { pattern: "x" }, AbortSignal.abort())).toMatchObject({ code: "run_aborted" });
});

test("a pattern that never ends holds up its own process only, which an abort kills", async () => {
  put({ "a.txt": `${"a".repeat(60)}!` });
  const stop = new AbortController();
  const endless = call("grep", { pattern: "^(a+)+$" }, stop.signal);
  expect(await call("grep", { pattern: "!" })).toMatchObject({ matches: [{ path: "a.txt" }] });
  stop.abort();
  expect(await endless).toMatchObject({ code: "run_aborted" });
});

const LONG_NAME = "a".repeat(200);

test.each([
  ["stars", "*a*a*a*a*a*a*a*a*b"],
  ["folders", `${"**/".repeat(40)}b`],
  ["stars and folders", `${"**/*a*a*a*a*/".repeat(10)}b`],
  ["blanks", `x${" ".repeat(60_000)}y`],
  ["open brackets", "[".repeat(60_000)],
  ["many rules", "*a*a*b\n".repeat(9_000)],
])("GP1: a .gitignore file with %s does not stop a search", async (_, rules) => {
  put({ ".gitignore": `${rules}\n*.log\n`, "no.log": "two" });
  put({ [[...Array(5).fill(LONG_NAME), "in.txt"].join("/")]: "two", [LONG_NAME + "a".repeat(50)]: "two" });
  const { status, matches } = await call("grep", { pattern: "two" });
  expect(status).toBe("ok");
  expect(matches).toHaveLength(2);
});
