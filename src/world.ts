// Owns everything that is not a pure function of its arguments: time, ids, randomness and the log.
// W1: no other module (but config.ts, which reads the environment once) touches an ambient source,
//     so a test can hold the clock, predict ids and read the log.

import { randomUUID } from "node:crypto";
import { pino } from "pino";

/** A timer that can be taken back. Cancelling twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds, for durations only. */
  monotonic(): number;
  /** Calls `fire` once, no earlier than `atMs` (wall clock). Keeps the process alive only if told to. */
  at(atMs: number, fire: () => void, keep?: "alive"): Timer;
}

export interface Ids {
  /** A random UUID in its 36-character form. */
  uuid(): string;
}

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
}

/** Timers above this are re-armed in steps: the platform's own limit is 2^31-1 ms. */
const TIMER_STEP_MAX_MS = 2_000_000_000;

function timerAt(atMs: number, fire: () => void, keep?: "alive"): Timer {
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const leftMs = Math.max(0, atMs - Date.now());
    const stepMs = Math.min(leftMs, TIMER_STEP_MAX_MS);
    handle = setTimeout(() => (stepMs < leftMs ? arm() : fire()), stepMs);
    if (keep === undefined) handle.unref();
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
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
  const log = pino(
    {
      level: options.level ?? "info",
      base: null,
      ...(options.mask === undefined ? {} : { hooks: { streamWrite: options.mask } }),
    },
    pino.destination({ fd: 2, sync: options.sync ?? false }),
  );
  return {
    clock: { now: () => Date.now(), monotonic: () => performance.now(), at: timerAt },
    ids: { uuid: () => randomUUID() },
    random: () => Math.random(),
    log,
  };
}
