// Owns waiting for a while, which a signal ends at once.
// PU1: however it ends, it leaves no timer behind, nor a listener at a signal that outlives it.

import type { Clock } from "./plain.ts";

/** Resolves when the time is over, or the signal fires. `keep`: the process stays alive for it. */
export function pause(
  clock: Pick<Clock, "now" | "at">,
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
    const timer = clock.at(clock.now() + ms, end, keep);
    signal?.addEventListener("abort", end, { once: true });
  });
}
