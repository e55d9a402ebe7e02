// Owns how work on something large lets all other work go on meanwhile.
// PC1: no step between two questions is made longer here: whoever works asks often enough.

/** As far as it is asked here. */
interface Ticking {
  monotonic(): number;
}

/** So long work may go on before everything else gets a turn. */
const WORK_MAX_MS = 8;

/** Asked between two steps of long work; resolves once other work has had its turn, if that is due. */
export type Pace = () => Promise<void> | undefined;

/**
 * A pace for one piece of work. `begins`: with this step. Default: the step may have done much before, and
 * other work gets a turn first.
 */
export type PaceOf = (begins?: "with this step") => Pace;

interface PaceParts {
  readonly clock: Ticking;
  /** Lets everything else that waits have a turn. Absent: nothing is ever waited for. */
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
