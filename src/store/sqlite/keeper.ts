// Updates the files of an open embedded store in the background: writes the high-water mark after commits,
// and checkpoints the log into the database after a limited time. No commit waits for this. A checkpoint
// writes each changed page once. After a huge commit this takes long, so it runs in the read worker.
// KP1: the mark and the checkpoint wait for a running sync of the log, so the mark never names a row that is
//      not on disk (I2). After a failed sync there are no more of either (log-sync.ts).
// With durability "normal" the mark contains no log position and no row numbers while the store is open,
// because a power loss may remove the end of the log.

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { CompiledQuery } from "kysely";
import { optional } from "../../core/optional.ts";
import type { Clock, Timer } from "../../world/plain.ts";
import type { Log } from "../../world.ts";
import type { LogView } from "./log.ts";
import type { LogSync } from "./log-sync.ts";
import { numbersGiven, roundOf } from "./loss.ts";
import type { Mark, MarkWriter } from "./mark.ts";
import type { ReadWorkerConnection } from "./read-connection.ts";

/** Maximum time between a commit and the mark that includes it. */
const MARK_DELAY_MS = 100;
/** Maximum time between a commit and the checkpoint that writes it to the database file. */
const CHECKPOINT_DELAY_MS = 30_000;
/**
 * Length of the log, in pages, at which it is checkpointed (16 MB). A page that changed many times is then
 * written to the database only once, and a start after a crash reads little more than this.
 */
export const CHECKPOINT_PAGES = 4_000;

/** Pages that the log grew by within `MARK_DELAY_MS` (6 MB). With fewer, a checkpoint takes about 20 ms. */
const HUGE_PAGES = 1_500;
const CHECKPOINT = "pragma wal_checkpoint(passive)";
const CHECKPOINT_FAILED = "could not checkpoint the log";
/** SQLite opens the log at the first read. */
const OPEN_LOG = "pragma user_version";

interface KeeperParts {
  readonly file: string;
  readonly reader: DatabaseSync;
  readonly readWorker: ReadWorkerConnection;
  readonly view: LogView;
  readonly sync: LogSync | undefined;
  readonly writer: MarkWriter;
  readonly durability: Mark["durability"];
  /** If absent, writes the mark at each commit, and checkpoints only when the log is long. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

export class StoreKeeper {
  readonly #parts: KeeperParts;
  #rows: Mark["rows"] = {};
  #marking: Timer | undefined;
  #checkpoint: Timer | undefined;
  /** End of the log when it was last read. */
  #logEnd: ReturnType<LogView["index"]>;
  #isHuge = false;
  /** Whether the next commit empties the log, or a commit after the next checkpoint. */
  #empties: "no" | "at commit" | "later" = "no";
  #warned = false;
  /** Aborted when the background work must end. */
  readonly #end = new AbortController();

  /**
   * `isCurrent`: the existing mark is valid for this store. If it is not, the first new mark is synced to
   * disk, because after a power loss the next start might otherwise use the old mark.
   */
  constructor(parts: KeeperParts, { isCurrent }: { isCurrent: boolean }) {
    this.#parts = parts;
    this.#mark(!isCurrent);
  }

  /** Empties the log at the end of the next commit, when no transaction is open. */
  emptyAtCommit(): void {
    this.#empties = "at commit";
  }

