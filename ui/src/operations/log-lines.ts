// Owns the lines of the log as the page holds them, and what of a line is shown where.
// LL1: bounded: the oldest go first. A line is shown once, whatever was asked twice.

import type { PayloadOf } from "../../../src/gateway/payloads.ts";

export type LogLine = PayloadOf<"logs.tail">["lines"][number];

const LINES_MAX = 1_000;

export interface Kept {
  readonly lines: readonly LogLine[];
  /** Lines that were gone before they could be read. */
  readonly dropped: number;
}

export const NOTHING: Kept = { lines: [], dropped: 0 };

export function added(kept: Kept, news: readonly LogLine[], dropped: number): Kept {
  const last = kept.lines.at(-1)?.seq ?? 0;
  const fresh = news.filter(({ seq }) => seq > last);
  return { lines: [...kept.lines, ...fresh].slice(-LINES_MAX), dropped: kept.dropped + dropped };
}

/** What a line says beside its message and what stands in columns; undefined: nothing. */
export function detailsOf(line: LogLine): string | undefined {
  const { seq, time, level, msg, cut, ...rest } = line;
  if (Object.keys(rest).length === 0) return undefined;
  const { err, ...plain } = rest;
  const stack = stackOf(err);
  const fields = stack === undefined ? rest : plain;
  const shown = Object.keys(fields).length === 0 ? [] : [JSON.stringify(fields, null, 2)];
  return [...shown, ...(stack === undefined ? [] : [stack])].join("\n\n");
}

/** An error in the words that programmers read. */
function stackOf(err: unknown): string | undefined {
  if (typeof err !== "object" || err === null || !("stack" in err)) return undefined;
  const { stack, ...more } = err as Record<string, unknown>;
  if (typeof stack !== "string" || stack === "") return undefined;
  const { type, message, ...others } = more;
  return Object.keys(others).length === 0 ? stack : `${stack}\n${JSON.stringify(others, null, 2)}`;
}
