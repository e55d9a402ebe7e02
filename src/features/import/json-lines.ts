// Reads untrusted JSON line by line with limited memory. Only one line is in memory, and of a longer line at
// most LINE_BYTES_MAX. A text with too many values or levels is rejected before it is parsed, because it
// could need far more memory than its text.

import type { FileHandle } from "node:fs/promises";

/** Maximum bytes of one transcript entry, which can contain pictures and tool output. */
export const LINE_BYTES_MAX = 8 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const DEPTH_MAX = 200;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const LINE_END = 0x0a;

const isOpening = (byte: number): boolean => byte === 0x5b || byte === 0x7b;
const isClosing = (byte: number): boolean => byte === 0x5d || byte === 0x7d;

/**
 * Returns the end of the string that begins at `from`, or the end of the text if the string is unterminated.
 */
function endOfString(text: Buffer, from: number): number {
  for (let at = text.indexOf(QUOTE, from + 1); at !== -1; at = text.indexOf(QUOTE, at + 1)) {
    let before = at - 1;
    while (text[before] === BACKSLASH) before -= 1;
    // The quote ends the string if an even number of backslashes precedes it.
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/** Returns whether a JSON text has at most `valuesMax` values and few enough levels. */
export function isModest(text: Buffer, valuesMax: number): boolean {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at] as number;
    if (byte === QUOTE) at = endOfString(text, at);
    else if (byte === COMMA) values += 1;
    else if (isOpening(byte)) {
      depth += 1;
      values += 1;
    } else if (isClosing(byte)) depth -= 1;
    if (depth > DEPTH_MAX || values > valuesMax) return false;
  }
  return true;
}

export type Parsed =
  | { readonly ok: true; readonly value: unknown; readonly isUtf8: boolean }
  | { readonly ok: false; readonly why: "broken" | "too_complex" };

const strict = new TextDecoder("utf-8", { fatal: true });

/** Parses untrusted JSON. Invalid UTF-8 becomes replacement characters. */
export function parseForeign(bytes: Buffer, valuesMax: number): Parsed {
  if (!isModest(bytes, valuesMax)) return { ok: false, why: "too_complex" };
  let isUtf8 = true;
  let text: string;
  try {
    text = strict.decode(bytes);
  } catch {
    isUtf8 = false;
    text = bytes.toString("utf8");
  }
  try {
    return { ok: true, value: JSON.parse(text), isUtf8 };
  } catch {
    return { ok: false, why: "broken" };
  }
}

export interface FileLine {
  /** Line number, counted from 1. */
  readonly number: number;
  /** Absent if the line is too long. */
  readonly bytes?: Buffer;
}

/** Yields the non-empty lines of the first `size` bytes of a file. */
export async function* linesOf(handle: FileHandle, size: number): AsyncGenerator<FileLine> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let number = 1;
  let at = 0;
  const take = (piece: Buffer): void => {
    keptBytes += piece.length;
    // Of a line that is too long, the rest is counted but not kept.
    if (keptBytes <= LINE_BYTES_MAX) kept.push(Buffer.from(piece));
    else kept = [];
  };
  const finish = (): FileLine | undefined => {
    const bytes = keptBytes;
    const line = bytes > LINE_BYTES_MAX ? undefined : Buffer.concat(kept);
    kept = [];
    keptBytes = 0;
    if (bytes > LINE_BYTES_MAX) return { number };
    return line === undefined || isBlank(line) ? undefined : { number, bytes: line };
  };
  while (at < size) {
    const { bytesRead } = await handle.read(chunk, 0, Math.min(CHUNK_BYTES, size - at), at);
    if (bytesRead === 0) break;
    at += bytesRead;
    let from = 0;
    for (let end = chunk.indexOf(LINE_END, from); end !== -1 && end < bytesRead; ) {
      take(chunk.subarray(from, end));
      const line = finish();
      if (line !== undefined) yield line;
      number += 1;
      from = end + 1;
      end = chunk.indexOf(LINE_END, from);
    }
    take(chunk.subarray(from, bytesRead));
  }
  const last = finish();
  if (last !== undefined) yield last;
}

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  return true;
}
