// Reads the index of a write-ahead log (`-shm`) that another connection of this process uses.
// The file stays open: closing it would release the locks that SQLite holds on it.

import { existsSync, openSync, readSync } from "node:fs";

const INDEX_BYTES = 96;
const FRAMES_AT = 16;
const SALT_AT = 32;

/** Returns a function that reads the number of committed frames, and the salts of the current round. */
export function walIndexOf(database: string): () => { salts: [number, number]; frames: number } {
  let handle: number | undefined;
  return () => {
    const bytes = Buffer.alloc(INDEX_BYTES);
    if (handle === undefined && existsSync(`${database}-shm`)) handle = openSync(`${database}-shm`, "r");
    if (handle !== undefined) readSync(handle, bytes, 0, INDEX_BYTES, 0);
    // The machines of the tests are little-endian. The salts are stored as in the log.
    const salts: [number, number] = [bytes.readUInt32BE(SALT_AT), bytes.readUInt32BE(SALT_AT + 4)];
    return { salts, frames: bytes.readUInt32LE(FRAMES_AT) };
  };
}
