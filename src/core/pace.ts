// Lets other work run during long work on the event loop.
// PC1: long work must call its `Pace` function often, because that function cannot interrupt the work between
//      two calls.

import type { Clock } from "../world/plain.ts";

/** Time for which long work may run before it lets other work run. */
const WORK_MAX_MS = 8;

/**
 * Call this between two steps of long work. If a pause is due, the promise resolves after other work has run.
 * Returns undefined if no pause is due.
 */
export type Pace = () => Promise<void> | undefined;

/**
 * Creates the pace of one piece of work. Pass `begins` if the work starts now. Otherwise the first call
 * pauses, because nobody knows how long the work has already run.
 */
export type PaceOf = (begins?: "with this step") => Pace;

/** `gather` lets all other waiting work run. If it is absent, there are no pauses. */
export function createPaces({
  clock,
  gather,
}: {
  readonly clock: Pick<Clock, "monotonic">;
  readonly gather?: (() => Promise<void>) | undefined;
}): PaceOf {
  return (begins) => {
    let busySince = begins === undefined ? Number.NEGATIVE_INFINITY : clock.monotonic();
    const goOn = (): void => {
      busySince = clock.monotonic();
    };
    return () => {
      if (gather === undefined || clock.monotonic() - busySince < WORK_MAX_MS) return undefined;
      return gather().then(goOn, goOn);
    };
  };
}
