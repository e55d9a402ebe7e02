// Waits for a time, and limits the time of work. A signal ends it early.
// Timer and signal listener are always removed.

import type { Clock } from "./plain.ts";

/** Resolves when the time is over or the signal fires. `keep`: keeps the process alive during the wait. */
export function pause(
  clock: Pick<Clock, "after">,
  ms: number,
  signal?: AbortSignal,
  keep?: "alive",
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      timer.cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = clock.after(ms, end, keep);
    signal?.addEventListener("abort", end, { once: true });
  });
}

interface Limit {
  /** Ends the time early. */
  readonly signal?: AbortSignal | undefined;
  /** Keeps the process alive meanwhile. */
  readonly keep?: "alive";
}

/**
 * Returns a signal that fires after this time, or with `signal`. `late` fires only after the time. Use it
 * with `using`, so that its timer ends with the work.
 */
export function timeLimit(
  clock: Pick<Clock, "after">,
  ms: number,
  { signal, keep, reason }: Limit & { readonly reason?: unknown } = {},
): Disposable & { readonly late: AbortSignal; readonly signal: AbortSignal } {
  const over = new AbortController();
  const timer = clock.after(ms, () => over.abort(reason), keep);
  return {
    late: over.signal,
    signal: signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]),
    [Symbol.dispose]: () => timer.cancel(),
  };
}

/** Waits for work, but not longer than this time. Resolves with undefined if the time is over first. */
export function within<T>(
  clock: Pick<Clock, "after">,
  ms: number,
  work: Promise<T>,
  { signal, keep }: Limit = {},
): Promise<T | undefined> {
  const done = new AbortController();
  const ends = signal === undefined ? done.signal : AbortSignal.any([signal, done.signal]);
  const late = pause(clock, ms, ends, keep).then(() => undefined);
  return Promise.race([work, late]).finally(() => done.abort());
}
