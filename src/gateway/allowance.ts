// Owns an allowance of each who uses one up: so many at once, and one more comes back each while.
// AW1: what is remembered is bounded; who used the least lately is forgotten first.

import { dropOldest } from "../core/bounded.ts";
import type { Clock } from "../world.ts";

interface Bounds {
  /** How many at once. */
  readonly max: number;
  /** One more comes back after this long. */
  readonly everyMs: number;
  /** So many users are remembered. */
  readonly usersMax: number;
}

export interface Allowance {
  /** Milliseconds until there is one for this user; 0: now. */
  waitMs(user: string): number;
  take(user: string): void;
}

export function createAllowance(clock: Clock, { max, everyMs, usersMax }: Bounds): Allowance {
  /** When each user's allowance will be whole again. */
  const wholeAt = new Map<string, number>();
  return {
    waitMs(user) {
      const usedMs = (wholeAt.get(user) ?? 0) - clock.now();
      return Math.max(0, Math.ceil(usedMs - (max - 1) * everyMs));
    },
    take(user) {
      const at = Math.max(clock.now(), wholeAt.get(user) ?? 0) + everyMs;
      wholeAt.delete(user);
      wholeAt.set(user, at);
      dropOldest(wholeAt, usersMax);
    },
  };
}
