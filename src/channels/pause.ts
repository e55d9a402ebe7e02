// Owns a pause that can be broken off.

import type { World } from "../world.ts";

/** Resolves when the time is over, or the signal fires. */
export function pause({ clock }: Pick<World, "clock">, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = clock.at(clock.now() + ms, end);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
  });
}
