// Estimates the database's time without a query: the local monotonic clock plus an offset. Changes of the
// system time therefore have no effect. The estimate does not go backwards by less than `STEP_MS`. It follows
// a larger step at once, because the other processes do: somebody has set the server's clock.
// The offset comes from the fastest answer of the last minute, because a fast answer has the smallest
// possible error. A new answer that contradicts this offset replaces it: somebody has set the server's clock,
// or the server has changed.

import type { Clock } from "../../world.ts";

const SAMPLES_KEPT_MS = 60_000;
/** Tolerance in addition to the round-trip times, because two clocks run at slightly different speeds. */
const DRIFT_MS = 50;
/** Smaller steps back are corrections by a time server, or errors of the measurements. */
const STEP_MS = 2_000;

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

  /** `query` reads the database's time (ms since 1970), and calls `onSent` when it sends the query. */
  constructor(clock: Clock, query: (onSent: () => void) => Promise<number>) {
    this.#clock = clock;
    this.#query = query;
  }

  now(): number {
    const now = Math.floor(this.#clock.monotonic() + this.#offsetMs);
    if (now > this.#latestMs || now <= this.#latestMs - STEP_MS) this.#latestMs = now;
    return this.#latestMs;
  }

  /**
   * Measures the offset once. If the database does not answer, the promise rejects and the offset stays the
   * same.
   */
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
    // Both samples allow the same offset, within their possible errors.
    const agreeing = recent.filter(({ offsetMs, roundTripMs }) => {
      const errorMs = (roundTripMs + sample.roundTripMs) / 2 + DRIFT_MS;
      return Math.abs(offsetMs - sample.offsetMs) <= errorMs;
    });
    this.#samples = [...agreeing, sample];
    const best = this.#samples.reduce((a, b) => (b.roundTripMs < a.roundTripMs ? b : a));
    this.#offsetMs = best.offsetMs;
  }
}
