// Owns the high-water mark of an embedded store: a small file beside the database that records its last
// state. With it, a start can detect that the store has lost data.
// The mark is written after commits. It never claims more than the disk holds, but may claim less. It has two
// slots, each in its own disk sector, that are written alternately. A power loss can only damage the slot
// that is being written.

import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { isObject, jsonOf } from "../../core/json.ts";

/** Suffix of the mark's file. Moving `parley.sqlite*` also moves the mark. */
export const MARK_ENDING = "-mark";

export interface Mark {
  /** Number of the last commit, and the last number used in each numbered table. Numbers are never reused. */
  readonly rows: Readonly<Record<string, number>>;
}

const SLOT_BYTES = 512;
const SLOTS = 2;

/** Encodes a slot: a checksum, then JSON that includes the number of this write. */
function slotOf(mark: Mark, number: number): Buffer {
  const text = JSON.stringify({ number, ...mark });
  const slot = Buffer.alloc(SLOT_BYTES);
  slot.write(`${crc32(text).toString(16).padStart(8, "0")} ${text}\n`);
  return slot;
}

interface Numbered {
  readonly number: number;
  readonly mark: Mark;
}

function readSlot(bytes: Buffer): Numbered | undefined {
  const [line = ""] = bytes.toString("utf8").split("\n", 1);
  const text = line.slice(9);
  if (line.slice(0, 8) !== crc32(text).toString(16).padStart(8, "0")) return undefined;
  const value = jsonOf(text);
  if (!isObject(value) || typeof value.number !== "number" || !isObject(value.rows)) return undefined;
  const { number, ...mark } = value;
  return { number, mark: mark as unknown as Mark };
}

function newest(bytes: Buffer): Numbered | undefined {
  let found: Numbered | undefined;
  for (let at = 0; at < SLOTS * SLOT_BYTES; at += SLOT_BYTES) {
    const slot = readSlot(bytes.subarray(at, at + SLOT_BYTES));
    if (slot !== undefined && slot.number > (found?.number ?? -1)) found = slot;
  }
  return found;
}

function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}

/** Reads the mark of a database file. Returns "damaged" if it exists but cannot be read. */
export function readMark(file: string): Mark | "damaged" | undefined {
  const bytes = bytesOf(`${file}${MARK_ENDING}`);
  return newest(bytes)?.mark ?? (bytes.every((byte) => byte === 0) ? undefined : "damaged");
}

/** Returns whether the mark says that the store contained data. */
export function claimsAnything({ rows }: Mark): boolean {
  return Object.values(rows).some((seq) => seq > 0);
}

/** Writes the mark of one open database. */
export class MarkWriter {
  readonly #handle: number;
  #number: number;

  constructor(file: string) {
    const name = `${file}${MARK_ENDING}`;
    this.#number = newest(bytesOf(name))?.number ?? 0;
    closeSync(openSync(name, "a", 0o600));
    this.#handle = openSync(name, "r+");
  }

  /** With `sync`, the mark is on disk when this returns. */
  write(mark: Mark, { sync }: { sync: boolean }): void {
    this.#number += 1;
    writeSync(this.#handle, slotOf(mark, this.#number), 0, SLOT_BYTES, (this.#number % SLOTS) * SLOT_BYTES);
    if (sync) fsyncSync(this.#handle);
  }

  close(): void {
    closeSync(this.#handle);
  }
}
