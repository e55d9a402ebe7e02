// Owns the files that come with a sub-agent's task: `.parley/attachments/<uuid>/` in its workspace.
// `core/rules/attachment-rules` decides what may be attached.
// AF1: after any failure no file of the task is left, and no other file is changed.
// AF2: no folder in the path is a link or can become one: each folder is opened, then addressed by its open
//      handle (Linux), so that swapping its path has no effect.
// AF3: removal deletes links and follows none; it never leaves the attachments folder.
// AF4: a folder records its store, so that no other gateway removes it.

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { jsonOf } from "../../core/json.ts";
import { checkAttachments, MANIFEST_NAME } from "../../core/rules/attachment-rules.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import {
  type AttachmentSettings,
  type StoreSettings,
  storeName,
} from "../../core/shapes/settings/settings.ts";
import type { AttachmentReceipt } from "../../core/shapes/spawn.ts";
import { quoted } from "../../core/text/cut.ts";
import { ensureFolder } from "../../world/folders.ts";

interface PlannedFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly mimeType: string;
  readonly data: Buffer;
}

export interface AttachmentPlan {
  readonly files: readonly PlannedFile[];
}

/** Number of bytes to read from a manifest: enough for its first line, which names the owner. */
const MANIFEST_HEAD_BYTES = 256;
const TOP = ".parley";
const FOLDER = "attachments";
const ID = /^[A-Za-z0-9-]{1,64}$/;
/** Maximum depth of folders below an attachments folder that removal accepts. */
const DEPTH_MAX = 64;
/** Maximum attempts to create a folder, while a failed spawn may remove it at the same time. */
const TRIES_MAX = 5;

/** Returns a file for the plan. Its name must have passed `nameProblem`. */
export function plannedFile(name: string, mimeType: string, data: Buffer): PlannedFile {
  const sha256 = createHash("sha256").update(data).digest("hex");
  return { name, bytes: data.length, mimeType, data, sha256 };
}

/** Decodes the attachments of a call and checks them. Returns undefined if there are none. */
export function planAttachments(
  input: unknown,
  limits: AttachmentSettings,
): Result<AttachmentPlan | undefined> {
  const checked = checkAttachments(input, limits);
  if (!checked.ok) return checked;
  const files = checked.value.map(({ name, encoding, content, bytes, mimeType }): PlannedFile => {
    const data = Buffer.from(content, encoding);
    if (data.length !== bytes) throw new Error(`${data.length} bytes were decoded, ${bytes} expected`);
    return plannedFile(name, mimeType, data);
  });
  return ok(files.length === 0 ? undefined : { files });
}

const errnoOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;

const LINKED = "a symbolic link, or something else that is not a folder, is in the way";

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EFBIG: "a file is larger than this system allows",
  EROFS: "the file system is read-only",
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  ELOOP: LINKED,
  ENOTDIR: LINKED,
  EEXIST: "something is already there",
  ENOTEMPTY: "another program has created something there in the meantime",
};

/** Returns a failure of the file system as a `Failure`. Any other error is a bug and is thrown. */
function fileFailure(what: string, error: unknown): Failure {
  const code = errnoOf(error);
  if (code === undefined) throw error;
  return fail("file_problem", `${what}: ${REASONS[code] ?? `the system says ${code}`}`);
}

/** An open folder. `inside` returns the path of an entry. */
interface Folder {
  readonly handle: FileHandle;
  inside(name: string): string;
}

/**
 * Tracks opened handles, which must be closed, and created entries, which must be removed if a later step
 * fails.
 */
class Work {
  private readonly folders: Folder[] = [];
  private readonly made: (() => Promise<void>)[] = [];

  /** Opens a folder; refuses a link. */
  async open(path: string): Promise<Folder> {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
    const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    // A path through the handle can't be redirected. Only Linux has such paths; other systems use the plain
    // path.
    const base = process.platform === "linux" ? `/proc/self/fd/${handle.fd}` : path;
    const folder: Folder = { handle, inside: (name) => join(base, name) };
    this.folders.push(folder);
    return folder;
  }

  /** Creates a folder that only its owner may enter. With `fresh`, fails if the folder exists. */
  async make(above: Folder, name: string, fresh = false): Promise<Folder> {
    const path = above.inside(name);
    try {
      await mkdir(path, 0o700);
      this.made.push(() => rmdir(path));
    } catch (error) {
      if (fresh || errnoOf(error) !== "EEXIST") throw error;
    }
    const folder = await this.open(path);
    await folder.handle.chmod(0o700);
    return folder;
  }

