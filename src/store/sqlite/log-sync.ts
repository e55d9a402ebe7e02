// Syncs the log of an open embedded store outside SQLite, so that the event loop does not wait for a slow
// disk. SQLite itself syncs only when it makes a checkpoint and when it restarts the log.
// A row is visible only after it is on disk: the callers of a commit group (groups.ts), readers and the
// high-water mark wait for the sync of every earlier commit. Nothing is committed during a sync.
// LS2: after a failed sync the store stays closed, because the system may have discarded the pages. Every
//      request is refused, and no checkpoint reads the log. The next start verifies the log with its
//      checksums.
// The log's file descriptor stays open, because the system reports a failed write only to descriptors that
// were open when the write failed.

import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { DatabaseConnection } from "kysely";
import { StoreProblem } from "../problems.ts";

interface SyncParts {
  /** Path of the database, which a connection in WAL mode must have open. */
  readonly file: string;
  /** Called once, after a sync failed. Must end everything in this process that could checkpoint. */
  readonly onFailure: (problem: StoreProblem) => void;
}

export class LogSync {
  readonly #parts: SyncParts;
  readonly #log: number;
  /**
   * Keeps SQLite from checkpointing after a failed sync: SQLite does so when the last connection is closed,
   * and this connection is then still open.
   */
  readonly #guard: DatabaseSync;
  #pending: Promise<void> | undefined;
  #problem: StoreProblem | undefined;

  constructor(parts: SyncParts) {
    this.#parts = parts;
    this.#guard = new DatabaseSync(parts.file, { readOnly: true });
    // SQLite opens the log at the first read.
    this.#guard.prepare("pragma user_version").get();
    this.#log = openSync(`${parts.file}-wal`, "r+");
    // Syncs commits that a killed process may have left in the log.
    fdatasyncSync(this.#log);
  }

  /** Throws if a sync has failed. */
  refuse(): void {
    if (this.#problem !== undefined) throw this.#problem;
  }

  /** The running sync, or undefined if no sync is running. */
  get pending(): Promise<void> | undefined {
    return this.#pending;
  }

  /**
   * Syncs the last commit. Call this in the same step as the commit. Resolves when the commit is on disk.
   * Rejects if the sync fails.
   */
  commit(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#pending = promise;
    fdatasync(this.#log, (error) => {
      this.#pending = undefined;
      if (error === null) resolve();
      else reject(this.#fail(error));
    });
    return promise;
  }

  #fail(cause: Error): StoreProblem {
    const { file, onFailure } = this.#parts;
    const more = { detail: cause.message, cause };
    this.#problem = new StoreProblem("unsynced", file, more);
    onFailure(this.#problem);
    // The rows are in the log, and may still be there after a restart, so the outcome is in doubt.
    return new StoreProblem("unsynced", file, { ...more, inDoubt: true });
  }

  /** Call this before the other connections are closed. */
  close(): void {
    this.#guard.close();
    closeSync(this.#log);
  }
}

/** Returns a connection for reading that delays each answer until the rows in it are on disk. */
export function afterSync(connection: DatabaseConnection, sync: LogSync | undefined): DatabaseConnection {
  if (sync === undefined) return connection;
  return {
    executeQuery: async <R>(...asked: Parameters<DatabaseConnection["executeQuery"]>) => {
      sync.refuse();
      const answer = await connection.executeQuery<R>(...asked);
      if (sync.pending !== undefined) await sync.pending;
      // The sync may have failed since the first check.
      sync.refuse();
      return answer;
    },
    streamQuery: (...asked) => connection.streamQuery(...asked),
  };
}
