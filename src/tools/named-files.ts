// Reads the files that a command names, to find out later whether they have changed.
// A process that runs at that time can still change a file between this check and the command.

import { createHash } from "node:crypto";
import { readFile, realpath, stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { type NamedFiles, readNames } from "../core/rules/approval/named-files.ts";
import { isInside } from "../world/folders.ts";

/** Number of bytes that are read. Files beyond it count by their size, inode and time of change. */
const READ_MAX_BYTES = 20_000_000;
/** Number of folders, named in the command, in which names are looked up besides the workspace. */
const FOLDERS_MAX = 5;

/** Returns the files that the command names, with the digests of their content. */
export async function readNamedFiles(workspace: string, command: string): Promise<NamedFiles> {
  const root = await realpath(workspace).catch(() => workspace);
  const names = readNames(command);
  const folders = [root];
  const files = new Map<string, string>();
  let bytesLeft = READ_MAX_BYTES;
  for (const folder of folders) {
    for (const name of names) {
      const path = await realpath(resolve(folder, name)).catch(() => "");
      const found = path === "" ? undefined : await stat(path).catch(() => undefined);
      const isFolder = found?.isDirectory() === true && isInside(root, path);
      if (isFolder && folders.length <= FOLDERS_MAX && !folders.includes(path)) folders.push(path);
      if (found?.isFile() !== true || files.has(path)) continue;
      const { size, ino, ctimeMs } = found;
      const content = size > bytesLeft ? undefined : await readFile(path).catch(() => undefined);
      bytesLeft -= content?.length ?? 0;
      const digest = content && createHash("sha256").update(content).digest("hex");
      files.set(path, digest ?? `${size} ${ino} ${ctimeMs}`);
    }
  }
  return [...files].map(([path, content]) => [relative(root, path), content]);
}
