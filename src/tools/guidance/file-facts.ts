// Asks for the status and the real path of files. Each run asks about several files, and a question to
// another thread costs five times as much processor time, so this asks on the event loop.
// FF1: after a slow answer (a network drive, a busy disk) it asks on another thread for a while.

import { realpathSync, type Stats, statSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";

/** An answer that takes at least this long is slow. */
const SLOW_MS = 5;
/** Number of questions that are asked on another thread after a slow answer. */
const AFTER_SLOW = 1_000;

export class FileFacts {
  readonly #now: () => number;
  /** Number of questions for another thread. */
  #elsewhere = 0;

  /** `now`: the clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the status of the file to which a path leads, or undefined if nothing accessible is there. */
  status(path: string): Promise<Stats | undefined> {
    return this.#ask(
      () => statSync(path, { throwIfNoEntry: false }),
      () => stat(path),
    );
  }

  /** Returns the path without links, or undefined if nothing accessible is there. */
  realPath(path: string): Promise<string | undefined> {
    return this.#ask(
      () => realpathSync.native(path),
      () => realpath(path),
    );
  }

  async #ask<T>(here: () => T, elsewhere: () => Promise<T>): Promise<T | undefined> {
    try {
      if (this.#elsewhere > 0) {
        this.#elsewhere -= 1;
        return await elsewhere();
      }
      return this.#runMeasured(here);
    } catch {
      return undefined;
    }
  }

  #runMeasured<T>(here: () => T): T {
    const from = this.#now();
    try {
      return here();
    } finally {
      if (this.#now() - from >= SLOW_MS) this.#elsewhere = AFTER_SLOW;
    }
  }
}
