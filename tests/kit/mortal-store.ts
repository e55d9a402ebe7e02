// Owns the death of a process as the store sees it: from one moment on nothing of it is read or written, or,
// while it is only paused, nothing happens until it goes on.

import { StoreProblem } from "../../src/store/problems.ts";
import type { Db, Store } from "../../src/store/sql.ts";
import type { Timer, World } from "../../src/world.ts";

export interface MortalProcess {
  readonly store: Store;
  readonly world: World;
  /** As by SIGKILL: what is under way ends nowhere, and no timer fires any more. */
  die(): void;
  /** As by SIGSTOP and SIGCONT: statements and timers wait. */
  pause(): void;
  goOn(): void;
  /** The next commit of a transaction is done, and its answer is lost. */
  loseNextAnswer(): void;
}

/** One process over a store: what it does goes through a gate that can be shut. */
export function mortalProcess(store: Store, world: World): MortalProcess {
  let dead = false;
  let gate: { promise: Promise<void>; resolve: () => void } | undefined;
  let losesAnswer = false;
  const pass = async (): Promise<void> => {
    while (gate !== undefined && !dead) await gate.promise;
    // A dead process waits for ever, and nobody waits for it.
    if (dead) await new Promise<never>(() => {});
  };
  const at = (atMs: number, fire: () => void, keep?: "alive"): Timer =>
    world.clock.at(atMs, () => void pass().then(fire), keep);
  const isHalted = (): boolean => gate !== undefined || dead;
  const shared = store.shared;
  const db = gated(store.db, pass);
  // Without a read worker every read goes through `db`, where it stops at the gate.
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
      // A paused process holds no transaction open here: the database would end it by its time-out.
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
