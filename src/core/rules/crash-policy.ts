// Decides when a run continues after the process that executed it has died.
// CP1: a death counts against a run only if it was the only one that the process executed, and the stop was
//      not planned. The fifth ends the run.
// CP2: each death that counts delays the next attempt. A death that hit several runs delays none of them,
//      until they were hit again and again; then they start one after the other, so that the run that kills
//      its process is found.

import { type Failure, fail } from "../shapes/errors.ts";

/** Pause before the next attempt after each death that counts, in ms. There is none after the last. */
const PAUSES_MS = [0, 2_000, 15_000, 60_000];
/** Number of deaths that hit several runs at once after which these start one after the other. */
const SHARED_MAX = 3;
const SPREAD_MS = 2_000;
const SPREAD_MAX_MS = 60_000;

/** The deaths of processes that executed a run. */
export interface DeathCount {
  /** Deaths that count against the run. */
  readonly crashes: number;
  /** All deaths. */
  readonly deaths: number;
}

/** Returns whether the run died too often to be retried. */
export function isCrashed({ crashes }: Pick<DeathCount, "crashes">): boolean {
  return crashes > PAUSES_MS.length;
}

/**
 * Returns the pause before the next attempt, in ms. `place` is the run's number, from 0, among the runs that
 * the death hit; undefined if it hit only this one.
 */
export function pauseAfterDeath({ crashes, deaths }: DeathCount, place: number | undefined): number {
  if (place === undefined) return PAUSES_MS[crashes - 1] ?? 0;
  if (deaths < SHARED_MAX) return 0;
  return place * Math.min(SPREAD_MS * 2 ** (deaths - SHARED_MAX), SPREAD_MAX_MS);
}

/** Builds the error of a run that crashed too often. */
export function crashedTooOften(crashes: number): Failure {
  const died = `the gateway process died ${crashes} times while it executed only this run`;
  return fail("run_crashed", `${died}; it will not be retried`, {
    hint: "Check the gateway's log and the system's log (out of memory?), then send the message again.",
  });
}
