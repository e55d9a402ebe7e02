// Owns how what is remembered of the past stays small: in maps and sets, the oldest goes first.

/** Drops the oldest entry of a map or set that has become larger than `max`. Asked after each entry. */
export function dropOldest(
  kept: { readonly size: number; keys(): Iterator<string>; delete(key: string): boolean },
  max: number,
): void {
  const oldest = kept.size > max ? kept.keys().next() : undefined;
  if (oldest?.done === false) kept.delete(oldest.value);
}
