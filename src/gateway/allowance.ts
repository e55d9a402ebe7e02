// A token bucket per user: a burst of at most `max` uses, and one more use after each interval.
// The number of remembered users is limited; the least recently active one is forgotten first.

import { evictOldest } from "../core/bounded.ts";
import type { Clock } from "../world.ts";

interface Bounds {
  /** Maximum number of uses in one burst. */
  readonly max: number;
  /** Time after which one more use is available. */
  readonly everyMs: number;
  /** Maximum number of remembered users. */
  readonly usersMax: number;
}

export type Allowance = ReturnType<typeof createAllowance>;

export function createAllowance(clock: Clock, { max, everyMs, usersMax }: Bounds) {
  /**
   * Time on the monotonic clock at which each user's allowance is full again. The wall clock can be set back,
   * and a wait must not become longer then.
   */
  const wholeAt = new Map<string, number>();
  return {
    /** Milliseconds until this user may act again; 0 if it may act now. */
    waitMs(user: string): number {
      const usedMs = (wholeAt.get(user) ?? 0) - clock.monotonic();
      return Math.max(0, Math.ceil(usedMs - (max - 1) * everyMs));
    },
    take(user: string): void {
      const at = Math.max(clock.monotonic(), wholeAt.get(user) ?? 0) + everyMs;
      wholeAt.delete(user);
      wholeAt.set(user, at);
      evictOldest(wholeAt, usersMax);
    },
    /** Returns one use that this user took. */
    giveBack(user: string): void {
      const at = wholeAt.get(user);
      if (at !== undefined) wholeAt.set(user, at - everyMs);
    },
  };
}
