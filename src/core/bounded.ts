// Limits the size of maps and sets that would otherwise grow for as long as the process runs.

/** Removes the oldest entry if a map or set has more than `max` entries. Call it after each insertion. */
export function evictOldest(
  kept: { readonly size: number; keys(): Iterator<string>; delete(key: string): boolean },
  max: number,
): void {
  const oldest = kept.size > max ? kept.keys().next() : undefined;
  if (oldest?.done === false) kept.delete(oldest.value);
}
