// Owns the execution slots: how many runs execute at once in this process, in all and in each pool.
// SL1: a waiting run holds none (I6).
// SL2: a run that stops waiting goes before a run that has not started, so that a fan-out drains.
// SL3: a full pool holds back its own runs only.

/** Runs of a pool share a limit of their own below the limit of all. */
export type Pool = string | undefined;

export interface Slots {
  readonly max: number;
  taken(): number;
  /** Slots that a new run of this pool could take now. */
  free(pool: Pool): number;
  /** Takes a free slot at once, or says that there is none. */
  tryTake(pool: Pool): boolean;
  /** Waits for a slot, ahead of new work. Resolves false when `signal` fires first. */
  takeAgain(pool: Pool, signal: AbortSignal): Promise<boolean>;
  release(pool: Pool): void;
}

interface Resuming {
  readonly pool: Pool;
  readonly settle: (got: boolean) => void;
}

/** `pools`: the most runs of each pool; a pool that is not named has no limit of its own. */
export function createSlots(max: number, pools: Readonly<Record<string, number>>, onFree: () => void): Slots {
  let taken = 0;
  const inPool = new Map<string, number>();
  const resuming: Resuming[] = [];

  const room = (pool: Pool): number => {
    const own = pool === undefined ? undefined : pools[pool];
    const left = own === undefined ? max : own - (inPool.get(pool ?? "") ?? 0);
    return Math.max(0, Math.min(left, max - taken));
  };
  const count = (pool: Pool, by: 1 | -1): void => {
    taken += by;
    if (pool !== undefined) inPool.set(pool, (inPool.get(pool) ?? 0) + by);
  };
  /** Whether somebody who stops waiting could use what a new run of this pool would take. */
  const isAwaited = (): boolean => resuming.some((one) => room(one.pool) > 0);

  return {
    max,
    taken: () => taken,
    free: (pool) => (isAwaited() ? 0 : room(pool)),
    tryTake(pool) {
      if (room(pool) === 0 || isAwaited()) return false;
      count(pool, 1);
      return true;
    },
    takeAgain(pool, signal) {
      if (signal.aborted) return Promise.resolve(false);
      if (room(pool) > 0) {
        count(pool, 1);
        return Promise.resolve(true);
      }
      return new Promise((resolve) => {
        const entry: Resuming = {
          pool,
          settle: (got) => {
            signal.removeEventListener("abort", giveUp);
            resolve(got);
          },
        };
        const giveUp = (): void => {
          resuming.splice(resuming.indexOf(entry), 1);
          entry.settle(false);
        };
        resuming.push(entry);
        signal.addEventListener("abort", giveUp, { once: true });
      });
    },
    release(pool) {
      count(pool, -1);
      const next = resuming.findIndex((one) => room(one.pool) > 0);
      const [resumed] = next < 0 ? [] : resuming.splice(next, 1);
      if (resumed !== undefined) {
        count(resumed.pool, 1);
        resumed.settle(true);
      }
      onFree();
    },
  };
}