  /** Call this after a commit is on disk and before the next commit. */
  noteCommit(): void {
    const { clock } = this.#parts;
    if (this.#end.signal.aborted) return;
    if (this.#empties === "at commit") this.#try(() => this.#emptyLog(), CHECKPOINT_FAILED);
    if (clock === undefined) {
      this.#mark();
      return;
    }
    this.#marking ??= clock.after(MARK_DELAY_MS, () => {
      this.#marking = undefined;
      this.#onceSynced(() => {
        this.#mark();
        this.#measure();
        // Checkpoints here and not in the step of the commit, which may already take long.
        if ((this.#logEnd?.frames ?? 0) >= CHECKPOINT_PAGES) this.#writeBack();
      });
    });
    this.#checkpoint ??= clock.after(CHECKPOINT_DELAY_MS, () => {
      this.#checkpoint = undefined;
      this.#onceSynced(() => this.#writeBack());
      if (this.#empties === "later") this.#empties = "at commit";
    });
  }

  /** Does the work now. If a sync is running, does it right after the sync, before another commit begins. */
  #onceSynced(work: () => void): void {
    const pending = this.#parts.sync?.pending;
    if (pending === undefined) {
      work();
      return;
    }
    const unlessEnded = (): void => {
      if (!this.#end.signal.aborted) work();
    };
    pending.then(unlessEnded, () => {});
  }

  #measure(): void {
    const before = this.#logEnd;
    const end = this.#parts.view.index();
    this.#logEnd = end;
    if (end === undefined) return;
    // A new round begins at the start of the log.
    const grownFrom = before !== undefined && roundOf(before, end) === "same" ? before.frames : 0;
    this.#isHuge ||= end.frames - grownFrom >= HUGE_PAGES;
  }

  /** Checkpoints the log and truncates it. If another connection reads it, leaves that to a later commit. */
  #emptyLog(): void {
    const { reader, sync, durability } = this.#parts;
    sync?.refuse();
    this.#empties = "later";
    this.#measure();
    // A long checkpoint runs elsewhere first.
    if (this.#isHuge) {
      this.#writeBack();
      return;
    }
    // From here on the mark names no position in the log, because the position is about to end.
    const rows = durability === "full" ? numbersGiven(reader) : {};
    this.#write({ rows }, true);
    const { timeout } = reader.prepare("pragma busy_timeout").get() ?? {};
    reader.exec("pragma busy_timeout = 0");
    try {
      const done = reader.prepare("pragma wal_checkpoint(truncate)").get();
      if (Number(done?.busy) === 0) this.#empties = "no";
    } finally {
      reader.exec(`pragma busy_timeout = ${timeout}`);
      this.#mark();
    }
  }

  #writeBack(): void {
    const { reader, sync } = this.#parts;
    this.#try(() => {
      sync?.refuse();
      if (this.#isHuge) this.#writeBackInWorker();
      else reader.exec(CHECKPOINT);
    }, CHECKPOINT_FAILED);
    this.#isHuge = false;
  }

  /**
   * First lets the read worker open the log. If a sync fails afterwards, the system also fails the sync with
   * which the checkpoint begins. It does not do so for a log that is opened only after the failure.
   */
  #writeBackInWorker(): void {
    const { readWorker } = this.#parts;
    const { signal } = this.#end;
    const run = (sql: string): Promise<unknown> =>
      readWorker.executeQuery(CompiledQuery.raw(sql), { signal });
    const noteFailure = (error: unknown): void => {
      if (!signal.aborted) this.#logFailure(error, CHECKPOINT_FAILED);
    };
    const checkpoint = (): void => this.#onceSynced(() => void run(CHECKPOINT).catch(noteFailure));
    run(OPEN_LOG).then(checkpoint).catch(noteFailure);
  }

  /** Ends the background work. Must be called when a sync of the log has failed. */
  stop(): void {
    this.#marking?.cancel();
    this.#checkpoint?.cancel();
    this.#end.abort();
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
    const { file, writer, view } = this.#parts;
    // SQLite deletes the log only after it has written the whole log to the database.
    const isWhole = statSync(`${file}-wal`, { throwIfNoEntry: false }) === undefined;
    if (isWhole) this.#write({ rows: this.#rows }, true);
    view.close();
    writer.close();
  }

  #mark(sync = false): void {
    const { durability, reader, view, sync: logSync } = this.#parts;
    this.#try(() => {
      logSync?.refuse();
      const log = durability === "full" ? view.place() : undefined;
      const rows = durability === "full" ? numbersGiven(reader) : {};
      this.#write({ rows, ...optional({ log }) }, sync);
    }, "could not write the high-water mark");
  }

  #write(mark: Omit<Mark, "durability">, sync: boolean): void {
    const { writer, durability } = this.#parts;
    this.#try(() => writer.write({ durability, ...mark }, { sync }), "could not write the high-water mark");
  }

  #try(work: () => void, text: string): void {
    try {
      work();
    } catch (error) {
      this.#logFailure(error, text);
    }
  }

  /** Logs only the first failure, because an older mark is also valid, and a longer log. */
  #logFailure(error: unknown, text: string): void {
    if (!this.#warned) this.#parts.log.warn({ err: error, file: this.#parts.file }, text);
    this.#warned = true;
  }
}
