// Keeps the files of an open embedded store current: the high-water mark follows what is committed, and the
// log is written into the database after a bounded time.
// LK1: a commit waits for none of it.
// LK2: with durability "normal" the mark claims no log: a loss of power may take the end of it.

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import type { Clock, Timer } from "../world/plain.ts";
import type { Log } from "../world.ts";
import type { LogView } from "./sqlite-log.ts";
import { numbersGiven } from "./sqlite-loss.ts";
import type { Mark, MarkWriter } from "./sqlite-mark.ts";

/** The mark is this much behind the last commit at most. */
const MARK_DELAY_MS = 100;
/** A committed change is in the database's own file after this time. */
const CHECKPOINT_DELAY_MS = 30_000;
/**
 * Pages that the log holds before it is written into the database: 16 MB. Pages that change again and again
 * are then written there once for many changes; a start after a crash reads little more than that.
 */
export const CHECKPOINT_PAGES = 4_000;

interface KeeperParts {
  readonly file: string;
  readonly reader: DatabaseSync;
  readonly view: LogView;
  readonly writer: MarkWriter;
  readonly durability: Mark["durability"];
  /** Absent: the mark is written at each commit, and the log only when it is long. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

export class StoreKeeper {
  readonly #parts: KeeperParts;
  #rows: Mark["rows"] = {};
  #marking: Timer | undefined;
  #checkpoint: Timer | undefined;
  #warned = false;

  /** `isCurrent`: the mark that was found holds, whatever a loss of power leaves of the new one. */
  constructor(parts: KeeperParts, { isCurrent }: { isCurrent: boolean }) {
    this.#parts = parts;
    this.#mark(!isCurrent);
  }

  /** Something was committed. */
  committed(): void {
    const { clock } = this.#parts;
    if (clock === undefined) {
      this.#mark();
      return;
    }
    this.#marking ??= clock.at(clock.now() + MARK_DELAY_MS, () => {
      this.#marking = undefined;
      this.#mark();
      // In a step of its own: a commit of much is long enough.
      if ((this.#parts.view.index()?.frames ?? 0) >= CHECKPOINT_PAGES) this.#writeBack();
    });
    this.#checkpoint ??= clock.at(clock.now() + CHECKPOINT_DELAY_MS, () => {
      this.#checkpoint = undefined;
      this.#writeBack();
    });
  }

  #writeBack(): void {
    this.#tried(() => this.#parts.reader.exec("pragma wal_checkpoint(passive)"), "log not written back");
  }

  /** Call it before the connections are closed. */
  closing(): void {
    this.#marking?.cancel();
    this.#checkpoint?.cancel();
    this.#mark();
    this.#tried(() => {
      this.#rows = numbersGiven(this.#parts.reader);
    }, "high-water mark not read");
  }

  /** Call it after the connections are closed. */
  closed(): void {
    const { file, writer, view } = this.#parts;
    // SQLite removes the log when it has written all of it into the database.
    const isWhole = statSync(`${file}-wal`, { throwIfNoEntry: false }) === undefined;
    if (isWhole) this.#write({ state: "closed", rows: this.#rows }, true);
    view.close();
    writer.close();
  }

  /** Writes what holds now. */
  #mark(sync = false): void {
    const { durability, reader, view } = this.#parts;
    this.#tried(() => {
      const log = durability === "full" ? view.place() : undefined;
      const rows = durability === "full" ? numbersGiven(reader) : {};
      this.#write({ state: "open", rows, ...(log === undefined ? {} : { log }) }, sync);
    }, "high-water mark not written");
  }

  #write(mark: Omit<Mark, "durability">, sync: boolean): void {
    const { writer, durability } = this.#parts;
    this.#tried(() => writer.write({ durability, ...mark }, { sync }), "high-water mark not written");
  }

  /** A store that works is not stopped for its mark: an older one holds as well. Warns once. */
  #tried(work: () => void, text: string): void {
    try {
      work();
    } catch (error) {
      if (!this.#warned) this.#parts.log.warn({ err: error, file: this.#parts.file }, text);
      this.#warned = true;
    }
  }
}
