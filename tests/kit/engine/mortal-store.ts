// Simulates the death or pause of a process. The store of a dead process reads and writes nothing. Store
// operations of a paused process wait until it continues.

import { StoreProblem } from "../../../src/store/problems.ts";
import type { Db, SharedStore, Store } from "../../../src/store/sql.ts";
import type { World } from "../../../src/world.ts";
import { withTimers } from "../world.ts";

export interface MortalProcess {
  readonly store: Store;
  readonly world: World;
  /** Simulates SIGKILL: pending operations never settle, and no timer fires. */
  die(): void;
  /** Simulates SIGSTOP: statements and timers wait until `goOn`. */
  pause(): void;
  goOn(): void;
  /** Commits the next transaction, but reports a lost connection to its caller. */
  loseNextAnswer(): void;
  /** Commits the next transaction, but its caller gets the answer only after the returned function is called. */
  holdNextAnswer(): () => void;
}

/** Wraps the store and the world of one process, so that a test can pause or kill it. */
export function mortalProcess(store: Store, world: World): MortalProcess {
  let dead = false;
  let gate: { promise: Promise<void>; resolve: () => void } | undefined;
  let losesAnswer = false;
  let held: Promise<void> | undefined;
  const pass = async (): Promise<void> => {
    while (gate !== undefined && !dead) await gate.promise;
    // An operation of a dead process never settles.
    if (dead) await new Promise<never>(() => {});
  };
  const isHalted = (): boolean => gate !== undefined || dead;
  const shared = store.shared;
  const db = gated(store.db, pass);
  // Leaves out the read worker, so that every read goes through `db`, which can be paused.
  const { readWorker: _, ...alone } = store;
  return {
    world: withTimers(world, (fire) => () => void pass().then(fire)),
    store: {
      ...alone,
      db,
      async transaction(work) {
        const value = await mortal(store.transaction, pass, isHalted)(work);
        const answered = held;
        held = undefined;
        await answered;
        if (losesAnswer) {
          losesAnswer = false;
          throw new StoreProblem("io", "store", { detail: "the answer to a commit was lost", inDoubt: true });
        }
        await pass();
        return value;
      },
      ...(shared === undefined ? {} : { shared: gatedShared(shared, pass, isHalted) }),
    },
    die() {
      dead = true;
      gate?.resolve();
    },
    pause() {
      gate = Promise.withResolvers<void>();
    },
    goOn() {
      const open = gate;
      gate = undefined;
      open?.resolve();
    },
    loseNextAnswer() {
      losesAnswer = true;
    },
    holdNextAnswer() {
      const answer = Promise.withResolvers<void>();
      held = answer.promise;
      return answer.resolve;
    },
  };
}

/** Wraps the transactions of a process that may be paused or killed. */
function mortal(
  transaction: Store["transaction"],
  pass: () => Promise<void>,
  isHalted: () => boolean,
): Store["transaction"] {
  return async (work) => {
    await pass();
    return transaction(async (tx) => {
      const result = await work(tx);
      // A paused process must not keep a transaction open, because the database would end it after a timeout.
      if (isHalted())
        throw new StoreProblem("io", "store", { detail: "the process stopped in a transaction" });
      return result;
    });
  };
}

/** Wraps what a process shares with others, so that it waits while the process is paused. */
function gatedShared(shared: SharedStore, pass: () => Promise<void>, isHalted: () => boolean): SharedStore {
  return {
    ...shared,
    now: () => shared.now(),
    urgently: mortal(shared.urgently, pass, isHalted),
    async notify(...message) {
      await pass();
      await shared.notify(...message);
    },
    listen: (onText, onGap) =>
      shared.listen(
        (text) => void pass().then(() => onText(text)),
        () => void pass().then(onGap),
      ),
  };
}

/** Wraps reads so that they wait while the process is paused. */
function gated(db: Db, pass: () => Promise<void>): Db {
  return db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      await pass();
      return result;
    },
  });
}
