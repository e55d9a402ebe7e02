// Clean-up after a test.

import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Temporary files are in memory, so that no test waits for a disk. */
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

/** The folder for files of tests. */
export const GROUND = isRoomy(MEMORY) ? MEMORY : tmpdir();

const cleanups: (() => Promise<void> | void)[] = [];

/** Runs the registered clean-up steps in reverse order. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/**
 * Registers a clean-up step that runs after the test (tests/setup-file.ts). Without a test runner, the
 * caller calls `cleanUp`.
 */
export function cleanup(action: () => Promise<void> | void): void {
  cleanups.push(action);
}

/**
 * Makes an empty folder that is removed after the test. `ground`: its parent folder. Default: in memory,
 * if there is space. A sandboxed workspace must be on a disk, because the sandbox replaces /dev.
 */
export function temporaryFolder(ground = GROUND): string {
  const dir = mkdtempSync(join(ground, "parley-test-"));
  cleanup(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
