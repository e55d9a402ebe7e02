// Computes how far to scroll a list after its rows have moved, so that the visible rows stay in place.

interface Keyed {
  readonly key: string;
}

/** Returns by how many lines most of the `seen` visible lines, from `first` on, have moved. */
export function shiftOf(
  before: readonly Keyed[],
  after: readonly Keyed[],
  first: number,
  seen: number,
): number {
  const was = new Map(before.slice(first, first + seen).map(({ key }, index) => [key, first + index]));
  const ways = new Map<number, number>();
  after.forEach(({ key }, index) => {
    const from = was.get(key);
    if (from !== undefined) ways.set(index - from, (ways.get(index - from) ?? 0) + 1);
  });
  let best = 0;
  for (const [way, count] of ways) if (count > (ways.get(best) ?? 0)) best = way;
  return best;
}
