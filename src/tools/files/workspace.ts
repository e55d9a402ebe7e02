// Confines an agent's file tools to its workspace. A path is resolved here part by part, not by the operating
// system; a link is followed only to a path inside the workspace.
// X2: only regular files are opened, which is checked on the open handle. Opening never blocks, even on a
// pipe or device.
// X3: a file is replaced by renaming a temporary file, so a reader sees either the old or the new text.
// A process that swaps folders between check and use gains nothing: on Linux the real path of the open handle
// is checked, and a file is replaced through its folder's handle. On other systems the path is checked again
// after opening. In the worst case an empty folder is created outside.

import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { ensureFolder, isInside } from "../../world/folders.ts";

const PATH_MAX_BYTES = 4_096;
const PART_MAX_BYTES = 255;

/**
 * A resolved path in the workspace. Its folder is inside the workspace, and no part of the path is a link.
 */
export interface WorkspacePath {
  /** The path relative to the workspace, as results show it. */
  readonly shown: string;
  /** The absolute path, with links resolved. */
  readonly real: string;
  /** The type of the entry at this path. */
  readonly found: "file" | "folder" | "nothing";
  /** Permission bits of an existing file. */
  readonly mode: number;
}

interface Walk {
  readonly root: string;
  readonly shown: string;
  readonly createFolders: boolean;
}

const errnoOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;

/** Converts an expected error of the file system to a failure. Any other error is a bug and is thrown. */
export function fileFailure(error: unknown, shown: string): Failure {
  const code = errnoOf(error);
  if (code === undefined) throw error;
  const known: Readonly<Record<string, string>> = {
    EACCES: "is not accessible: permission denied",
    EPERM: "is not accessible: not permitted",
    ENOSPC: "could not be written: the disk is full",
    EFBIG: "could not be written: it is larger than the space left in the quota of the workspace",
    EDQUOT: "could not be written: the disk quota is used up",
    EROFS: "could not be written: the file system is read-only",
    ENAMETOOLONG: "has a name that is too long for this file system",
    EMFILE: "could not be opened: too many open files",
    ELOOP: "is a symbolic link that was created meanwhile, or a loop of links",
    ENOTDIR: "goes through something that is not a folder",
    EISDIR: "is a folder",
  };
  if (code === "ENOENT")
    return fail("file_not_found", `${shown} does not exist`, {
      hint: LIST_FOLDER,
    });
  return fail("file_problem", `${shown} ${known[code] ?? `failed with ${code}`}`);
}

const LIST_FOLDER = "List the folder with exec: ls -la.";

const outside = (shown: string, how: string): Failure =>
  fail("path_outside", `${shown} ${how}`, { hint: "Use a path inside the workspace, relative to it." });

/** Splits a path below the workspace into parts, or returns a failure. Reads nothing. */
function partsOf(root: string, workspace: string, path: string): Result<string[]> {
  const shown = quoted(path, 200);
  if (path.trim() === "") return fail("invalid_argument", "path must not be empty");
  if (path.includes("\0")) return fail("invalid_argument", `path ${shown} has a NUL byte in it`);
  if (!path.isWellFormed()) return fail("invalid_argument", `path ${shown} is not valid Unicode`);
  if (Buffer.byteLength(path) > PATH_MAX_BYTES) {
    return fail("invalid_argument", `path ${shown} is longer than ${PATH_MAX_BYTES} bytes`);
  }
  const fromHome = path === "~" || path.startsWith("~/") ? `.${path.slice(1)}` : path;
  const named = resolve(workspace);
  // The workspace may be a link, so an absolute path may begin with the link or with its target.
  const base = isAbsolute(path) && isInside(named, resolve(path)) ? named : root;
  const below = relative(base, resolve(base, fromHome));
  if (below === ".." || below.startsWith(`..${sep}`) || isAbsolute(below)) {
    return outside(shown, "is outside the workspace");
  }
  // Checks the whole path before any folder is created; otherwise the system would refuse the path after
  // creating some of its folders.
  if (Buffer.byteLength(join(root, below)) >= PATH_MAX_BYTES) {
    return fail("invalid_argument", `path ${shown} is too long when appended to the workspace`);
  }
  const parts = below === "" ? [] : below.split(sep);
  const long = parts.find((part) => Buffer.byteLength(part) > PART_MAX_BYTES);
  if (long === undefined) return ok(parts);
  return fail("invalid_argument", `path ${shown} has a name longer than ${PART_MAX_BYTES} bytes`);
}

/**
 * Returns the real path of the workspace folder. Creates the folder if it is missing. Its path may contain
 * links, because the operator chose it.
 */
export async function openWorkspace(workspace: string): Promise<Result<string>> {
  try {
    await ensureFolder(workspace);
    return ok(await realpath(workspace));
  } catch (error) {
    return fileFailure(error, `the workspace ${workspace}`);
  }
}

/**
 * Steps into a folder. A link must lead to a path inside the workspace. A missing folder is created if the
 * walk creates folders.
 */
async function stepInto(walk: Walk, folder: string, part: string): Promise<Result<string>> {
  const next = join(folder, part);
  let status = await lstat(next).catch(nothingThere);
  if (status === undefined && walk.createFolders) {
    await mkdir(next, 0o755).catch((error: unknown) => {
      if (errnoOf(error) !== "EEXIST") throw error;
    });
    status = await lstat(next);
  }
  if (status === undefined) return fail("file_not_found", `${walk.shown} does not exist: no folder ${part}`);
  if (status.isSymbolicLink()) return followLink(walk, next);
  if (status.isDirectory()) return ok(next);
  return fail("file_problem", `${walk.shown} goes through ${part}, which is not a folder`);
}

