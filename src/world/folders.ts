// Owns how a folder comes to be, with those above it, and what is inside of it.
// FO1: asking ends, wherever the folder is to be: Node's own `recursive` never does where the folder above is
//      there and the file system makes none in it (/proc, the folders of an automounter).

import { mkdirSync, statSync } from "node:fs";
import { dirname, sep } from "node:path";

/** Whether a whole path is that of the folder, or of something below it. Nothing is looked up. */
export const isInside = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Makes one folder, if it is not there. False: the system says that the one above is missing. */
function wasMade(path: string): boolean {
  try {
    // At once, not in the background: in the simulation nothing happens but what its own clock knows of.
    mkdirSync(path, 0o700);
    return true;
  } catch (error) {
    if (isFolder(path)) return true;
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return false;
  }
}

/** Makes what is missing of a folder and those above it, for their owner alone. */
export async function ensureFolder(path: string): Promise<void> {
  if (wasMade(path)) return;
  const above = dirname(path);
  if (!isFolder(above)) await ensureFolder(above);
  // If it is there, somebody else may have made it a moment ago.
  if (wasMade(path)) return;
  const text = `EPERM: no folder can be made there, mkdir '${path}'`;
  // As the system's own: whoever tells people of those, and of no bug, tells of this one too.
  throw Object.assign(new Error(text), { code: "EPERM", syscall: "mkdir", path });
}
