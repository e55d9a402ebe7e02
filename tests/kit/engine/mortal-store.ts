// Simulates the death of a process at the store: after it, nothing is read or written. A paused process's
// operations wait until it continues.

import { StoreProblem } from "../../../src/store/problems.ts";
import type { Db, Store } from "../../../src/store/sql.ts";
import type { Timer, World } from "../../../src/world.ts";

export interface MortalProcess {
  readonly store: Store;
  readonly world: World;
  /** Like SIGKILL: pending operations never end, and no timer fires. */
  die(): void;
  /** Like SIGSTOP and SIGCONT: statements and timers wait. */
  pause(): void;
  goOn(): void;
  /** The next commit of a transaction is made, and its answer is lost. */
  loseNextAnswer(): void;
}

/** One process over a store: its operations pass a gate that can be closed. */
export function mortalProcess(store: Store, world: World): MortalProcess {
  let dead = false;
  let gate: { promise: Promise<void>; resolve: () => void } | undefined;
  let losesAnswer = false;
  const pass = async (): Promise<void> => {
    while (gate !== undefined && !dead) await gate.promise;
    // A dead process's operation never settles.
    if (dead) await new Promise<never>(() => {});
  };
  const at = (atMs: number, fire: () => void, keep?: "alive"): Timer =>
    world.clock.at(atMs, () => void pass().then(fire), keep);
  const isHalted = (): boolean => gate !== undefined || dead;
  const shared = store.shared;
  const db = gated(store.db, pass);
  // Without a read worker every read goes through `db`, and stops at the gate.
  const { readWorker: _, ...alone } = store;
  return {
    world: { ...world, clock: { ...world.clock, at } },
    store: {
      ...alone,
      db,
      async transaction(work) {
        const value = await mortal(store.transaction, pass, isHalted)(work);
        if (losesAnswer) {
          losesAnswer = false;
          throw new StoreProblem("io", "store", { detail: "the answer to a commit was lost", inDoubt: true });
        }
        await pass();
        return value;
      },
      ...(shared === undefined
        ? {}
        : {
            shared: {
              ...shared,
              now: () => shared.now(),
              urgently: mortal(shared.urgently, pass, isHalted),
              notify: async (texts: readonly string[]) => {
                await pass();
                await shared.notify(texts);
              },
              listen: (onText: (text: string) => void, onGap: () => void) =>
                shared.listen(
                  (text) => void pass().then(() => onText(text)),
                  () => void pass().then(onGap),
                ),
            },
          }),
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
  };
}

/** Transactions of a process that may halt. */
function mortal(
  transaction: Store["transaction"],
  pass: () => Promise<void>,
  isHalted: () => boolean,
): Store["transaction"] {
  return async (work) => {
    await pass();
    return transaction(async (tx) => {
      const result = await work(tx);
      // A paused process holds no transaction open here, because the database would end it by its time-out.
      if (isHalted())
        throw new StoreProblem("io", "store", { detail: "the process stopped in a transaction" });
      return result;
    });
  };
}

/** Reads wait at the gate, too. */
function gated(db: Db, pass: () => Promise<void>): Db {
  return db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      await pass();
      return result;
    },
  });
}
