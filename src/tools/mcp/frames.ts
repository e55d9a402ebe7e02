// Reads the messages of an MCP server: lines on a pipe.
// - A line that is too long is dropped while it arrives, and one with too many values is not parsed; its
//   request fails, if the line contains its id.
// - A line that is not a message (a banner, debug output) is skipped.
// - The contents of lists and results bypass the library, which would refuse a whole list because of one bad
// entry.

import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { isObject, readJson } from "../../core/json.ts";
import { fail } from "../../core/shapes/errors.ts";

/** Maximum bytes of a message: enough for a few pictures. */
export const MESSAGE_MAX_BYTES = 24 * 1024 * 1024;
const TOO_LONG = `the answer has more than ${MESSAGE_MAX_BYTES} bytes`;
const HEAD_BYTES = 256;
const TAIL_BYTES = 64;
const NEWLINE = 10;
export const INTERNAL_ERROR = -32603;

/** Marks an error answer that replaces an answer that was too long. */
export const TOO_LARGE = Object.freeze({ parley: "too_large" });
export const BROKEN = Object.freeze({ parley: "broken" });

/** Returns an error answer that replaces the server's answer. */
export function errorAnswer(id: string | number, message: string, data: object): JSONRPCMessage {
  return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message, data } };
}

const ASIDE = {
  tools: "parley/tools",
  content: "parley/content",
  prompts: "parley/prompts",
  messages: "parley/messages",
  resources: "parley/resources",
  resourceTemplates: "parley/resourceTemplates",
  contents: "parley/contents",
} as const;

/** Moves the contents of a message into a field that the library does not check. */
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

/** Returns the contents that `putAside` moved. */
export function takeBack(result: unknown, key: keyof typeof ASIDE): unknown {
  return isObject(result) ? result[ASIDE[key]] : undefined;
}

/** Finds the id at the beginning or the end of a dropped line, where serialisers write it. */
function idOf(head: string, tail: string): number | undefined {
  const isAnswer = /^\{"(?:result|error)":/.test(head);
  const found =
    /^\{"jsonrpc":"2\.0","id":(\d{1,15}),"(?:result|error)":/.exec(head) ??
    (isAnswer ? /,"id":(\d{1,15})\}\s*$/.exec(tail) : null);
  return found === null ? undefined : Number(found[1]);
}

export interface LineEvents {
  onMessage(message: JSONRPCMessage): void;
  /** Called for a line that is not a message, or that is too long and has no id. */
  onNoise(what: "no message" | "too long"): void;
}

/** Splits a stream into messages. */
export class LineReader {
  readonly #events: LineEvents;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The beginning of a line that is being dropped. */
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
    const line = Buffer.concat(this.#pieces);
    const tail = (head === undefined ? line.subarray(-TAIL_BYTES) : this.#tail).toString();
    this.#pieces = [];
    this.#bytes = 0;
    this.#head = undefined;
    if (head === undefined && line.length < HEAD_BYTES && line.toString().trim() === "") return;
    const read = head === undefined ? readJson(line) : fail("too_large", TOO_LONG);
    const id = read.ok ? undefined : idOf(head ?? line.subarray(0, HEAD_BYTES).toString(), tail);
    if (read.ok) {
      const message = messageIn(read.value);
      if (message === undefined) this.#events.onNoise("no message");
      else this.#events.onMessage(putAside(message));
    } else if (id === undefined) this.#events.onNoise("too long");
    else this.#events.onMessage(errorAnswer(id, read.error, TOO_LARGE));
  }
}

/** Returns the message, or undefined if it is none. An unreadable answer becomes an error answer. */
function messageIn(value: unknown): JSONRPCMessage | undefined {
  if (!isObject(value) || value.jsonrpc !== "2.0") return undefined;
  const { id, method, result, error } = value;
  const isAnswer = method === undefined && (typeof id === "number" || typeof id === "string");
  const isReadable =
    isObject(result) ||
    (isObject(error) && Number.isSafeInteger(error.code) && typeof error.message === "string");
  if (isAnswer && !isReadable) return errorAnswer(id, "its answer is neither a result nor an error", {});
  return value as unknown as JSONRPCMessage;
}
