// Owns the database's time, as a process knows it without asking.
// PK1: it is the monotonic clock and an offset, so a wall clock that is set does not move it.
// PK2: it never goes backwards.
// PK3: the offset is that of the quickest answer of the last minute: the quicker an answer, the less room for
//      error. An answer that contradicts it starts anew: a clock was moved, or the server is another.

import type { Clock } from "../world.ts";

const SAMPLES_KEPT_MS = 60_000;
/** Beyond what the round trips explain: clocks that run at slightly different speeds. */
const DRIFT_MS = 50;

interface Sample {
  readonly atMs: number;
  readonly offsetMs: number;
  readonly roundTripMs: number;
}

export class DatabaseClock {
  readonly #clock: Clock;
  readonly #ask: (onSent: () => void) => Promise<number>;
  #samples: Sample[] = [];
  #offsetMs = 0;
  #latestMs = 0;

  /** `ask`: the database's time, ms since 1970, in one round trip from the moment at which it calls back. */
  constructor(clock: Clock, ask: (onSent: () => void) => Promise<number>) {
    this.#clock = clock;
    this.#ask = ask;
  }

  now(): number {
    this.#latestMs = Math.max(this.#latestMs, Math.floor(this.#clock.monotonic() + this.#offsetMs));
    return this.#latestMs;
  }

  /** Asks once. Rejects, and changes nothing, when the database does not answer. */
  async sync(): Promise<void> {
    let beforeMs = this.#clock.monotonic();
    const databaseMs = await this.#ask(() => {
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

/** True when one offset can explain both. */
function agree(a: Sample, b: Sample): boolean {
  return Math.abs(a.offsetMs - b.offsetMs) <= (a.roundTripMs + b.roundTripMs) / 2 + DRIFT_MS;
}
