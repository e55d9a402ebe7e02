// Owns `Unit`: one transaction, together with the actions that follow its commit. If it fails (returns a
// `Failure` or throws), no row is stored and nothing is published. Actions added with `atEnd` run in the same
// transaction, so a run can be accepted and claimed in one commit. A `Recorder` writes events in the same
// transaction, after all other work.
// U3: if a transaction conflicts with another one and was certainly rolled back, it is retried, a limited
//     number of times. After the last attempt it fails with `busy`, which is a temporary problem.
// U4: after the commit, events and wake-ups are published in the order in which they were added. If one
//      fails, the others are still published, and the transaction has still succeeded.
// U5: a part that fails because of a bug, and without which the rest is complete (`failsApart`), is left out:
//      the transaction is repeated, and something else takes the part's place.

import type { Failure } from "../core/shapes/errors.ts";
import type { LiveEvent } from "../core/shapes/event.ts";
import type { Redactor } from "../core/text/redact/redact.ts";
import { isInDoubt, StoreConflict, StoreProblem } from "../store/problems.ts";
import { type Deadline, setDeadline } from "../store/queries/deadlines.ts";
import type { Store, Tx } from "../store/sql.ts";
import { pause } from "../world/pause.ts";
import type { World } from "../world.ts";
import type { Bus } from "./bus.ts";

export interface Unit {
  readonly tx: Tx;
  /**
   * The time of the transaction: every row that it writes has this time. It is read at its first use, so a
   * transaction that takes its locks first has a later time than those it waited for.
   */
  readonly now: number;
  /** Redacts text that is stored for others to read. */
  readonly redactor: Redactor;
  /** The parts that failed in an earlier attempt of this transaction, with their errors (U5). */
  readonly failed: ReadonlyMap<string, unknown>;
  readonly ended: Set<string>;
  newId(): string;
  /** Makes an ordered id, for rows of a large table that are never looked up by a prefix of the id. */
  newOrderedId(): string;
  /** Sets or moves a stored deadline. Its handler is called when it is due. */
  setDeadline(deadline: Deadline): Promise<void>;
  /** Looks after the commit for rows that are due. A transaction that queues a delivery calls it. */
  lookAtDates(): void;
  publish(event: LiveEvent): void;
  after(action: () => void): void;
  /** Calls `action` in the same transaction, after the main work has succeeded. */
  atEnd(action: () => Promise<void>): void;
  /** Calls `action` if the transaction is not committed, to undo a change in memory. */
  undone(action: () => void): void;
}

/** Stores the data about these events that outgoing hooks need, in the same transaction. */
export type Recorder = (unit: Unit, events: readonly LiveEvent[]) => Promise<void>;

/** Runs `work` in one transaction. A returned `Failure` undoes its writes. */
export type Commit = <T>(work: (unit: Unit) => Promise<T>) => Promise<T>;

/**
 * Maximum number of attempts of a conflicting transaction, and the pause between them, which grows and
 * varies.
 */
const CONFLICTS_MAX = 12;
const CONFLICT_PAUSE_MS = 5;
/** Number of failed parts after which a transaction is repeated without any part that may fail apart. */
const PARTS_FAILED_MAX = 3;

/** Rolls back an attempt of a transaction, which is repeated when `ready` resolves. */
export class NotReady extends Error {
  readonly ready: Promise<void>;

  constructor(ready: Promise<void>) {
    super("the transaction needs something first");
    this.ready = ready;
  }
}

/** Rolls back an attempt of a transaction whose part failed. */
class PartFailed extends Error {
  readonly part: string;

  constructor(part: string, cause: unknown) {
    super(`${part} failed`, { cause });
    this.part = part;
  }
}

/**
 * Runs a part of a transaction. If it fails for another reason than the store, the transaction is repeated
 * with `instead`. `part` names the part in the transaction and in the log.
 */
export async function failsApart<T>(
  unit: Unit,
  part: string,
  work: () => Promise<T>,
  instead: (error: unknown) => Promise<T>,
): Promise<T> {
  const { failed } = unit;
  if (failed.has(part)) return instead(failed.get(part));
  // A part whose name is different in each attempt, because it contains a new id, would fail without end.
  if (failed.size >= PARTS_FAILED_MAX) return instead([...failed.values()].at(-1));
  try {
    return await work();
  } catch (error) {
    const passes = [StoreProblem, StoreConflict, PartFailed, NotReady].some(
      (known) => error instanceof known,
    );
    throw passes ? error : new PartFailed(part, error);
  }
}

