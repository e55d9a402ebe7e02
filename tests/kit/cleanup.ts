// Steps that clean up after a test.

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

/** The parent of all temporary folders of tests. */
export const GROUND = isRoomy(MEMORY) ? MEMORY : tmpdir();

type Action = () => Promise<void> | void;

const cleanups: Action[] = [];
const fileCleanups: Action[] = [];

/** Runs the registered clean-up steps in reverse order. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** Opens something that all tests of a file share. It is cleaned up after the file. */
export async function forFile<T>(open: () => Promise<T>): Promise<T> {
  const ofTest = cleanups.splice(0);
  try {
    return await open();
  } finally {
    fileCleanups.push(...cleanups.splice(0));
    cleanups.push(...ofTest);
  }
}

/** Runs the clean-up steps of `forFile`. */
export async function cleanUpFile(): Promise<void> {
  cleanups.push(...fileCleanups.splice(0));
  await cleanUp();
}

/**
 * Registers a clean-up step that runs after the test (tests/setup-file.ts). In a program without a test
 * runner, the program calls `cleanUp`.
 */
export function cleanup(action: Action): void {
  cleanups.push(action);
}

/**
 * Makes an empty folder that is removed after the test. `ground` is its parent folder: by default one in
 * memory, if it has space. A sandboxed workspace must be on a disk, because the sandbox replaces /dev.
 */
export function temporaryFolder(ground = GROUND): string {
  const dir = mkdtempSync(join(ground, "parley-test-"));
  cleanup(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
