// Decides how a run goes on after a process has died while it executed it.
// CP1: a run ends after three lost attempts in a row between which none of its tool calls was answered. A run
//      that gets a little further each time ends after nine.
// CP2: after the first such attempt a run starts behind all others. After the second, one such run executes
//      at a time, so that a run that does no harm is not blamed once more for its neighbour.

import { type Failure, fail } from "./errors.ts";

/** Lost attempts in a row after which a run is not tried again. */
const STRIKES_MAX = 3;
/** Lost attempts with progress that weigh as much as one in a row. */
const CRASHES_PER_STRIKE = 3;

/** The attempts of a run that ended with their process while it was executing. */
export interface CrashCount {
  readonly crashes: number;
  /** The latest of them, since a tool call of the run was last answered. */
  readonly crashesInRow: number;
}

/** `last`: starts behind all others. `alone`: in addition, no other such run may execute. */
export type Caution = "none" | "last" | "alone" | "end";

export function cautionFor({ crashes, crashesInRow }: CrashCount): Caution {
  const strikes = Math.max(crashesInRow, Math.floor(crashes / CRASHES_PER_STRIKE));
  if (strikes >= STRIKES_MAX) return "end";
  if (strikes === 0) return "none";
  return strikes === 1 ? "last" : "alone";
}

/** Why a run is not tried again. */
export function crashedTooOften({ crashes, crashesInRow }: CrashCount): Failure {
  const isStuck = crashesInRow >= STRIKES_MAX;
  const times = isStuck ? crashesInRow : crashes;
  const progress = isStuck ? " and made no progress in between" : "";
  const died = `the gateway process died ${times} times while it executed this run${progress}`;
  return fail("run_crashed", `${died}; the run is not tried again`, {
    hint: "Look for the reason in the gateway's and the system's log (out of memory?), then send it again.",
  });
}
