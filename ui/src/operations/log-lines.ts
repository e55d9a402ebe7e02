// Owns the log lines on the page, and splits each line into columns and details.
// LL1: the number of lines is limited, and the oldest are dropped first. Each line is shown once.

import type { PayloadOf } from "../../../src/contract/methods.ts";
import { fieldsOf, isObject } from "../../../src/core/json.ts";
import { joinWords } from "../parts/words.ts";

export type LogLine = PayloadOf<"logs.tail">["lines"][number];

const LINES_MAX = 1_000;

export interface Kept {
  readonly lines: readonly LogLine[];
  /** Number of lines that the gateway dropped before the page had read them. */
  readonly dropped: number;
}

export const NOTHING: Kept = { lines: [], dropped: 0 };

export function added(kept: Kept, news: readonly LogLine[], dropped: number): Kept {
  const last = kept.lines.at(-1)?.seq ?? 0;
  const fresh = news.filter(({ seq }) => seq > last);
  return { lines: [...kept.lines, ...fresh].slice(-LINES_MAX), dropped: kept.dropped + dropped };
}

const textOf = (value: unknown): string => (typeof value === "string" ? value.trim() : "");

/** Returns the message of a logged error: a text, or an object with a message or only a type. */
function errorText(err: unknown): string {
  if (!isObject(err)) return textOf(err);
  const { message, type } = err;
  return textOf(message) || textOf(type);
}

/** Fields that name the thing that a line is about. */
const SUBJECTS = ["server", "tool", "channel", "account", "model", "method", "file", "dir"] as const;

/** Returns the message of a line, with the names of the things that it is about. */
export function titleOf(line: LogLine): string {
  const fields = line as LogLine & Record<string, unknown>;
  const names = SUBJECTS.map((name) => textOf(fields[name]));
  return [line.msg, ...names.filter((one) => one !== "" && !line.msg.includes(one))].join(" · ");
}

/** Returns the reason of a failure in words, followed by its codes, or undefined if the line has none. */
export function reasonOf(line: LogLine): string | undefined {
  const { why, said, status, code, err, msg } = line as LogLine & Record<string, unknown>;
  const inError = fieldsOf(err).code;
  const words = textOf(why) || errorText(err) || textOf(said);
  const codes = [code, inError].map(textOf).filter((one) => one !== "" && !words.includes(one));
  const answered = typeof status === "number" && !words.includes(String(status)) ? [`status ${status}`] : [];
  const parts = [words, ...answered, ...new Set(codes)].filter((one) => one !== "" && !msg.includes(one));
  return parts.length === 0 ? undefined : parts.join(" · ");
}

/** Returns the fields that neither the message nor a column shows, or undefined. The stack has its lines. */
export function detailsOf(line: LogLine): string | undefined {
  const { seq, time, level, msg, cut, ...rest } = line as LogLine & Record<string, unknown>;
  const { err, ...plain } = rest;
  const { stack, type, message, ...others } = fieldsOf(err);
  const hasStack = textOf(stack) !== "";
  const unnamed = Object.keys(others).length === 0 ? {} : { err: others };
  const fields = hasStack ? { ...plain, ...unnamed } : rest;
  const parts = [
    Object.keys(fields).length === 0 ? "" : JSON.stringify(fields, null, 2),
    hasStack ? String(stack) : "",
  ];
  return joinWords(parts, "\n\n") || undefined;
}