class Undo extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.error);
    this.failure = failure;
  }
}

function isFailure(value: unknown): value is Failure {
  return typeof value === "object" && value !== null && "ok" in value && value.ok === false;
}

/** Callbacks about each transaction. */
export interface UnitWatch {
  /** Writes rows for the events of a transaction, in that transaction. Default: none. */
  readonly record?: Recorder | undefined;
  /** Looks for rows that are due. Called after each commit that set a date. */
  readonly lookAtDates?: (() => void) | undefined;
  /** Called after each commit with the duration of its transaction, including the wait for a connection. */
  readonly committed?: ((ms: number) => void) | undefined;
  /**
   * Called for each transaction whose commit got no answer, because it may be stored all the same. `sinceMs`:
   * the time at which the transaction began.
   */
  readonly inDoubt?: ((sinceMs: number) => void) | undefined;
}

export function createCommit(store: Store, world: World, bus: Bus, watch: UnitWatch = {}): Commit {
  const { record, committed, inDoubt, lookAtDates = () => {} } = watch;
  /** Runs one attempt. `failed`: see `Unit`. */
  const attempt = async <T>(
    work: (unit: Unit) => Promise<T>,
    failed: ReadonlyMap<string, unknown>,
  ): Promise<T> => {
    const notes = {
      events: [] as LiveEvent[],
      after: [] as (() => void)[],
      atEnd: [] as (() => Promise<void>)[],
      undone: [] as (() => void)[],
    };
    let value: T;
    const begun = world.clock.monotonic();
    const begunAt = world.clock.now();
    try {
      value = await store.transaction(async (tx) => {
        let now: number | undefined;
        const unit: Unit = {
          tx,
          get now() {
            now ??= world.clock.now();
            return now;
          },
          redactor: world.redactor,
          failed,
          ended: new Set(),
          newId: () => world.ids.uuid(),
          newOrderedId: () => world.ids.orderedUuid(),
          async setDeadline(deadline) {
            await setDeadline(tx, deadline);
            notes.after.push(lookAtDates);
          },
          lookAtDates: () => notes.after.push(lookAtDates),
          publish(event) {
            notes.events.push(event);
            notes.after.push(() => bus.publish(event));
          },
          after: (action) => notes.after.push(action),
          atEnd: (action) => notes.atEnd.push(action),
          undone: (action) => notes.undone.push(action),
        };
        const outcome = await work(unit);
        if (isFailure(outcome)) throw new Undo(outcome);
        for (let action = notes.atEnd.shift(); action !== undefined; action = notes.atEnd.shift())
          await action();
        if (record !== undefined && notes.events.length > 0) await record(unit, [...notes.events]);
        return outcome;
      });
    } catch (error) {
      for (const action of notes.undone) action();
      if (error instanceof Undo) return error.failure as T;
      if (isInDoubt(error)) inDoubt?.(begunAt);
      throw error;
    }
    committed?.(world.clock.monotonic() - begun);
    for (const action of notes.after) {
      try {
        action();
      } catch (error) {
        // A failed action after the commit does not undo the stored work.
        world.log.error({ err: error }, "a post-commit action failed");
      }
    }
    return value;
  };
  return async (work) => {
    const failed = new Map<string, unknown>();
    for (let conflicts = 1; ; conflicts += 1) {
      try {
        return await attempt(work, failed);
      } catch (error) {
        if (error instanceof PartFailed) {
          failed.set(error.part, error.cause);
          world.log.error({ err: error.cause }, `${error.message}; the rest is stored without it`);
          continue;
        }
        if (error instanceof NotReady) {
          await error.ready;
          continue;
        }
        if (!(error instanceof StoreConflict)) throw error;
        // A lock that another transaction holds for long is a temporary problem, so it must not fail a run.
        if (conflicts === CONFLICTS_MAX) throw new StoreProblem("busy", "", { detail: error.message });
        await pause(world.clock, CONFLICT_PAUSE_MS * conflicts * (0.5 + world.random()));
      }
    }
  };
}
