// Builds the contents of the disk after a power cut from the files of a process that was stopped at that
// moment.
//
// The process is stopped (SIGSTOP) before its files are copied, so that all copies show the same moment:
// everything that it had asked the system to write, in any transaction or checkpoint. A power loss may
// destroy those of the bytes that no fsync has confirmed. The rules of SQLite's write-ahead log determine
// them:
//
// - The log is written frame by frame. It is synced by the store after each commit (durability "full"), which
//   `writer.ts` records, and by SQLite before each checkpoint. Everything behind the last synced frame may be
//   lost. That frame is the last recorded one, or the last one that a checkpoint has begun to copy if it is later.
// - Only checkpoints write the database, and each syncs it at its end. The pages that the current checkpoint
//   copies may be lost: the shared index names them (from `nBackfill` to `nBackfillAttempted`).
// - Each sector of 512 bytes that may be lost contains its new content, zeros, garbage, or the content of an
//   earlier copy of the file. A file that was growing may have lost its end.
// - The JSONL copies are never synced: their ends may be missing or zero.
// - The high-water mark is synced when the store is opened, and later written without a sync. Each of its two
//   slots, one sector each, contains its new content, zeros, garbage, or older content.
// - The shared index (-shm) is never synced: it survives, or is missing, older, or garbage.
//
// Not simulated: a disk that confirms a sync and loses the bytes nevertheless; a disk that damages sectors to
// which nobody wrote (SQLite relies on that, too); and the loss of a file's name, which common file systems
// keep with the file's first sync.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Dice } from "../dice.ts";

const DATABASE = "parley.sqlite";
const SECTOR = 512;
const WAL_HEADER = 32;
const FRAME_HEADER = 24;
/** The first four bytes of a log with little-endian or big-endian checksums. */
const MAGIC = [0x377f0682, 0x377f0683];

export interface Wal {
  /** Size of a frame in bytes, including its header. */
  readonly frameBytes: number;
  /** Offsets at which the frames that SQLite accepts end, in order. */
  readonly frameEnds: readonly number[];
  /** Number of frames up to the end of the last transaction. */
  readonly committed: number;
  /** Page number of each accepted frame. */
  readonly pages: readonly number[];
  /** Offset of the end of the newest bytes since the last reset of the log. */
  readonly frontier: number;
  /** The salt of the log, which changes when SQLite resets the log. */
  readonly salt: string;
}

/** Reads a log in the same way as SQLite's recovery. Returns undefined if SQLite would ignore the log. */
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

/** State of the log and of the current checkpoint, from the shared index. */
interface Index {
  readonly salt: string;
  /** Number of frames that were copied into the database and synced there. */
  readonly copied: number;
  /** Number of frames that a checkpoint has begun to copy. */
  readonly attempted: number;
}

function readIndex(bytes: Buffer | undefined): Index | undefined {
  if (bytes === undefined || bytes.length < 136) return undefined;
  // The header is stored twice. The copies differ while one of them is written.
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
  /** All other files by name: JSONL copies, marks and journals. */
  readonly others: ReadonlyMap<string, Buffer>;
}

/** Reads the files of a store whose process is stopped or has exited. */
export function readFiles(dir: string): FileSet {
  const read = (name: string): Buffer | undefined =>
    existsSync(join(dir, name)) ? readFileSync(join(dir, name)) : undefined;
  const others = readdirSync(dir).filter((name) => /\.jsonl$|-journal$|-mark$/.test(name));
  return {
    database: read(DATABASE),
    wal: read(`${DATABASE}-wal`),
    shm: read(`${DATABASE}-shm`),
    others: new Map(others.map((name) => [name, readFileSync(join(dir, name))])),
  };
}

/** Writes a file set into an empty folder. */
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

/** The bytes of a file set that a power loss may destroy. */
export interface Loss {
  /** Bytes of the log that no sync has confirmed. */
  readonly wal: { readonly from: number; readonly to: number };
  /** Pages of the database, from 1, that no sync has confirmed. */
  readonly pages: ReadonlySet<number>;
  readonly pageBytes: number;
}

const NO_LOSS: Loss = { wal: { from: 0, to: 0 }, pages: new Set(), pageBytes: 4_096 };

/** Returns the bytes that a power loss may destroy. `synced`: number of synced frames by salt of the log. */
export function lossOf(files: FileSet, synced: ReadonlyMap<string, number>): Loss {
  const wal = files.wal === undefined ? undefined : readWal(files.wal);
  const index = readIndex(files.shm);
  // After a reset the index may be ahead of the log. In that case all frames in the log were synced long ago.
  if (wal === undefined || index === undefined || index.salt !== wal.salt) return NO_LOSS;
  const committed = wal.frameEnds[(synced.get(wal.salt) ?? 0) - 1] ?? 0;
  const checkpointed = wal.frameEnds[Math.max(index.copied, index.attempted) - 1] ?? 0;
  // The header is synced before the first frame is written.
  const header = wal.frontier > WAL_HEADER ? WAL_HEADER : 0;
  const pages = wal.pages.slice(index.copied, Math.max(index.copied, index.attempted));
  return {
    wal: { from: Math.max(header, committed, checkpointed), to: wal.frontier },
    pages: new Set(pages),
    pageBytes: wal.frameBytes - FRAME_HEADER,
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
  // A file can have lost its end only if it was growing.
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

/** Damages a JSONL copy: its end is cut off or becomes zeros, or all of it is lost. */
function lostCopy(copy: Buffer, luck: Dice): Buffer | undefined {
  const from = luck.below(copy.length + 1);
  switch (luck.below(5)) {
    case 0:
      return copy.subarray(0, from);
    case 1:
      return Buffer.concat([copy.subarray(0, from), Buffer.alloc(Math.max(0, copy.length - from))]);
    case 2:
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

/** Returns a random file set that a power loss may leave. `before`: the same files at an earlier moment. */
export function afterLoss(files: FileSet, loss: Loss, luck: Dice, before?: FileSet): FileSet {
  const others = [...files.others].flatMap(([name, bytes]) => {
    if (name.endsWith("-mark")) {
      const mark = Buffer.from(bytes);
      if (luck.chance(0.5)) garble(mark, 0, mark.length, luck, before?.others.get(name));
      return [[name, mark] as const];
    }
    const left = name.endsWith("-journal") ? bytes : lostCopy(bytes, luck);
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

/** Returns true if every thread of a process is stopped. */
function isStopped(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  });
}

/** Returns true if a checkpoint of the store in `dir` is running. */
export function inCheckpoint(dir: string): boolean {
  const file = join(dir, `${DATABASE}-shm`);
  const index = existsSync(file) ? readIndex(readFileSync(file)) : undefined;
  return index !== undefined && index.attempted > index.copied;
}

/** Runs `work` while a process is stopped. This test must have started the process. */
export async function whileStopped<T>(pid: number, work: () => Promise<T>): Promise<T> {
  process.kill(pid, "SIGSTOP");
  try {
    while (!isStopped(pid)) await new Promise((resolve) => setImmediate(resolve));
    return await work();
  } finally {
    process.kill(pid, "SIGCONT");
  }
}
