// Parses server-sent events from the bytes of a response, in linear time. An event may be split anywhere,
// even inside a character. Lines end in LF, CRLF or CR. Only the incomplete event is kept; the caller limits
// its size.

import { StringDecoder } from "node:string_decoder";

export interface ServerEvent {
  /** The event's name, or "" if it has none. */
  readonly name: string;
  readonly data: string;
}

const SPACE = 0x20;
const BYTE_ORDER_MARK = "\uFEFF";

/** Returns the value after the colon of a field. */
function fieldValue(line: string, colonAt: number): string {
  return line.slice(line.charCodeAt(colonAt + 1) === SPACE ? colonAt + 2 : colonAt + 1);
}

/** Accepts bytes with `feed`. `next` returns events until more bytes are needed. */
export class EventReader {
  readonly #decoder = new StringDecoder("utf8");
  #text = "";
  #at = 0;
  /** Pieces of the unfinished line. A list, because adding to it copies nothing. */
  #lineSoFar: string[] = [];
  #isFirst = true;
  #endedInReturn = false;
  #name = "";
  #data: string | undefined;

  feed(bytes: Uint8Array): void {
    this.#take(this.#decoder.write(bytes));
  }

  /** Ends the stream: an event without its empty line counts as complete. */
  finish(): void {
    this.#take(`${this.#decoder.end()}\n\n`);
  }

  /** Returns the next complete event, or undefined if more bytes are needed. */
  next(): ServerEvent | undefined {
    for (;;) {
      const end = this.#text.indexOf("\n", this.#at);
      if (end < 0) break;
      const event = this.#line(this.#whole(this.#text.slice(this.#at, end)));
      this.#at = end + 1;
      if (event !== undefined) return event;
    }
    if (this.#at < this.#text.length) this.#lineSoFar.push(this.#text.slice(this.#at));
    this.#text = "";
    this.#at = 0;
    return undefined;
  }

  #take(decoded: string): void {
    if (decoded === "") return;
    const isHalfBreak = this.#endedInReturn && decoded.startsWith("\n");
    const isMarked = this.#isFirst && decoded.startsWith(BYTE_ORDER_MARK);
    const text = isHalfBreak || isMarked ? decoded.slice(1) : decoded;
    this.#isFirst = false;
    this.#endedInReturn = decoded.endsWith("\r");
    this.#text = text.includes("\r") ? text.replaceAll(/\r\n?/g, "\n") : text;
  }

  #whole(end: string): string {
    if (this.#lineSoFar.length === 0) return end;
    const line = this.#lineSoFar.join("") + end;
    this.#lineSoFar = [];
    return line;
  }

  #line(line: string): ServerEvent | undefined {
    if (line.startsWith("data:")) {
      const value = fieldValue(line, 4);
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
      return undefined;
    }
    if (line.startsWith("event:")) this.#name = fieldValue(line, 5);
    if (line !== "") return undefined;
    const event = this.#data === undefined ? undefined : { name: this.#name, data: this.#data };
    this.#name = "";
    this.#data = undefined;
    return event;
  }
}
