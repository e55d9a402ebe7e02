// Limits the size of a program's messages before the protocol's library reads them. The library ends the
// connection at a message that is too long, and some programs send whole files in one message.
// - A long text in a message is cut. Its end says so.
// - A message that is too long nevertheless, or has too many values, is left out. Its beginning is reported.

import { isMark, JSON_MARKS_MAX } from "../../../core/meter.ts";

/** More than any limit of a turn's texts, so that those limits decide about what is kept. */
const TEXT_MAX_BYTES = 1024 * 1024;
export const MESSAGE_MAX_BYTES = 8 * 1024 * 1024;
const HEAD_BYTES = 4 * 1024;
const CUT = new TextEncoder().encode(" [too large: cut]");

const NEWLINE = 10;
const QUOTE = 34;
const BACKSLASH = 92;
const LETTER_U = 117;
/** Hexadecimal digits of an escaped character. */
const ESCAPE_DIGITS = 4;
const ESCAPE_BEGINS = ESCAPE_DIGITS + 1;

/** `onLeftOut` gets the beginning of each message that is left out. */
export function boundedLines(onLeftOut: (head: string) => void): TransformStream<Uint8Array, Uint8Array> {
  let line: Uint8Array[] = [];
  let lineBytes = 0;
  let isLeftOut = false;
  let isText = false;
  let textBytes = 0;
  let isCut = false;
  /** Values of the message: see meter.ts. */
  let marks = 0;
  /** Bytes of an escaped character that are still to come. */
  let escapeLeft = 0;

  const keep = (piece: Uint8Array): void => {
    lineBytes += piece.length;
    if (isLeftOut || piece.length === 0) return;
    line.push(piece);
    if (lineBytes <= MESSAGE_MAX_BYTES && marks <= JSON_MARKS_MAX) return;
    isLeftOut = true;
    onLeftOut(new TextDecoder().decode(Buffer.concat(line).subarray(0, HEAD_BYTES)));
    line = [];
  };
  /** Reads a byte of a text. Returns the place in `chunk` from which bytes are still to be kept. */
  const readText = (chunk: Uint8Array, at: number, from: number): number => {
    const byte = chunk[at] as number;
    if (escapeLeft > 0) {
      const isFirstOfEscape = escapeLeft === ESCAPE_BEGINS;
      escapeLeft = isFirstOfEscape ? (byte === LETTER_U ? ESCAPE_DIGITS : 0) : escapeLeft - 1;
    } else if (byte === QUOTE) {
      const next = isCut ? at : from;
      if (isCut) keep(CUT);
      isText = isCut = false;
      return next;
    } else {
      if (byte === BACKSLASH) escapeLeft = ESCAPE_BEGINS;
      // Cuts only before the first byte of a character in UTF-8.
      if (!isCut && textBytes >= TEXT_MAX_BYTES && (byte & 0xc0) !== 0x80) {
        keep(chunk.subarray(from, at));
        isCut = true;
      }
    }
    textBytes += 1;
    return from;
  };
  const pass = (to: TransformStreamDefaultController<Uint8Array>): void => {
    if (!isLeftOut) for (const piece of line) to.enqueue(piece);
  };
  return new TransformStream({
    transform(chunk, to) {
      let from = 0;
      for (let at = 0; at < chunk.length; at += 1) {
        const byte = chunk[at] as number;
        if (byte === NEWLINE) {
          if (!isCut) keep(chunk.subarray(from, at + 1));
          pass(to);
          line = [];
          [lineBytes, escapeLeft, marks, from] = [0, 0, 0, at + 1];
          isLeftOut = isText = isCut = false;
        } else if (isText) from = readText(chunk, at, from);
        else if (byte === QUOTE) [isText, textBytes] = [true, 0];
        else if (isMark(byte)) marks += 1;
      }
      if (!isCut) keep(chunk.subarray(from));
    },
    flush: pass,
  });
}
