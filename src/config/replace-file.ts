// Replaces a file atomically: a reader gets either the whole old text or the whole new one, even after a
// power cut.

import {
  chownSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";

/** Creates a file, and returns when its content is on the disk. */
function writeNew(file: string, text: string, mode: number): void {
  const handle = openSync(file, "wx", mode);
  try {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at);
    fchmodSync(handle, mode);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Writes a file. If the path is a link, replaces the file that it points to. An existing file keeps its mode
 * and its owner; `mode` is used only for a new file. If this function throws, the file is unchanged.
 */
export function replaceFile(file: string, text: string, mode = 0o600): void {
  const known = statSync(file, { throwIfNoEntry: false });
  if (known === undefined && lstatSync(file, { throwIfNoEntry: false }) !== undefined)
    throw new Error(`${file} is a link to a missing file`);
  const target = known === undefined ? file : realpathSync(file);
  const beside = `${target}.parley-${process.pid}`;
  rmSync(beside, { force: true });
  try {
    writeNew(beside, text, known === undefined ? mode : known.mode & 0o7777);
    const own = statSync(beside);
    if (known !== undefined && (own.uid !== known.uid || own.gid !== known.gid))
      chownSync(beside, known.uid, known.gid);
    renameSync(beside, target);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}
