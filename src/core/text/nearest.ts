// Suggests valid names for a mistyped one.

/** Number of characters at the start of a text that are compared. */
const CHARS_MAX = 512;
/** Minimum similarity of a suggestion, low enough for a four-letter word with two swapped letters. */
const LIKE_MIN = 0.4;

function pairsOf(text: string): Map<string, number> {
  const lower = ` ${text.slice(0, CHARS_MAX).toLowerCase()} `;
  const pairs = new Map<string, number>();
  for (let at = 0; at + 1 < lower.length; at += 1) {
    const pair = lower.slice(at, at + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}

/**
 * Returns the share of common letter pairs, from 0 to 1. Takes linear time, and tolerates typos in any
 * position.
 */
function likeness(a: Map<string, number>, b: Map<string, number>): number {
  let common = 0;
  let total = 0;
  for (const count of b.values()) total += count;
  for (const [pair, count] of a) {
    common += Math.min(count, b.get(pair) ?? 0);
    total += count;
  }
  return (2 * common) / total;
}

/** Returns all names with their scores, best first. Names that contain `wanted` come first. */
function rankNames(wanted: string, names: readonly string[]): { name: string; score: number }[] {
  const pairs = pairsOf(wanted);
  const needle = wanted.trim().toLowerCase();
  return names
    .map((name) => {
      const holdsIt = needle.length >= 3 && name.toLowerCase().includes(needle);
      return { name, score: likeness(pairs, pairsOf(name)) + (holdsIt ? 1 : 0) };
    })
    .sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1));
}

/**
 * Returns the `max` names that are most similar to `wanted`, best first. Pass only names that the reader may
 * see.
 */
export function nearestNames(wanted: string, names: readonly string[], max: number): string[] {
  return rankNames(wanted, names)
    .slice(0, Math.max(0, max))
    .map(({ name }) => name);
}

/** Like `nearestNames`, without names that are not similar to `wanted`. */
export function closeNames(wanted: string, names: readonly string[], max: number): string[] {
  return rankNames(wanted, names)
    .filter(({ score }) => score >= LIKE_MIN)
    .slice(0, Math.max(0, max))
    .map(({ name }) => name);
}

/** Returns the valid name that is closest to a mistyped one, or undefined if none is close. */
export function nearestName(wanted: string, valid: readonly string[]): string | undefined {
  return closeNames(wanted, valid, 1)[0];
}
