// Reads the position of an embedded store's write-ahead log: its round and the number of committed frames.
// WL1: the shared index (-shm) stays open as long as the database. Closing any descriptor of it would release
//      the locks that SQLite holds on it in this process.

import { closeSync, openSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";

/** The last committed frame of a log. */
export interface LogPlace {
  /** First salt in the log's header: grows by one with each round of the log. */
  readonly salt: number;
  readonly salt2: number;
  /** Committed frames in this round. */
  readonly frames: number;
  /** Number of the page in the last frame, from 1, and the checksum of its content. */
  readonly page: number;
  readonly pageBytes: number;
  readonly crc: number;
}

const INDEX_BYTES = 96;
const INDEX_COPY_BYTES = 48;
const PAGE_BYTES_AT = 14;
const FRAMES_AT = 16;
const SALT_AT = 32;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Means 65,536, which two bytes cannot hold. */
const LARGEST_PAGE = 1;

/** Reads exactly these bytes; undefined: the file is too short. */
function bytesAt(handle: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length);
  return readSync(handle, bytes, 0, length, at) === length ? bytes : undefined;
}

/** Opens a file for reading; undefined if it does not exist. */
function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Whether the database file holds the last frame of a log. Call it only while nobody in this process has the
 * file open: see WL1.
 */
export function holdsPage(file: string, { page, pageBytes, crc }: LogPlace): boolean {
  const handle = openIfThere(file);
  if (handle === undefined) return false;
  try {
    const bytes = bytesAt(handle, (page - 1) * pageBytes, pageBytes);
    return bytes !== undefined && crc32(bytes) === crc;
  } finally {
    closeSync(handle);
  }
}

/** Content of the shared index. */
interface Index {
  readonly salt: number;
  readonly salt2: number;
  readonly frames: number;
  readonly pageBytes: number;
}

/** The log of one open database. Close it after every connection to the database. */
export class LogView {
  readonly #file: string;
  #index: number | undefined;

  /** `file` is the database's path. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Reads the index. Undefined: there is none, or it is being written. */
  index(): Index | undefined {
    this.#index ??= openIfThere(`${this.#file}-shm`);
    const bytes = this.#index === undefined ? undefined : bytesAt(this.#index, 0, INDEX_BYTES);
    if (bytes === undefined) return undefined;
    // The index is stored twice; while it is being written the copies differ.
    const copy = bytes.subarray(INDEX_COPY_BYTES);
    if (!bytes.subarray(0, INDEX_COPY_BYTES).equals(copy)) return undefined;
    // The machine's byte order, except for the salts, which have the log's order.
    const view = new DataView(new Uint8Array(bytes).buffer);
    const isLittle = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
    const pageBytes = view.getUint16(PAGE_BYTES_AT, isLittle);
    return {
      salt: view.getUint32(SALT_AT),
      salt2: view.getUint32(SALT_AT + 4),
      frames: view.getUint32(FRAMES_AT, isLittle),
      pageBytes: pageBytes === LARGEST_PAGE ? 65_536 : pageBytes,
    };
  }

  /** Returns the log's position. Undefined: nothing is committed in this round. */
  place(): LogPlace | undefined {
    const index = this.index();
    if (index === undefined || index.frames === 0) return undefined;
    const { pageBytes } = index;
    const log = openIfThere(`${this.#file}-wal`);
    if (log === undefined) return undefined;
    try {
      const at = LOG_HEADER_BYTES + (index.frames - 1) * (FRAME_HEADER_BYTES + pageBytes);
      const frame = bytesAt(log, at, FRAME_HEADER_BYTES + pageBytes);
      if (frame === undefined) return undefined;
      return { ...index, page: frame.readUInt32BE(0), crc: crc32(frame.subarray(FRAME_HEADER_BYTES)) };
    } finally {
      closeSync(log);
    }
  }

  close(): void {
    if (this.#index !== undefined) closeSync(this.#index);
    this.#index = undefined;
  }
}
