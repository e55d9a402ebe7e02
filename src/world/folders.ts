// Creates folders with their parents, and compares paths.
// FO1: creating a folder always terminates. Node's `recursive` option loops forever if the parent exists but
// the file system refuses new folders in it (/proc, folders of an automounter).

import { mkdirSync, statSync } from "node:fs";
import { dirname, sep } from "node:path";

/** Returns whether an absolute path is the folder or below it. Does not access the file system. */
export const isInside = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Creates a folder if it is missing. Returns false if the parent folder is missing. */
function wasMade(path: string): boolean {
  try {
    // Synchronous: in the simulation only the simulated clock may start work.
    mkdirSync(path, 0o700);
    return true;
  } catch (error) {
    if (isFolder(path)) return true;
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return false;
  }
}

/** Creates a folder and its missing parents. Only their owner may access them. */
export async function ensureFolder(path: string): Promise<void> {
  if (wasMade(path)) return;
  const above = dirname(path);
  if (!isFolder(above)) await ensureFolder(above);
  // Another process may have created it in the meantime.
  if (wasMade(path)) return;
  const text = `EPERM: no folder can be created there, mkdir '${path}'`;
  // The error looks like a system error, so that callers do not treat it as a bug.
  throw Object.assign(new Error(text), { code: "EPERM", syscall: "mkdir", path });
}
