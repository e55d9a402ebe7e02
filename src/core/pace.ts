// Lets other work run during long work on the event loop.
// PC1: a caller must check often enough: the pace cannot interrupt a step between two checks.

/** The only clock method that is needed. */
interface Ticking {
  monotonic(): number;
}

/** Time for which long work may run before it lets other work run. */
const WORK_MAX_MS = 8;

/**
 * Call this between two steps of long work. If a pause is due, it lets other work run, and then resolves.
 * Undefined means that no pause is due.
 */
export type Pace = () => Promise<void> | undefined;

/**
 * Creates the pace of one piece of work. Pass `begins` if the work starts with this step. Without it, earlier
 * steps may already have taken long, so the first call pauses.
 */
export type PaceOf = (begins?: "with this step") => Pace;

interface PaceParts {
  readonly clock: Ticking;
  /** Lets all other waiting work run. If absent, there are no pauses. */
  readonly gather?: (() => Promise<void>) | undefined;
}

export function createPaces({ clock, gather }: PaceParts): PaceOf {
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
