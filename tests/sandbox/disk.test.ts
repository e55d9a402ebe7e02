// Measures a workspace while its files change.

import { execFileSync } from "node:child_process";
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DiskBook, diskLook } from "../../src/sandbox/disk.ts";
import { quietWorld, temporaryFolder } from "../kit/engine/engine.ts";

const LOOKS_MAX = 5_000;

/** Returns the number of ended child processes whose end this process has not been told of. */
function endedChildren(): number {
  const rows = execFileSync("ps", ["-A", "-o", "ppid=,stat=,comm="], { encoding: "utf8" }).split("\n");
  const ended = new RegExp(`^\\s*${process.pid}\\s+Z\\S*\\s.*du`);
  return rows.filter((row) => ended.test(row)).length;
}

test.each([
  ["hides no data continues", false],
  ["may hide data is stopped", true],
])("if the disk fills outside the workspace, a command that %s", async (_what, mayHide) => {
  const [folder, elsewhere] = [temporaryFolder(), temporaryFolder()];
  const book = new DiskBook(folder, quietWorld().clock);
  let stopped = false;
  const stop = (): void => {
    stopped = true;
  };
  const look = diskLook(book, {
    quotaMb: 1,
    usedAtStart: await book.measure(),
    mayHide: () => mayHide,
    stop,
  });
  // Much more than the limit, because other programs may delete files meanwhile.
  const fd = openSync(join(elsewhere, "big"), "w");
  for (let written = 0; written < 64; written += 1) writeSync(fd, Buffer.alloc(1 << 20, 1));
  fsyncSync(fd);
  closeSync(fd);
  look();
  await book.measure();
  expect(stopped).toBe(mayHide);
});

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
