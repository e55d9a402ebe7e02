// Polling for tests that wait for states which no event announces.

import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";

/**
 * Time limit of a test, and of each wait in one. A busy machine does everything several times more slowly, so
 * the limit only ends a wait that would never end.
 */
export const PATIENCE_MS = 600_000;
/** Time limit of a test in a browser, which does nothing that takes minutes. */
export const BROWSER_PATIENCE_MS = 240_000;
/** The first polls follow each other without a pause, so that short waits end at once. */
const QUICK_LOOKS = 10;
const PAUSE_MAX_MS = 10;

/**
 * Resolves with the result of `look` when it is neither false nor undefined. Polls less often as time passes,
 * to leave the processor to the awaited work. If the wait never ends, the test's own time limit fails it.
 */
export async function until<T>(look: () => T | Promise<T>): Promise<Exclude<T, false | undefined>> {
  for (let looks = 1; ; looks += 1) {
    const found = await look();
    if (found !== false && found !== undefined) return found as Exclude<T, false | undefined>;
    await (looks < QUICK_LOOKS ? nextTurn() : pause(Math.min(looks - QUICK_LOOKS + 1, PAUSE_MAX_MS)));
  }
}
