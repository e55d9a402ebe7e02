// Waits for a time. A signal ends the wait early.
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
