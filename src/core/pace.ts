// Lets other work run during long work.
// PC1: no step between two checks is delayed here: the caller must check often enough.

/** The part of a clock that is used here. */
interface Ticking {
  monotonic(): number;
}

/** Long work may run for this time before other work gets a turn. */
const WORK_MAX_MS = 8;

/** Call it between two steps of long work. Resolves after other work had its turn, if one is due. */
export type Pace = () => Promise<void> | undefined;

/**
 * Creates the pace of one piece of work. `begins`: the work starts with this step. Default: earlier steps may
 * have taken long, so other work gets a turn first.
 */
export type PaceOf = (begins?: "with this step") => Pace;

interface PaceParts {
  readonly clock: Ticking;
  /** Gives all other waiting work a turn. Absent: never waits. */
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