/** Resolves a link. For a link that leads out, the answer is the same whether or not its target exists. */
async function followLink(walk: Walk, link: string): Promise<Result<string>> {
  const target = await realpath(link).catch(() => undefined);
  if (target !== undefined && isInside(walk.root, target)) return ok(target);
  const shownLink = relative(walk.root, link);
  return outside(
    walk.shown,
    `leaves the workspace, or leads nowhere, through the symbolic link ${shownLink}`,
  );
}

function nothingThere(error: unknown): undefined {
  if (errnoOf(error) !== "ENOENT") throw error;
}

/**
 * Resolves a path in the workspace. `createFolders`: creates missing folders. Refuses paths that leave the
 * workspace, dangling links, and entries that are neither a file nor a folder.
 */
export async function resolvePath(
  workspace: string,
  path: string,
  options: { createFolders: boolean },
): Promise<Result<WorkspacePath>> {
  const root = await openWorkspace(workspace);
  if (!root.ok) return root;
  const parts = partsOf(root.value, workspace, path);
  if (!parts.ok) return parts;
  const shown = parts.value.join("/") || ".";
  try {
    return await walkTo({ root: root.value, shown, createFolders: options.createFolders }, parts.value);
  } catch (error) {
    return fileFailure(error, shown);
  }
}

async function walkFolders(walk: Walk, parts: readonly string[]): Promise<Result<string>> {
  let real = walk.root;
  for (const part of parts) {
    const step = await stepInto(walk, real, part);
    if (!step.ok) return step;
    real = step.value;
  }
  return ok(real);
}

async function walkTo(walk: Walk, parts: readonly string[]): Promise<Result<WorkspacePath>> {
  const { shown } = walk;
  const folder = await walkFolders(walk, parts.slice(0, -1));
  if (!folder.ok) return folder;
  const name = parts.at(-1);
  if (name === undefined) return ok({ shown, real: folder.value, found: "folder", mode: 0 });
  let real = join(folder.value, name);
  let status = await lstat(real).catch(nothingThere);
  if (status?.isSymbolicLink()) {
    const target = await followLink(walk, real);
    if (!target.ok) return target;
    real = target.value;
    status = await lstat(real);
  }
  if (status === undefined) return ok({ shown, real, found: "nothing", mode: 0 });
  if (status.isDirectory()) return ok({ shown, real, found: "folder", mode: 0 });
  if (status.isFile()) return ok({ shown, real, found: "file", mode: status.mode & 0o777 });
  return fail("file_problem", `${shown} is a special file (pipe, socket or device), not a regular file`);
}

const isLinux = process.platform === "linux";
const byHandle = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`;

/** Returns whether an open handle has this real path. Returns true if the system can't tell. */
async function leadsTo(handle: FileHandle, real: string): Promise<boolean> {
  const leads = isLinux ? await readlink(byHandle(handle)).catch(nothingThere) : undefined;
  return leads === undefined || leads === real;
}

/** Opens a file for reading, and checks on the handle that it is the regular file at this path. */
export async function openToRead(place: WorkspacePath): Promise<Result<FileHandle>> {
  if (place.found === "nothing")
    return fail("file_not_found", `${place.shown} does not exist`, {
      hint: LIST_FOLDER,
    });
  if (place.found === "folder") {
    return fail("file_problem", `${place.shown} is a folder`, { hint: LIST_FOLDER });
  }
  let handle: FileHandle | undefined;
  try {
    handle = await open(place.real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const opened = await handle.stat();
    const named = await lstat(place.real);
    const stillThere =
      (await leadsTo(handle, place.real)) && (await realpath(dirname(place.real))) === dirname(place.real);
    if (opened.isFile() && stillThere && opened.ino === named.ino && opened.dev === named.dev)
      return ok(handle);
    await handle.close();
    return fail("file_problem", `${place.shown} was swapped while it was being opened`);
  } catch (error) {
    await handle?.close();
    return fileFailure(error, place.shown);
  }
}

const swapError = (): Error => Object.assign(new Error("swapped"), { code: "ELOOP" });

/** Opens a folder and returns a path that can't be redirected. `release` closes it. */
async function holdFolder(folder: string): Promise<{ path: string; release(): Promise<void> }> {
  if (!isLinux) return { path: folder, release: async () => undefined };
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const handle = await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (await leadsTo(handle, folder)) return { path: byHandle(handle), release: () => handle.close() };
  await handle.close();
  throw swapError();
}

/** Replaces a file's text in one step. `temporaryId` names the temporary file beside it. */
export async function replaceFile(
  place: WorkspacePath,
  text: string,
  temporaryId: string,
): Promise<Result<void>> {
  if (place.found === "folder") return fail("file_problem", `${place.shown} is a folder`);
  try {
    const folder = await holdFolder(dirname(place.real));
    try {
      await replaceIn(folder.path, place, text, `.parley-${temporaryId}.tmp`);
    } finally {
      await folder.release();
    }
    return ok(undefined);
  } catch (error) {
    return fileFailure(error, place.shown);
  }
}

async function replaceIn(
  folder: string,
  place: WorkspacePath,
  text: string,
  temporaryName: string,
): Promise<void> {
  const temporary = join(folder, temporaryName);
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  try {
    const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
    try {
      await handle.writeFile(text);
      if (place.found === "file") await handle.chmod(place.mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const above = dirname(place.real);
    if (!isLinux && (await realpath(above)) !== above) throw swapError();
    await rename(temporary, join(folder, basename(place.real)));
  } catch (error) {
    await rm(temporary, { force: true }).catch(nothingThere);
    throw error;
  }
}
