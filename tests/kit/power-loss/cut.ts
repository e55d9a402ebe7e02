// Builds the contents of the disk after a power cut from the files of a process that was stopped at that moment.
//
// The process is stopped (SIGSTOP) before its files are copied, so that a copy shows one moment: everything
// that it had asked the system to write by then, in whatever transaction or checkpoint it was, and nothing
// after it. A loss of power may take from that the bytes that no fsync has confirmed. They are found by the rules of
// SQLite's write-ahead log:
//
// - The log is written frame after frame. The store syncs it after each commit (durability "full"), which the
//   writer records, and SQLite before each checkpoint. Lost may be what stands behind the last frame that a
//   sync has confirmed: recorded, or one that a checkpoint has begun to copy, whichever is later.
// - The database is written by checkpoints only, and synced at the end of each. Lost may be the pages that the
//   checkpoint under way copies: the shared index says which (from `nBackfill` to `nBackfillAttempted`).
// - Of what may be lost each sector of 512 bytes is as it was written, or zero, or garbage, or what an earlier
//   copy of the file had in its place; a file that was growing may have lost its end.
// - The readable copies and the note of their progress are synced when that note is written: what it covers is
//   there. The rest of a copy may be gone, or zero; so may one that the note doesn't cover at all.
// - The high-water mark is synced when the store is opened, and written without a sync later: each of its two
//   slots, a sector each, is as it was written, or zero, or garbage, or older.
// - The shared index (-shm) is never synced: it is there, gone, older, or garbage.
//
// Not modelled: a disk that confirms a sync and loses the bytes all the same; one that damages sectors that nobody
// wrote to (SQLite counts on that as well); and the loss of a file's name, which the file systems that we know
// keep with its first sync.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import type { Db } from "../../../src/store/sql.ts";
import type { Dice } from "../dice.ts";

const DATABASE = "parley.sqlite";
const SECTOR = 512;
const WAL_HEADER = 32;
const FRAME_HEADER = 24;
/** The log's first word, where its checksums are little-endian and big-endian. */
const MAGIC = [0x377f0682, 0x377f0683];

export interface Wal {
  /** Bytes of one frame, its header included. */
  readonly frameBytes: number;
  /** Ends of the frames that SQLite would accept, in order. */
  readonly frameEnds: readonly number[];
  /** Number of frames up to the end of the last transaction. */
  readonly committed: number;
  /** Page of each accepted frame. */
  readonly pages: readonly number[];
  /** End of the newest bytes in this round of the log. */
  readonly frontier: number;
  /** The number that marks this round of the log. */
  readonly salt: string;
}

/** Reads a log like SQLite's recovery. Undefined if SQLite would ignore it. */
export function readWal(bytes: Buffer): Wal | undefined {
  if (bytes.length < WAL_HEADER) return undefined;
  const little = bytes.readUInt32BE(0) === MAGIC[0];
  if (!little && bytes.readUInt32BE(0) !== MAGIC[1]) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let [one, two] = [0, 0];
  const sum = (from: number, to: number): void => {
    for (let at = from; at < to; at += 8) {
      one = (one + view.getUint32(at, little) + two) >>> 0;
      two = (two + view.getUint32(at + 4, little) + one) >>> 0;
    }
  };
  const fits = (at: number): boolean => view.getUint32(at) === one && view.getUint32(at + 4) === two;
  sum(0, 24);
  if (!fits(24)) return undefined;
  const pageBytes = view.getUint32(8);
  const frameBytes = FRAME_HEADER + pageBytes;
  const salt = bytes.toString("hex", 16, 24);
  const isOfRound = (at: number): boolean =>
    at + FRAME_HEADER <= bytes.length && bytes.toString("hex", at + 8, at + 16) === salt;
  const [frameEnds, pages]: [number[], number[]] = [[], []];
  let committed = 0;
  let at = WAL_HEADER;
  for (; isOfRound(at) && at + frameBytes <= bytes.length; at += frameBytes) {
    sum(at, at + 8);
    sum(at + FRAME_HEADER, at + frameBytes);
    if (!fits(at + 16)) break;
    pages.push(view.getUint32(at));
    frameEnds.push(at + frameBytes);
    if (view.getUint32(at + 4) !== 0) committed = frameEnds.length;
  }
  let frontier = at;
  while (isOfRound(frontier)) frontier = Math.min(bytes.length, frontier + frameBytes);
  return { frameBytes, frameEnds, committed, pages, frontier, salt };
}

/** State of the log and of the active checkpoint, from the shared index. */
interface Index {
  readonly salt: string;
  /** Frames that are in the database and synced there. */
  readonly copied: number;
  /** Frames that a checkpoint has begun to copy. */
  readonly attempted: number;
}

