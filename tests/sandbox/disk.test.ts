// Measures a workspace while its files change.

import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DiskBook } from "../../src/sandbox/disk.ts";
import { quietWorld, temporaryFolder } from "../kit/engine/engine.ts";

const LOOKS_MAX = 5_000;

/** Returns the number of ended child processes whose end this process has not been told of. */
function endedChildren(): number {
  const rows = execFileSync("ps", ["-A", "-o", "ppid=,stat=,comm="], { encoding: "utf8" }).split("\n");
  const ended = new RegExp(`^\\s*${process.pid}\\s+Z\\S*\\s.*du`);
  return rows.filter((row) => ended.test(row)).length;
}

test("S6: a command that starts after a deletion does not use a measurement from before it", async () => {
  const folder = temporaryFolder();
  const big = join(folder, "big");
  writeFileSync(big, Buffer.alloc(3 << 20, 1));
  const book = new DiskBook(folder, quietWorld().clock);
  const { signal } = new AbortController();
  expect(await book.atStart(2, signal)).toMatchObject({ full: true });
  const early = book.measure();
  // The event loop stands still meanwhile, so the measurement has counted the file and has not ended.
  for (let looks = 0; endedChildren() < 2 && looks < LOOKS_MAX; looks += 1);
  expect(endedChildren()).toBe(2);
  rmSync(big);
  expect(await book.atStart(2, signal)).toMatchObject({ full: false });
  expect(await early).toBeGreaterThan(2 << 20);
});
