// Owns the slot of one run. The run holds the slot while it executes, and gives it back while it only waits.
// Its row is `running` while it has a slot, and `waiting` while it has none (I6).
// SK2: if several processes share the store, they share the slots: a run that stopped waiting asks for a slot
//      until one is free. A failed request must not wake other runs, or two waiting runs would wake each
//      other forever.

import type { SlotLimits } from "../../core/rules/pools.ts";
import { moveHeld } from "../../store/queries/runs/claims.ts";
import type { Fence } from "../../store/queries/runs/runs.ts";
import { resumeHeld } from "../../store/queries/runs/slots.ts";
import type { World } from "../../world.ts";
import type { SlotOwner, Slots } from "../lanes/slots.ts";
import type { Commit } from "../unit.ts";
import { untilStored } from "./until-stored.ts";

/** Limits for slots of the whole deployment, and how to wait for one. */
export interface SharedSlots {
  readonly limits: SlotLimits;
  /** Resolves when a slot may be free, or after a while. */
  untilFree(signal: AbortSignal): Promise<void>;
  /** Notifies the other processes that lanes wait in this process. */
  wanted(): void;
}

/** The run that holds the slot. */
export interface HeldRun {
  readonly fence: Fence;
  readonly sessionKey: string;
}

interface KeeperParts {
  readonly commit: Commit;
  readonly slots: Slots;
  readonly world: World;
  /** Absent: no other process shares the store. */
  readonly shared?: SharedSlots;
}

export interface SlotKeeper {
  /** Runs a tool call. When all calls of the run wait, the run gives back its slot. */
  duringCall<T>(work: () => Promise<T>): Promise<T>;
  duringWait<T>(work: () => Promise<T>): Promise<T>;
  waiting(): boolean;
  /** Gives back the slot for good: the run is over in this process. */
  leave(): void;
}

/** Keeps the number of taken slots in this process consistent with the states of the rows. */
function createSlot(held: HeldRun, parts: KeeperParts, signal: AbortSignal, owner: SlotOwner) {
  const { fence, sessionKey } = held;
  let isHeld = true;
  let left = false;
  const release = (): void => {
    if (isHeld) parts.slots.release(owner);
    isHeld = false;
  };
  const move = (to: "running" | "waiting"): Promise<boolean> =>
    untilStored(parts.world, signal, () =>
      parts.commit(async (unit) => {
        const moved = await moveHeld(unit.tx, fence, to);
        if (moved) unit.publish({ kind: "session", sessionKey, change: "state" });
        return moved;
      }),
    );
  /** Returns false if another process has the last slot. */
  const tryTake = async (): Promise<boolean> => {
    if (!(await parts.slots.takeAgain(owner, signal))) return true;
    isHeld = true;
    if (left) {
      release();
      return true;
    }
    const { shared } = parts;
    if (shared === undefined) {
      await move("running");
      return true;
    }
    const resumed = await untilStored(parts.world, signal, () =>
      parts.commit(async (unit) => {
        const how = await resumeHeld(unit.tx, fence, owner.pool, shared.limits);
        if (how === "running") unit.publish({ kind: "session", sessionKey, change: "state" });
        return how;
      }),
    );
    // If the lane was lost, the next write reports it.
    if (resumed !== "full") return true;
    isHeld = false;
    parts.slots.putBack(owner);
    return false;
  };
  return {
    isHeld: () => isHeld,
    hasLeft: () => left,
    async giveBack(): Promise<void> {
      if (await move("waiting")) release();
    },
    async takeAgain(): Promise<void> {
      while (!(await tryTake())) {
        if (left || signal.aborted) return;
        await parts.shared?.untilFree(signal);
      }
    },
    leave(): void {
      left = true;
      release();
    },
  };
}

/** Takes and gives back the slot as the run starts and stops waiting. */
export function createSlotKeeper(
  held: HeldRun,
  parts: KeeperParts,
  signal: AbortSignal,
  owner: SlotOwner,
): SlotKeeper {
  const slot = createSlot(held, parts, signal, owner);
  let calls = 0;
  let waits = 0;
  let chain: Promise<void> = Promise.resolve();

  const adjust = async (): Promise<void> => {
    const wantsSlot = waits === 0 || waits < calls;
    if (wantsSlot === slot.isHeld() || slot.hasLeft() || signal.aborted) return;
    await (wantsSlot ? slot.takeAgain() : slot.giveBack());
  };
  const inTurn = (): Promise<void> => {
    chain = chain.then(adjust, adjust);
    return chain;
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
    async duringWait<T>(work: () => Promise<T>): Promise<T> {
      waits += 1;
      try {
        await inTurn();
        return await work();
      } finally {
        waits -= 1;
        // While other calls of the run wait, do not take a slot for this one: it is about to end.
        if (waits === 0) await inTurn();
      }
    },
    waiting: () => !slot.isHeld(),
    leave: () => slot.leave(),
  };
}
