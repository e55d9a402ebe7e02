// The transitions of a lane: each state with each event, and long random sequences.

import { expect, test } from "vitest";
import type { WaitingLane } from "../../src/core/rules/fair-queue.ts";
import { advance, IDLE, type LaneEvent, type LaneState } from "../../src/engine/lanes/lane-state.ts";
import type { Execution } from "../../src/engine/run/execution.ts";
import { dice } from "../kit/dice.ts";

const STORIES = 500;
const EVENTS_OF_A_STORY = 60;

const laneOf = (agentId: string): WaitingLane => ({ agentId, pool: undefined });

/** Returns a fake execution with the fields that a lane reads. */
function executionOf(runId: string): Execution {
  return { handle: { run: { runId } } } as Execution;
}

const CLAIMING = { kind: "claiming", lane: undefined, again: false, ended: [] } as const;

const STATES = {
  idle: IDLE,
  waiting: { kind: "waiting", lane: laneOf("a") },
  claiming: CLAIMING,
  "claiming woken": { ...CLAIMING, again: true },
  "claiming -r1": { ...CLAIMING, ended: ["r1"] },
  "claiming a": { ...CLAIMING, lane: laneOf("a") },
  "claiming a woken": { ...CLAIMING, lane: laneOf("a"), again: true },
  "executing r1": { kind: "executing", execution: executionOf("r1") },
} satisfies Record<string, LaneState>;

const EVENTS = {
  wake: { kind: "wake" },
  take: { kind: "take" },
  "ended r1": { kind: "ended", runId: "r1" },
  "ended r2": { kind: "ended", runId: "r2" },
  "head b": { kind: "head", lane: laneOf("b") },
  "claimed r1": { kind: "claimed", execution: executionOf("r1") },
  "full b": { kind: "full", lane: laneOf("b") },
  empty: { kind: "empty" },
  undone: { kind: "undone" },
  left: { kind: "left" },
  over: { kind: "over" },
} satisfies Record<string, LaneEvent>;

type StateName = keyof typeof STATES;
type EventName = keyof typeof EVENTS;

/**
 * Returns the short name of a state, which is also its key in `STATES`. The name of a waiting lane contains
 * the agent; a minus sign marks an ended run.
 */
function named(state: LaneState): string {
  switch (state.kind) {
    case "idle":
      return "idle";
    case "waiting":
      return state.lane.agentId === "a" ? "waiting" : `waiting ${state.lane.agentId}`;
    case "executing":
      return `executing ${state.execution.handle.run.runId}`;
    case "claiming": {
      const { lane, again, ended } = state;
      const parts = [lane?.agentId, again ? "woken" : undefined, ...ended.map((runId) => `-${runId}`)];
      return ["claiming", ...parts.filter((part) => part !== undefined)].join(" ");
    }
  }
}

/** Returns the state after an event, and the effect if there is one. */
function after(state: LaneState, event: LaneEvent): string {
  try {
    const to = advance(state, event);
    return to.effect === "none" ? named(to.state) : `${named(to.state)}, ${to.effect}`;
  } catch {
    return "impossible";
  }
}

const IMPOSSIBLE = {
  "head b": "impossible",
  "claimed r1": "impossible",
  "full b": "impossible",
  empty: "impossible",
  undone: "impossible",
  left: "impossible",
} as const;

