// Owns how a file is read that Messages keeps: its path comes from a program, what is there from strangers.
// IF1: only regular files below the folders that are allowed are read; what a link leads out of them is not.
// IF2: no more bytes are read than are wanted, whatever the file says of its size, and nothing is waited for:
//      a pipe or a device is no file.

import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, sep } from "node:path";
import { type Failure, fail, ok, type Result } from "../../core/errors.ts";

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A path of a Mac, whose home is `~`. */
function atHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}

const missing = (why: string): Failure => fail("file_problem", `the file could not be fetched: ${why}`);

/** The real path, if it is below one of the folders. */
async function allowedPath(path: string, folders: readonly string[]): Promise<string | undefined> {
  const real = await realpath(atHome(path));
  for (const folder of folders) {
    const root = await realpath(atHome(folder)).catch(() => undefined);
    if (root !== undefined && real.startsWith(root.endsWith(sep) ? root : root + sep)) return real;
  }
  return undefined;
}

async function read(path: string, maxBytes: number, signal: AbortSignal): Promise<Result<Uint8Array>> {
  const file = await open(path, FLAGS);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return missing("it is no regular file");
    const tooLarge = fail("too_large", `the file has more than ${maxBytes} bytes`);
    if (stats.size > maxBytes) return tooLarge;
    // One byte more than it should have: a file that grows is told from one that is whole.
    const buffer = new Uint8Array(stats.size + 1);
    let bytes = 0;
    while (bytes < buffer.length) {
      if (signal.aborted) return missing("it was ended from here");
      const { bytesRead } = await file.read(buffer, bytes, buffer.length - bytes, bytes);
      if (bytesRead === 0) break;
      bytes += bytesRead;
    }
    return bytes > maxBytes ? tooLarge : ok(buffer.slice(0, Math.min(bytes, stats.size)));
  } finally {
    await file.close();
  }
}

/** Reads a file that the program names. */
export async function readAttachment(
  path: string,
  folders: readonly string[],
  maxBytes: number,
  signal: AbortSignal,
): Promise<Result<Uint8Array>> {
  if (!isAbsolute(atHome(path)) || path.includes("\0")) return missing("its path is not valid");
  try {
    const real = await allowedPath(path, folders);
    if (real === undefined) return missing("it is not below channels.imessage.attachmentFolders");
    return await read(real, maxBytes, signal);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    return missing(code === "ENOENT" ? "it is not there any more" : code);
  }
}
