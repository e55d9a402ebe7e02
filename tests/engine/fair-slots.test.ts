// Agents share the execution slots fairly: an agent with many waiting sessions does not block another.

import { expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { EndFacts } from "../../src/engine/run/finish.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { openTestEngine, sessionRow } from "../kit/engine/engine.ts";

/** Returns an executor whose runs a test ends one by one, and their sessions in order of start. */
function stage() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const heard = new Set<() => void>();
  return {
    begun,
    async execute(handle: LaneHandle): Promise<EndFacts> {
      const { sessionKey } = handle.run;
      const over = Promise.withResolvers<EndFacts>();
      ends.set(sessionKey, () => over.resolve({ state: "ok", reply: "" }));
      handle.signal.addEventListener("abort", () => over.resolve({ state: "aborted" }), { once: true });
      begun.push(sessionKey);
      for (const hear of heard) hear();
      return over.promise;
    },
    /** Resolves when this many runs have begun. */
    async until(count: number): Promise<void> {
      while (begun.length < count) {
        await new Promise<void>((resolve) => {
          heard.add(resolve);
        });
        heard.clear();
      }
    },
    end(sessionKey: string): void {
      ends.get(sessionKey)?.();
    },
  };
}

async function crowd(maxConcurrent: number, agents: Record<string, number>) {
  const scene = stage();
  const { engine, store } = await openTestEngine({ execute: scene.execute, settings: { maxConcurrent } });
  for (const [agentId, sessions] of Object.entries(agents)) {
    for (let at = 0; at < sessions; at += 1) {
      const row = sessionRow(`${agentId}${at}`, { agentId });
      await store.transaction((tx) => insertSession(tx, row));
    }
  }
  return { scene, engine };
}

async function tell(engine: Engine, ...keys: string[]): Promise<void> {
  for (const sessionKey of keys) {
    const accepted = await engine.accept({ sessionKey, input: { text: "go" } });
    if (!accepted.ok) throw new Error(accepted.error);
  }
}

const named = (agentId: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${agentId}${at}`);

test("I6: an agent with one message gets the next slot, even if another agent has 20 waiting sessions", async () => {
  const { scene, engine } = await crowd(2, { a: 20, b: 1 });
  await tell(engine, ...named("a", 20));
  await scene.until(2);
  await tell(engine, "b0");
  scene.end("a0");
  await scene.until(3);
  expect(scene.begun).toEqual(["a0", "a1", "b0"]);
  scene.end("a1");
  await scene.until(4);
  expect(scene.begun.at(-1)).toBe("a2");
});

test("I6: busy agents share the slots equally, in any order of arrival", async () => {
  const { scene, engine } = await crowd(3, { a: 9, b: 9, c: 9 });
  await tell(engine, ...named("a", 9), ...named("b", 9), ...named("c", 9));
  for (let ended = 0; ended < 24; ended += 1) {
    await scene.until(ended + 3);
    scene.end(scene.begun[ended] ?? "");
  }
  await scene.until(27);
  // The first slots were free while only agent a had messages; afterwards the three agents alternate.
  const later = scene.begun.slice(3, 12).map((key) => key.slice(0, 1));
  expect(later.filter((agentId) => agentId === "b").length).toBeGreaterThanOrEqual(3);
  expect(later.filter((agentId) => agentId === "c").length).toBeGreaterThanOrEqual(3);
  expect(new Set(scene.begun).size).toBe(27);
});
