// Caches facts about files and folders for as long as their status does not change, so that a run which finds
// nothing new only asks for their status.
// SC1: a value is kept only if the entry had not changed for a while when it was read. Otherwise a change in
//      the same tick of the file system's clock would never be noticed.

import type { Stats } from "node:fs";
import { evictOldest } from "../../core/bounded.ts";
import type { FileFacts } from "./file-facts.ts";

const ENTRIES_MAX = 500;
const SETTLED_MS = 1_000;

interface Known<T> {
  readonly mark: string;
  readonly value: T;
}

export class StatCache<T> {
  readonly #known = new Map<string, Known<T>>();
  readonly #now: () => number;
  readonly #facts: FileFacts;

  /** `now`: the wall clock, in milliseconds since 1970. */
  constructor(now: () => number, facts: FileFacts) {
    this.#now = now;
    this.#facts = facts;
  }

  /**
   * Returns the value for a path, which `read` computes, or undefined if nothing accessible is there. `by`
   * names everything else on which the value depends.
   */
  async get(path: string, read: (found: Stats) => Promise<T>, by = ""): Promise<T | undefined> {
    const key = `${by} ${path}`;
    const found = await this.#facts.status(path);
    if (found === undefined) {
      this.#known.delete(key);
      return undefined;
    }
    const mark = [found.dev, found.ino, found.size, found.mtimeMs, found.ctimeMs].join(" ");
    const known = this.#known.get(key);
    if (known?.mark === mark) return known.value;
    const value = await read(found);
    this.#known.delete(key);
    if (Math.max(found.mtimeMs, found.ctimeMs) < this.#now() - SETTLED_MS) {
      this.#known.set(key, { mark, value });
      evictOldest(this.#known, ENTRIES_MAX);
    }
    return value;
  }
}
