// Owns time on the page: only this file reads the browser's clock and starts timers.

import { signal } from "@preact/signals";

/** Redraw interval of components that show an age. */
const TICK_MS = 5_000;

/** The wall clock, ms since 1970, at most `TICK_MS` late: for ages. A component that reads it is redrawn. */
export const tick = signal(Date.now());

setInterval(() => {
  tick.value = Date.now();
}, TICK_MS);

/** The wall clock now, ms since 1970. */
export function now(): number {
  return Date.now();
}

/** Calls `fire` once after `ms`. Returns a function that cancels it. */
export function after(ms: number, fire: () => void): () => void {
  const timer = setTimeout(fire, ms);
  return () => clearTimeout(timer);
}

/** Calls `fire` once, `ms` after the first of any number of calls in between. */
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

/** Calls `fire` once with the last value, when none has come for `ms`. */
export function settled<T>(ms: number, fire: (value: T) => void): (value: T) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (value) => {
    clearTimeout(timer);
    timer = setTimeout(() => fire(value), ms);
  };
}
