// Simulated time: timers fire in order, one at a time. Time moves only when the next timer fires, and all
// work that the timer started ends before the next one fires.

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

  /** Timers that are due at the same time fire in the order in which they were set. */
  at(atMs: number, fire: () => void): Timer {
    const entry: Entry = { atMs: Math.max(atMs, this.#nowMs), fire, cancelled: false };
    let low = 0;
    let high = this.#entries.length;
    // The list is sorted with the latest timer first, so the next one is its last item.
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

  /** Returns the time of the next timer, or undefined if no timer is set. */
  nextAt(): number | undefined {
    while (this.#entries.at(-1)?.cancelled === true) this.#entries.pop();
    return this.#entries.at(-1)?.atMs;
  }

  /** Advances to the time of the next timer and fires it. Returns false if there is none. */
  fireNext(): boolean {
    const atMs = this.nextAt();
    const entry = this.#entries.pop();
    if (atMs === undefined || entry === undefined) return false;
    this.#nowMs = atMs;
    entry.fire();
    return true;
  }
}

/** Returns true if the operating system is reading or writing files. */
function atTheDisk(): boolean {
  return process.getActiveResourcesInfo().some((name) => /FSReq|CloseReq/.test(name));
}

/**
 * Resolves when all work that needs no timer is done. `disk`: also waits for file operations. `workers.ts`
 * limits the process to one file thread, so these operations finish in order.
 */
export async function rest(disk: boolean): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (disk && atTheDisk());
}
