// Decides how a run continues after a process died while executing it.
// CP1: a run fails after three lost attempts in a row in which no tool call was answered. A run that makes
// some progress each time fails after nine.
// CP2: after the first such attempt a run starts after all others. After the second, only one such run
// executes at a time, so that a harmless run is not blamed for another run's crash.

import { type Failure, fail } from "../shapes/errors.ts";

/** A run is not tried again after this number of lost attempts in a row. */
const STRIKES_MAX = 3;
/** Number of lost attempts with progress that count as one in a row. */
const CRASHES_PER_STRIKE = 3;

/** Attempts of a run that were lost because their process died. */
export interface CrashCount {
  readonly crashes: number;
  /** Of these, the attempts since a tool call of the run was last answered. */
  readonly crashesInRow: number;
}

/** `last`: starts after all others. `alone`: also, no other such run may execute. */
export type Caution = "none" | "last" | "alone" | "end";

export function cautionFor({ crashes, crashesInRow }: CrashCount): Caution {
  const strikes = Math.max(crashesInRow, Math.floor(crashes / CRASHES_PER_STRIKE));
  if (strikes >= STRIKES_MAX) return "end";
  if (strikes === 0) return "none";
  return strikes === 1 ? "last" : "alone";
}

/** Builds the error of a run that is not tried again. */
export function crashedTooOften({ crashes, crashesInRow }: CrashCount): Failure {
  const isStuck = crashesInRow >= STRIKES_MAX;
  const times = isStuck ? crashesInRow : crashes;
  const progress = isStuck ? " and made no progress in between" : "";
  const died = `the gateway process died ${times} times while it executed this run${progress}`;
  return fail("run_crashed", `${died}; the run is not tried again`, {
    hint: "Check the gateway's log and the system's log (out of memory?), then send the message again.",
  });
}
