// Owns how a test waits for what nothing announces.

import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";

/** Looks without a pause: what needs no more than the event loop is seen at once. */
const QUICK_LOOKS = 10;
const PAUSE_MAX_MS = 10;

/**
 * Resolves with what `look` finds, once that is neither false nor undefined. Looks less often as time passes: a wait
 * without a pause would take the processor from the work that it waits for. A test that waits for ever fails by its
 * own time limit.
 */
export async function until<T>(look: () => T | Promise<T>): Promise<Exclude<T, false | undefined>> {
  for (let looks = 1; ; looks += 1) {
    const found = await look();
    if (found !== false && found !== undefined) return found as Exclude<T, false | undefined>;
    await (looks < QUICK_LOOKS ? nextTurn() : pause(Math.min(looks - QUICK_LOOKS + 1, PAUSE_MAX_MS)));
  }
}
