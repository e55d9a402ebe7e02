// Owns the slot of one run. The run holds the slot while it executes, and gives it back while it only waits,
// or while a run with priority needs it. Its row is `running` while it has a slot, and `waiting` while it has
// none (I6).

import { type HeldLane, moveHeld } from "../../store/queries/runs/claims.ts";
import type { ExecutionParts } from "./execution.ts";
import { untilStored } from "./until-stored.ts";

/** Takes and gives back the slot as the run starts and stops waiting. `queue`: see `nameQueue`. */
export function createSlotKeeper(
  held: HeldLane,
  queue: string,
  { commit, world, scheduler, look }: ExecutionParts,
  signal: AbortSignal,
) {
  let isHeld = true;
  /** The request for the slot, until it is granted. Nothing else may end it. */
  let request: PromiseWithResolvers<void> | undefined;
  signal.addEventListener("abort", () => request?.resolve(), { once: true });
  let calls = 0;
  let waits = 0;
  let chain: Promise<void> = Promise.resolve();

  const giveBack = (): Promise<void> =>
    untilStored(world, signal, () =>
      commit(async (unit) => {
        // If the lane was lost, the next write reports it.
        if (!(await moveHeld(unit.tx, held, "waiting", unit.now))) return;
        unit.publish({ kind: "session", sessionKey: held.sessionKey, change: "state" });
        unit.after(() => {
          isHeld = false;
          look();
        });
      }),
    );
  const takeAgain = async (): Promise<void> => {
    request = Promise.withResolvers();
    const { promise } = request;
    await untilStored(world, signal, () => commit((unit) => scheduler.resume(unit, held, queue)));
    if (!signal.aborted) await promise;
  };
  const adjust = async (): Promise<void> => {
    const wantsSlot = waits === 0 || waits < calls;
    if (wantsSlot !== isHeld && !signal.aborted) await (wantsSlot ? takeAgain() : giveBack());
  };
  const inTurn = (): Promise<void> => {
    chain = chain.then(adjust, adjust);
    return chain;
  };
  const duringWait = async <T>(work: () => Promise<T>): Promise<T> => {
    waits += 1;
    try {
      await inTurn();
      return await work();
    } finally {
      waits -= 1;
      // While other calls of the run wait, do not take a slot for this one: it is about to end.
      if (waits === 0) await inTurn();
    }
  };
  return {
    /** Runs a tool call. When all calls of the run wait, the run gives back its slot. */
    async duringCall<T>(work: () => Promise<T>): Promise<T> {
      calls += 1;
      try {
        return await work();
      } finally {
        calls -= 1;
        await inTurn();
      }
    },
    duringWait,
    /** Gives the slot to a run with priority, if one needs it, and waits for another. */
    async giveWay(): Promise<void> {
      if (calls === 0 && waits === 0 && scheduler.isWanted(queue)) await duringWait(async () => {});
    },
    waiting: () => !isHeld,
    noteResumed(): void {
      if (request === undefined) return;
      isHeld = true;
      request.resolve();
      request = undefined;
    },
  };
}