  async write(above: Folder, name: string, data: Buffer | string): Promise<void> {
    const path = above.inside(name);
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const handle = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    this.made.push(() => unlink(path));
    try {
      await handle.chmod(0o600);
      await handle.writeFile(data);
      // The files must be on disk before the caller learns that the spawn was accepted.
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  async sync(): Promise<void> {
    for (const { handle } of this.folders) await handle.sync();
  }

  /** Removes everything in reverse order. A folder that other spawns use is not empty, and stays. */
  async undo(): Promise<void> {
    for (const take of this.made.splice(0).reverse()) await take().catch(onlyErrno);
  }

  async close(): Promise<void> {
    for (const { handle } of this.folders.splice(0).reverse()) await handle.close();
  }
}

function onlyErrno(error: unknown): void {
  if (errnoOf(error) === undefined) throw error;
}

function unlessMissing(error: unknown): undefined {
  if (errnoOf(error) !== "ENOENT") throw error;
}

async function writeAll(
  work: Work,
  workspace: string,
  plan: AttachmentPlan,
  folder: { id: string; owner: string },
): Promise<void> {
  await ensureFolder(workspace);
  const root = await work.open(await realpath(workspace));
  const own = await work.make(await work.make(await work.make(root, TOP), FOLDER), folder.id, true);
  const files = plan.files.map(({ name, bytes, sha256, mimeType }) => ({ name, bytes, sha256, mimeType }));
  // The manifest is written first, so that a folder left by a crash names its owner (AF4).
  const manifest = { owner: folder.owner, files };
  await work.write(own, MANIFEST_NAME, `${JSON.stringify(manifest, null, 2)}\n`);
  for (const { name, data } of plan.files) await work.write(own, name, data);
  await work.sync();
}

/** Returns the value that marks folders of this store. Gateways of several stores may share a workspace. */
export function attachmentOwner(store: StoreSettings): string {
  return createHash("sha256").update(storeName(store)).digest("hex").slice(0, 32);
}

/**
 * Writes the planned files into the workspace. `id`: must be new for each plan; `owner`: see
 * `attachmentOwner`.
 */
export async function writeAttachments(
  workspace: string,
  plan: AttachmentPlan,
  id: string,
  owner: string,
): Promise<Result<AttachmentReceipt>> {
  if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} is not a valid folder id`);
  for (let tries = 1; ; tries += 1) {
    const work = new Work();
    try {
      await writeAll(work, workspace, plan, { id, owner });
      const files = plan.files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 }));
      return ok({ dir: attachmentDir(id), files });
    } catch (error) {
      await work.undo();
      // A failed spawn has just removed folders that it had created and that this spawn uses.
      if (errnoOf(error) === "ENOENT" && tries < TRIES_MAX) continue;
      return fileFailure(`no attachment was kept, because writing to ${TOP}/${FOLDER} failed`, error);
    } finally {
      await work.close();
    }
  }
}

/** Returns the path of the attachment folder `id`, relative to the workspace. */
export function attachmentDir(id: string): string {
  return `${TOP}/${FOLDER}/${id}`;
}

/** Opens the attachments folder of a workspace. Returns undefined if there is none. */
async function findFolder(work: Work, workspace: string): Promise<Folder | undefined> {
  let path = await realpath(workspace).catch(unlessMissing);
  let folder: Folder | undefined;
  for (const name of [TOP, FOLDER, ""]) {
    folder = path === undefined ? undefined : await work.open(path).catch(unlessMissing);
    if (folder === undefined) return undefined;
    path = folder.inside(name);
  }
  return folder;
}

/** Removes the folder of one spawn with its contents. A missing folder is not an error. */
export async function removeAttachments(workspace: string, dir: string): Promise<Result<void>> {
  const [top, folder, id = "", ...more] = dir.split("/");
  if (top !== TOP || folder !== FOLDER || !ID.test(id) || more.length > 0) {
    return fail("path_outside", `${quoted(dir, 200)} is not a folder of attachments`);
  }
  const work = new Work();
  try {
    const above = await findFolder(work, workspace);
    if (above !== undefined) await removeEntry(above, id, 0);
    return ok(undefined);
  } catch (error) {
    return fileFailure(`${dir} could not be removed`, error);
  } finally {
    await work.close();
  }
}

/** Removes a file, a link (not its target) or a folder with its contents. */
async function removeEntry(above: Folder, name: string, depth: number): Promise<void> {
  const path = above.inside(name);
  const status = await lstat(path).catch(unlessMissing);
  if (status === undefined) return;
  if (!status.isDirectory()) return unlink(path).catch(unlessMissing);
  if (depth === DEPTH_MAX) throw Object.assign(new Error("too deep"), { code: "ENAMETOOLONG" });
  const work = new Work();
  try {
    const folder = await work.open(path).catch(unlessMissing);
    if (folder === undefined) return;
    for (const entry of await readdir(folder.inside(""))) await removeEntry(folder, entry, depth + 1);
  } finally {
    await work.close();
  }
  await rmdir(path).catch(unlessMissing);
}

const OWNER_LINE = /"owner": "([^"]*)"/;

/**
 * Returns whether this owner created the folder before `beforeMs`. Also true if the folder has no owner,
 * because a crash left it empty or with an incomplete manifest: a manifest is on disk before any other file
 * is written.
 */
async function isOwned(above: Folder, id: string, owner: string, beforeMs: number): Promise<boolean> {
  const work = new Work();
  try {
    const folder = await work.open(above.inside(id));
    if ((await folder.handle.stat()).mtimeMs >= beforeMs) return false;
    const names = await readdir(folder.inside(""));
    if (names.length === 0) return true;
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    const handle = await open(folder.inside(MANIFEST_NAME), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(MANIFEST_HEAD_BYTES), 0);
      const text = buffer.toString("utf8", 0, bytesRead);
      const [, found] = OWNER_LINE.exec(text) ?? [];
      if (found !== undefined) return found === owner;
      return names.length === 1 && jsonOf(text) === undefined;
    } finally {
      await handle.close();
    }
  } catch (error) {
    onlyErrno(error);
    return false;
  } finally {
    await work.close();
  }
}

/**
 * Returns the owner's attachment folders in a workspace, to find those that a crash left behind. `beforeMs`:
 * only folders last changed before that time.
 */
export async function attachmentDirs(
  workspace: string,
  owner: string,
  beforeMs = Number.POSITIVE_INFINITY,
): Promise<Result<string[]>> {
  const work = new Work();
  try {
    const folder = await findFolder(work, workspace);
    const names = folder === undefined ? [] : await readdir(folder.inside(""));
    const dirs: string[] = [];
    for (const name of names) {
      if (folder !== undefined && ID.test(name) && (await isOwned(folder, name, owner, beforeMs))) {
        dirs.push(attachmentDir(name));
      }
    }
    return ok(dirs);
  } catch (error) {
    return fileFailure(`${TOP}/${FOLDER} could not be read`, error);
  } finally {
    await work.close();
  }
}
