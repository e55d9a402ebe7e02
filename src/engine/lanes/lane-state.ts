// Defines the states of one lane in this process and the transitions between them. The transition function is
// pure: lanes.ts performs its effects.

import type { WaitingLane } from "../../core/rules/fair-queue.ts";
import type { Execution } from "../run/execution.ts";

export type LaneState =
  | { readonly kind: "idle" }
  /** The head of the lane waits for a slot. */
  | { readonly kind: "waiting"; readonly lane: WaitingLane }
  /** A transaction claims the head of the lane, or returns it to the queue. */
  | {
      readonly kind: "claiming";
      /** Set if the lane was waiting for a slot before the claim began. */
      readonly lane: WaitingLane | undefined;
      /** Whether the lane was woken during the claim. */
      readonly again: boolean;
      /** Runs that ended during the claim. */
      readonly ended: readonly string[];
    }
  | { readonly kind: "executing"; readonly execution: Execution };

export type LaneEvent =
  /** The lane may have work. */
  | { readonly kind: "wake" }
  /** The caller claims the lane in its own transaction. */
  | { readonly kind: "take" }
  /** The row of a run ended. */
  | { readonly kind: "ended"; readonly runId: string }
  /** The head of the lane needs a slot. */
  | { readonly kind: "head"; readonly lane: WaitingLane }
  /** The claim was committed: the head of the lane executes. */
  | { readonly kind: "claimed"; readonly execution: Execution }
  /** The claim found no slot for the head of the lane. */
  | { readonly kind: "full"; readonly lane: WaitingLane }
  /** The claim found no run. */
  | { readonly kind: "empty" }
  /** The caller's transaction was rolled back. */
  | { readonly kind: "undone" }
  /** The claim ended without a result. The code that sends this event wakes the lane. */
  | { readonly kind: "left" }
  /** The execution is over. */
  | { readonly kind: "over" };

/**
 * `look`: claim the head of the lane. `refuse`: the caller must not claim the lane. `stop`: stop the
 * execution, because its row has ended. `wake`: wake the lane, unless this process is stopping.
 */
export type LaneEffect = "none" | "look" | "refuse" | "stop" | "wake";

interface Transition {
  readonly state: LaneState;
  readonly effect: LaneEffect;
}

type Of<K extends LaneState["kind"]> = Extract<LaneState, { kind: K }>;

export const IDLE: LaneState = { kind: "idle" };

/** Returns the lane's entry in the queue for slots, or undefined if it does not wait for one. */
export function waitOf(state: LaneState): WaitingLane | undefined {
  return state.kind === "waiting" || state.kind === "claiming" ? state.lane : undefined;
}

/** Returns whether the lane is being claimed or executed. */
export function isBusy(state: LaneState): boolean {
  return state.kind === "claiming" || state.kind === "executing";
}

/** Returns whether the lane is being claimed and goes before the lanes that must start last (`isLast`). */
export function isAhead(state: LaneState): boolean {
  return state.kind === "claiming" && state.lane?.isLast !== true;
}

/** Returns the next state, and the effect, for an event. Throws if the event is impossible in this state. */
export function advance(state: LaneState, event: LaneEvent): Transition {
  switch (state.kind) {
    case "idle":
    case "waiting":
      return afterRest(state, event);
    case "claiming":
      return afterClaiming(state, event);
    case "executing":
      return afterExecuting(state, event);
  }
}

function afterRest(state: Of<"idle" | "waiting">, event: LaneEvent): Transition {
  const claiming: LaneState = { kind: "claiming", lane: waitOf(state), again: false, ended: [] };
  switch (event.kind) {
    case "wake":
      return { state: claiming, effect: "look" };
    case "take":
      return { state: claiming, effect: "none" };
    case "ended":
      return { state, effect: "none" };
    default:
      return impossible(state, event);
  }
}

function afterClaiming(state: Of<"claiming">, event: LaneEvent): Transition {
  const { lane, again, ended } = state;
  const rest: LaneState = lane === undefined ? IDLE : { kind: "waiting", lane };
  switch (event.kind) {
    case "wake":
      return { state: { ...state, again: true }, effect: "none" };
    case "take":
      return { state, effect: "refuse" };
    case "ended":
      return { state: { ...state, ended: [...ended, event.runId] }, effect: "none" };
    case "head":
      return { state: lane === undefined ? state : { ...state, lane: event.lane }, effect: "none" };
    case "claimed": {
      const { execution } = event;
      const hasEnded = ended.includes(execution.handle.run.runId);
      return { state: { kind: "executing", execution }, effect: hasEnded ? "stop" : "none" };
    }
    case "full":
      // After a wake-up, another run may be the head of the lane. It may need no slot, or a slot of another
      // pool.
      return { state: { kind: "waiting", lane: event.lane }, effect: again ? "wake" : "none" };
    case "empty":
      return { state: IDLE, effect: again ? "wake" : "none" };
    case "undone":
      return { state: rest, effect: again ? "wake" : "none" };
    case "left":
      return { state: rest, effect: "none" };
    case "over":
      return impossible(state, event);
  }
}

function afterExecuting(state: Of<"executing">, event: LaneEvent): Transition {
  switch (event.kind) {
    case "wake":
      return { state, effect: "none" };
    case "take":
      return { state, effect: "refuse" };
    case "ended":
      return { state, effect: state.execution.handle.run.runId === event.runId ? "stop" : "none" };
    case "over":
      return { state: IDLE, effect: "wake" };
    default:
      return impossible(state, event);
  }
}

function impossible(state: LaneState, event: LaneEvent): never {
  throw new Error(`a lane in the state ${state.kind} cannot handle the event ${event.kind}`);
}
