// Decides how many execution slots a run may still take: of all, and of each pool that it belongs to.

/**
 * The pools of a run: their names, joined by "+". A run in several pools takes a slot of each. Undefined: it
 * needs only one of all slots.
 */
export type Pool = string | undefined;

export function joinPools(...pools: readonly Pool[]): Pool {
  const names = pools.flatMap(namesIn);
  return names.length === 0 ? undefined : names.join("+");
}

export function namesIn(pool: Pool): readonly string[] {
  return pool === undefined ? [] : pool.split("+");
}

/**
 * How many runs may execute at once: in all, and of each pool. A pool that is not named has no limit of its
 * own.
 */
export interface SlotLimits {
  readonly max: number;
  readonly pools: Readonly<Record<string, number>>;
}

/**
 * The slots that a run of this pool could take now. `taken`: how many are in use, in all or in the named
 * pool.
 */
export function roomIn(pool: Pool, limits: SlotLimits, taken: (name?: string) => number): number {
  const ofPools = namesIn(pool).map((name) => (limits.pools[name] ?? limits.max) - taken(name));
  return Math.max(0, Math.min(limits.max - taken(), ...ofPools));
}
