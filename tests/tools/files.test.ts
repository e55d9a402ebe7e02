// The results of the file tools, and the paths that they refuse.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fileTools } from "../../src/tools/files/files.ts";
import { type ToolResult, toolResult } from "../../src/tools/tool.ts";
import { agentSettings, MAIN_CHAIN, settingsWith } from "./app.ts";

const SETTINGS = settingsWith();

let base: string;
let workspace: string;
let count = 0;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "parley-files-"));
  workspace = join(base, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(base, "secret.txt"), "outside");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

async function call(name: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult> {
  const tool = fileTools.find((one) => one.spec.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const ctx = {
    agent: agentSettings("main", { workspace }),
    settings: SETTINGS,
    chain: MAIN_CHAIN,
    signal: signal ?? new AbortController().signal,
    engine: { newId: () => `id-${count++}` },
  };
  return toolResult(await tool.execute(ctx, args, { callId: "c", attempt: 1, name, arguments: args }));
}

const put = (path: string, text: string | Buffer) => writeFileSync(join(workspace, path), text);
const get = (path: string) => readFileSync(join(workspace, path), "utf8");

test("a written text can be read, and missing folders are created", async () => {
  const text = "erste Zeile\nzweite Zeile ✓\n";
  const written = await call("write", { path: "a/b/c.txt", content: text });
  expect(written).toEqual({ status: "ok", path: "a/b/c.txt", bytes: Buffer.byteLength(text), created: true });
  expect(await call("read", { path: "a/b/c.txt" })).toEqual({
    status: "ok",
    path: "a/b/c.txt",
    text,
    fromLine: 1,
    lines: 2,
    totalLines: 2,
  });
  expect(await call("write", { path: "a/b/c.txt", content: "" })).toMatchObject({ created: false, bytes: 0 });
  expect(await call("read", { path: "a/b/c.txt" })).toMatchObject({ text: "", lines: 0, totalLines: 0 });
});

test("a page of lines says whether more lines follow, and names the offset of the next page", async () => {
  put("n.txt", Array.from({ length: 10 }, (_, index) => `line ${index + 1}`).join("\n"));
  expect(await call("read", { path: "n.txt", offset: 4, limit: 3 })).toEqual({
    status: "ok",
    path: "n.txt",
    text: "line 4\nline 5\nline 6\n",
    fromLine: 4,
    lines: 3,
    totalLines: 10,
    note: "More lines follow. Continue with offset 7.",
  });
  const last = await call("read", { path: "n.txt", offset: 10 });
  expect(last).toMatchObject({ text: "line 10", lines: 1, totalLines: 10 });
  expect(last).not.toHaveProperty("note");
  expect(await call("read", { path: "n.txt", offset: 11 })).toMatchObject({
    code: "invalid_argument",
    error: "offset 11 is past the end: n.txt has 10 lines",
  });
});

test("for any lines and page size, all pages together are the file", async () => {
  const lines = fc.array(fc.string({ unit: "grapheme", maxLength: 12 }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(lines, fc.integer({ min: 1, max: 7 }), async (parts, limit) => {
      const text = parts.join("\n").replaceAll("\0", "");
      put("p.txt", text);
      let joined = "";
      for (let offset = 1, total = 1; offset <= total; offset += limit) {
        const page = await call("read", { path: "p.txt", offset, limit });
        expect(page.status).toBe("ok");
        joined += page.text;
        total = Number(page.totalLines);
      }
      expect(joined).toBe(text.replace(/^\uFEFF/, ""));
    }),
    { numRuns: 60 },
  );
});

test("long files and long lines are cut, and the result names the limit", async () => {
  put("lines.txt", "x\n".repeat(5_000));
  const lines = await call("read", { path: "lines.txt", limit: 4_000 });
  expect(lines).toMatchObject({ lines: 2_000, totalLines: 5_000, truncated: true });
  expect(lines.note).toBe("Cut after line 2000 (limit: 2000 lines). Continue with offset 2001.");
  put("bytes.txt", `${"y".repeat(999)}\n`.repeat(200));
  const bytes = await call("read", { path: "bytes.txt" });
  expect(bytes).toMatchObject({ lines: 65, totalLines: 200, truncated: true });
  expect(bytes.note).toBe("Cut after line 65 (limit: 65536 bytes). Continue with offset 66.");
  put("one.txt", "é".repeat(50_000));
  const one = await call("read", { path: "one.txt" });
  expect(one).toMatchObject({ truncated: true, text: "é".repeat(32_768), totalLines: 1 });
  expect(one.note).toContain("Line 1 is longer than 65536 bytes");
});

test("if a file is too large to count its lines, the error for an offset after its end names no number of lines", async () => {
  put("large.txt", Buffer.alloc(64 * 1024 * 1024 + 2, "x"));
  const result = await call("read", { path: "large.txt", offset: 5 });
  expect(result).toMatchObject({ status: "error", code: "invalid_argument" });
  expect(result.error).toBe("offset 5 is past the end: large.txt has fewer lines");
});

test("binary files and files that are not UTF-8 are refused with a hint, and small pictures are returned as pictures", async () => {
  put("b.bin", Buffer.from([1, 2, 0, 3]));
  put("l.txt", Buffer.from("caf\xe9", "latin1"));
  for (const path of ["b.bin", "l.txt"]) {
    const result = await call("read", { path });
    expect(result).toMatchObject({
      status: "error",
      code: "file_problem",
      error: `${path} is not UTF-8 text`,
    });
    expect(result.hint).toContain("exec");
  }
  const png = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(20)]);
  put("p.png", png);
  expect(await call("read", { path: "p.png" })).toEqual({
    status: "ok",
    path: "p.png",
    mimeType: "image/png",
    bytes: 28,
    images: [{ type: "image", data: png.toString("base64"), mimeType: "image/png" }],
  });
  put("big.png", Buffer.concat([png, Buffer.alloc(4 * 1024 * 1024)]));
  expect(await call("read", { path: "big.png" })).toMatchObject({ code: "too_large" });
});

test.each([
  ["../secret.txt", "path_outside"],
  ["a/../../secret.txt", "path_outside"],
  ["/etc/passwd", "path_outside"],
  ["~/../secret.txt", "path_outside"],
  ["..", "path_outside"],
  ["link.txt", "path_outside"],
  ["folder-link/secret.txt", "path_outside"],
  ["link-to-link", "path_outside"],
  ["sibling/secret.txt", "path_outside"],
  ["sibling", "path_outside"],
  ["dangling", "path_outside"],
  ["circle", "path_outside"],
  ["a\0b", "invalid_argument"],
  ["", "invalid_argument"],
  [" ", "invalid_argument"],
  ["x".repeat(256), "invalid_argument"],
  ["x/".repeat(3000), "invalid_argument"],
  ["\ud800", "invalid_argument"],
  [".", "file_problem"],
  ["folder", "file_problem"],
  ["fifo", "file_problem"],
  ["fifo/x", "file_problem"],
  ["file.txt/x", "file_problem"],
])("I9: no tool uses the path %j: %s", async (path, code) => {
  symlinkSync(join(base, "secret.txt"), join(workspace, "link.txt"));
  symlinkSync(base, join(workspace, "folder-link"));
  symlinkSync("link.txt", join(workspace, "link-to-link"));
  symlinkSync(join(base, "not-there"), join(workspace, "dangling"));
  symlinkSync("circle", join(workspace, "circle"));
  // A folder next to the workspace. Its name begins with the name of the workspace.
  mkdirSync(`${workspace}-not`);
  writeFileSync(`${workspace}-not/secret.txt`, "outside");
  symlinkSync(`${workspace}-not`, join(workspace, "sibling"));
  mkdirSync(join(workspace, "folder"));
  put("file.txt", "inside");
  execFileSync("mkfifo", [join(workspace, "fifo")]);
  const before = readdirSync(base).join();
  for (const [name, more] of [
    ["read", {}],
    ["write", { content: "new" }],
    ["edit", { edits: [{ oldText: "outside", newText: "new" }] }],
  ] as const) {
    const result = await call(name, { path, ...more });
    expect(result, `${name}: ${JSON.stringify(result)}`).toMatchObject({ code });
    expect(String(result.error).length).toBeLessThan(400);
  }
  expect(readFileSync(join(base, "secret.txt"), "utf8")).toBe("outside");
  expect(readdirSync(base).join()).toBe(before);
});

test("the error for a link out of the workspace does not reveal whether the target exists", async () => {
  symlinkSync(join(base, "secret.txt"), join(workspace, "there"));
  symlinkSync(join(base, "absent.txt"), join(workspace, "gone"));
  symlinkSync(join(base, "secret.txt/x"), join(workspace, "odd"));
  for (const [name, more] of [
    ["read", {}],
    ["write", { content: "new" }],
  ] as const) {
    const answers = await Promise.all(
      ["there", "gone", "odd"].map(async (path) =>
        JSON.stringify(await call(name, { path, ...more })).replaceAll(path, "LINK"),
      ),
    );
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain("path_outside");
  }
});

test("F3: files in the folder that a .git file names, and in core.hooksPath, cannot be written, but files next to them can", async () => {
  put(".git", "gitdir: ./.bare\n");
  mkdirSync(join(workspace, ".bare"));
  put(".bare/config", "[core]\n\thooksPath = tools/hooks # ours\n");
  mkdirSync(join(workspace, "tools/hooks"), { recursive: true });
  symlinkSync("tools/hooks", join(workspace, "link"));
  for (const path of [
    ".bare/config",
    ".bare/hooks/post-checkout",
    "tools/hooks/pre-commit",
    "link/pre-commit",
  ]) {
    expect(await call("write", { path, content: "x" }), path).toMatchObject({
      code: "file_problem",
      error: expect.stringContaining("git's own files"),
    });
  }
  expect(readdirSync(join(workspace, "tools/hooks"))).toEqual([]);
  expect(await call("write", { path: "tools/other", content: "x" })).toMatchObject({ status: "ok" });
});

test("F3: git's own files cannot be written by any name or link, but other files of a project can", async () => {
  mkdirSync(join(workspace, ".git"));
  put(".git/config", "[core]\n");
  symlinkSync(".git", join(workspace, "link"));
  symlinkSync(".git/config", join(workspace, "settings"));
  const paths = [
    ".git/config",
    ".git/hooks/pre-commit",
    ".GIT/config",
    "a/../.git/config",
    "sub/.git",
    "link/config",
    "settings",
  ];
  for (const path of [...paths, join(workspace, ".git/config")]) {
    expect(await call("write", { path, content: "x" }), path).toMatchObject({ code: "file_problem" });
    expect(await call("edit", { path, edits: [{ oldText: "[core]", newText: "x" }] }), path).toMatchObject({
      status: "error",
    });
  }
  expect([get(".git/config"), readdirSync(join(workspace, ".git"))]).toEqual(["[core]\n", ["config"]]);
  expect(await call("read", { path: ".git/config" })).toMatchObject({ text: "[core]\n" });
  expect(await call("write", { path: ".gitignore", content: "x" })).toMatchObject({ status: "ok" });
});

test("links and absolute paths that stay inside the workspace are followed", async () => {
  mkdirSync(join(workspace, "real"));
  symlinkSync("real", join(workspace, "alias"));
  symlinkSync("real/a.txt", join(workspace, "a-link"));
  await call("write", { path: "alias/a.txt", content: "one" });
  expect(get("real/a.txt")).toBe("one");
  await call("write", { path: "a-link", content: "two" });
  expect(get("real/a.txt")).toBe("two");
  expect(await call("read", { path: join(workspace, "alias/a.txt") })).toMatchObject({ text: "two" });
  expect(await call("read", { path: "~/real/a.txt" })).toMatchObject({ text: "two", path: "real/a.txt" });
  symlinkSync(workspace, join(base, "by-link"));
  workspace = join(base, "by-link");
  expect(await call("read", { path: join(workspace, "a-link") })).toMatchObject({ text: "two" });
});

test("writing keeps the mode of a file, replaces a hard link instead of changing its target, and leaves no temporary file", async () => {
  put("run.sh", "old");
  chmodSync(join(workspace, "run.sh"), 0o750);
  linkSync(join(base, "secret.txt"), join(workspace, "hard.txt"));
  await call("write", { path: "run.sh", content: "new" });
  expect(statSync(join(workspace, "run.sh")).mode & 0o777).toBe(0o750);
  await call("write", { path: "hard.txt", content: "new" });
  expect(readFileSync(join(base, "secret.txt"), "utf8")).toBe("outside");
  await call("write", { path: "no/such/../x.txt", content: "x" });
  expect(readdirSync(workspace).sort()).toEqual(["hard.txt", "no", "run.sh"]);
});

test("edit replaces the only occurrence of the old text, and nothing else", async () => {
  put("e.txt", "\uFEFFa $& b\nc\n");
  const edits = [{ oldText: "a $& b\nc", newText: "$1 $& $$\nd" }];
  expect(await call("edit", { path: "e.txt", edits })).toEqual({ status: "ok", path: "e.txt", lines: [1] });
  expect(get("e.txt")).toBe("\uFEFF$1 $& $$\nd\n");
  put("crlf.txt", "one\r\ntwo\r\nthree\r\n");
  await call("edit", { path: "crlf.txt", edits: [{ oldText: "two\nthree", newText: "2\n3" }] });
  expect(get("crlf.txt")).toBe("one\r\n2\r\n3\r\n");
});

test("several edits are found in the text before all of them, and made in one step", async () => {
  put("e.txt", "one\ntwo\nthree\nfour\n");
  const edits = [
    { oldText: "four", newText: "one" },
    { oldText: "one", newText: "1\n1.5" },
    { oldText: "two\n", newText: "" },
  ];
  const result = await call("edit", { path: "e.txt", edits });
  expect(result).toEqual({ status: "ok", path: "e.txt", lines: [4, 1, 3] });
  expect(get("e.txt")).toBe("1\n1.5\nthree\none\n");
});

test.each([
  [[{ oldText: "nowhere", newText: "x" }], "edits[0].oldText was found 0 times in e.txt"],
  [[{ oldText: "b", newText: "x" }], "edits[0].oldText was found 3 times in e.txt, at lines 1, 2, 2"],
  [[{ oldText: "aa", newText: "x" }], "edits[0].oldText was found 2 times in e.txt, at lines 3, 3"],
  [[{ oldText: "", newText: "x" }], "edits[0].oldText must not be empty"],
  [[{ oldText: "b", newText: "b" }], "edits[0]: oldText and newText are the same: nothing to do"],
  [[{ oldText: "b", newText: "\udc00" }], "edits[0].newText holds half a character (a lone surrogate)"],
  [
    [
      { oldText: "b\nb", newText: "x" },
      { oldText: "aa\n", newText: "y" },
      { oldText: "zz", newText: "" },
    ],
    "edits[2].oldText was found 0 times in e.txt",
  ],
  [
    [
      { oldText: "b\nb", newText: "x" },
      { oldText: "a", newText: "y" },
    ],
    "edits[1].oldText was found 3 times in e.txt, at lines 3, 3, 3",
  ],
  [
    [
      { oldText: "bb\na", newText: "x" },
      { oldText: "b\nbb", newText: "y" },
    ],
    "edits[1] and edits[0] overlap in e.txt",
  ],
  [[], "edits must have 1 to 100 items, got 0"],
])("of the edits %j none is made, and the error names the one that is wrong", async (edits, error) => {
  put("e.txt", "b\nbb\naaa\n");
  expect(await call("edit", { path: "e.txt", edits })).toMatchObject({ code: "invalid_argument", error });
  expect(get("e.txt")).toBe("b\nbb\naaa\n");
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
  "read refuses %d as offset and as limit",
  async (bad) => {
    put("e.txt", "x");
    for (const name of ["offset", "limit"]) {
      expect(await call("read", { path: "e.txt", [name]: bad })).toMatchObject({
        code: "invalid_argument",
        error: `${name} must be a whole number of at least 1, got ${bad}`,
      });
    }
  },
);

test("missing files, too much text and an aborted run give a result and throw nothing", async () => {
  expect(await call("read", { path: "no.txt" })).toMatchObject({ status: "error", code: "file_not_found" });
  expect(await call("edit", { path: "no/x", edits: [{ oldText: "a", newText: "b" }] })).toMatchObject({
    code: "file_not_found",
  });
  const content = "x".repeat(10 * 1024 * 1024 + 1);
  expect(await call("write", { path: "big.txt", content })).toMatchObject({ code: "too_large" });
  const stopped = AbortSignal.abort();
  put("e.txt", "a");
  expect(await call("read", { path: "e.txt" }, stopped)).toMatchObject({ code: "run_aborted" });
  expect(await call("write", { path: "w.txt", content: "a" }, stopped)).toMatchObject({
    code: "run_aborted",
  });
  expect(existsSync(join(workspace, "w.txt"))).toBe(false);
});

test("a missing workspace is created, accessible to its owner only", async () => {
  workspace = join(base, "new/one");
  expect(await call("write", { path: "a.txt", content: "a" })).toMatchObject({ status: "ok" });
  expect(statSync(workspace).mode & 0o777).toBe(0o700);
});
