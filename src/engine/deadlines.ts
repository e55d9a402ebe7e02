// Owns the clock of stored deadlines: calls whoever handles a kind when one of its rows falls due.
// DD1: the row goes, or moves, in the unit in which its handler acts: a crash in between repeats the handler.
// DD2: one timer, set for the nearest row; a row set by a committed unit is seen without waiting.

import {
  type Deadline,
  dropDeadline,
  dueDeadlines,
  nextDeadlineAt,
  setDeadline,
  takeDeadline,
} from "../store/deadlines.ts";
import type { Db } from "../store/sql.ts";
import type { Timer, World } from "../world.ts";
import type { Commit, Unit } from "./unit.ts";
import { logRetry, STORE_RETRY_MS } from "./until-stored.ts";

const AT_ONCE_MAX = 50;
/** A row whose handler failed is looked at again this much later. */
const FAILED_AGAIN_MS = 60_000;

/** `done`: the row goes. A number: it falls due again at that time (ms since 1970). */
export type DeadlineVerdict = "done" | number;

/** Acts on a row that fell due, in the unit that takes it away. */
export type DeadlineHandler = (unit: Unit, key: string) => Promise<DeadlineVerdict>;

interface DeadlineParts {
  readonly db: Db;
  readonly commit: Commit;
  readonly world: World;
  /** By kind. Rows of kinds that are not here are others' business, and stay as they are. */
  readonly handlers: ReadonlyMap<string, DeadlineHandler>;
}

export class Deadlines {
  readonly #parts: DeadlineParts;
  readonly #kinds: readonly string[];
  #timer: Timer | undefined;
  #state: "new" | "open" | "stopped" = "new";
  #working: Promise<void> | undefined;
  #lookAgain = false;

  constructor(parts: DeadlineParts) {
    this.#parts = parts;
    this.#kinds = [...parts.handlers.keys()];
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

  /** Sets or moves a deadline in a unit, and looks at it once the unit is committed. */
  async set(unit: Unit, deadline: Deadline): Promise<void> {
    await setDeadline(unit.tx, deadline);
    unit.after(() => this.look());
  }

  /** Looks for what is due. Harmless at any time. */
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
      const due = await dueDeadlines(db, world.clock.now(), AT_ONCE_MAX, this.#kinds);
      for (const deadline of due) {
        const handler = handlers.get(deadline.kind);
        if (handler === undefined) continue;
        await this.#fire(deadline, handler).catch((error: unknown) => this.#postpone(deadline, error));
      }
      this.#wakeAt(await nextDeadlineAt(db, this.#kinds));
    } catch (error) {
      logRetry(world.log, error, "stored deadlines could not be worked off");
      this.#wakeAt(world.clock.now() + STORE_RETRY_MS);
    }
  }

  /** A row whose handler fails must not hold up those behind it. */
  async #postpone(deadline: Deadline, error: unknown): Promise<void> {
    const { kind, key } = deadline;
    this.#parts.world.log.error({ err: error, kind, key }, "a stored deadline could not be worked off");
    await this.#parts.commit((unit) =>
      setDeadline(unit.tx, { kind, key, dueAt: unit.now + FAILED_AGAIN_MS }),
    );
  }

  async #fire(deadline: Deadline, handler: DeadlineHandler): Promise<void> {
    const { kind, key } = deadline;
    await this.#parts.commit(async (unit) => {
      // Another process may act on it at this moment.
      if (!(await takeDeadline(unit.tx, deadline))) return;
      const verdict = await handler(unit, key);
      if (verdict === "done") await dropDeadline(unit.tx, kind, key);
      else await setDeadline(unit.tx, { kind, key, dueAt: Math.max(verdict, unit.now + 1) });
    });
  }

  #wakeAt(atMs: number | undefined): void {
    this.#timer?.cancel();
    if (atMs === undefined || this.#state !== "open") return;
    this.#timer = this.#parts.world.clock.at(atMs, () => this.look());
  }
}
