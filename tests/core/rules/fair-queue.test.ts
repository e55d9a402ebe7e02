// The order in which agents get execution slots.

import { expect, test } from "vitest";
import { FairQueue, type SlotUse } from "../../../src/core/rules/fair-queue.ts";
import { dice } from "../../kit/dice.ts";

const STORIES = 300;

function use(free: number, held: Record<string, number> = {}, pools: Record<string, number> = {}): SlotUse {
  return {
    heldBy: (agentId) => held[agentId] ?? 0,
    free: (pool) => (pool === undefined ? free : Math.min(free, pools[pool] ?? free)),
  };
}

/** Returns a queue of lanes whose names begin with their agent: `a1`, `a2`, `b1`. */
function lineOf(...names: string[]): FairQueue {
  const line = new FairQueue();
  for (const name of names) line.add(name, { agentId: name.slice(0, 1), pool: undefined });
  return line;
}

test("I6: agents take turns, and each agent's lanes keep their order", () => {
  const line = lineOf("a1", "a2", "a3", "b1", "c1", "b2");
  expect(line.next(use(6))).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(line.next(use(2))).toEqual(["a1", "b1"]);
  expect(line.next(use(6), 1)).toEqual(["a1"]);
  expect(line.next(use(0))).toEqual([]);
});

test("I6: the agent that holds the fewest slots gets the next one", () => {
  const line = lineOf("a1", "a2", "b1", "b2");
  expect(line.next(use(1, { a: 3 }))).toEqual(["b1"]);
  expect(line.next(use(3, { a: 1 }))).toEqual(["b1", "a1", "b2"]);
});

test("I6: a lane that waits for a full pool delays no other lane, and its agent keeps its turn", () => {
  const line = new FairQueue();
  for (const name of ["a1", "a2", "a3"]) line.add(name, { agentId: "a", pool: "subagents" });
  line.add("a4", { agentId: "a", pool: undefined });
  line.add("b1", { agentId: "b", pool: undefined });
  expect(line.next(use(3, {}, { subagents: 0 }))).toEqual(["a4", "b1"]);
  expect(line.next(use(3, {}, { subagents: 1 }))).toEqual(["a1", "b1", "a4"]);
});

test("poison runs: a lane that is marked as last gets a slot only if no other lane can use the slot", () => {
  const line = new FairQueue();
  line.add("crashed", { agentId: "z", pool: undefined, isLast: true });
  for (const name of ["a1", "a2"]) line.add(name, { agentId: "a", pool: undefined });
  line.add("s1", { agentId: "s", pool: "subagents" });
  expect(line.next(use(2, { a: 5 }))).toEqual(["s1", "a1"]);
  expect(line.next(use(4))).toEqual(["a1", "s1", "a2", "crashed"]);
  expect(line.next(use(4, {}, { subagents: 0 }))).toEqual(["a1", "a2", "crashed"]);
});

test("poison runs: a lane that is marked as last starts after at most 1,000 later lanes have overtaken it", () => {
  const line = new FairQueue();
  line.add("crashed", { agentId: "z", pool: undefined, isLast: true });
  for (let at = 0; at < 1_000; at += 1) line.add(`a${at}`, { agentId: "a", pool: undefined });
  expect(line.next(use(1, { a: 1 }))).toEqual(["a0"]);
  line.add("a1000", { agentId: "a", pool: undefined });
  expect(line.next(use(1, { a: 1 }))).toEqual(["crashed"]);
});

test("each agent and each pool is asked once for a round, however many lanes wait and slots are free", () => {
  const line = new FairQueue();
  for (let lane = 0; lane < 600; lane += 1) {
    line.add(`lane-${lane}`, { agentId: `a${lane % 200}`, pool: lane % 3 === 0 ? "subagents" : undefined });
  }
  const questions: string[] = [];
  const chosen = line.next({
    heldBy: (agentId) => questions.push(agentId) && 0,
    free: (pool) => questions.push(`pool ${pool}`) && (pool === undefined ? 300 : 20),
  });
  expect(chosen).toHaveLength(300);
  expect(chosen.filter((name) => Number(name.slice(5)) % 3 === 0)).toHaveLength(20);
  expect(questions).toHaveLength(202);
});

test("a lane that is added twice keeps its position, and a removed lane is not returned", () => {
  const line = lineOf("a1", "a2");
  line.add("a1", { agentId: "a", pool: undefined });
  expect(line.next(use(2))).toEqual(["a1", "a2"]);
  line.delete("a1");
  line.delete("never-there");
  expect([line.size, line.has("a1"), line.has("a2")]).toEqual([1, false, true]);
  expect(line.next(use(2))).toEqual(["a2"]);
});

test("I6: no slot stays free while a lane waits, and an agent that waits has at most one slot less than any other", () => {
  for (let seed = 1; seed <= STORIES; seed += 1) {
    const roll = dice(`fair line ${seed}`);
    const line = new FairQueue();
    const lanes = 1 + roll.below(40);
    const agents = new Map<string, string>();
    for (let lane = 0; lane < lanes; lane += 1) {
      const agentId = `agent-${roll.below(4)}`;
      agents.set(`lane-${lane}`, agentId);
      line.add(`lane-${lane}`, { agentId, pool: undefined });
    }
    const slots = roll.below(lanes + 3);
    const chosen = line.next(use(slots));
    expect(chosen, `seed ${seed}`).toHaveLength(Math.min(slots, lanes));
    expect(new Set(chosen).size, `seed ${seed}`).toBe(chosen.length);
    const given = new Map<string, number>();
    for (const key of chosen) given.set(agents.get(key) ?? "", (given.get(agents.get(key) ?? "") ?? 0) + 1);
    const stillWaiting = new Set([...agents].filter(([key]) => !chosen.includes(key)).map(([, id]) => id));
    const most = Math.max(0, ...given.values());
    for (const agentId of stillWaiting) {
      expect(given.get(agentId) ?? 0, `seed ${seed}, ${agentId}`).toBeGreaterThanOrEqual(most - 1);
    }
  }
});
