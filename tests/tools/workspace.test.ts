// Files that are replaced between the check of a path and its use.

import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openToRead, replaceFile, resolvePath, type WorkspacePath } from "../../src/tools/files/workspace.ts";
import { swapRace } from "./swap-race.ts";

let base: string;
let workspace: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "parley-workspace-"));
  workspace = join(base, "workspace");
  mkdirSync(join(workspace, "folder"), { recursive: true });
  mkdirSync(join(base, "outside"));
  writeFileSync(join(workspace, "folder/a.txt"), "inside");
  writeFileSync(join(base, "outside/a.txt"), "outside");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

async function place(path = "folder/a.txt"): Promise<WorkspacePath> {
  const found = await resolvePath(workspace, path, { createFolders: false });
  if (!found.ok) throw new Error(found.error);
  return found.value;
}

const SWAPS: readonly (readonly [string, () => void])[] = [
  [
    "a file for a link",
    () => swap("folder/a.txt", () => symlinkSync(join(base, "outside/a.txt"), at("folder/a.txt"))),
  ],
  ["a folder for a link", () => swap("folder", () => symlinkSync(join(base, "outside"), at("folder")))],
  ["a file for a pipe", () => swap("folder/a.txt", () => execFileSync("mkfifo", [at("folder/a.txt")]))],
];
const at = (path: string): string => join(workspace, path);
function swap(path: string, make: () => void): void {
  renameSync(at(path), join(base, "moved"));
  make();
}

test.each(SWAPS)("X2: if a read meets %s, it is refused and does not block", async (_, swapNow) => {
  const seen = await place();
  swapNow();
  expect(await openToRead(seen)).toMatchObject({ ok: false, code: "file_problem" });
});

test("if a folder is replaced by a link during a write, the link's target stays unchanged", async () => {
  const seen = await place();
  swap("folder", () => symlinkSync(join(base, "outside"), at("folder")));
  expect(await replaceFile(seen, "changed", "id")).toMatchObject({ ok: false, code: "file_problem" });
  expect(readFileSync(join(base, "outside/a.txt"), "utf8")).toBe("outside");
  expect(readdirSync(join(base, "outside"))).toEqual(["a.txt"]);
});

test("X3: if a link has replaced a file, a write replaces the link, and the link's target stays unchanged", async () => {
  const seen = await place();
  swap("folder/a.txt", () => symlinkSync(join(base, "outside/a.txt"), at("folder/a.txt")));
  expect(await replaceFile(seen, "changed", "id")).toEqual({ ok: true, value: undefined });
  expect(readFileSync(at("folder/a.txt"), "utf8")).toBe("changed");
  expect(readFileSync(join(base, "outside/a.txt"), "utf8")).toBe("outside");
});

test("a temporary file that exists already is neither used nor followed", async () => {
  symlinkSync(join(base, "outside/a.txt"), at("folder/.parley-id.tmp"));
  expect(await replaceFile(await place(), "changed", "id")).toMatchObject({ ok: false });
  expect(readFileSync(join(base, "outside/a.txt"), "utf8")).toBe("outside");
});

test("folders are created only inside the workspace", async () => {
  symlinkSync(join(base, "outside"), at("out"));
  const made = (path: string) => resolvePath(workspace, path, { createFolders: true });
  expect(await made("x/y/z")).toMatchObject({ ok: true, value: { real: at("x/y/z"), found: "nothing" } });
  expect(existsSync(at("x/y"))).toBe(true);
  expect(await made("out/y/z")).toMatchObject({ ok: false, code: "path_outside" });
  expect(await made("folder/a.txt/y/z")).toMatchObject({ ok: false, code: "file_problem" });
  expect(readdirSync(join(base, "outside"))).toEqual(["a.txt"]);
});

// workspace.deep.test.ts uses more rounds.
swapRace(500);
