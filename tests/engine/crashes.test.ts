// Runs whose process died, on both stores: they are retried after pauses, and a limited number of times.

import { expect } from "vitest";
import type { Run } from "../../src/core/shapes/run.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { EndFacts } from "../../src/engine/run/finish.ts";
import type { Store } from "../../src/store/sql.ts";
import { both, share } from "../kit/deep.ts";
import {
  assistantText,
  endOf,
  makeSessions,
  openTestEngine,
  quietWorld,
  runRow,
  type TestEngine,
  type TestEngineOptions,
  temporaryFolder,
} from "../kit/engine/engine.ts";
import { NO_SUCCESSORS } from "../kit/engine/no-successors.ts";

const STORES = share(["sqlite"], ["postgres"]);

/**
 * Returns an executor that records the sessions of its runs in order of their start. A test ends a run by its
 * session.
 */
function stage() {
  const begun: string[] = [];
  const gates = new Map<string, () => void>();
  let heard = Promise.withResolvers<void>();
  return {
    begun,
    async execute({ run, signal }: LaneHandle): Promise<EndFacts> {
      const over = Promise.withResolvers<EndFacts>();
      gates.set(run.sessionKey, () => over.resolve({ state: "ok", reply: run.input.text }));
      signal.addEventListener("abort", () => over.resolve({ state: "aborted" }), { once: true });
      begun.push(run.sessionKey);
      heard.resolve();
      heard = Promise.withResolvers<void>();
      return over.promise;
    },
    async until(count: number): Promise<void> {
      while (begun.length < count) await heard.promise;
    },
    end: (sessionKey: string) => gates.get(sessionKey)?.(),
  };
}

/**
 * Starts processes on one store, one after the other. Each process crashes at its end, so its runs stay
 * assigned to it.
 */
function livesOn(on: Store["kind"]) {
  const dir = temporaryFolder();
  let last: Store | undefined;
  return async (options: Omit<TestEngineOptions, "on" | "dir">): Promise<TestEngine> => {
    await last?.close();
    const opened = await openTestEngine({ ...options, on, dir });
    last = opened.store;
    return opened;
  };
}

async function tell(engine: Engine, ...keys: string[]): Promise<Run[]> {
  const runs: Run[] = [];
  for (const sessionKey of keys) {
    const accepted = await engine.accept({ sessionKey, input: { text: `to ${sessionKey}` } });
    if (!accepted.ok) throw new Error(accepted.error);
    runs.push(accepted.value.run);
  }
  return runs;
}

const answer = async (handle: LaneHandle): Promise<EndFacts> => {
  await handle.append(assistantText(`m-${handle.run.runId}`, "fine"));
  return { state: "ok", reply: "fine" };
};

/** Returns the usual world with a clock that the test can set forward. */
function laterWorld() {
  const world = quietWorld();
  let aheadMs = 0;
  const clock = { ...world.clock, now: () => world.clock.now() + aheadMs };
  return {
    ...world,
    clock,
    later(ms: number): void {
      aheadMs += ms;
    },
  };
}

both.each(STORES)(
  "I2, %s: after its fifth death, each alone, a run ends once, and its lane continues",
  async (on) => {
    const open = livesOn(on);
    const ends: string[] = [];
    const successors = {
      ...NO_SUCCESSORS,
      runEnded: async (_acceptor: unknown, _unit: unknown, run: Run) => {
        ends.push(run.runId);
      },
    };
    const world = laterWorld();
    let runs: Run[] = [];
    for (const pauseMs of [0, 0, 2_000, 15_000, 60_000]) {
      const scene = stage();
      const { engine, store } = await open({ execute: scene.execute, successors, world });
      await makeSessions(store, "a");
      world.later(pauseMs);
      engine.lookAtSlots();
      if (runs.length === 0) runs = await tell(engine, "a", "a");
      await scene.until(1);
    }
    const { engine, store } = await open({ execute: answer, successors, world });
    const [poison, next] = runs.map(({ runId }) => runId) as [string, string];
    const ended = await endOf(engine, poison);
    expect(ended).toMatchObject({ state: "error", code: "run_crashed", crashes: 5 });
    expect(ended.error).toMatch(/died 5 times while it executed only this run; .* send the message again/);
    expect(await endOf(engine, next)).toMatchObject({ state: "ok", reply: "fine", crashes: 0 });
    expect((await runRow(store, poison)).attempt).toBe(6);
    expect(ends).toEqual([poison, next]);
  },
);

both.each(STORES)(
  "I2, %s: a run waits 2 s after its second death, while other runs start at once",
  async (on) => {
    const open = livesOn(on);
    const world = laterWorld();
    for (let life = 0; life < 2; life += 1) {
      const scene = stage();
      const { engine, store } = await open({ execute: scene.execute, world });
      await makeSessions(store, "poison", "new");
      if (life === 0) await tell(engine, "poison");
      await scene.until(1);
    }
    const scene = stage();
    const { engine, store } = await open({ execute: scene.execute, world });
    await tell(engine, "new");
    await scene.until(1);
    expect(scene.begun).toEqual(["new"]);
    world.later(2_000);
    engine.lookAtSlots();
    await scene.until(2);
    expect(scene.begun).toEqual(["new", "poison"]);
    await store.close();
  },
);

both.each(STORES)("I2, %s: a death that hits several runs counts against none of them", async (on) => {
  const open = livesOn(on);
  const world = laterWorld();
  const keys = ["a", "b", "c"];
  let runs: Run[] = [];
  for (let life = 0; life < 6; life += 1) {
    const scene = stage();
    const { engine, store } = await open({ execute: scene.execute, world });
    await makeSessions(store, ...keys);
    world.later(10 * 60_000);
    engine.lookAtSlots();
    if (life === 0) runs = await tell(engine, ...keys);
    await scene.until(3);
  }
  const { engine } = await open({ execute: answer, world });
  world.later(10 * 60_000);
  engine.lookAtSlots();
  for (const { runId } of runs) expect(await endOf(engine, runId)).toMatchObject({ state: "ok", crashes: 0 });
});

both.each(STORES)(
  "poison runs, %s: a planned stop is not counted as a crash, even for a run that does not stop in time",
  async (on) => {
    const open = livesOn(on);
    const begun = Promise.withResolvers<void>();
    const never = new Promise<EndFacts>(() => {});
    const { engine, store } = await open({
      execute: () => {
        begun.resolve();
        return never;
      },
    });
    await makeSessions(store, "a");
    const [run] = await tell(engine, "a");
    await begun.promise;
    await engine.stop(0);
    const next = await open({ execute: answer });
    expect(await endOf(next.engine, run?.runId ?? "")).toMatchObject({ state: "ok", crashes: 0, attempt: 2 });
  },
);
