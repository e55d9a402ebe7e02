// Reads attachments from the folder of the Messages app. Their paths come from a program, and their content
// from strangers.
// IF1: only regular files inside the allowed folders are read. A link to a file outside is not followed.
// IF2: the number of bytes is limited, whatever size the file reports. Reading never blocks: a pipe or a
//      device is rejected.

import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, sep } from "node:path";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Replaces `~` with the home directory. */
function atHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}

const missing = (why: string): Failure => fail("file_problem", `the file could not be fetched: ${why}`);

/** Returns the real path if it is inside one of the folders, otherwise undefined. */
async function allowedPath(path: string, folders: readonly string[]): Promise<string | undefined> {
  const real = await realpath(atHome(path));
  for (const folder of folders) {
    const root = await realpath(atHome(folder)).catch(() => undefined);
    if (root !== undefined && real.startsWith(root.endsWith(sep) ? root : root + sep)) return real;
  }
  return undefined;
}

async function read(path: string, maxBytes: number, signal: AbortSignal): Promise<Result<Uint8Array>> {
  await using file = await open(path, FLAGS);
  const stats = await file.stat();
  if (!stats.isFile()) return missing("it is not a regular file");
  const tooLarge = fail("too_large", `the file has more than ${maxBytes} bytes`);
  if (stats.size > maxBytes) return tooLarge;
  // The buffer has one more byte than the file, to detect a file that is growing.
  const buffer = new Uint8Array(stats.size + 1);
  let bytes = 0;
  while (bytes < buffer.length) {
    if (signal.aborted) return missing("it was canceled");
    const { bytesRead } = await file.read(buffer, bytes, buffer.length - bytes, bytes);
    if (bytesRead === 0) break;
    bytes += bytesRead;
  }
  return bytes > maxBytes ? tooLarge : ok(buffer.slice(0, Math.min(bytes, stats.size)));
}

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
    return missing(code === "ENOENT" ? "it no longer exists" : code);
  }
}
