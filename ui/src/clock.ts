// Owns time on the page: only this file reads the browser's clock and starts timers.

import { signal } from "@preact/signals";

/** Interval at which components that show an age are redrawn. */
const TICK_MS = 5_000;

/** Current time in ms since 1970, up to `TICK_MS` old. Components that read it to show an age are redrawn. */
export const tick = signal(Date.now());

setInterval(() => {
  tick.value = Date.now();
}, TICK_MS);

/** Returns the current time in ms since 1970. */
export function now(): number {
  return Date.now();
}

/** Calls `fire` once after `ms`. Returns a function that cancels it. */
export function after(ms: number, fire: () => void): () => void {
  const timer = setTimeout(fire, ms);
  return () => clearTimeout(timer);
}

/**
 * Returns a function that may be called often. The first call starts a delay of `ms`, after which `fire` runs
 * once. Calls during the delay have no effect.
 */
export function batched(ms: number, fire: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      fire();
    }, ms);
  };
}

/**
 * Returns a function that may be called often. Only one `work` runs at a time: calls during a run cause one
 * more run after it. Resolves at the end of a run that began after the call.
 */
export function inTurn(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const begin = (): Promise<void> => {
    next = undefined;
    running = work().finally(() => {
      if (next === undefined) running = undefined;
    });
    return running;
  };
  return () => {
    if (running === undefined) return begin();
    next ??= running.then(begin, begin);
    return next;
  };
}

/**
 * Returns a function that may be called often. `fire` runs with the last value when `ms` have passed without
 * a call.
 */
export function settled<T>(ms: number, fire: (value: T) => void): (value: T) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (value) => {
    clearTimeout(timer);
    timer = setTimeout(() => fire(value), ms);
  };
}
