// What happens when something is swapped between the look at a path and its use.

import { execFileSync } from "node:child_process";
import {
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
import { findPlace, makeFolder, openToRead, type Place, replaceFile } from "../../src/tools/workspace.ts";

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

async function place(path = "folder/a.txt"): Promise<Place> {
  const found = await findPlace(workspace, path, { createFolders: false });
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

test.each(SWAPS)("X2: a read that meets %s is refused and does not block", async (_, swapNow) => {
  const seen = await place();
  swapNow();
  expect(await openToRead(seen)).toMatchObject({ ok: false, code: "file_problem" });
});

test("a write that meets a folder swapped for a link leaves the other side alone", async () => {
  const seen = await place();
  swap("folder", () => symlinkSync(join(base, "outside"), at("folder")));
  expect(await replaceFile(seen, "changed", "id")).toMatchObject({ ok: false, code: "file_problem" });
  expect(readFileSync(join(base, "outside/a.txt"), "utf8")).toBe("outside");
  expect(readdirSync(join(base, "outside"))).toEqual(["a.txt"]);
});

test("X3: a write that meets a link in the place of its file replaces the link, not what it points to", async () => {
  const seen = await place();
  swap("folder/a.txt", () => symlinkSync(join(base, "outside/a.txt"), at("folder/a.txt")));
  expect(await replaceFile(seen, "changed", "id")).toEqual({ ok: true, value: undefined });
  expect(readFileSync(at("folder/a.txt"), "utf8")).toBe("changed");
  expect(readFileSync(join(base, "outside/a.txt"), "utf8")).toBe("outside");
});

test("a temporary file that somebody put there first is neither used nor removed through", async () => {
  symlinkSync(join(base, "outside/a.txt"), at("folder/.parley-id.tmp"));
  expect(await replaceFile(await place(), "changed", "id")).toMatchObject({ ok: false });
  expect(readFileSync(join(base, "outside/a.txt"), "utf8")).toBe("outside");
});

test("folders are made inside only", async () => {
  symlinkSync(join(base, "outside"), at("out"));
  expect(await makeFolder(workspace, "x/y")).toEqual({ ok: true, value: at("x/y") });
  expect(await makeFolder(workspace, "out/y")).toMatchObject({ ok: false, code: "path_outside" });
  expect(await makeFolder(workspace, "folder/a.txt/y")).toMatchObject({ ok: false, code: "file_problem" });
  expect(readdirSync(join(base, "outside"))).toEqual(["a.txt"]);
});
