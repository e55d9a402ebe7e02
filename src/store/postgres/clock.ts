// Estimates the database's time without a query.
// It is the monotonic clock plus an offset, so setting the wall clock does not change it. It never goes
// backwards.
// The offset is from the quickest answer of the last minute: a quick answer leaves less room for error. An
// answer that contradicts it replaces it: a clock was set, or the server changed.

import type { Clock } from "../../world.ts";

const SAMPLES_KEPT_MS = 60_000;
/** Tolerance beyond the round trips, for clocks that run at slightly different speeds. */
const DRIFT_MS = 50;

interface Sample {
  readonly atMs: number;
  readonly offsetMs: number;
  readonly roundTripMs: number;
}

export class DatabaseClock {
  readonly #clock: Clock;
  readonly #query: (onSent: () => void) => Promise<number>;
  #samples: Sample[] = [];
  #offsetMs = 0;
  #latestMs = 0;

  /** `query` reads the database's time (ms since 1970), and calls back when it sends the query. */
  constructor(clock: Clock, query: (onSent: () => void) => Promise<number>) {
    this.#clock = clock;
    this.#query = query;
  }

  now(): number {
    this.#latestMs = Math.max(this.#latestMs, Math.floor(this.#clock.monotonic() + this.#offsetMs));
    return this.#latestMs;
  }

  /** Measures the offset once. If the database does not answer, it rejects and changes nothing. */
  async sync(): Promise<void> {
    let beforeMs = this.#clock.monotonic();
    const databaseMs = await this.#query(() => {
      beforeMs = this.#clock.monotonic();
    });
    const afterMs = this.#clock.monotonic();
    const sample: Sample = {
      atMs: afterMs,
      offsetMs: databaseMs - (beforeMs + afterMs) / 2,
      roundTripMs: afterMs - beforeMs,
    };
    const recent = this.#samples.filter((one) => afterMs - one.atMs <= SAMPLES_KEPT_MS);
    this.#samples = [...recent.filter((one) => agree(one, sample)), sample];
    const best = this.#samples.reduce((a, b) => (b.roundTripMs < a.roundTripMs ? b : a));
    this.#offsetMs = best.offsetMs;
  }
}

/** Whether one offset fits both samples. */
function agree(a: Sample, b: Sample): boolean {
  return Math.abs(a.offsetMs - b.offsetMs) <= (a.roundTripMs + b.roundTripMs) / 2 + DRIFT_MS;
}
