// Reads a stream line by line. A line that exceeds the size limit is discarded; `undefined` is reported in
// its place.

import type { Readable } from "node:stream";

export const LINE_MAX_BYTES = 8 * 1024 * 1024;

/**
 * Yields each line without its line end, and undefined for a line that exceeds the limit. Skips blank lines.
 */
export async function* linesOf(input: NodeJS.ReadableStream): AsyncGenerator<string | undefined> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const take = (): string | undefined => {
    const tooLong = bytes > LINE_MAX_BYTES;
    const text = tooLong ? undefined : Buffer.concat(pieces).toString("utf8").trim();
    pieces = [];
    bytes = 0;
    return text;
  };
  const add = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes > LINE_MAX_BYTES) pieces = [];
    else pieces.push(piece);
  };
  for await (const chunk of input as Readable) {
    let piece = Buffer.from(chunk);
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10)) {
      add(piece.subarray(0, at));
      const line = take();
      if (line !== "") yield line;
      piece = piece.subarray(at + 1);
    }
    add(piece);
  }
  const last = take();
  if (last !== "") yield last;
}
