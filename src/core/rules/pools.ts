// Counts the free execution slots for a run: in total, and in each of its pools.

/**
 * Names of a run's pools, joined by "+". The run takes a slot in each pool. Undefined: the run is in no pool
 * and only counts towards the total.
 */
export type Pool = string | undefined;

export function joinPools(...pools: readonly Pool[]): Pool {
  const names = pools.flatMap(namesIn);
  return names.length === 0 ? undefined : names.join("+");
}

export function namesIn(pool: Pool): readonly string[] {
  return pool === undefined ? [] : pool.split("+");
}

/** Maximum number of parallel runs, in total and for each pool. A pool without an entry has no limit. */
export interface SlotLimits {
  readonly max: number;
  readonly pools: Readonly<Record<string, number>>;
}

/**
 * Returns the number of free slots for a run of this pool. `taken` returns the number of used slots, in total
 * or in the named pool.
 */
export function roomIn(pool: Pool, limits: SlotLimits, taken: (name?: string) => number): number {
  const ofPools = namesIn(pool).map((name) => (limits.pools[name] ?? limits.max) - taken(name));
  return Math.max(0, Math.min(limits.max - taken(), ...ofPools));
}
