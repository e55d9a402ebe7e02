// Owns the slot of one run. The run holds the slot while it executes, and gives it back while it only waits,
// or while a run with priority needs it. Its row is `running` while it has a slot, and `waiting` while it has
// none (I6).

import { type HeldLane, moveHeld } from "../../store/queries/runs/claims.ts";
import type { World } from "../../world.ts";
import type { Commit, Unit } from "../unit.ts";
import { untilStored } from "./until-stored.ts";

/** The scheduler, for a run that gives its slot back. */
export interface SlotParts {
  /** Starts ready runs: a lane or a slot may have come free. */
  look(): void;
  /** Lets a waiting run continue as soon as it has a slot: `SlotKeeper.resumed` is called then. */
  resume(unit: Unit, held: HeldLane, queue: string): Promise<void>;
  /** Returns whether a run with priority over this queue needs a slot. */
  isWanted(queue: string): boolean;
}

interface KeeperParts {
  readonly commit: Commit;
  readonly scheduler: SlotParts;
  readonly world: World;
}

export interface SlotKeeper {
  /** Runs a tool call. When all calls of the run wait, the run gives back its slot. */
  duringCall<T>(work: () => Promise<T>): Promise<T>;
  duringWait<T>(work: () => Promise<T>): Promise<T>;
  /** Gives the slot to a run with priority, if one needs it, and waits for another. */
  giveWay(): Promise<void>;
  waiting(): boolean;
  /** Called when the run has its slot again. */
  resumed(): void;
}

/** Keeps the run's row consistent with what the run does. */
function createSlot(held: HeldLane, queue: string, parts: KeeperParts, signal: AbortSignal) {
  const { commit, world, scheduler } = parts;
  let isHeld = true;
  /** The request for the slot, until it is granted. Nothing else may end it. */
  let request: PromiseWithResolvers<void> | undefined;
  signal.addEventListener("abort", () => request?.resolve(), { once: true });
  return {
    isHeld: () => isHeld,
    async giveBack(): Promise<void> {
      await untilStored(world, signal, () =>
        commit(async (unit) => {
          // If the lane was lost, the next write reports it.
          if (!(await moveHeld(unit.tx, held, "waiting", unit.now))) return;
          unit.publish({ kind: "session", sessionKey: held.sessionKey, change: "state" });
          unit.after(() => {
            isHeld = false;
            scheduler.look();
          });
        }),
      );
    },
    async takeAgain(): Promise<void> {
      request = Promise.withResolvers();
      const { promise } = request;
      await untilStored(world, signal, () => commit((unit) => scheduler.resume(unit, held, queue)));
      if (!signal.aborted) await promise;
    },
    resumed(): void {
      if (request === undefined) return;
      isHeld = true;
      request.resolve();
      request = undefined;
    },
  };
}

/** Takes and gives back the slot as the run starts and stops waiting. `queue`: see `nameQueue`. */
export function createSlotKeeper(
  held: HeldLane,
  queue: string,
  parts: KeeperParts,
  signal: AbortSignal,
): SlotKeeper {
  const slot = createSlot(held, queue, parts, signal);
  let calls = 0;
  let waits = 0;
  let chain: Promise<void> = Promise.resolve();

  const adjust = async (): Promise<void> => {
    const wantsSlot = waits === 0 || waits < calls;
    if (wantsSlot === slot.isHeld() || signal.aborted) return;
    await (wantsSlot ? slot.takeAgain() : slot.giveBack());
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
    async giveWay() {
      if (calls === 0 && waits === 0 && parts.scheduler.isWanted(queue)) await duringWait(async () => {});
    },
    waiting: () => !slot.isHeld(),
    resumed: slot.resumed,
  };
}
