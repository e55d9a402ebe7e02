// Decides how a run continues after the process that executed it has died. Such an attempt counts as lost.
// CP1: a run fails after three lost attempts in a row, if no tool call was answered between them. A run that
//      makes progress in each attempt fails after nine lost attempts.
// CP2: after its first lost attempt, a run starts after all other runs. After the second, only one run with
//      two lost attempts executes at a time. Otherwise a harmless run could be blamed for the crash of
//      another run.

import { type Failure, fail } from "../shapes/errors.ts";

/** Number of lost attempts in a row after which a run is not retried. */
const STRIKES_MAX = 3;
/** This many lost attempts with progress count as one attempt without progress. */
const CRASHES_PER_STRIKE = 3;

/** Number of attempts that were lost because the process died. */
export interface CrashCount {
  readonly crashes: number;
  /** Number of lost attempts since a tool call of the run was last answered. */
  readonly crashesInRow: number;
}

/**
 * `last`: the run starts after all others. `alone`: in addition, no other run with `alone` executes at the
 * same time. `end`: the run is not retried.
 */
export type Caution = "none" | "last" | "alone" | "end";

export function cautionFor({ crashes, crashesInRow }: CrashCount): Caution {
  const strikes = Math.max(crashesInRow, Math.floor(crashes / CRASHES_PER_STRIKE));
  if (strikes >= STRIKES_MAX) return "end";
  if (strikes === 0) return "none";
  return strikes === 1 ? "last" : "alone";
}

/** Builds the error of a run that crashed too often. */
export function crashedTooOften({ crashes, crashesInRow }: CrashCount): Failure {
  const isStuck = crashesInRow >= STRIKES_MAX;
  const times = isStuck ? crashesInRow : crashes;
  const progress = isStuck ? " and made no progress in between" : "";
  const died = `the gateway process died ${times} times while it executed this run${progress}`;
  return fail("run_crashed", `${died}; the run will not be retried`, {
    hint: "Check the gateway's log and the system's log (out of memory?), then send the message again.",
  });
}
