// Owns the methods about the gateway's operation: usage, its log.
// OP1: all of them except usage report on the work of every session, so they need a token that covers every
//      session (I9).
// A line of the log is returned as it was written to stderr: redacted, and cut if it is too long.

import { seesEverything } from "../../access/token.ts";
import {
  LOG_LEVELS,
  type LogLine,
  type LogPage,
  type OPERATION_METHODS,
} from "../../contract/methods/operations.ts";
import type { ParamsOf } from "../../contract/methods.ts";
import { isObject } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { LogTailLine } from "../../world/log-tail.ts";
import type { Caller } from "../auth.ts";
import type { CallContext, Methods } from "../call.ts";
import { usageReport } from "./usage.ts";

const LINES = { byDefault: 200, max: 500 } as const;
/** The lowest pino level of each entry of `LOG_LEVELS`. */
const LEVELS_FROM = [0, 30, 40, 50];
/** Matches the beginning of a log line that was truncated. */
const HEAD = /^\{"level":(\d{1,3}),"time":(\d{1,16})/;

/** Refuses a token that covers only some sessions. */
export function needEverySession(caller: Caller, what: string): Result<void> {
  if (seesEverything(caller)) return ok(undefined);
  return fail(
    "missing_scope",
    `${what} requires a token that covers every session; this one covers only some`,
    {
      hint: "Use a token without gateway.auth.tokens[].sessions.",
    },
  );
}

function levelOf(number: unknown): LogLine["level"] {
  const at = LEVELS_FROM.findLastIndex((from) => Number(number) >= from);
  return LOG_LEVELS[Math.max(0, at)] ?? "info";
}

function read({ seq, text }: LogTailLine): LogLine {
  try {
    const line: unknown = JSON.parse(text);
    if (!isObject(line)) throw new Error("not an object");
    const { level, time, msg, ...rest } = line;
    const at = typeof time === "number" ? time : 0;
    return { ...rest, seq, time: at, level: levelOf(level), msg: String(msg ?? "") };
  } catch {
    const [, level, time] = HEAD.exec(text) ?? [];
    return { seq, time: Number(time ?? 0), level: levelOf(level ?? 30), msg: text, cut: true };
  }
}

/** Returns the cursor of a line. It has the id of its process, because line numbers are valid only there. */
export function logCursor(processId: string, seq: number): string {
  return `${processId.slice(0, 8)}-${seq}`;
}

/** Returns the line number in a cursor, or undefined if it is of another process. */
export function seqInCursor(processId: string, cursor: string | undefined): number | undefined {
  const [, of, seq] = /^(.{8})-(\d{1,15})$/.exec(cursor ?? "") ?? [];
  return of === processId.slice(0, 8) ? Number(seq) : undefined;
}

function tail(ctx: CallContext, params: ParamsOf<"logs.tail">): LogPage {
  const { logTail } = ctx.deps.world;
  const kept = logTail?.lines() ?? [];
  const { processId } = ctx.deps.engine;
  const after = seqInCursor(processId, params.cursor);
  const wanted = params.search?.toLowerCase() ?? "";
  const least = LOG_LEVELS.indexOf(params.level ?? "debug");
  const fits = (line: LogTailLine): boolean =>
    line.seq > (after ?? 0) && (wanted === "" || line.text.toLowerCase().includes(wanted));
  const found = kept
    .filter(fits)
    .map(read)
    .filter(({ level }) => LOG_LEVELS.indexOf(level) >= least);
  const limit = Math.min(params.limit ?? LINES.byDefault, LINES.max);
  // The first request gets the newest lines. A client that continues from a cursor gets all lines in order.
  const lines = after === undefined ? found.slice(-limit) : found.slice(0, limit);
  const more = after !== undefined && found.length > lines.length;
  const last = more ? (lines.at(-1)?.seq ?? 0) : (logTail?.last() ?? 0);
  const oldest = kept[0]?.seq ?? 1;
  const dropped = after === undefined ? 0 : Math.max(0, oldest - 1 - after);
  return { cursor: logCursor(processId, last), lines, dropped, more };
}

export const operationMethods: Methods<keyof typeof OPERATION_METHODS> = {
  usage: {
    handle: async (ctx, params) => ok(await usageReport(ctx, params)),
  },
  "logs.tail": {
    handle: async (ctx, params) => ok(tail(ctx, params)),
  },
};
