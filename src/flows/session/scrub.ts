// Cleans the files of the embedded store after the deletion of a session: the full-text indexes, then the
// write-ahead log. A stored deadline asks for it, so that no crash prevents it. PostgreSQL cleans its own
// files.
// SC1: a deletion asks for a pass that begins after it. One pass serves all deletions before its begin.
// SC2: a pass ends, however much is written meanwhile; another pass then cleans the rest.

import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Unit } from "../../engine/unit.ts";
import { hasDeadline, setDeadline } from "../../store/queries/deadlines.ts";
import { type Begun, SLICES_MAX, scrubSlice } from "../../store/queries/transcripts/scrub.ts";
import { kindOf, type Store } from "../../store/sql.ts";

/** Kind of the deadlines of a requested pass and of the pass under way. */
export const SCRUB_DEADLINE = "scrub";
const REQUEST = "request";
const PASS = "pass";
/** Pause between two slices, in which other work runs. */
const SLICE_PAUSE_MS = 20;
/** Shortest time between two passes, because each rewrites the indexes. */
const REST_MS = 600_000;

/** Asks for a pass, in the transaction of the deletion. */
export async function requestScrub(unit: Unit): Promise<void> {
  if (kindOf(unit.tx) !== "sqlite") return;
  await unit.setDeadline({ kind: SCRUB_DEADLINE, key: REQUEST, dueAt: unit.now });
}

/** Handles the deadlines of scrubbing. `store` is a function, because the engine is created later. */
export function createScrub(store: () => Pick<Store, "emptyLog">): DeadlineHandler {
  let state: Begun | undefined;
  let restsSince = Number.NEGATIVE_INFINITY;
  return async (unit, key) => {
    const emptyLog = (): void => store().emptyLog?.();
    if (key === REQUEST) {
      if (await hasDeadline(unit.tx, SCRUB_DEADLINE, PASS)) return unit.now + SLICE_PAUSE_MS;
      const rested = unit.now - restsSince;
      if (rested >= 0 && rested < REST_MS) {
        unit.after(emptyLog);
        return restsSince + REST_MS;
      }
      await setDeadline(unit.tx, { kind: SCRUB_DEADLINE, key: PASS, dueAt: unit.now });
      return "done";
    }
    const next = await scrubSlice(unit.tx, state);
    unit.after(() => {
      state = next;
    });
    // Another pass cleans the rest of an index to which too much was written.
    if (next?.slices === SLICES_MAX)
      await setDeadline(unit.tx, { kind: SCRUB_DEADLINE, key: REQUEST, dueAt: unit.now });
    if (next !== undefined) return unit.now + SLICE_PAUSE_MS;
    unit.after(() => {
      restsSince = unit.now;
      emptyLog();
    });
    return "done";
  };
}