const TABLE: Record<StateName, Record<EventName, string>> = {
  idle: {
    ...IMPOSSIBLE,
    wake: "claiming, look",
    take: "claiming",
    "ended r1": "idle",
    "ended r2": "idle",
    over: "impossible",
  },
  waiting: {
    ...IMPOSSIBLE,
    wake: "claiming a, look",
    take: "claiming a",
    "ended r1": "waiting",
    "ended r2": "waiting",
    over: "impossible",
  },
  claiming: {
    wake: "claiming woken",
    take: "claiming, refuse",
    "ended r1": "claiming -r1",
    "ended r2": "claiming -r2",
    "head b": "claiming",
    "claimed r1": "executing r1",
    "full b": "waiting b",
    empty: "idle",
    undone: "idle",
    left: "idle",
    over: "impossible",
  },
  "claiming woken": {
    wake: "claiming woken",
    take: "claiming woken, refuse",
    "ended r1": "claiming woken -r1",
    "ended r2": "claiming woken -r2",
    "head b": "claiming woken",
    "claimed r1": "executing r1",
    "full b": "waiting b, wake",
    empty: "idle, wake",
    undone: "idle, wake",
    left: "idle",
    over: "impossible",
  },
  "claiming -r1": {
    wake: "claiming woken -r1",
    take: "claiming -r1, refuse",
    "ended r1": "claiming -r1 -r1",
    "ended r2": "claiming -r1 -r2",
    "head b": "claiming -r1",
    "claimed r1": "executing r1, stop",
    "full b": "waiting b",
    empty: "idle",
    undone: "idle",
    left: "idle",
    over: "impossible",
  },
  "claiming a": {
    wake: "claiming a woken",
    take: "claiming a, refuse",
    "ended r1": "claiming a -r1",
    "ended r2": "claiming a -r2",
    "head b": "claiming b",
    "claimed r1": "executing r1",
    "full b": "waiting b",
    empty: "idle",
    undone: "waiting",
    left: "waiting",
    over: "impossible",
  },
  "claiming a woken": {
    wake: "claiming a woken",
    take: "claiming a woken, refuse",
    "ended r1": "claiming a woken -r1",
    "ended r2": "claiming a woken -r2",
    "head b": "claiming b woken",
    "claimed r1": "executing r1",
    "full b": "waiting b, wake",
    empty: "idle, wake",
    undone: "waiting, wake",
    left: "waiting",
    over: "impossible",
  },
  "executing r1": {
    ...IMPOSSIBLE,
    wake: "executing r1",
    take: "executing r1, refuse",
    "ended r1": "executing r1, stop",
    "ended r2": "executing r1",
    over: "idle, wake",
  },
};

test("I1-I3: in each state of a lane, each event has one defined result", () => {
  const actual = Object.entries(STATES).map(([state, from]) => {
    const row = Object.entries(EVENTS).map(([event, what]) => [event, after(from, what)]);
    return [state, Object.fromEntries(row)];
  });
  expect(Object.fromEntries(actual)).toEqual(TABLE);
});

test("I2: a lane becomes idle only after a claim that began after the last wake-up, and never executes an ended run", () => {
  for (let seed = 1; seed <= STORIES; seed += 1) {
    const roll = dice(`lane ${seed}`);
    let state: LaneState = IDLE;
    let isOwed = false;
    let ended = new Set<string>();
    for (let at = 0; at < EVENTS_OF_A_STORY; at += 1) {
      const event: LaneEvent = roll.of(Object.values(EVENTS));
      if (after(state, event) === "impossible") continue;
      const from = state.kind;
      const to = advance(state, event);
      state = to.state;
      const seen = `SEED=${seed}, event ${at}: ${event.kind} in ${from}`;
      if (state.kind === "claiming" && from !== "claiming") [isOwed, ended] = [false, new Set()];
      else if (event.kind === "wake") isOwed = true;
      if (event.kind === "ended") ended.add(event.runId);
      // A lane is woken when an execution ends. If a claim ends without a result, the caller wakes the lane.
      if (to.effect === "wake" || event.kind === "left" || state.kind === "executing") isOwed = false;
      if (state.kind === "idle" || state.kind === "waiting") expect(isOwed, seen).toBe(false);
      if (event.kind === "claimed") expect(to.effect === "stop", seen).toBe(ended.has("r1"));
      if (event.kind === "over") expect(to.effect, seen).toBe("wake");
      if (from === "executing") expect(["executing", "idle"], seen).toContain(state.kind);
    }
  }
});
