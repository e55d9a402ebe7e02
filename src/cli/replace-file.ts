// Replaces a file in one step: a reader sees the old text or the new one.

import { realpathSync, renameSync, statSync, writeFileSync } from "node:fs";

/** Writes a file; a link keeps pointing to its file. `mode`: of a new file; a known one keeps its mode. */
export function replaceFile(file: string, text: string, mode = 0o600): void {
  const known = statSync(file, { throwIfNoEntry: false });
  const target = known === undefined ? file : realpathSync(file);
  const beside = `${target}.parley-${process.pid}`;
  writeFileSync(beside, text, { mode: known === undefined ? mode : known.mode & 0o777 });
  renameSync(beside, target);
}
