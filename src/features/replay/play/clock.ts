// The clock of a replay: time moves only to the next timer, or to the next event of the record.

import type { Clock, Timer } from "../../../world.ts";

interface Entry {
  readonly atMs: number;
  readonly fire: () => void;
  cancelled: boolean;
}

export class ReplayClock implements Clock {
  /** Sorted with the latest timer first, so the next one is the last item. */
  readonly #entries: Entry[] = [];
  readonly #startMs: number;
  #nowMs: number;

  constructor(startMs: number) {
    this.#startMs = startMs;
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  /** Timers that are due at the same time fire in the order in which they were set. */
  at(atMs: number, fire: () => void): Timer {
    const entry: Entry = { atMs: Math.max(atMs, this.#nowMs), fire, cancelled: false };
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle]?.atMs ?? 0) > entry.atMs) low = middle + 1;
      else high = middle;
    }
    this.#entries.splice(low, 0, entry);
    return {
      cancel: () => {
        entry.cancelled = true;
      },
    };
  }

  after(ms: number, fire: () => void): Timer {
    return this.at(this.#nowMs + ms, fire);
  }

  /** Returns the time of the next timer, or undefined if no timer is set. */
  nextAt(): number | undefined {
    while (this.#entries.at(-1)?.cancelled === true) this.#entries.pop();
    return this.#entries.at(-1)?.atMs;
  }

  /** Advances to the next timer, and fires it. */
  fireNext(): void {
    const entry = this.nextAt() === undefined ? undefined : this.#entries.pop();
    if (entry === undefined) return;
    this.advanceTo(entry.atMs);
    entry.fire();
  }

  /** Never goes back: a record can have times of several machines. */
  advanceTo(atMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, atMs);
  }
}
