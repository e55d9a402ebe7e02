// Owns the frames that an outside server writes: lines on a pipe, messages in general.
// F1: a line that is too long is thrown away while it comes; whoever waits for it is told, if it says for
//     whom it was.
// F2: what is no message (a banner, a stray print) is passed over.
// F3: the contents of lists and results are read by us: the library, which would refuse a whole list for one
//     entry, gets them put aside.

import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { isObject } from "../../core/json.ts";

/** The longest message: a few pictures fit. */
export const MESSAGE_MAX_BYTES = 24 * 1024 * 1024;
const HEAD_BYTES = 256;
const TAIL_BYTES = 64;
const NEWLINE = 10;
export const INTERNAL_ERROR = -32603;

/** Stands in an error of ours that comes in place of an answer. */
export const TOO_LARGE = Object.freeze({ parley: "too_large" });
export const BROKEN = Object.freeze({ parley: "broken" });

/** An answer that the server did not give. */
export function errorAnswer(id: string | number, message: string, data: object): JSONRPCMessage {
  return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message, data } };
}

const ASIDE = { tools: "parley/tools", content: "parley/content" } as const;

/** A message of the server as the library gets it. */
export function putAside(message: JSONRPCMessage): JSONRPCMessage {
  const result = "result" in message ? message.result : undefined;
  if (!isObject(result)) return message;
  const aside: Record<string, unknown> = { ...result };
  for (const [key, place] of Object.entries(ASIDE)) {
    if (aside[key] === undefined) continue;
    aside[place] = aside[key];
    aside[key] = [];
  }
  return { ...message, result: aside } as JSONRPCMessage;
}

/** What was put aside. */
export function takeBack(result: unknown, key: keyof typeof ASIDE): unknown {
  return isObject(result) ? result[ASIDE[key]] : undefined;
}

/** For whom a line was of which only the two ends are left. Serialisers write the id first or last. */
function idOf(head: string, tail: string): number | undefined {
  const isAnswer = /^\{"(?:result|error)":/.test(head);
  const found =
    /^\{"jsonrpc":"2\.0","id":(\d{1,15}),"(?:result|error)":/.exec(head) ??
    (isAnswer ? /,"id":(\d{1,15})\}\s*$/.exec(tail) : null);
  return found === null ? undefined : Number(found[1]);
}

export interface LineEvents {
  onMessage(message: JSONRPCMessage): void;
  /** A line that was no message, or one that was too long and nobody's. */
  onNoise(what: "no message" | "too long"): void;
}

/** Cuts a stream into messages. */
export class LineReader {
  readonly #events: LineEvents;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Of a line that is thrown away: its beginning. */
  #head: string | undefined;
  #tail = Buffer.alloc(0);

  constructor(events: LineEvents) {
    this.#events = events;
  }

  add(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#grow(chunk.subarray(start, end));
      this.#finish();
      start = end + 1;
    }
    this.#grow(chunk.subarray(start));
  }

  #grow(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    if (this.#head === undefined) {
      this.#pieces.push(piece);
      if (this.#bytes <= MESSAGE_MAX_BYTES) return;
      const line = Buffer.concat(this.#pieces);
      this.#head = line.subarray(0, HEAD_BYTES).toString();
      this.#tail = Buffer.from(line.subarray(-TAIL_BYTES));
      this.#pieces = [];
      return;
    }
    this.#tail = Buffer.concat([this.#tail, piece.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
  }

  #finish(): void {
    const head = this.#head;
    const line = head === undefined ? Buffer.concat(this.#pieces).toString() : "";
    const tail = this.#tail.toString();
    this.#pieces = [];
    this.#bytes = 0;
    this.#head = undefined;
    const id = head === undefined ? undefined : idOf(head, tail);
    const text = `the answer has more than ${MESSAGE_MAX_BYTES} bytes`;
    if (head === undefined) this.#read(line);
    else if (id === undefined) this.#events.onNoise("too long");
    else this.#events.onMessage(errorAnswer(id, text, TOO_LARGE));
  }

  #read(line: string): void {
    if (line.trim() === "") return;
    const message = parsed(line);
    if (message === undefined) this.#events.onNoise("no message");
    else this.#events.onMessage(putAside(message));
  }
}

/** A line as a message; undefined: it is none. An answer that says nothing readable is one all the same. */
function parsed(line: string): JSONRPCMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value.jsonrpc !== "2.0") return undefined;
  const { id, method, result, error } = value;
  const isAnswer = method === undefined && (typeof id === "number" || typeof id === "string");
  const isReadable =
    isObject(result) ||
    (isObject(error) && Number.isSafeInteger(error.code) && typeof error.message === "string");
  if (isAnswer && !isReadable) return errorAnswer(id, "its answer is neither a result nor an error", {});
  return value as unknown as JSONRPCMessage;
}
