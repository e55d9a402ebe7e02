// Owns the loop of everything that is due at a time: one for each process. It finds the kinds of stored
// deadlines that are due, with one query, and sets one timer for the next one. It looks again after each
// transaction that sets a date, after each row, and in each check of a shared store.
// A handler runs in the transaction that deletes or moves its row, so after a crash it is called again. A
// worker notes its attempt in a transaction of its own and works after it, as deliveries do.
// DD2: a row whose handler fails is postponed, and does not delay the rows behind it. A row that was deleted
//      or moved stays so: its handler has succeeded, and only the answer to the commit was lost.
// DD3: a process takes only rows that no other process handles. If there are none, it pauses before it looks
//      again.

import { type Deadline, settleDeadline, storedKinds, takeDeadline } from "../store/queries/deadlines.ts";
import type { Db } from "../store/sql.ts";
import type { Timer, World } from "../world.ts";
import type { LeasedWorker } from "./cluster/lease.ts";
import { logRetry, STORE_RETRY_MS } from "./run/until-stored.ts";
import type { Commit, Unit } from "./unit.ts";

/** Maximum number of rows of a kind that are handled before those of the next kind. */
const AT_ONCE_MAX = 50;
const FAILED_AGAIN_MS = 60_000;
/** Delay before the next look if other processes handle all due rows. */
const TAKEN_AGAIN_MS = 100;

/** `done` deletes the row. A number (ms since 1970) sets its next due time. */
export type DeadlineVerdict = "done" | number;

/** Handles a due row, in the transaction that deletes or moves it. */
export type DeadlineHandler = (unit: Unit, key: string) => Promise<DeadlineVerdict>;

interface DeadlineParts {
  readonly db: Db;
  readonly commit: Commit;
  readonly world: World;
  /** Handlers by kind; may change between two looks. Rows of other kinds are left alone. */
  readonly handlers: ReadonlyMap<string, DeadlineHandler>;
  /** Workers that begin what is due for them; may change between two looks. */
  readonly workers: readonly LeasedWorker[];
}

export class Deadlines {
  readonly #parts: DeadlineParts;
  #timer: Timer | undefined;
  #retry: Timer | undefined;
  #isOpen = false;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #handling: Promise<void> | undefined;

  constructor(parts: DeadlineParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#isOpen = true;
    this.look();
  }

  async stop(): Promise<void> {
    this.#isOpen = false;
    this.#timer?.cancel();
    this.#retry?.cancel();
    await this.#looking;
    await this.#handling;
  }

  /** Begins what is due. Safe to call at any time. */
  look(): void {
    if (!this.#isOpen) return;
    this.#lookAgain = this.#looking !== undefined;
    this.#looking ??= this.#begin().then((nextAt) => {
      this.#looking = undefined;
      this.#timer?.cancel();
      if (nextAt !== Number.POSITIVE_INFINITY && this.#isOpen)
        this.#timer = this.#parts.world.clock.at(nextAt, () => this.look());
      if (this.#lookAgain) this.look();
    });
  }

  /** Begins what is due. Returns the time of the next look. */
  async #begin(): Promise<number> {
    const { db, world, handlers, workers } = this.#parts;
    let nextAt = Number.POSITIVE_INFINITY;
    try {
      const now = world.clock.now();
      const kinds = await storedKinds(db, now);
      for (const worker of workers) {
        const stored = kinds.filter(({ kind }) => kind.startsWith(`${worker.of} `));
        for (const kind of stored) nextAt = Math.min(nextAt, await worker.begin(kind, stored.length));
      }
      const handled = kinds.filter(({ kind }) => handlers.has(kind));
      const due = handled.filter(({ firstAt }) => firstAt <= now).sort((a, b) => a.firstAt - b.firstAt);
      if (due.length > 0) this.#handling ??= this.#handle(due.map(({ kind }) => kind));
      return Math.min(nextAt, ...handled.map((kind) => kind.nextAt ?? nextAt));
    } catch (error) {
      logRetry(world.log, error, "stored deadlines could not be read");
      return world.clock.now() + STORE_RETRY_MS;
    }
  }

  /** Handles due rows of these kinds, one after the other, and then looks again. */
  async #handle(kinds: readonly string[]): Promise<void> {
    const { world } = this.#parts;
    let pauseMs = TAKEN_AGAIN_MS;
    try {
      for (const kind of kinds) {
        for (let rows = 0; rows < AT_ONCE_MAX && this.#isOpen && (await this.#fire(kind)); rows += 1)
          pauseMs = 0;
      }
    } catch (error) {
      logRetry(world.log, error, "a stored deadline could not be handled");
      pauseMs = STORE_RETRY_MS;
    }
    this.#handling = undefined;
    this.#retry?.cancel();
    // A look for another reason, such as a new row, does not wait for the end of the pause.
    if (pauseMs === 0) this.look();
    else if (this.#isOpen) this.#retry = world.clock.after(pauseMs, () => this.look());
  }

  /** Handles a due row. Returns false if there is none that no other process handles. */
  async #fire(kind: string): Promise<boolean> {
    const { commit, world, handlers } = this.#parts;
    let due = undefined as Deadline | undefined;
    try {
      return await commit(async (unit) => {
        due = await takeDeadline(unit.tx, kind, world.clock.now());
        const verdict = due && (await handlers.get(kind)?.(unit, due.key));
        if (due === undefined || verdict === undefined) return false;
        await settleDeadline(unit.tx, due, verdict === "done" ? undefined : Math.max(verdict, unit.now + 1));
        return true;
      });
    } catch (error) {
      if (due === undefined) throw error;
      const { key } = due;
      world.log.error({ err: error, kind, key }, "a stored deadline could not be handled");
      // Postpones the row, so that the rows behind it are handled.
      await commit(async (unit) => {
        const still = await takeDeadline(unit.tx, kind, unit.now + 1, key);
        if (still !== undefined) await settleDeadline(unit.tx, still, unit.now + FAILED_AGAIN_MS);
      });
      return true;
    }
  }
}
