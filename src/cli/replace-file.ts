// Replaces a file atomically: a reader gets either the old text or the new one.

import { realpathSync, renameSync, statSync, writeFileSync } from "node:fs";

/**
 * Writes a file. If the path is a link, replaces the file that it points to. An existing file keeps its mode;
 * `mode` is for a new one.
 */
export function replaceFile(file: string, text: string, mode = 0o600): void {
  const known = statSync(file, { throwIfNoEntry: false });
  const target = known === undefined ? file : realpathSync(file);
  const beside = `${target}.parley-${process.pid}`;
  writeFileSync(beside, text, { mode: known === undefined ? mode : known.mode & 0o777 });
  renameSync(beside, target);
}
