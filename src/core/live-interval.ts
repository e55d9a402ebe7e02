// Decides how often the text of a streaming answer is read and published.

const ALONE_MS = 50;
/**
 * Number of streaming runs above which the interval grows with their number, because each read and each
 * published piece costs system calls.
 */
const QUICK_RUNS_MAX = 32;
const CROWDED_MAX_MS = 200;

/** Returns the minimum interval in ms between two pieces of live text of one run while `runs` runs stream. */
export function liveIntervalMs(runs: number): number {
  return Math.max(ALONE_MS, Math.min((ALONE_MS * runs) / QUICK_RUNS_MAX, CROWDED_MAX_MS));
}