function readIndex(bytes: Buffer | undefined): Index | undefined {
  if (bytes === undefined || bytes.length < 136) return undefined;
  // The header has two copies; while one is written, the other is valid.
  const at = bytes.subarray(0, 48).equals(bytes.subarray(48, 96)) ? 0 : undefined;
  if (at === undefined) return undefined;
  const salt = bytes.toString("hex", 32, 40);
  return { salt, copied: bytes.readUInt32LE(96), attempted: bytes.readUInt32LE(128) };
}

/** The files of a store at one moment. */
export interface FileSet {
  readonly database: Buffer | undefined;
  readonly wal: Buffer | undefined;
  readonly shm: Buffer | undefined;
  /** All other files by name: the readable copies and the note of their progress. */
  readonly others: ReadonlyMap<string, Buffer>;
}

/** Reads the files of a store whose process is stopped or gone. */
export function readFiles(dir: string): FileSet {
  const read = (name: string): Buffer | undefined =>
    existsSync(join(dir, name)) ? readFileSync(join(dir, name)) : undefined;
  const others = readdirSync(dir).filter((name) =>
    /\.jsonl(\.new)?$|^mirror\.progress$|-journal$|-mark$/.test(name),
  );
  return {
    database: read(DATABASE),
    wal: read(`${DATABASE}-wal`),
    shm: read(`${DATABASE}-shm`),
    others: new Map(others.map((name) => [name, readFileSync(join(dir, name))])),
  };
}

/** Puts a file set into an empty folder. */
export function writeFiles(dir: string, files: FileSet): void {
  const { database, wal, shm, others } = files;
  const parts = [
    [DATABASE, database],
    [`${DATABASE}-wal`, wal],
    [`${DATABASE}-shm`, shm],
    ...others,
  ] as const;
  for (const [name, bytes] of parts) if (bytes !== undefined) writeFileSync(join(dir, name), bytes);
}

/** Bytes of a set of files that may be lost. */
export interface Loss {
  /** Bytes of the log that no sync has confirmed. */
  readonly wal: { readonly from: number; readonly to: number };
  /** Pages of the database, from 1, that no sync has confirmed. */
  readonly pages: ReadonlySet<number>;
  readonly pageBytes: number;
  /** Bytes of readable copies, by file name, that a sync has confirmed. */
  readonly copies: ReadonlyMap<string, number>;
}

type Copies = Loss["copies"];

const noLoss = (copies: Copies): Loss => ({
  wal: { from: 0, to: 0 },
  pages: new Set(),
  pageBytes: 4_096,
  copies,
});

/**
 * Bytes that may be lost. `synced`: number of frames that a sync has confirmed, by round of the log.
 */
export function lossOf(files: FileSet, copies: Copies, synced: ReadonlyMap<string, number>): Loss {
  const wal = files.wal === undefined ? undefined : readWal(files.wal);
  const index = readIndex(files.shm);
  // Between two rounds the index may be ahead of the log: then everything in the log was synced long ago.
  if (wal === undefined || index === undefined || index.salt !== wal.salt) return noLoss(copies);
  const committed = wal.frameEnds[(synced.get(wal.salt) ?? 0) - 1] ?? 0;
  const checkpointed = wal.frameEnds[Math.max(index.copied, index.attempted) - 1] ?? 0;
  // The header is synced before the first frame is written.
  const header = wal.frontier > WAL_HEADER ? WAL_HEADER : 0;
  const pages = wal.pages.slice(index.copied, Math.max(index.copied, index.attempted));
  return {
    wal: { from: Math.max(header, committed, checkpointed), to: wal.frontier },
    pages: new Set(pages),
    pageBytes: wal.frameBytes - FRAME_HEADER,
    copies,
  };
}

function garble(bytes: Buffer, from: number, to: number, luck: Dice, before: Buffer | undefined): void {
  for (let at = from; at < to; ) {
    const end = Math.min(to, (Math.floor(at / SECTOR) + 1) * SECTOR);
    const what = luck.below(4);
    if (what === 1) bytes.fill(0, at, end);
    if (what === 2) for (let one = at; one < end; one += 1) bytes[one] = luck.below(256);
    if (what === 3 && before !== undefined && before.length >= end) before.copy(bytes, at, at, end);
    at = end;
  }
}

