// Owns everything that is not a pure function of its arguments: time, ids, randomness and the log.
// W1: no other module (but world/plain.ts, which this one is made of, and config.ts, which reads the
//     environment once) touches an ambient source, so a test can hold the clock, predict ids and read the
//     log.

import { pino } from "pino";
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
  /** Resolves once what has arrived by now has been taken up. Absent: whoever asks waits for nothing. */
  readonly gather?: () => Promise<void>;
  /** The newest lines of the log. Absent: nobody keeps them. */
  readonly logTail?: LogTail;
}

export interface LogOptions {
  /** pino level. Default "info". */
  readonly level?: string;
  /** Write before returning: short-lived commands lose nothing at exit. */
  readonly sync?: boolean;
  /** What every line passes before it is written: secrets are masked there (I14). Default: nothing. */
  readonly mask?: (line: string) => string;
}

/** The world of a real process: system clock, random UUIDs, log lines on stderr. */
export function realWorld(options: LogOptions = {}): World {
  const logTail = new LogTail();
  const { mask = (line: string) => line } = options;
  const streamWrite = (line: string): string => {
    const masked = mask(line);
    logTail.write(masked);
    return masked;
  };
  const log = pino(
    { level: options.level ?? "info", base: null, hooks: { streamWrite } },
    pino.destination({ fd: 2, sync: options.sync ?? false }),
  );
  // After the messages and answers that this round of the event loop reads.
  const gather = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { clock: plainClock, ids: plainIds, random: plainRandom, log, gather, logTail };
}
