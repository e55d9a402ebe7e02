// Updates the files of an open embedded store in the background: writes the high-water mark after commits,
// and checkpoints the log into the database after a limited time. No commit waits for this.
// KP1: the mark and the checkpoint wait for a running sync of the log, so the mark never names a row that is
//      not on disk (I2). After a failed sync there are no more of either (log-sync.ts).
// With durability "normal" the mark contains no numbers while the store is open, because a power loss may
// remove the end of the log.

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import type { Clock, Timer } from "../../world/plain.ts";
import type { Log } from "../../world.ts";
import type { LogSync } from "./log-sync.ts";
import { numbersGiven } from "./loss.ts";
import type { Mark, MarkWriter } from "./mark.ts";

/** Maximum time between a commit and the mark that includes it. */
const MARK_DELAY_MS = 100;
/** Maximum time between a commit and the checkpoint that writes it to the database file. */
const CHECKPOINT_DELAY_MS = 30_000;
const CHECKPOINT_FAILED = "could not checkpoint the log";

interface KeeperParts {
  readonly file: string;
  readonly reader: DatabaseSync;
  readonly sync: LogSync | undefined;
  readonly writer: MarkWriter;
  readonly durability: "full" | "normal";
  /** If absent, writes the mark at each commit, and checkpoints only when the log is long. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

export class StoreKeeper {
  readonly #parts: KeeperParts;
  #rows: Mark["rows"] = {};
  #marking: Timer | undefined;
  #checkpoint: Timer | undefined;
  /** Whether the next commit empties the log, or a commit after the next checkpoint. */
  #empties: "no" | "at commit" | "later" = "no";
  #warned = false;
  #isStopped = false;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#mark();
  }

  /** Empties the log at the end of the next commit, when no transaction is open. */
  emptyAtCommit(): void {
    this.#empties = "at commit";
  }

  /** Call this after a commit is on disk and before the next commit. */
  noteCommit(): void {
    const { clock, reader } = this.#parts;
    if (this.#isStopped) return;
    if (this.#empties === "at commit") this.#try(() => this.#emptyLog(), CHECKPOINT_FAILED);
    if (clock === undefined) {
      this.#mark();
      return;
    }
    this.#marking ??= clock.after(MARK_DELAY_MS, () => {
      this.#marking = undefined;
      this.#onceSynced(() => this.#mark());
    });
    this.#checkpoint ??= clock.after(CHECKPOINT_DELAY_MS, () => {
      this.#checkpoint = undefined;
      const checkpoint = () => reader.exec("pragma wal_checkpoint(passive)");
      this.#onceSynced(() => this.#try(checkpoint, CHECKPOINT_FAILED));
      if (this.#empties === "later") this.#empties = "at commit";
    });
  }

  /** Does the work now. If a sync is running, does it right after the sync, before another commit begins. */
  #onceSynced(work: () => void): void {
    const pending = this.#parts.sync?.pending;
    if (pending === undefined) work();
    else
      pending.then(
        () => {
          if (!this.#isStopped) work();
        },
        () => {},
      );
  }

  /** Checkpoints the log and truncates it. If another connection reads it, leaves that to a later commit. */
  #emptyLog(): void {
    const { reader } = this.#parts;
    this.#empties = "later";
    const { timeout } = reader.prepare("pragma busy_timeout").get() ?? {};
    reader.exec("pragma busy_timeout = 0");
    try {
      const done = reader.prepare("pragma wal_checkpoint(truncate)").get();
      if (Number(done?.busy) === 0) this.#empties = "no";
    } finally {
      reader.exec(`pragma busy_timeout = ${timeout}`);
    }
  }

  /** Ends the background work. Must be called when a sync of the log has failed. */
  stop(): void {
    this.#marking?.cancel();
    this.#checkpoint?.cancel();
    this.#isStopped = true;
  }

  /** Must be called before the connections are closed. */
  closing(): void {
    this.stop();
    this.#mark();
    this.#try(() => {
      this.#rows = numbersGiven(this.#parts.reader);
    }, "could not read the row numbers for the high-water mark");
  }

  /** Must be called after the connections are closed. */
  finish(): void {
    const { file, writer } = this.#parts;
    // SQLite deletes the log only after it has written the whole log to the database.
    const isWhole = statSync(`${file}-wal`, { throwIfNoEntry: false }) === undefined;
    if (isWhole) this.#write(this.#rows, true);
    writer.close();
  }

  #mark(): void {
    const { durability, reader, sync } = this.#parts;
    this.#try(() => {
      sync?.refuse();
      this.#write(durability === "full" ? numbersGiven(reader) : {}, false);
    }, "could not write the high-water mark");
  }

  #write(rows: Mark["rows"], sync: boolean): void {
    this.#try(() => this.#parts.writer.write({ rows }, { sync }), "could not write the high-water mark");
  }

  /** Logs only the first failure, because an older mark is also valid, and a longer log. */
  #try(work: () => void, text: string): void {
    try {
      work();
    } catch (error) {
      if (!this.#warned) this.#parts.log.warn({ err: error, file: this.#parts.file }, text);
      this.#warned = true;
    }
  }
}
