// Waits for the end of some work or for an abort signal. The wait settles in the same tick as the signal, and
// a late outcome of the work is dropped.

import { pause } from "../../world/pause.ts";
import type { Clock } from "../../world.ts";

/** Result of a wait if the signal came first. */
export const ABORTED: unique symbol = Symbol("aborted");

/** Waits for `work` or for the abort, whichever comes first. A rejection after the abort is dropped. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | typeof ABORTED> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(ABORTED);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Sleeps on the world's clock. Returns false if the abort came first. */
export async function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  await pause(clock, ms, signal);
  return !signal.aborted;
}
