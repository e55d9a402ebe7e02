// Everything that is not a pure function of its arguments: time, ids, randomness and the log.
// No other module uses these sources directly, so a test can control the clock, predict ids and read the
// log. Exceptions: world/plain.ts, part of this one, and config.ts, which reads the environment once.
// A line of the log is redacted before it is kept or written, and cannot move a cursor.

import { pino } from "pino";
import { createPaces } from "./core/pace.ts";
import { Redactor } from "./core/text/redact/redact.ts";
import { LogTail } from "./world/log-tail.ts";
import { type Clock, type Ids, plainClock, plainIds, plainRandom } from "./world/plain.ts";

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
  /** Redacts output: it knows all secrets of the configuration, and generated ones (I14). */
  readonly redactor: Redactor;
  /** Resolves after everything that has already arrived was processed. Absent: resolves at once. */
  readonly gather?: () => Promise<void>;
  /** The newest lines of the log. Absent: not kept. */
  readonly logTail?: LogTail;
}

export interface LogOptions {
  /** pino level. Default "info". */
  readonly level?: string;
  /** Levels of lines by their `part`. */
  readonly parts?: Readonly<Record<string, string>>;
  /** Writes before returning, so that short-lived commands lose nothing at exit. */
  readonly sync?: boolean;
  /** Redacts each line before it is kept or written (I14). Default: one without known values. */
  readonly redactor?: Redactor;
  /** A further step for each line. Default: none. */
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

/** Returns a log that adds these fields to its lines; fields of a line itself override them. */
export function withFields(log: Log, fields: object): Log {
  return everyLevel((level) => (more, text) => log[level]({ ...fields, ...more }, text));
}

/** Returns the same world with a log that adds these fields: the subject of the lines, or their part. */
export function logging(world: World, fields: object): World {
  return { ...world, log: withFields(world.log, fields) };
}

/** Returns the ids for each line about a run. */
export function idsOf(run: { runId: string; sessionKey: string; chainId: string }): object {
  const { runId, sessionKey, chainId } = run;
  return { runId, sessionKey, chainId };
}

const rankOf = (level: string): number => pino.levels.values[level] ?? Number.POSITIVE_INFINITY;

/** Drops lines below the level of their part. */
function byPart(log: Log, level: string, parts: Readonly<Record<string, string>>): Log {
  const least = new Map(Object.entries(parts).map(([part, its]) => [part, rankOf(its)]));
  const leastElse = rankOf(level);
  return everyLevel((name) => (fields: { part?: string }, text) => {
    if (rankOf(name) >= (least.get(fields.part ?? "") ?? leastElse)) log[name](fields, text);
  });
}

/** The world of a real process: system clock, random UUIDs, log lines on stderr. */
export function realWorld(options: LogOptions = {}): World {
  const logTail = new LogTail();
  const { tame = (line: string) => line, format = (line: string) => line } = options;
  const { redactor = new Redactor([]) } = options;
  const { level = "info", parts = {} } = options;
  const streamWrite = (line: string): string => {
    const masked = tame(redactor.mask(line));
    logTail.write(masked);
    return format(masked);
  };
  const every = [level, ...Object.values(parts)].sort((left, right) => rankOf(left) - rankOf(right));
  const log = pino(
    { level: every[0] ?? level, base: null, hooks: { streamWrite } },
    pino.destination({ fd: 2, sync: options.sync ?? false }),
  );
  const isSplit = Object.keys(parts).length > 0;
  // Waits for two rounds of the event loop: after one round alone, groups are smaller. An idle loop needs
  // some microseconds for a round.
  const gather = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  redactor.pacedBy(createPaces({ clock: plainClock, gather }));
  return {
    clock: plainClock,
    ids: plainIds,
    random: plainRandom,
    gather,
    logTail,
    redactor,
    log: isSplit ? byPart(log, level, parts) : log,
  };
}
