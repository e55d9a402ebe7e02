// Seeded random numbers for randomized tests, for test worlds and for statistics.

/** Random choices that repeat for the same seed. */
export type Dice = {
  below(limit: number): number;
  chance(share: number): boolean;
  of<T>(values: readonly T[]): T;
};

export function dice(seed: string): Dice {
  // FNV-1a hashes the seed and xorshift generates the numbers, so each seed gives a different sequence.
  let state = 0x811c9dc5;
  for (const char of seed) state = Math.imul(state ^ char.charCodeAt(0), 0x01000193);
  state = state >>> 0 || 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    chance: (share) => next() < share,
    of: (values) => values[below(values.length)] as (typeof values)[number],
  };
}

/** Generates numbers in [0, 1) from a seed (Mulberry32, which is short and sufficient for jitter). */
export function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
