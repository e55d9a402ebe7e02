// Keeps the files of an open embedded store current: the high-water mark follows the commits, and the log is
// checkpointed into the database after a bounded time. No commit waits for it.
// KP1: mark and checkpoint wait for a sync of the log that is under way, so that the mark names no row that
//      is not on disk (I2).
// With durability "normal" the mark names no log position: a power loss may remove the end of the log.

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { optional } from "../../core/optional.ts";
import type { Clock, Timer } from "../../world/plain.ts";
import type { Log } from "../../world.ts";
import type { LogView } from "./log.ts";
import type { LogSync } from "./log-sync.ts";
import { numbersGiven } from "./loss.ts";
import type { Mark, MarkWriter } from "./mark.ts";

/** Maximum delay of the mark behind the last commit. */
const MARK_DELAY_MS = 100;
/** A commit reaches the database file after this time at the latest. */
const CHECKPOINT_DELAY_MS = 30_000;
/**
 * Checkpoints the log when it has this many pages (16 MB). Pages that change often are then written once for
 * many changes, and a start after a crash reads little more than that.
 */
export const CHECKPOINT_PAGES = 4_000;

interface KeeperParts {
  readonly file: string;
  readonly reader: DatabaseSync;
  readonly view: LogView;
  readonly sync: LogSync | undefined;
  readonly writer: MarkWriter;
  readonly durability: Mark["durability"];
  /** Absent: writes the mark at each commit, and checkpoints only a long log. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

export class StoreKeeper {
  readonly #parts: KeeperParts;
  #rows: Mark["rows"] = {};
  #marking: Timer | undefined;
  #checkpoint: Timer | undefined;
  #warned = false;
  #isClosed = false;

  /** `isCurrent`: the existing mark is valid even if a power loss damages the new one. */
  constructor(parts: KeeperParts, { isCurrent }: { isCurrent: boolean }) {
    this.#parts = parts;
    this.#mark(!isCurrent);
  }

  /** Call it when a commit is on disk, before the next one. */
  committed(): void {
    const { clock } = this.#parts;
    if (this.#isClosed) return;
    if (clock === undefined) {
      this.#mark();
      return;
    }
    this.#marking ??= clock.at(clock.now() + MARK_DELAY_MS, () => {
      this.#marking = undefined;
      this.#onceSynced(() => {
        this.#mark();
        // Not in the step of the commit, which may already be long.
        if ((this.#parts.view.index()?.frames ?? 0) >= CHECKPOINT_PAGES) this.#writeBack();
      });
    });
    this.#checkpoint ??= clock.at(clock.now() + CHECKPOINT_DELAY_MS, () => {
      this.#checkpoint = undefined;
      this.#onceSynced(() => this.#writeBack());
    });
  }

  /** Does the work now, or right after the sync that is under way: before another commit begins. */
  #onceSynced(work: () => void): void {
    const pending = this.#parts.sync?.pending;
    if (pending === undefined) {
      work();
      return;
    }
    const unlessClosed = (): void => {
      if (!this.#isClosed) work();
    };
    pending.then(unlessClosed, () => {});
  }

  #writeBack(): void {
    this.#tried(
      () => this.#parts.reader.exec("pragma wal_checkpoint(passive)"),
      "could not checkpoint the log",
    );
  }

  /** Call it before the connections are closed. */
  closing(): void {
    this.#marking?.cancel();
    this.#checkpoint?.cancel();
    this.#isClosed = true;
    this.#mark();
    this.#tried(() => {
      this.#rows = numbersGiven(this.#parts.reader);
    }, "could not read the log position for the high-water mark");
  }

  /** Call it after the connections are closed. */
  closed(): void {
    const { file, writer, view } = this.#parts;
    // SQLite removes the log once all of it is in the database.
    const isWhole = statSync(`${file}-wal`, { throwIfNoEntry: false }) === undefined;
    if (isWhole) this.#write({ state: "closed", rows: this.#rows }, true);
    view.close();
    writer.close();
  }

  /** Writes the mark for the current state. */
  #mark(sync = false): void {
    const { durability, reader, view, sync: logSync } = this.#parts;
    this.#tried(() => {
      logSync?.refuse();
      const log = durability === "full" ? view.place() : undefined;
      const rows = durability === "full" ? numbersGiven(reader) : {};
      this.#write({ state: "open", rows, ...optional({ log }) }, sync);
    }, "could not write the high-water mark");
  }

  #write(mark: Omit<Mark, "durability">, sync: boolean): void {
    const { writer, durability } = this.#parts;
    this.#tried(() => writer.write({ durability, ...mark }, { sync }), "could not write the high-water mark");
  }

  /** Logs a failure once and continues: an older mark is valid, too. */
  #tried(work: () => void, text: string): void {
    try {
      work();
    } catch (error) {
      if (!this.#warned) this.#parts.log.warn({ err: error, file: this.#parts.file }, text);
      this.#warned = true;
    }
  }
}
