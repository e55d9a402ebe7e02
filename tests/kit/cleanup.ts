// Owns what is to be undone after a test.

import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** In memory, where nothing waits for a disk. */
const MEMORY = "/dev/shm";
const MEMORY_MIN_BYTES = 4 * 1024 ** 3;

function isRoomy(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= MEMORY_MIN_BYTES;
  } catch {
    return false;
  }
}

/** Where tests put their files. */
export const GROUND = isRoomy(MEMORY) ? MEMORY : tmpdir();

const cleanups: (() => Promise<void> | void)[] = [];

/** Undoes what was opened, last first. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** Something to undo after the test (tests/setup-file.ts); without a test runner the caller calls `cleanUp`. */
export function cleanup(action: () => Promise<void> | void): void {
  cleanups.push(action);
}

/**
 * An empty folder that is gone after the test. `ground`: where it is made. A workspace that is to be contained can't
 * lie in memory, which is a part of the system's /dev. Default: in memory, if there is room.
 */
export function temporaryFolder(ground = GROUND): string {
  const dir = mkdtempSync(join(ground, "parley-test-"));
  cleanup(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
