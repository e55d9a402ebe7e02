// Simulated time: timers fire in order, one at a time. Time moves only when the next timer fires, and
// everything that the timer started comes to rest before the next one.

import type { Timer } from "../../../src/world.ts";

interface Entry {
  readonly atMs: number;
  readonly fire: () => void;
  cancelled: boolean;
}

export class VirtualTime {
  readonly #entries: Entry[] = [];
  #nowMs: number;

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  /** Timers of one time fire in the order in which they were set. */
  at(atMs: number, fire: () => void): Timer {
    const entry: Entry = { atMs: Math.max(atMs, this.#nowMs), fire, cancelled: false };
    let low = 0;
    let high = this.#entries.length;
    // Latest first: the next one to fire is the last of the list.
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

  pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Returns when the next timer is due; undefined: none is set. */
  nextAt(): number | undefined {
    while (this.#entries.at(-1)?.cancelled === true) this.#entries.pop();
    return this.#entries.at(-1)?.atMs;
  }

  /** Moves to the next timer and fires it. False: there is none. */
  fireNext(): boolean {
    const atMs = this.nextAt();
    const entry = this.#entries.pop();
    if (atMs === undefined || entry === undefined) return false;
    this.#nowMs = atMs;
    entry.fire();
    return true;
  }
}

/** Number of files of the operating system that are being read or written. */
function atTheDisk(): boolean {
  return process.getActiveResourcesInfo().some((name) => /FSReq|CloseReq/.test(name));
}

/**
 * Waits until nothing more happens without a timer. With `disk`, waits for real files, too: the process of
 * the stories has one thread for them (`run.ts`), so that they finish in order.
 */
export async function rest(disk: boolean): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (disk && atTheDisk());
}
