// Measures the size of a workspace, and stops a command that exceeds its quota.
// A workspace above its quota can only shrink: no file in it may grow, and the next command's result says so.
// A command that lets a workspace grow beyond its quota is stopped within one or two checks.
// Q3: a file counts as at least 4 KiB, so that a workspace cannot use up the inodes of the file system.
// Q4: errors of the file system are not thrown. If the folder is missing, bubblewrap reports it.
// This is a watch, not a hard limit: between two checks a program may write some hundred megabytes to a fast
// disk. To measure, all files must be visited. Between two measurements the free space of the file system is
// used as an estimate; if other programs write, this leads to a measurement, not to a stop. A walk cannot see
// some data: deleted files that are still open, and unreadable folders. A command that may hide data so is
// stopped once the free space fell by twice the quota, even if other programs used it.

import { execFile } from "node:child_process";
import { statfsSync } from "node:fs";
import { SEARCH_PATH } from "../world/programs.ts";
import type { Clock } from "../world.ts";

/** Age at which a measurement is stale, because other programs may have changed the free space. */
const MEASURED_FRESH_MS = 60_000;
const MEGABYTE = 1024 * 1024;
const FILE_LEAST_BYTES = 4 * 1024;
/** Maximum time to measure a folder; a folder that takes longer counts as full. */
const WALK_MAX_MS = 30_000;

/** Returns the number that `du` reports for a folder. */
function walk(folder: string, counting: string): Promise<{ count: number; sawAll: boolean }> {
  return new Promise((done) => {
    const env = { PATH: SEARCH_PATH, LC_ALL: "C" };
    const options = { env, timeout: WALK_MAX_MS, killSignal: "SIGKILL" } as const;
    execFile("du", ["-sx", counting, "--", folder], options, (error, stdout, stderr) => {
      const count = error?.killed ? Number.POSITIVE_INFINITY : Number.parseInt(stdout, 10) || 0;
      done({ count, sawAll: !stderr.includes("Permission denied") });
    });
  });
}

/** The free space of a file system, at one time. */
interface Free {
  readonly bytes: number;
  readonly files: number;
}

/** The known size of one workspace. Kept between commands. */
export class DiskBook {
  readonly #workspace: string;
  readonly #clock: Pick<Clock, "now">;
  #usedBytes: number | undefined;
  #freeThen: Free = { bytes: 0, files: 0 };
  #measuredAt = 0;
  #sawAll = true;
  #measuring: Promise<number> | undefined;
  /** The measurement that begins when the present one has ended. */
  #next: Promise<number> | undefined;

  constructor(workspace: string, clock: Pick<Clock, "now">) {
    this.#workspace = workspace;
    this.#clock = clock;
  }

  /** False if the last measurement could not read parts of the workspace. */
  get sawAll(): boolean {
    return this.#sawAll;
  }

  free(): Free {
    try {
      const { bavail, bsize, ffree } = statfsSync(this.#workspace);
      return { bytes: bavail * bsize, files: ffree };
    } catch {
      return this.#freeThen;
    }
  }

  /** Measures the folder. Concurrent callers share one measurement. */
  measure(): Promise<number> {
    this.#measuring ??= this.#walk().finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  /** Measures from now on: a measurement under way may have missed what was deleted since its beginning. */
  measureAnew(): Promise<number> {
    if (this.#measuring === undefined) return this.measure();
    this.#next ??= this.#measuring.then(() => {
      this.#next = undefined;
      return this.measure();
    });
    return this.#next;
  }

  async #walk(): Promise<number> {
    const freeThen = this.free();
    const measuredAt = this.#clock.now();
    const place = this.#workspace;
    const [kilobytes, files] = await Promise.all([walk(place, "-k"), walk(place, "--inodes")]);
    // A `du` that cannot count files counts only bytes.
    const usedBytes = Math.max(kilobytes.count * 1024, files.count * FILE_LEAST_BYTES);
    this.#usedBytes = usedBytes;
    this.#sawAll = kilobytes.sawAll;
    this.#freeThen = freeThen;
    this.#measuredAt = measuredAt;
    return usedBytes;
  }

  /**
   * Estimates the size without reading the folder: the last measured size plus the decrease of the free space
   * since then.
   */
  estimate(): number {
    const free = this.free();
    const lostBytes = this.#freeThen.bytes - free.bytes;
    const lostFiles = this.#freeThen.files - free.files;
    return (this.#usedBytes ?? 0) + Math.max(0, lostBytes, lostFiles * FILE_LEAST_BYTES);
  }

  /**
   * Returns the size when a command starts. Measures only the first time, and if the estimate is uncertain.
   */
  async atStart(quotaMb: number, signal: AbortSignal): Promise<{ usedBytes: number; full: boolean }> {
    const quota = quotaMb * MEGABYTE;
    if (this.#usedBytes === undefined || this.estimate() > quota)
      await unlessAborted(this.measureAnew(), signal);
    else if (this.#clock.now() - this.#measuredAt > MEASURED_FRESH_MS) void this.measure();
    const usedBytes = this.#usedBytes ?? 0;
    return { usedBytes, full: usedBytes > quota };
  }
}

/** Waits for the measurement, but returns at once if the caller aborts: its command will not run. */
async function unlessAborted(measured: Promise<number>, signal: AbortSignal): Promise<void> {
  const waiting = new AbortController();
  const aborted = new Promise<void>((done) => {
    if (signal.aborted) done();
    signal.addEventListener("abort", () => done(), { once: true, signal: waiting.signal });
  });
  await Promise.race([measured, aborted]);
  waiting.abort();
}

interface DiskLimit {
  readonly quotaMb: number;
  /** Size of the workspace in bytes when the command started. */
  readonly usedAtStart: number;
  /** Returns whether the command may have data on the disk that no file of its workspace shows. */
  mayHide(): boolean;
  stop(): void;
}

/**
 * Returns the disk check of one command. It calls `stop` if the workspace grew above its quota during the
 * command.
 */
export function diskLook(book: DiskBook, limit: DiskLimit): () => void {
  const quota = limit.quotaMb * MEGABYTE;
  const freeAtStart = book.free().bytes;
  return () => {
    const isFilling = freeAtStart - book.free().bytes > 2 * quota;
    if (isFilling && limit.mayHide()) return limit.stop();
    if (book.estimate() <= quota) return;
    void book.measure().then((usedBytes) => {
      const hasGrown = usedBytes > quota && usedBytes > limit.usedAtStart;
      if (hasGrown || (isFilling && !book.sawAll)) limit.stop();
    });
  };
}
