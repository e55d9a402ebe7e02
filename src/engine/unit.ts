// Owns the unit of work: one transaction together with what must happen only once it is on disk.
// U1: a unit whose work fails (a `Failure` value or a throw) leaves no row behind and tells nobody.
// U2: events and wake-ups leave after the commit, in the order in which they were noted.

import type { Failure } from "../core/errors.ts";
import type { LiveEvent } from "../core/event.ts";
import type { Store, Tx } from "../store/sql.ts";
import type { World } from "../world.ts";
import type { Bus } from "./bus.ts";

export interface Unit {
  readonly tx: Tx;
  /** The unit's moment: every row that it writes carries the same time. */
  readonly now: number;
  newId(): string;
  /** Tells live listeners once the unit is committed. */
  publish(event: LiveEvent): void;
  /** Does something once the unit is committed. */
  after(action: () => void): void;
}

/** Runs `work` in one transaction. A `Failure` that it returns undoes what it wrote. */
export type Commit = <T>(work: (unit: Unit) => Promise<T>) => Promise<T>;

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

export function createCommit(store: Store, world: World, bus: Bus): Commit {
  return async <T>(work: (unit: Unit) => Promise<T>): Promise<T> => {
    let actions: (() => void)[] = [];
    let value: T;
    try {
      value = await store.transaction(async (tx) => {
        actions = [];
        const unit: Unit = {
          tx,
          now: world.clock.now(),
          newId: () => world.ids.uuid(),
          publish: (event) => actions.push(() => bus.publish(event)),
          after: (action) => actions.push(action),
        };
        const outcome = await work(unit);
        if (isFailure(outcome)) throw new Undo(outcome);
        return outcome;
      });
    } catch (error) {
      if (error instanceof Undo) return error.failure as T;
      throw error;
    }
    for (const action of actions) action();
    return value;
  };
}
