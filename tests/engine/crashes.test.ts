// Runs that crash their process, on both stores: they are retried after all other runs, and a limited number
// of times.

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

both.each(STORES)(
  "I2, %s: after three lost attempts without progress a run ends once, and its lane continues",
  async (on) => {
    const open = livesOn(on);
    const ends: string[] = [];
    const successors = {
      ...NO_SUCCESSORS,
      runEnded: async (_acceptor: unknown, _unit: unknown, run: Run) => {
        ends.push(run.runId);
      },
    };
    let runs: Run[] = [];
    for (let life = 0; life < 3; life += 1) {
      const scene = stage();
      const { engine, store } = await open({ execute: scene.execute, successors });
      await makeSessions(store, "a");
      if (life === 0) runs = await tell(engine, "a", "a");
      await scene.until(1);
    }
    const { engine, store } = await open({ execute: answer, successors });
    const [poison, next] = runs.map(({ runId }) => runId) as [string, string];
    const ended = await endOf(engine, poison);
    expect(ended).toMatchObject({ state: "error", code: "run_crashed", crashes: 3, crashesInRow: 3 });
    expect(ended.error).toMatch(/died 3 times while it executed this run and made no progress/);
    expect(await endOf(engine, next)).toMatchObject({ state: "ok", reply: "fine", crashes: 0 });
    expect((await runRow(store, poison)).attempt).toBe(4);
    expect(ends).toEqual([poison, next]);
  },
);

both.each(STORES)(
  "poison runs, %s: a run that crashed starts only when no other run waits for a slot",
  async (on) => {
    const open = livesOn(on);
    const first = stage();
    const keys = ["poison", "neighbour", "c", "d", "e"];
    const one = await open({ execute: first.execute, settings: { maxConcurrent: 2 } });
    await makeSessions(one.store, ...keys);
    await tell(one.engine, ...keys);
    await first.until(2);
    const second = stage();
    await open({ execute: second.execute, settings: { maxConcurrent: 2 } });
    for (let ended = 0; ended < 3; ended += 1) {
      await second.until(ended + 2);
      second.end(second.begun[ended] ?? "");
    }
    await second.until(5);
    expect(second.begun.slice(0, 3).toSorted()).toEqual(["c", "d", "e"]);
    expect(second.begun.slice(3).toSorted()).toEqual(["neighbour", "poison"]);
  },
);

both.each(STORES)(
  "poison runs, %s: runs that crashed twice execute one at a time, while other runs execute, too",
  async (on) => {
    const open = livesOn(on);
    let scene = stage();
    const keys = ["poison", "neighbour"];
    const { engine, store } = await open({ execute: scene.execute });
    await makeSessions(store, ...keys, "new", "newer");
    await tell(engine, ...keys);
    await scene.until(2);
    scene = stage();
    await open({ execute: scene.execute });
    await scene.until(2);
    scene = stage();
    const third = await open({ execute: scene.execute });
    await scene.until(1);
    await tell(third.engine, "new");
    await scene.until(2);
    await tell(third.engine, "newer");
    await scene.until(3);
    // Both runs were accepted in one moment, so either may be the first.
    const [first = ""] = scene.begun;
    expect(keys).toContain(first);
    expect(scene.begun).toEqual([first, "new", "newer"]);
    scene.end(first);
    await scene.until(4);
    expect([first, scene.begun.at(-1)].toSorted()).toEqual(keys.toSorted());
  },
);

both.each(STORES)(
  "poison runs, %s: a run that crashed twice still takes a slot of its own pool",
  async (on) => {
    const open = livesOn(on);
    const pool = {
      settings: { pools: { few: 1 } },
      poolOf: ({ sessionKey }: Run) => (sessionKey === "free" ? undefined : "few"),
    };
    for (let life = 0; life < 2; life += 1) {
      const scene = stage();
      const { engine, store } = await open({ execute: scene.execute, ...pool });
      await makeSessions(store, "poison", "other", "free");
      if (life === 0) await tell(engine, "poison");
      await scene.until(1);
    }
    const scene = stage();
    const { engine } = await open({ execute: scene.execute, ...pool });
    await scene.until(1);
    await tell(engine, "other", "free");
    await scene.until(2);
    expect(scene.begun).toEqual(["poison", "free"]);
    scene.end("poison");
    await scene.until(3);
    expect(scene.begun.at(-1)).toBe("other");
  },
);

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
