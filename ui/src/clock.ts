// Owns time and ids on the page: only this file reads the browser's clock, starts timers and makes ids.

import { signal } from "@preact/signals";

/** Interval at which components that show an age are redrawn. */
const TICK_MS = 5_000;

/** The time in ms since 1970, up to `TICK_MS` old. Components that read it are redrawn with it. */
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

/** Returns a function that calls `fire` `ms` after its first call, once for all calls until then. */
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
 * Returns a function that calls `work`, but never twice at the same time. Calls while `work` is running cause
 * one more run after it. The promise of a call resolves when a run has ended that began after this call.
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

/** Returns a function that calls `fire` with the last value once `ms` have passed without another call. */
export function settled<T>(ms: number, fire: (value: T) => void): (value: T) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (value) => {
    clearTimeout(timer);
    timer = setTimeout(() => fire(value), ms);
  };
}

/** Returns a random id. Pages without TLS have no `randomUUID`. */
export function newId(): string {
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
