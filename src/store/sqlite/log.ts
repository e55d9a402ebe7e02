// Reads the position of an embedded store's write-ahead log: the log's round, and the number of committed
// frames in that round. A round begins when SQLite, after a checkpoint, writes the log from its start again.
// The shared index (-shm) must stay open as long as the database. If this process closed any file descriptor
// of the index, the system would release the locks that SQLite holds on it.

import { closeSync, openSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";

/** Position of the last committed frame in a log. */
export interface LogPlace {
  /** First salt in the log's header. It increases by one with each new round of the log. */
  readonly salt: number;
  readonly salt2: number;
  /** Number of committed frames in this round. */
  readonly frames: number;
  /** Page number (from 1) of the last frame, and the checksum of its content. */
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
/** In the index, the value 1 stands for a page size of 65,536, which does not fit into two bytes. */
const LARGEST_PAGE = 1;

/** Reads this range of bytes, or returns undefined if the file is too short. */
function bytesAt(handle: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length);
  return readSync(handle, bytes, 0, length, at) === length ? bytes : undefined;
}

/** Opens a file for reading. Returns undefined if it does not exist. */
function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Returns whether the database file already contains the page that the last frame of a log holds. Call this
 * only while nobody in this process has the database open, because closing the file releases the locks on it.
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

/** Reads the log of one open database. Close it only after all connections to the database. */
export class LogView {
  readonly #file: string;
  #index: number | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads the index. Returns undefined if there is none, or if SQLite is writing it at this moment. */
  index() {
    this.#index ??= openIfThere(`${this.#file}-shm`);
    const bytes = this.#index === undefined ? undefined : bytesAt(this.#index, 0, INDEX_BYTES);
    if (bytes === undefined) return undefined;
    // The file contains the index twice. While SQLite writes it, the two differ.
    const copy = bytes.subarray(INDEX_COPY_BYTES);
    if (!bytes.subarray(0, INDEX_COPY_BYTES).equals(copy)) return undefined;
    // The index has the machine's byte order, except for the salts, which are stored as in the log.
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

  /** Returns the log's position, or undefined if nothing is committed in this round. */
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
