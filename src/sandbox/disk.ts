// Owns how much a workspace holds, and stops the command that takes it over its quota.
// Q1: a workspace over its quota can only shrink: the next command is told, and no file of its may grow.
// Q2: a command that makes a workspace larger, over its quota, is stopped within a look or two.
// This is a watch, not a wall: between two looks a fast disk takes some hundred megabytes more. A measurement
// costs a walk, so between two of them the file system's free space speaks: what somebody else writes there
// leads to a measurement, not to a stop. What a walk can't see (a deleted file that is still open, a folder
// that its owner closed) counts once the free space fell by twice the quota during the command.

import { execFile } from "node:child_process";
import { statfsSync } from "node:fs";
import type { Clock } from "../world.ts";
import { SEARCH_PATH } from "./process.ts";

/** After this long the free space has seen too much of others to speak for the workspace. */
const MEASURED_FRESH_MS = 60_000;
const MEGABYTE = 1024 * 1024;

/** What a folder holds, by a walk; what can't be read counts nothing. */
function diskUsage(folder: string): Promise<number> {
  return new Promise((done) => {
    const options = { env: { PATH: SEARCH_PATH, LC_ALL: "C" } };
    execFile("du", ["-skx", "--", folder], options, (_error, stdout) => {
      done((Number.parseInt(stdout, 10) || 0) * 1024);
    });
  });
}

/** What is known of one workspace's size, kept from command to command. */
export class DiskBook {
  readonly #workspace: string;
  readonly #clock: Pick<Clock, "now">;
  #usedBytes: number | undefined;
  #freeThen = 0;
  #measuredAt = 0;
  #measuring: Promise<number> | undefined;

  constructor(workspace: string, clock: Pick<Clock, "now">) {
    this.#workspace = workspace;
    this.#clock = clock;
  }

  freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#workspace);
    return bavail * bsize;
  }

  /** By a walk; callers at the same time share one. */
  measure(): Promise<number> {
    this.#measuring ??= this.#walk().finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  async #walk(): Promise<number> {
    const freeThen = this.freeBytes();
    const measuredAt = this.#clock.now();
    const usedBytes = await diskUsage(this.#workspace);
    this.#usedBytes = usedBytes;
    this.#freeThen = freeThen;
    this.#measuredAt = measuredAt;
    return usedBytes;
  }

  /** No walk: what it held, and whatever the file system lost since. */
  estimate(): number {
    return (this.#usedBytes ?? 0) + Math.max(0, this.#freeThen - this.freeBytes());
  }

  /** What it holds when a command starts. Only the first time, and in doubt, that takes a walk. */
  async atStart(quotaMb: number): Promise<{ usedBytes: number; full: boolean }> {
    const quota = quotaMb * MEGABYTE;
    if (this.#usedBytes === undefined || this.estimate() > quota) await this.measure();
    else if (this.#clock.now() - this.#measuredAt > MEASURED_FRESH_MS) void this.measure();
    const usedBytes = this.#usedBytes ?? 0;
    return { usedBytes, full: usedBytes > quota };
  }
}

/** One look during a command. `stop` is called when it made the workspace larger than its quota. */
export function diskLook(book: DiskBook, quotaMb: number, usedAtStart: number, stop: () => void): () => void {
  const quota = quotaMb * MEGABYTE;
  const freeAtStart = book.freeBytes();
  return () => {
    if (freeAtStart - book.freeBytes() > 2 * quota) return stop();
    if (book.estimate() <= quota) return;
    void book.measure().then((usedBytes) => {
      if (usedBytes > quota && usedBytes > usedAtStart) stop();
    });
  };
}
