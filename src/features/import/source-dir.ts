// Reads a directory that another program wrote. Nothing in it is changed: files are opened read-only. Nothing
// outside the directory is read: links are not followed, and a name can't lead to another folder. Only
// regular files are read, up to the reader's limit.

import { constants } from "node:fs";
import { type FileHandle, lstat, open, opendir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";

/** Hint for a wrong directory. */
export const NAME_THE_DIRECTORY = "Name the state directory, like ~/.openclaw or ~/.clawdbot.";
/** Maximum number of entries per folder. */
const ENTRIES_MAX = 100_000;

export interface Named {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
}

export type Opened =
  | { readonly kind: "file"; readonly handle: FileHandle; readonly size: number }
  | { readonly kind: Exclude<Unread, "too_large"> };

/** Reason why a file was not read. */
export type Unread = "absent" | "link" | "other" | "unreadable" | "too_large";

/** The words for each reason in the import's report. */
export const UNREAD_WORDS: Readonly<Record<Unread, string>> = {
  absent: "missing",
  link: "a link",
  other: "not a regular file",
  unreadable: "not readable",
  too_large: "too large",
};

export interface SourceDir {
  /** The real path of the directory. */
  readonly root: string;
  /** Lists a folder, given by its path segments. The list is empty if the folder does not exist. */
  list(folder: readonly string[]): Promise<Named[]>;
  /** Opens a file; the caller closes the handle. */
  open(path: readonly string[]): Promise<Opened>;
}

/** Returns whether a name is a single path segment. */
export function isPlainName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && name.length <= 255 && !/[/\\\0]/.test(name);
}

/** Opens a directory for reading. The directory itself may be a link. */
export async function openSourceDir(dir: string): Promise<Result<SourceDir>> {
  const hint = NAME_THE_DIRECTORY;
  let root: string;
  try {
    root = await realpath(dir);
    if (!(await stat(root)).isDirectory()) {
      return fail("invalid_argument", `${dir} is not a directory`, { hint });
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return fail("invalid_argument", `there is no directory ${dir}`, { hint });
    if (code === undefined) throw error;
    return fail("invalid_argument", `${dir} can't be read: ${message}`, { hint });
  }
  return ok({
    root,
    list: (folder) => listFolder(root, folder),
    open: (path) => openFile(root, path),
  });
}

/**
 * Returns `fine` if the path leads through plain folders only, else the problem of the first other segment.
 */
async function walk(root: string, path: readonly string[]): Promise<"fine" | "absent" | "link" | "other"> {
  let at = root;
  for (const [index, name] of path.entries()) {
    if (!isPlainName(name)) return "other";
    at = join(at, name);
    const found = await lstat(at).catch(() => undefined);
    if (found === undefined) return "absent";
    if (found.isSymbolicLink()) return "link";
    if (index < path.length - 1 && !found.isDirectory()) return "other";
  }
  return "fine";
}

async function listFolder(root: string, folder: readonly string[]): Promise<Named[]> {
  if ((await walk(root, folder)) !== "fine") return [];
  const found: Named[] = [];
  try {
    for await (const entry of await opendir(join(root, ...folder))) {
      if (found.length === ENTRIES_MAX) break;
      found.push({
        name: entry.name,
        kind: entry.isSymbolicLink()
          ? "link"
          : entry.isFile()
            ? "file"
            : entry.isDirectory()
              ? "folder"
              : "other",
      });
    }
  } catch {
    return [];
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function openFile(root: string, path: readonly string[]): Promise<Opened> {
  const way = await walk(root, path);
  if (way !== "fine") return { kind: way };
  try {
    // O_NONBLOCK: opening a named pipe must not wait for a writer.
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
    const handle = await open(join(root, ...path), flags);
    const found = await handle.stat();
    if (found.isFile()) return { kind: "file", handle, size: found.size };
    await handle.close();
    return { kind: "other" };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { kind: code === "ENOENT" ? "absent" : code === "ELOOP" ? "link" : "unreadable" };
  }
}

/** Reads a whole file of at most `bytesMax`, or returns why it was not read. */
export async function readWhole(
  source: SourceDir,
  path: readonly string[],
  bytesMax: number,
): Promise<Buffer | Unread> {
  const opened = await source.open(path);
  if (opened.kind !== "file") return opened.kind;
  const { size } = opened;
  await using handle = opened.handle;
  try {
    if (size > bytesMax) return "too_large";
    const bytes = Buffer.alloc(size);
    let read = 0;
    while (read < size) {
      const { bytesRead } = await handle.read(bytes, read, size - read, read);
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    return bytes.subarray(0, read);
  } catch {
    return "unreadable";
  }
}
