// Computes the pause between attempts that fail one after the other.

/** The most doublings. More would only make the number too large; each maximum is reached before. */
const DOUBLINGS_MAX = 20;

/**
 * Returns a pause in ms: `firstMs` after the first failure, and twice as long after each further one, up to
 * `maxMs`. `further` is the number of failures after the first.
 */
export function grownPause(firstMs: number, maxMs: number, further: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(further, DOUBLINGS_MAX));
}
