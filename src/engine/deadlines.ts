// Calls the handler of a stored deadline when it falls due. The row is deleted or moved in the transaction of
// its handler, so after a crash the handler is called again. One timer is set for the nearest row, and
// updated when a transaction that sets a row commits.
// DD2: a row whose handler fails is postponed, and does not delay the rows behind it. A row that was deleted
//      or moved stays so: its handler has succeeded, and only the answer to the commit was lost.
// DD3: a process that finds only due rows which others handle pauses before it looks again.

import {
  type Deadline,
  dueDeadlines,
  nextDeadlineAt,
  setDeadline,
  settleDeadline,
  takeDeadline,
} from "../store/queries/deadlines.ts";
import type { Db } from "../store/sql.ts";
import type { Timer, World } from "../world.ts";
import { logRetry, STORE_RETRY_MS } from "./run/until-stored.ts";
import type { Commit, Unit } from "./unit.ts";

const AT_ONCE_MAX = 50;
/** Delay before a failed handler is called again. */
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
}

export class Deadlines {
  readonly #parts: DeadlineParts;
  #timer: Timer | undefined;
  #state: "new" | "open" | "stopped" = "new";
  #working: Promise<void> | undefined;
  #lookAgain = false;

  constructor(parts: DeadlineParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#state = "open";
    this.look();
  }

  async stop(): Promise<void> {
    this.#state = "stopped";
    this.#timer?.cancel();
    await this.#working;
  }

  /** Sets or moves a deadline in a transaction, and sets the timer after the commit. */
  async set(unit: Unit, deadline: Deadline): Promise<void> {
    await setDeadline(unit.tx, deadline);
    unit.after(() => this.look());
  }

  /** Handles due rows. Safe to call at any time. */
  look(): void {
    if (this.#state !== "open") return;
    if (this.#working !== undefined) {
      this.#lookAgain = true;
      return;
    }
    this.#working = this.#work().finally(() => {
      this.#working = undefined;
      if (this.#lookAgain) {
        this.#lookAgain = false;
        this.look();
      }
    });
  }

  async #work(): Promise<void> {
    const { db, world, handlers } = this.#parts;
    try {
      const due = await dueDeadlines(db, world.clock.now(), AT_ONCE_MAX, [...handlers.keys()]);
      let handled = due.length === 0;
      for (const deadline of due) {
        const handler = handlers.get(deadline.kind);
        if (handler === undefined) continue;
        const isMine = await this.#fire(deadline, handler).catch(async (error: unknown) => {
          await this.#postpone(deadline, error);
          return true;
        });
        handled ||= isMine;
      }
      const next = await nextDeadlineAt(db, [...handlers.keys()]);
      const pauseEnd = handled ? 0 : world.clock.now() + TAKEN_AGAIN_MS;
      this.#wakeAt(next === undefined ? undefined : Math.max(next, pauseEnd));
    } catch (error) {
      logRetry(world.log, error, "stored deadlines could not be handled");
      this.#wakeAt(world.clock.now() + STORE_RETRY_MS);
    }
  }

  /** Postpones a row whose handler failed, so that the rows behind it are handled. */
  async #postpone(deadline: Deadline, error: unknown): Promise<void> {
    const { kind, key } = deadline;
    this.#parts.world.log.error({ err: error, kind, key }, "a stored deadline could not be handled");
    await this.#parts.commit(async (unit) => {
      if (!(await takeDeadline(unit.tx, deadline))) return;
      await settleDeadline(unit.tx, deadline, unit.now + FAILED_AGAIN_MS);
    });
  }

  /** Handles a due row. Returns false if another process handles it. */
  async #fire(deadline: Deadline, handler: DeadlineHandler): Promise<boolean> {
    return this.#parts.commit(async (unit) => {
      if (!(await takeDeadline(unit.tx, deadline))) return false;
      const verdict = await handler(unit, deadline.key);
      const next = verdict === "done" ? undefined : Math.max(verdict, unit.now + 1);
      await settleDeadline(unit.tx, deadline, next);
      return true;
    });
  }

  #wakeAt(atMs: number | undefined): void {
    this.#timer?.cancel();
    if (atMs === undefined || this.#state !== "open") return;
    this.#timer = this.#parts.world.clock.at(atMs, () => this.look());
  }
}
