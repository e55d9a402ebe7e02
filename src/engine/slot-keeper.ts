// Owns the slot of one run: taken while it executes, given back while it only waits.
// SK1: the row says `running` exactly while the run has a slot, `waiting` while it has none (I6).
// SK2: with other processes, a slot is the deployment's: a run that stopped waiting asks until there is one.
//      A request that fails fires nothing, or runs that ask would wake each other without end.

import type { SlotLimits } from "../core/pools.ts";
import { moveHeld } from "../store/claims.ts";
import type { Fence } from "../store/runs.ts";
import { resumeHeld } from "../store/slots.ts";
import type { World } from "../world.ts";
import type { SlotOwner, Slots } from "./slots.ts";
import type { Commit } from "./unit.ts";
import { untilStored } from "./until-stored.ts";

/** Slots are those of the whole deployment: what else must be asked before one is taken. */
export interface SharedSlots extends SlotLimits {
  /** Resolves when a slot may have come free, or after a while. */
  untilFree(signal: AbortSignal): Promise<void>;
  /** Tells the other processes that lanes wait here. */
  wanted(): void;
}

/** The run whose slot it is. */
interface HeldRun {
  readonly fence: Fence;
  readonly sessionKey: string;
}

interface KeeperParts {
  readonly commit: Commit;
  readonly slots: Slots;
  readonly world: World;
  /** Absent: this process is the whole deployment. */
  readonly shared?: SharedSlots;
}

export interface SlotKeeper {
  /** Runs a tool call; a run whose calls all wait gives its slot back. */
  duringCall<T>(work: () => Promise<T>): Promise<T>;
  duringWait<T>(work: () => Promise<T>): Promise<T>;
  waiting(): boolean;
  /** The run is over in this process. */
  leave(): void;
}

/** The slot as this process counts it, and the row that says so to all. */
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
  /** False: another process has the last one. */
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
        const how = await resumeHeld(unit.tx, fence, owner.pool, shared);
        if (how === "running") unit.publish({ kind: "session", sessionKey, change: "state" });
        return how;
      }),
    );
    // `lost` is found out at the next write.
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

/** Keeps row state and slot in step with what the run does: executing, or only waiting. */
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
        // With other calls still waiting the slot stays free: this call is about to end.
        if (waits === 0) await inTurn();
      }
    },
    waiting: () => !slot.isHeld(),
    leave: () => slot.leave(),
  };
}
