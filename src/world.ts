// Owns everything that is not a pure function of its arguments: time, ids, randomness and the log.
// W1: no other module (but world/plain.ts, which this one is made of, and config.ts, which reads the
//     environment once) touches an ambient source, so a test can hold the clock, predict ids and read the
//     log.
// W2: a line of the log is masked before anybody sees it, and what it says can move no cursor.

import { pino } from "pino";
import { createPaces } from "./core/pace.ts";
import { Redactor } from "./core/redact.ts";
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
  /** Uniform in [0, 1), for jitter. */
  random(): number;
  readonly log: Log;
  /** Masks what leaves: it knows every secret of the configuration, and those that were generated (I14). */
  readonly redactor: Redactor;
  /** Resolves once what has arrived by now has been taken up. Absent: whoever asks waits for nothing. */
  readonly gather?: () => Promise<void>;
  /** The newest lines of the log. Absent: nobody keeps them. */
  readonly logTail?: LogTail;
}

export interface LogOptions {
  /** pino level. Default "info". */
  readonly level?: string;
  /** The levels of lines whose `part` is one of these. */
  readonly parts?: Readonly<Record<string, string>>;
  /** Write before returning: short-lived commands lose nothing at exit. */
  readonly sync?: boolean;
  /** Masks each line before it is kept or written (I14). Default: one that knows no value yet. */
  readonly redactor?: Redactor;
  /** A further step for each line. Default: none. */
  readonly tame?: (line: string) => string;
  /** What becomes of a line on its way to standard error, and nowhere else. Default: nothing. */
  readonly format?: (line: string) => string;
}

const everyLevel = (at: (level: keyof Log) => Log[keyof Log]): Log => ({
  debug: at("debug"),
  info: at("info"),
  warn: at("warn"),
  error: at("error"),
});

/** A log whose lines carry these fields too; those of a line itself go before them. */
export function withFields(log: Log, fields: object): Log {
  return everyLevel((level) => (more, text) => log[level]({ ...fields, ...more }, text));
}

/** The same world, whose log lines carry these fields: what they are about, or who writes them. */
export function logging(world: World, fields: object): World {
  return { ...world, log: withFields(world.log, fields) };
}

/** The ids that belong on each line about a run. */
export function idsOf(run: { runId: string; sessionKey: string; chainId: string }): object {
  const { runId, sessionKey, chainId } = run;
  return { runId, sessionKey, chainId };
}

const rankOf = (level: string): number => pino.levels.values[level] ?? Number.POSITIVE_INFINITY;

/** Leaves out what its part does not write. */
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
  // After the messages and answers that this round of the event loop reads, and those of the next: after one
  // round alone, groups are smaller. To a loop that has nothing else to do a round is some microseconds.
  const gather = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  redactor.pacedBy(createPaces({ clock: plainClock, gather }));
  return {
    ...{ clock: plainClock, ids: plainIds, random: plainRandom, gather, logTail, redactor },
    log: isSplit ? byPart(log, level, parts) : log,
  };
}
