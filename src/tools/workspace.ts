// Owns where an agent's file tools may go: nowhere but its workspace.
// X1: a path is taken apart by us, part by part, never handed to the system whole; a link is followed only to
//     a place inside the workspace.
// X2: what is opened is a regular file, proven on the open handle, and opening never blocks (fifo, device).
// X3: a file is replaced in one step (temporary file, rename), so a reader sees the old text or the new one.
// A process that swaps folders under us between check and use gets nothing: on Linux the open handle itself
// tells where it leads, and a file is replaced through its folder's handle. Elsewhere a second look after
// opening has to do. At worst an empty folder is made outside.

import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { type Failure, fail, ok, type Result } from "../core/errors.ts";
import { ensureFolder, isInside } from "../world/folders.ts";

const PATH_MAX_BYTES = 4_096;
const PART_MAX_BYTES = 255;

/** A place in the workspace: its folder is real and inside, and nothing on the way to it is a link. */
export interface Place {
  /** Relative to the workspace, as results show it. */
  readonly shown: string;
  /** Absolute, links resolved. */
  readonly real: string;
  /** What stands there now. */
  readonly found: "file" | "folder" | "nothing";
  /** Permission bits of a file that stands there. */
  readonly mode: number;
}

interface Walk {
  readonly root: string;
  readonly shown: string;
  readonly createFolders: boolean;
}

const errnoOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;

/**
 * An expected failure of the file system, in words that say what to do. Anything else is a bug and is thrown.
 */
export function fileFailure(error: unknown, shown: string): Failure {
  const code = errnoOf(error);
  if (code === undefined) throw error;
  const known: Readonly<Record<string, string>> = {
    EACCES: "is not accessible: permission denied",
    EPERM: "is not accessible: not permitted",
    ENOSPC: "could not be written: the disk is full",
    EFBIG: "could not be written: it would be larger than the quota of the workspace has room for",
    EDQUOT: "could not be written: the disk quota is used up",
    EROFS: "could not be written: the file system is read-only",
    ENAMETOOLONG: "has a name that is too long for this file system",
    EMFILE: "could not be opened: too many open files",
    ELOOP: "is a symbolic link that was put there meanwhile, or leads in a circle",
    ENOTDIR: "goes through something that is not a folder",
    EISDIR: "is a folder",
  };
  if (code === "ENOENT") return fail("file_not_found", `${shown} does not exist`);
  return fail("file_problem", `${shown} ${known[code] ?? `failed with ${code}`}`);
}

const outside = (shown: string, how: string): Failure =>
  fail("path_outside", `${shown} ${how}`, { hint: "Use a path inside the workspace, relative to it." });

/** The parts of a path below the workspace, or why it is not a path there. Reads nothing. */
function partsOf(root: string, workspace: string, path: string): Result<string[]> {
  const quoted = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
  if (path.trim() === "") return fail("invalid_argument", "path must not be empty");
  if (path.includes("\0")) return fail("invalid_argument", `path ${quoted} has a NUL byte in it`);
  if (!path.isWellFormed()) return fail("invalid_argument", `path ${quoted} is not valid Unicode`);
  if (Buffer.byteLength(path) > PATH_MAX_BYTES) {
    return fail("invalid_argument", `path ${quoted} is longer than ${PATH_MAX_BYTES} bytes`);
  }
  const fromHome = path === "~" || path.startsWith("~/") ? `.${path.slice(1)}` : path;
  const named = resolve(workspace);
  // The workspace may have been named through a link; an absolute path below either name is inside.
  const base = isAbsolute(path) && isInside(named, resolve(path)) ? named : root;
  const below = relative(base, resolve(base, fromHome));
  if (below === ".." || below.startsWith(`..${sep}`) || isAbsolute(below)) {
    return outside(quoted, "is outside the workspace");
  }
  // Asked of the whole path, before a folder is made: else some would be, and then the system would refuse.
  if (Buffer.byteLength(join(root, below)) >= PATH_MAX_BYTES) {
    return fail("invalid_argument", `path ${quoted} is, with the workspace before it, too long`);
  }
  const parts = below === "" ? [] : below.split(sep);
  const long = parts.find((part) => Buffer.byteLength(part) > PART_MAX_BYTES);
  if (long === undefined) return ok(parts);
  return fail("invalid_argument", `path ${quoted} has a name longer than ${PART_MAX_BYTES} bytes`);
}

/**
 * The workspace folder itself, made if it is missing, links resolved (where it lies is the operator's
 * choice).
 */
export async function openWorkspace(workspace: string): Promise<Result<string>> {
  try {
    await ensureFolder(workspace);
    return ok(await realpath(workspace));
  } catch (error) {
    return fileFailure(error, `the workspace ${workspace}`);
  }
}

/** One step down. A link is resolved and must stay inside; a missing folder is made if the walk may. */
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

/** What lies outside is not told: a link out is answered alike whether something is at its end or not. */
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
 * Finds a place in the workspace. `createFolders`: missing folders on the way are made.
 * Refuses everything that leaves the workspace, dangling links, and whatever is neither file nor folder.
 */
export async function findPlace(
  workspace: string,
  path: string,
  options: { createFolders: boolean },
): Promise<Result<Place>> {
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

async function walkTo(walk: Walk, parts: readonly string[]): Promise<Result<Place>> {
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

/** Whether an open file or folder is the one of that real path; where the system can't tell: it may be. */
async function leadsTo(handle: FileHandle, real: string): Promise<boolean> {
  const leads = isLinux ? await readlink(byHandle(handle)).catch(nothingThere) : undefined;
  return leads === undefined || leads === real;
}

/** Opens a file for reading and proves on the handle that it is the regular file of this place. */
export async function openToRead(place: Place): Promise<Result<FileHandle>> {
  if (place.found === "nothing") return fail("file_not_found", `${place.shown} does not exist`);
  if (place.found === "folder") {
    return fail("file_problem", `${place.shown} is a folder`, { hint: "List it with exec: ls -la." });
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

const swapped = (): Error => Object.assign(new Error("swapped"), { code: "ELOOP" });

/** The folder of a place, under a name that nobody can lead elsewhere, and what gives that name back. */
async function holdFolder(folder: string): Promise<{ path: string; release(): Promise<void> }> {
  if (!isLinux) return { path: folder, release: async () => undefined };
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const handle = await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (await leadsTo(handle, folder)) return { path: byHandle(handle), release: () => handle.close() };
  await handle.close();
  throw swapped();
}

/** Puts a text where `place` says, in one step. `temporaryId` names the temporary file beside it. */
export async function replaceFile(place: Place, text: string, temporaryId: string): Promise<Result<void>> {
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

async function replaceIn(folder: string, place: Place, text: string, temporaryName: string): Promise<void> {
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
    if (!isLinux && (await realpath(above)) !== above) throw swapped();
    await rename(temporary, join(folder, basename(place.real)));
  } catch (error) {
    await rm(temporary, { force: true }).catch(nothingThere);
    throw error;
  }
}