function lostWal(wal: Buffer, { from, to }: Loss["wal"], luck: Dice, before: Buffer | undefined): Buffer {
  const bytes = Buffer.from(wal);
  if (to <= from) return bytes;
  const all = luck.chance(0.3);
  garble(bytes, all ? from : from + luck.below(to - from), to, luck, before);
  // Only a file that was growing can have lost its end.
  return to === wal.length && luck.chance(0.5) ? bytes.subarray(0, from + luck.below(to - from + 1)) : bytes;
}

function lostPages(database: Buffer, loss: Loss, luck: Dice, before: Buffer | undefined): Buffer {
  const bytes = Buffer.from(database);
  const { pages, pageBytes } = loss;
  for (const page of pages) {
    const end = page * pageBytes;
    if (end <= bytes.length && luck.chance(0.5)) garble(bytes, end - pageBytes, end, luck, before);
  }
  let kept = Math.floor(bytes.length / pageBytes);
  while (pages.has(kept)) kept -= 1;
  const growing = bytes.length - kept * pageBytes;
  return growing > 0 && luck.chance(0.3) ? bytes.subarray(0, bytes.length - luck.below(growing + 1)) : bytes;
}

/** Bytes of each readable copy that were on the disk when the note of progress was written, by file name. */
export async function syncedCopies(db: Db, files: FileSet): Promise<Map<string, number>> {
  const upTo = Number.parseInt(files.others.get("mirror.progress")?.toString() ?? "", 10) || 0;
  const rows = await db
    .selectFrom("messages")
    .select(["session_id", sql<number>`sum(octet_length(entry_json) + 1)`.as("bytes")])
    .where("seq", "<=", upTo)
    .groupBy("session_id")
    .execute();
  return new Map(
    rows.map((row) => {
      const name = `${row.session_id}.jsonl`;
      return [name, (files.others.get(name)?.indexOf(0x0a) ?? -1) + 1 + Number(row.bytes)];
    }),
  );
}

/** The end of a copy may be gone, or zero; all of it, if nothing of it was synced. */
function lostCopy(copy: Buffer, synced: number, luck: Dice): Buffer | undefined {
  const from = synced + luck.below(Math.max(0, copy.length - synced) + 1);
  switch (luck.below(5)) {
    case 0:
      return copy.subarray(0, from);
    case 1:
      return Buffer.concat([copy.subarray(0, from), Buffer.alloc(Math.max(0, copy.length - from))]);
    case 2:
      if (synced > 0) return copy.subarray(0, synced);
      return luck.chance(0.3) ? undefined : Buffer.alloc(0);
    default:
      return copy;
  }
}

function lostIndex(shm: Buffer | undefined, luck: Dice, before: Buffer | undefined): Buffer | undefined {
  if (shm === undefined) return undefined;
  const bytes = Buffer.from(shm);
  switch (luck.below(4)) {
    case 0:
      return undefined;
    case 1:
      garble(bytes, 0, bytes.length, luck, before);
      return bytes;
    case 2:
      return before ?? bytes;
    default:
      return bytes;
  }
}

/** One of the file sets that a loss of power may leave. `before`: an earlier moment of the same files. */
export function afterLoss(files: FileSet, loss: Loss, luck: Dice, before?: FileSet): FileSet {
  const others = [...files.others].flatMap(([name, bytes]) => {
    if (name.endsWith("-mark")) {
      const mark = Buffer.from(bytes);
      if (luck.chance(0.5)) garble(mark, 0, mark.length, luck, before?.others.get(name));
      return [[name, mark] as const];
    }
    const left = name.endsWith("-journal") ? bytes : lostCopy(bytes, loss.copies.get(name) ?? 0, luck);
    return left === undefined ? [] : [[name, left] as const];
  });
  return {
    database:
      files.database === undefined ? undefined : lostPages(files.database, loss, luck, before?.database),
    wal: files.wal === undefined ? undefined : lostWal(files.wal, loss.wal, luck, before?.wal),
    shm: lostIndex(files.shm, luck, before?.shm),
    others: new Map(others),
  };
}

/** Returns whether every thread of a process is stopped. */
function isStopped(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  });
}

/** Whether a checkpoint of the store in `dir` is under way. */
export function inCheckpoint(dir: string): boolean {
  const file = join(dir, `${DATABASE}-shm`);
  const index = existsSync(file) ? readIndex(readFileSync(file)) : undefined;
  return index !== undefined && index.attempted > index.copied;
}

/** Runs `work` while the process is stopped. The process must be one of ours. */
export async function whileStopped<T>(pid: number, work: () => Promise<T>): Promise<T> {
  process.kill(pid, "SIGSTOP");
  try {
    while (!isStopped(pid)) await new Promise((resolve) => setImmediate(resolve));
    return await work();
  } finally {
    process.kill(pid, "SIGCONT");
  }
}
