// Owns what is to be undone after a test.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const cleanups: (() => Promise<void> | void)[] = [];

/** Undoes what was opened, last first. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** Something to undo after the test (tests/setup-file.ts); without a test runner the caller calls `cleanUp`. */
export function cleanup(action: () => Promise<void> | void): void {
  cleanups.push(action);
}

/** An empty folder that is gone after the test. */
export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), "parley-test-"));
  cleanup(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
