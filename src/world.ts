// Provides everything that is not a pure function of its arguments: time, ids, randomness and the log.
// No other module uses these sources directly, so a test can control the clock, predict ids and read the log.
// Exceptions: world/plain.ts, which is a part of this module, and config.ts, which reads the environment
// once.
// A log line is redacted before it is kept or written, and contains no terminal control characters.

import { pino } from "pino";
import { createPaces } from "./core/pace.ts";
import { Redactor } from "./core/text/redact/redact.ts";
import { LogTail } from "./world/log-tail.ts";
import { type Clock, type Ids, plainClock, plainIds, plainRandom, timerAt } from "./world/plain.ts";

export type { Clock, Ids, Timer } from "./world/plain.ts";

export interface Log {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface World {
  readonly clock: Clock;
  readonly ids: Ids;
  /** Returns a uniform number in [0, 1), for jitter. */
  random(): number;
  readonly log: Log;
  /** Redacts output. It knows all secrets of the configuration, and generated ones (I14). */
  readonly redactor: Redactor;
  /**
   * Yields to other work. Resolves once the input that has already arrived was processed. If absent, there is
   * no wait.
   */
  readonly gather?: () => Promise<void>;
  /** The newest lines of the log. Absent if they are not kept. */
  readonly logTail?: LogTail;
}

interface LogLevels {
  /** A pino level. Default "info". */
  readonly level?: string;
  /** Levels of log lines, by the `part` of the line. */
  readonly parts?: Readonly<Record<string, string>>;
}

export interface LogOptions extends LogLevels {
  /** Returns the levels for the next line. Absent: the levels of these options, for all lines. */
  readonly levels?: () => LogLevels;
  /** Writes each line before returning, so that short-lived commands lose no lines at exit. */
  readonly sync?: boolean;
  /** Redacts each line before it is kept or written (I14). Default: a redactor without known secrets. */
  readonly redactor?: Redactor;
  /** Changes each redacted line before it is kept or written. Default: no change. */
  readonly tame?: (line: string) => string;
  /** Formats a line for standard error only. Default: unchanged. */
  readonly format?: (line: string) => string;
}

const everyLevel = (at: (level: keyof Log) => Log[keyof Log]): Log => ({
  debug: at("debug"),
  info: at("info"),
  warn: at("warn"),
  error: at("error"),
});

/** Returns a log that adds these fields to its lines. Fields of a line override them. */
export function withFields(log: Log, fields: object): Log {
  return everyLevel((level) => (more, text) => log[level]({ ...fields, ...more }, text));
}

/** Returns the same world with a log that adds these fields to each line, for example `part`. */
export function logging(world: World, fields: object): World {
  return { ...world, log: withFields(world.log, fields) };
}

/** A log without lines. */
export const SILENT: World["log"] = { debug() {}, info() {}, warn() {}, error() {} };

/** Returns a world whose log drops all lines, for callers that print problems themselves. */
export const silenced = (world: World): World => ({ ...world, log: SILENT });

/** Returns the ids that each log line about a run contains. */
export function idsOf(run: { runId: string; sessionKey: string; chainId: string }): object {
  const { runId, sessionKey, chainId } = run;
  return { runId, sessionKey, chainId };
}

const rankOf = (level: string): number => pino.levels.values[level] ?? Number.POSITIVE_INFINITY;

/** Returns a log that drops lines below the level of their part. */
function byPart(log: Log, levels: () => LogLevels): Log {
  let known: LogLevels | undefined;
  let [leastElse, least] = [0, new Map<string, number>()];
  return everyLevel((name) => (fields: { part?: string }, text) => {
    const now = levels();
    if (now !== known) {
      const { level = "info", parts = {} } = now;
      leastElse = rankOf(level);
      least = new Map(Object.entries(parts).map(([part, its]) => [part, rankOf(its)]));
      known = now;
    }
    if (rankOf(name) >= (least.get(fields.part ?? "") ?? leastElse)) log[name](fields, text);
  });
}

/** Interval in which a problem of the store, such as a full disk, is logged once. */
const PROBLEM_LINE_MS = 60_000;
const PROBLEMS_MAX = 50;

/**
 * Returns a log that writes each problem of the store at most once a minute, in words and without a stack: a
 * problem lasts, and each loop of the gateway that meets it reports it.
 */
function withRareProblems(log: Log, { clock }: { clock: Pick<Clock, "monotonic"> }): Log {
  const lines = new Map<string, number>();
  return everyLevel((level) => (fields: { err?: unknown }, text) => {
    const { err } = fields;
    if (!(err instanceof Error && err.name === "StoreProblem")) return log[level](fields, text);
    const now = clock.monotonic();
    if (now - (lines.get(err.message) ?? Number.NEGATIVE_INFINITY) < PROBLEM_LINE_MS) return;
    // Messages name the store, so there are few of them. A detail that varies does not fill the map.
    if (lines.size >= PROBLEMS_MAX) lines.clear();
    lines.set(err.message, now);
    const withoutStack = Object.create(err, { stack: { value: undefined }, cause: { value: undefined } });
    log[level]({ ...fields, err: withoutStack }, text);
  });
}

/** Resolves when all work is done that waits for no timer and no input. */
export function otherWorkDone(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Returns the world of a real process: system clock, random UUIDs, log lines on stderr. */
export function realWorld(options: LogOptions = {}): World {
  const logTail = new LogTail();
  const { tame = (line: string) => line, format = (line: string) => line } = options;
  const { redactor = new Redactor([]) } = options;
  const { level = "info", parts = {}, levels } = options;
  const streamWrite = (line: string): string => {
    const masked = tame(redactor.mask(line));
    logTail.write(masked);
    return format(masked);
  };
  const every = [level, ...Object.values(parts)].sort((left, right) => rankOf(left) - rankOf(right));
  const lowest = levels === undefined ? (every[0] ?? level) : "debug";
  const log = pino(
    { level: lowest, base: null, hooks: { streamWrite } },
    pino.destination({ fd: 2, sync: options.sync ?? false }),
  );
  const quiet = withRareProblems(log, { clock: plainClock });
  const isSplit = levels !== undefined || Object.keys(parts).length > 0;
  // Waits for two rounds of the event loop, because one round may leave some of the arrived input unhandled.
  // A round of an idle loop takes some microseconds.
  const gather = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  redactor.pacedBy(createPaces({ clock: plainClock, gather }));
  return {
    clock: { ...plainClock, at: timerAt },
    ids: plainIds,
    random: plainRandom,
    gather,
    logTail,
    redactor,
    log: isSplit ? byPart(quiet, levels ?? (() => options)) : quiet,
  };
}
