// Opens the databases of a source. SQLite may write to a file that it opens, so it opens a private copy of
// the file and its log (WAL). The copy is removed at once, because a database holds secrets, too. A file that
// its program is writing at this moment is copied again.

import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ForeignDatabase, ForeignFileError } from "../../store/foreign.ts";
import type { Remarks } from "./remarks.ts";
import { type Opened, type SourceDir, UNREAD_WORDS } from "./source-dir.ts";

const BYTES_MAX = 32 * 1024 * 1024 * 1024;
/** Number of copies that are tried while the program writes to the file. */
const TRIES = 5;

type OpenFile = Extract<Opened, { readonly kind: "file" }>;

async function stateOf({ handle }: OpenFile): Promise<string> {
  const { size, mtimeNs, ino } = await handle.stat({ bigint: true });
  return `${ino} ${size} ${mtimeNs}`;
}

async function copy({ handle, size }: OpenFile, target: string): Promise<void> {
  const written = createWriteStream(target, { mode: 0o600, flags: "w" });
  const end = Math.max(0, size - 1);
  const read = createReadStream("", { fd: handle.fd, autoClose: false, start: 0, end });
  await (size === 0 ? written.end() : pipeline(read, written));
}

/** Copies a database with its log. Returns why this was not possible, or undefined. */
async function copyBoth(
  source: SourceDir,
  path: readonly string[],
  target: string,
): Promise<string | undefined> {
  const files: [string, OpenFile][] = [];
  try {
    for (const end of ["", "-wal", "-journal"]) {
      const opened = await source.open([...path.slice(0, -1), `${path.at(-1)}${end}`]);
      if (opened.kind === "absent" && end !== "") continue;
      if (opened.kind !== "file") return UNREAD_WORDS[opened.kind];
      files.push([end, opened]);
      if (opened.size > BYTES_MAX) return UNREAD_WORDS.too_large;
      // Such a journal may name any file of this machine, which SQLite would read and delete.
      if (end === "-journal" && opened.size > 0) return "left by a crash: start and stop its program once";
    }
    const before = await Promise.all(files.map(([, file]) => stateOf(file)));
    for (const [end, file] of files) await copy(file, `${target}${end}`);
    const after = await Promise.all(files.map(([, file]) => stateOf(file)));
    return before.join() === after.join() ? undefined : CHANGED;
  } finally {
    for (const [, { handle }] of files) await handle.close();
  }
}

const CHANGED = "changing now: stop its program and import again";

async function openCopy(
  source: SourceDir,
  path: readonly string[],
  folder: string,
): Promise<ForeignDatabase | string> {
  let why: string | undefined;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const file = join(folder, `${tries}.sqlite`);
    why = await copyBoth(source, path, file);
    if (why === undefined) return new ForeignDatabase(file);
    if (why !== CHANGED) break;
  }
  return why ?? CHANGED;
}

/**
 * Opens a database whose layout has at most the version `newest`. If it is missing, returns undefined; if it
 * can't be read, reports this, too.
 */
export async function openDatabase(
  source: SourceDir,
  path: readonly string[],
  newest: number,
  remarks: Remarks,
): Promise<ForeignDatabase | undefined> {
  const name = path.join("/");
  if ((await source.list(path.slice(0, -1))).every((file) => file.name !== path.at(-1))) return undefined;
  const refuse = (why: string): undefined =>
    remarks.note(`databases that were not read: ${why}`, name) as undefined;
  const folder = await mkdtemp(join(tmpdir(), "parley-import-"));
  let database: ForeignDatabase | undefined;
  try {
    const opened = await openCopy(source, path, folder);
    if (typeof opened === "string") return refuse(opened);
    database = opened;
    const { version } = database;
    if (version <= newest) return database;
    database.close();
    return refuse(`layout ${version} is newer than ${newest}, the newest that this version knows`);
  } catch (error) {
    database?.close();
    if (error instanceof ForeignFileError) return refuse("damaged, or not a database");
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return refuse(`no copy could be made (${code})`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
