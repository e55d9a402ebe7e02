// Limits the size of one answer of `sessions_history`.
// H1: the answer never exceeds the byte limit, measured as the JSON array in UTF-8.
// H2: nothing is omitted silently: `truncated`, `droppedMessages` and notes in shortened texts report it.
// Redacts only the messages that are needed, and only the part of each text that can be kept (I14).
// H4: other work can run between two messages, and between two pieces of a long text.

import { optional } from "../optional.ts";
import type { Pace } from "../pace.ts";
import type { Message } from "../shapes/message.ts";
import { head } from "./cut.ts";
import { type Beginning, LONG_CHARS, type Redactor } from "./redact/redact.ts";

export interface HistoryLimits {
  /** Maximum length of one text, including the note about the cut. */
  readonly maxTextChars: number;
  /** Maximum size of the JSON array of messages. */
  readonly maxBytes: number;
  /** Messages to keep if all of them together exceed the limit. Default: the newest. */
  readonly keep?: "newest" | "oldest";
}

export interface CutHistory {
  readonly messages: Message[];
  /** True if a text was shortened or a message dropped. */
  readonly truncated: boolean;
  readonly droppedMessages: number;
  /** Size of the JSON array of `messages` in bytes. */
  readonly bytes: number;
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Returns the start of a text with a note about the missing part, together at most `max` characters. */
function cutText(text: string, max: number): string {
  return text.length <= max ? text : beginning(text, max, text.length);
}

function beginning(text: string, max: number, charsInAll: number): string {
  const note = ` … [cut: ${charsInAll} characters in all]`;
  return (head(text, max - note.length) + note).slice(0, max);
}

const DEPTH_MAX = 64;
/** Maximum length of names in a shrunk tool result. A model or its provider has chosen these names. */
const NAME_CHARS_MAX = 200;

/** Shortens each string in a JSON value. Returns the same object if no string was too long. */
function cutStrings<T>(value: T, max: number, depth = 0): T {
  if (typeof value === "string") return cutText(value, max) as T;
  if (typeof value !== "object" || value === null || depth >= DEPTH_MAX) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => cutStrings(item, max, depth + 1));
    return items.every((item, at) => item === value[at]) ? value : (items as T);
  }
  const fields = Object.entries(value).map(
    ([name, item]) => [name, cutStrings(item, max, depth + 1)] as const,
  );
  const same = fields.every(([name, item]) => item === (value as Record<string, unknown>)[name]);
  return same ? value : (Object.fromEntries(fields) as T);
}

/** Reduces a message that alone exceeds the limit to its metadata and the start of its text, if that fits. */
function shrink(message: Message, maxBytes: number, maxTextChars: number): Message | undefined {
  const whole = bytesOf(message);
  const text = message.content
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("\n")
    .trim();
  const note = `[message of ${whole} bytes cut to fit]`;
  const shell = (kept: string): Message => {
    const content = [{ type: "text" as const, text: kept === "" ? note : `${note} ${kept}` }];
    if (message.role === "user") {
      // Keeps the provenance. Without it, the message would look like one by a person (I11).
      const { id, timestamp, provenance } = message;
      return { id, role: "user", content, timestamp, ...optional({ provenance }) };
    }
    if (message.role === "assistant") {
      const { errorMessage: _, ...rest } = message;
      return { ...rest, content };
    }
    const { details: _, toolCallId, toolName, ...rest } = message;
    const names = {
      toolCallId: cutText(toolCallId, NAME_CHARS_MAX),
      toolName: cutText(toolName, NAME_CHARS_MAX),
    };
    return { ...rest, ...names, content };
  };
  const room = maxBytes - bytesOf(shell("")) - 1;
  if (room < 0) return undefined;
  // Joins all texts into one, to which the limit of a single text applies. Because JSON may need six bytes
  // per character, the length is halved until it fits.
  const charsMax = Math.min(text.length, room, maxTextChars - note.length - 1);
  for (let chars = charsMax; chars > 0; chars = Math.floor(chars / 2)) {
    const smaller = shell(head(text, chars));
    if (bytesOf(smaller) <= maxBytes) return smaller;
  }
  return shell("");
}

/** Texts up to this length are redacted in one step. */
const SHORT_CHARS_MAX = 1_024;

/** Yields the long texts in a JSON value. */
export function* textsIn(value: unknown, depth = 0): Generator<string> {
  if (typeof value === "string" && value.length > SHORT_CHARS_MAX) yield value;
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return;
  for (const item of Object.values(value)) yield* textsIn(item, depth + 1);
}

/** Returns a message in which each text is redacted and has at most `max` characters. */
async function maskMessage(
  message: Message,
  max: number,
  redactor: Redactor,
  pace: Pace,
): Promise<{ message: Message; isCut: boolean }> {
  const known = new Map<string, Beginning>();
  for (const text of textsIn(message)) {
    await pace();
    const isLong = text.length > LONG_CHARS;
    known.set(text, isLong ? await redactor.start(text, max) : redactor.beginning(text, max));
  }
  let isCut = false;
  const shown = redactor.message(message, (text) => {
    const { text: begin, whole } = known.get(text) ?? redactor.beginning(text, max);
    if (whole) return begin;
    isCut = true;
    return beginning(begin, max, text.length);
  });
  return { message: shown, isCut };
}

/**
 * Returns the redacted messages that fit, oldest first. A message that alone exceeds the limit is shrunk
 * instead of dropped.
 */
export async function cutHistory(
  messages: readonly Message[],
  limits: HistoryLimits,
  redactor: Redactor,
): Promise<CutHistory> {
  const kept: Message[] = [];
  let truncated = false;
  let bytes = 2; // The brackets.
  const forward = limits.keep === "oldest";
  const pace = redactor.pace();
  for (const whole of forward ? messages : messages.toReversed()) {
    await pace();
    const { message, isCut } = await maskMessage(whole, limits.maxTextChars, redactor, pace);
    await pace();
    const content = cutStrings(message.content, limits.maxTextChars);
    let cut = content === message.content ? message : ({ ...message, content } as Message);
    if (cut.role === "toolResult") {
      const details = cutStrings(cut.details, limits.maxTextChars);
      if (details !== cut.details) cut = { ...cut, details };
    }
    const comma = kept.length > 0 ? 1 : 0;
    if (kept.length === 0 && bytes + bytesOf(cut) > limits.maxBytes) {
      const smaller = shrink(cut, limits.maxBytes - bytes, limits.maxTextChars);
      if (smaller === undefined) break;
      cut = smaller;
    }
    const size = bytesOf(cut) + comma;
    if (bytes + size > limits.maxBytes) break;
    if (isCut || cut !== message) truncated = true;
    bytes += size;
    kept.push(cut);
  }
  const droppedMessages = messages.length - kept.length;
  if (!forward) kept.reverse();
  return { messages: kept, truncated: truncated || droppedMessages > 0, droppedMessages, bytes };
}
