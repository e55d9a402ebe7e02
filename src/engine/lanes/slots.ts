// Owns the execution slots: how many runs execute at the same time in this process, in total and in each
// pool. A waiting run holds none (I6). A run that stops waiting gets a slot before runs that have not
// started, so that started work finishes first. If a pool is full, only its own runs wait.

import { namesIn, type Pool, roomIn, type SlotLimits } from "../../core/rules/pools.ts";

/** Pool of the runs that crashed twice. Only one of them executes at a time. */
export const CRASHED = "crashed";

export interface SlotSettings {
  /** Maximum number of runs that execute at the same time. */
  readonly maxConcurrent: number;
  /** Maximum number of runs of each pool, within `maxConcurrent`. */
  readonly pools?: Readonly<Record<string, number>>;
}

/** Returns the limits of the slots, which change with the settings. */
export function slotLimits(settings: SlotSettings): SlotLimits {
  return {
    get max() {
      return settings.maxConcurrent;
    },
    get pools() {
      return { ...settings.pools, [CRASHED]: 1 };
    },
  };
}

/** The owner of a slot. */
export interface SlotOwner {
  readonly agentId: string;
  readonly pool: Pool;
}

export interface Slots {
  max(): number;
  taken(): number;
  /** Number of slots that runs of this agent hold. */
  heldBy(agentId: string): number;
  /** Number of slots that a new run of this pool could take now. */
  free(pool: Pool): number;
  /** Takes a free slot without waiting. Returns false if none is free. */
  tryTake(owner: SlotOwner): boolean;
  /** Waits for a slot, ahead of new work. Resolves false when `signal` fires first. */
  takeAgain(owner: SlotOwner, signal: AbortSignal): Promise<boolean>;
  release(owner: SlotOwner): void;
  /**
   * Gives back a slot that was taken but not used. Wakes no lane, because no slot of the deployment became
   * free.
   */
  putBack(owner: SlotOwner): void;
  /** Gives slots that a higher limit made free to the runs that wait to resume. */
  resume(): void;
}

interface Resuming {
  readonly owner: SlotOwner;
  readonly settle: (got: boolean) => void;
}

/** Counts the taken slots: in total, in each pool, and by agent. */
function createCounts(limits: SlotLimits) {
  let taken = 0;
  const inPool = new Map<string, number>();
  const ofAgent = new Map<string, number>();
  const room = (pool: Pool): number =>
    roomIn(pool, limits, (name) => (name === undefined ? taken : (inPool.get(name) ?? 0)));
  const change = (counts: Map<string, number>, name: string, by: 1 | -1): void => {
    const left = (counts.get(name) ?? 0) + by;
    if (left === 0) counts.delete(name);
    else counts.set(name, left);
  };
  const count = ({ agentId, pool }: SlotOwner, by: 1 | -1): void => {
    taken += by;
    change(ofAgent, agentId, by);
    for (const name of namesIn(pool)) change(inPool, name, by);
  };
  return { room, count, taken: () => taken, heldBy: (agentId: string) => ofAgent.get(agentId) ?? 0 };
}

/** `limits` may change. Lowered limits apply to runs that begin or resume later. */
export function createSlots(limits: SlotLimits, onFree: () => void): Slots {
  const { room, count, taken, heldBy } = createCounts(limits);
  const resuming: Resuming[] = [];

  const resume = (): void => {
    for (;;) {
      const next = resuming.findIndex((one) => room(one.owner.pool) > 0);
      const [resumed] = next < 0 ? [] : resuming.splice(next, 1);
      if (resumed === undefined) return;
      count(resumed.owner, 1);
      resumed.settle(true);
    }
  };
  const giveBack = (owner: SlotOwner): void => {
    count(owner, -1);
    resume();
  };
  /** Returns whether a resuming run waits for a slot that is free now. New runs must not take that slot. */
  const isAwaited = (): boolean => resuming.some(({ owner }) => room(owner.pool) > 0);

  return {
    max: () => limits.max,
    taken,
    heldBy,
    free: (pool) => (isAwaited() ? 0 : room(pool)),
    tryTake(owner) {
      if (room(owner.pool) === 0 || isAwaited()) return false;
      count(owner, 1);
      return true;
    },
    takeAgain(owner, signal) {
      if (signal.aborted) return Promise.resolve(false);
      if (room(owner.pool) > 0) {
        count(owner, 1);
        return Promise.resolve(true);
      }
      return new Promise((resolve) => {
        const entry: Resuming = {
          owner,
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
    release(owner) {
      giveBack(owner);
      onFree();
    },
    putBack: giveBack,
    resume,
  };
}
