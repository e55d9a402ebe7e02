// Owns how much a workspace holds, and stops the command that takes it over its quota.
// Q1: a workspace over its quota can only shrink: the next command is told, and no file in it may grow.
// Q2: a command that makes a workspace larger, over its quota, is stopped within a look or two.
// Q3: a file counts as 4 KiB at least, so that a workspace can't use up the file system's table of files.
// Q4: no failure of the file system is thrown: a folder that is gone is bubblewrap's to refuse.
// This is a watch, not a wall: between two looks a fast disk takes some hundred megabytes more. A measurement
// costs a walk, so between two of them the file system's free space speaks: what somebody else writes there
// leads to a measurement, not to a stop. What a walk can't see (a deleted file that is still open, a folder
// that its owner closed) counts once the free space fell by twice the quota during the command.

import { execFile } from "node:child_process";
import { statfsSync } from "node:fs";
import { SEARCH_PATH } from "../world/programs.ts";
import type { Clock } from "../world.ts";

/** After this long the free space has seen too much of others to speak for the workspace. */
const MEASURED_FRESH_MS = 60_000;
const MEGABYTE = 1024 * 1024;
const FILE_LEAST_BYTES = 4 * 1024;
/** A folder that takes longer to walk counts as full. */
const WALK_MAX_MS = 30_000;

/** The number that `du` says of a folder; what can't be read counts nothing. */
function walk(folder: string, counting: string): Promise<number> {
  return new Promise((done) => {
    const env = { PATH: SEARCH_PATH, LC_ALL: "C" };
    const options = { env, timeout: WALK_MAX_MS, killSignal: "SIGKILL" } as const;
    execFile("du", ["-sx", counting, "--", folder], options, (error, stdout) => {
      done(error?.killed ? Number.POSITIVE_INFINITY : Number.parseInt(stdout, 10) || 0);
    });
  });
}

/** What a folder holds. A `du` that can't count files leaves them out. */
async function diskUsage(folder: string): Promise<number> {
  const [kilobytes, files] = await Promise.all([walk(folder, "-k"), walk(folder, "--inodes")]);
  return Math.max(kilobytes * 1024, files * FILE_LEAST_BYTES);
}

/** What a file system has left. */
interface Free {
  readonly bytes: number;
  readonly files: number;
}

/** What is known of one workspace's size, kept from command to command. */
export class DiskBook {
  readonly #workspace: string;
  readonly #clock: Pick<Clock, "now">;
  #usedBytes: number | undefined;
  #freeThen: Free = { bytes: 0, files: 0 };
  #measuredAt = 0;
  #measuring: Promise<number> | undefined;

  constructor(workspace: string, clock: Pick<Clock, "now">) {
    this.#workspace = workspace;
    this.#clock = clock;
  }

  free(): Free {
    try {
      const { bavail, bsize, ffree } = statfsSync(this.#workspace);
      return { bytes: bavail * bsize, files: ffree };
    } catch {
      return this.#freeThen;
    }
  }

  /** By a walk; callers at the same time share one. */
  measure(): Promise<number> {
    this.#measuring ??= this.#walk().finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  async #walk(): Promise<number> {
    const freeThen = this.free();
    const measuredAt = this.#clock.now();
    const usedBytes = await diskUsage(this.#workspace);
    this.#usedBytes = usedBytes;
    this.#freeThen = freeThen;
    this.#measuredAt = measuredAt;
    return usedBytes;
  }

  /** No walk: what it held, and whatever the file system lost since. */
  estimate(): number {
    const free = this.free();
    const lostBytes = this.#freeThen.bytes - free.bytes;
    const lostFiles = this.#freeThen.files - free.files;
    return (this.#usedBytes ?? 0) + Math.max(0, lostBytes, lostFiles * FILE_LEAST_BYTES);
  }

  /** What it holds when a command starts. Only the first time, and in doubt, that takes a walk. */
  async atStart(quotaMb: number, signal: AbortSignal): Promise<{ usedBytes: number; full: boolean }> {
    const quota = quotaMb * MEGABYTE;
    if (this.#usedBytes === undefined || this.estimate() > quota) await unlessAborted(this.measure(), signal);
    else if (this.#clock.now() - this.#measuredAt > MEASURED_FRESH_MS) void this.measure();
    const usedBytes = this.#usedBytes ?? 0;
    return { usedBytes, full: usedBytes > quota };
  }
}

/** An aborted caller does not wait: nothing of its command will run. */
async function unlessAborted(measured: Promise<number>, signal: AbortSignal): Promise<void> {
  const waiting = new AbortController();
  const aborted = new Promise<void>((done) => {
    if (signal.aborted) done();
    signal.addEventListener("abort", () => done(), { once: true, signal: waiting.signal });
  });
  await Promise.race([measured, aborted]);
  waiting.abort();
}

/** One look during a command. `stop` is called when it made the workspace larger than its quota. */
export function diskLook(book: DiskBook, quotaMb: number, usedAtStart: number, stop: () => void): () => void {
  const quota = quotaMb * MEGABYTE;
  const freeAtStart = book.free().bytes;
  return () => {
    if (freeAtStart - book.free().bytes > 2 * quota) return stop();
    if (book.estimate() <= quota) return;
    void book.measure().then((usedBytes) => {
      if (usedBytes > quota && usedBytes > usedAtStart) stop();
    });
  };
}
