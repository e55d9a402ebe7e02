// Owns the unit of work: one transaction together with what must happen only once it is on disk.
// U1: a unit whose work fails (a `Failure` value or a throw) leaves no row behind and tells nobody.
// U2: what is noted for the end joins the same transaction, so that a run can be accepted and claimed at
//     one cost.
// U3: a unit that met another one and was rolled back for certain is run again, a bounded number of times;
//     then the store is `busy`, which passes by itself.
// U4: events and wake-ups leave after the commit, in the order in which they were noted. One that fails
//     stops no other, and the unit has succeeded all the same.
// U5: what is to be kept of events is written in the same transaction, once all else has succeeded
//     (`Recorder`).

import type { Failure } from "../core/errors.ts";
import type { LiveEvent } from "../core/event.ts";
import type { Redactor } from "../core/redact.ts";
import { isInDoubt, StoreConflict, StoreProblem } from "../store/problems.ts";
import type { Store, Tx } from "../store/sql.ts";
import { pause } from "../world/pause.ts";
import type { World } from "../world.ts";
import type { Bus } from "./bus.ts";

export interface Unit {
  readonly tx: Tx;
  /** The unit's moment: every row that it writes carries the same time. */
  readonly now: number;
  /** Masks what the unit writes for others to read. */
  readonly redactor: Redactor;
  newId(): string;
  /** For a row of which there are many, and which is never named by the beginning of its id. */
  newOrderedId(): string;
  /** Tells live listeners once the unit is committed. */
  publish(event: LiveEvent): void;
  /** Does something once the unit is committed. */
  after(action: () => void): void;
  /** Does something in the same transaction, once the unit's own work has succeeded. */
  atEnd(action: () => Promise<void>): void;
  /** Takes back something in memory, should the unit not be committed. */
  undone(action: () => void): void;
}

/** Writes down what somebody outside is to hear of a unit's events, in the unit itself. */
export type Recorder = (unit: Unit, events: readonly LiveEvent[]) => Promise<void>;

/** Runs `work` in one transaction. A `Failure` that it returns undoes what it wrote. */
export type Commit = <T>(work: (unit: Unit) => Promise<T>) => Promise<T>;

/** Times that a unit which meets others is run, and the pause in between, which grows and varies. */
const CONFLICTS_MAX = 12;
const CONFLICT_PAUSE_MS = 5;

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

/** What a unit has noted for later. */
interface Notes {
  readonly events: LiveEvent[];
  readonly after: (() => void)[];
  readonly atEnd: (() => Promise<void>)[];
  readonly undone: (() => void)[];
}

function unitOf(tx: Tx, world: World, bus: Bus, notes: Notes): Unit {
  return {
    tx,
    now: world.clock.now(),
    redactor: world.redactor,
    newId: () => world.ids.uuid(),
    newOrderedId: () => world.ids.orderedUuid(),
    publish(event) {
      notes.events.push(event);
      notes.after.push(() => bus.publish(event));
    },
    after: (action) => notes.after.push(action),
    atEnd: (action) => notes.atEnd.push(action),
    undone: (action) => notes.undone.push(action),
  };
}

/** What may be kept and counted of each unit. */
export interface UnitWatch {
  /** What of the unit's events is kept. Default: nothing. */
  readonly record?: Recorder | undefined;
  /** Told after each commit how long its transaction took, the wait for a connection included. */
  readonly committed?: ((ms: number) => void) | undefined;
  /** Told of each unit whose commit was not answered, with its moment: it may be stored, and nobody heard. */
  readonly inDoubt?: ((sinceMs: number) => void) | undefined;
}

export function createCommit(store: Store, world: World, bus: Bus, watch: UnitWatch = {}): Commit {
  const once = createAttempt(store, world, bus, watch);
  return async <T>(work: (unit: Unit) => Promise<T>): Promise<T> => {
    for (let conflicts = 1; ; conflicts += 1) {
      try {
        return await once(work);
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        // A lock that others hold for long is trouble that passes: a run is not ended for it.
        if (conflicts === CONFLICTS_MAX) throw new StoreProblem("busy", "", { detail: error.message });
        await pause(world.clock, CONFLICT_PAUSE_MS * conflicts * (0.5 + world.random()));
      }
    }
  };
}

function createAttempt(store: Store, world: World, bus: Bus, watch: UnitWatch): Commit {
  const { record, committed, inDoubt } = watch;
  /** A failure to tell of stored work does not undo it. */
  const tell = (action: () => void): void => {
    try {
      action();
    } catch (error) {
      world.log.error({ err: error }, "what follows from a committed unit failed");
    }
  };
  return async <T>(work: (unit: Unit) => Promise<T>): Promise<T> => {
    const notes: Notes = { events: [], after: [], atEnd: [], undone: [] };
    let value: T;
    const begun = world.clock.monotonic();
    const begunAt = world.clock.now();
    try {
      value = await store.transaction(async (tx) => {
        const unit = unitOf(tx, world, bus, notes);
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
    for (const action of notes.after) tell(action);
    return value;
  };
}
