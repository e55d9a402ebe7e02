// Syncs the log of an open embedded store outside SQLite, so that the event loop waits for no slow disk.
// SQLite writes a commit into the log and syncs only for a checkpoint and for a new round of the log.
// Nobody sees a row that is not on disk: members of a group, readers and the high-water mark wait for
//      the sync of each commit before them. Nothing is committed while a sync is under way.
// LS2: a failed sync is final, because the system may have dropped the pages: the store refuses everything
//      from then on, and no checkpoint reads the log. A start compares the log with its checksums.
// LS3: one descriptor is kept: the system reports a failed write only to descriptors that were open then.
// LS4: a disk that was fast for some time is synced on the event loop, which saves the way to a thread and
//      back; the first slow sync ends that.

import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { DatabaseConnection } from "kysely";
import type { Clock } from "../../world.ts";
import { StoreProblem } from "../problems.ts";
import type { LogView } from "./log.ts";

interface SyncParts {
  /** Path of the database. A connection in WAL mode has it open. */
  readonly file: string;
  readonly view: LogView;
  /** Absent: every commit is synced outside the event loop. */
  readonly clock?: Pick<Clock, "monotonic"> | undefined;
  /** Runs once, when a sync failed. Closes every connection of this process that could checkpoint. */
  readonly failed: (problem: StoreProblem) => void;
}

/** A sync is fast below this. Includes the way back from the thread, so a busy event loop finds none fast. */
const FAST_MS = 1;
/** After this many fast syncs in a row, commits are synced on the event loop. */
const FAST_SYNCS = 64;

type LogEnd = NonNullable<ReturnType<LogView["index"]>>;

const isSame = (one: LogEnd, other: LogEnd | undefined): boolean =>
  one.frames === other?.frames && one.salt === other.salt && one.salt2 === other.salt2;

export class LogSync {
  readonly #parts: SyncParts;
  readonly #log: number;
  /** While it is open, no other connection is the last one, which would checkpoint when it is closed. */
  readonly #guard: DatabaseSync;
  /** End of the log at the last commit. Undefined: not known. */
  #end: LogEnd | undefined;
  #pending: Promise<void> | undefined;
  /** Fast syncs in a row. */
  #fastSyncs = 0;
  #problem: StoreProblem | undefined;

  constructor(parts: SyncParts) {
    this.#parts = parts;
    this.#guard = new DatabaseSync(parts.file, { readOnly: true });
    // The first read opens the log.
    this.#guard.prepare("pragma user_version").get();
    this.#log = openSync(`${parts.file}-wal`, "r+");
    // The log may hold commits of a killed process.
    fdatasyncSync(this.#log);
    this.#end = parts.view.index();
  }

  /** Throws if a sync has failed. */
  refuse(): void {
    if (this.#problem !== undefined) throw this.#problem;
  }

  /** Settles with the sync that is under way. Undefined: every commit is on disk. */
  get pending(): Promise<void> | undefined {
    return this.#pending;
  }

  /**
   * Call it in the same step as a commit. Resolves when the commit is on disk. Undefined: it is there, or has
   * written nothing. Throws or rejects if the sync failed.
   */
  commit(): Promise<void> | undefined {
    const before = this.#end;
    this.#end = this.#parts.view.index();
    if (before !== undefined && isSame(before, this.#end)) return undefined;
    const begunAt = this.#parts.clock?.monotonic();
    if (this.#fastSyncs >= FAST_SYNCS) return this.#syncHere(begunAt);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#pending = promise;
    fdatasync(this.#log, (error) => {
      this.#pending = undefined;
      this.#count(begunAt);
      if (error === null) resolve();
      else reject(this.#fail(error));
    });
    return promise;
  }

  #syncHere(begunAt: number | undefined): undefined {
    try {
      fdatasyncSync(this.#log);
    } catch (error) {
      throw this.#fail(error as Error);
    }
    this.#count(begunAt);
  }

  #count(begunAt: number | undefined): void {
    const { clock } = this.#parts;
    const isFast = begunAt !== undefined && clock !== undefined && clock.monotonic() - begunAt < FAST_MS;
    this.#fastSyncs = isFast ? this.#fastSyncs + 1 : 0;
  }

  #fail(cause: Error): StoreProblem {
    const { file, failed } = this.#parts;
    const more = { detail: cause.message, cause };
    this.#problem = new StoreProblem("unsynced", file, more);
    failed(this.#problem);
    // Its rows are in the log, and may be there after a restart, too.
    return new StoreProblem("unsynced", file, { ...more, inDoubt: true });
  }

  /** Call it before the other connections are closed. */
  close(): void {
    this.#guard.close();
    closeSync(this.#log);
  }
}

/** Returns a connection for reading whose answers wait until the rows in them are on disk. */
export function afterSync(connection: DatabaseConnection, sync: LogSync | undefined): DatabaseConnection {
  if (sync === undefined) return connection;
  return {
    executeQuery: async <R>(...asked: Parameters<DatabaseConnection["executeQuery"]>) => {
      sync.refuse();
      const answer = await connection.executeQuery<R>(...asked);
      await sync.pending;
      // A sync on the event loop may have failed meanwhile.
      sync.refuse();
      return answer;
    },
    streamQuery: (...asked) => connection.streamQuery(...asked),
  };
}
