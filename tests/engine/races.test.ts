// Races: the end of a run and a wait, a stop and a claim, an abort and a running call.

import { once } from "node:events";
import { expect, test } from "vitest";
import { textOf } from "../../src/core/shapes/message.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { EndFacts } from "../../src/engine/run/finish.ts";
import { StoreConflict, StoreProblem } from "../../src/store/problems.ts";
import { holdRun } from "../../src/store/queries/runs/claims.ts";
import { getSession, insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { readRun } from "../../src/store/queries/transcripts/transcripts.ts";
import {
  assistantText,
  endOf,
  makeSessions,
  openTestEngine,
  runRow,
  sessionRow,
} from "../kit/engine/engine.ts";
import { whole } from "../kit/live-text.ts";
import { runSql, serverUrl } from "../kit/store/postgres.ts";
import { until } from "../kit/until.ts";
import { fakeWorld } from "../kit/world.ts";

const ok = (reply: string): EndFacts => ({ state: "ok", reply });
type Opened = Awaited<ReturnType<typeof openTestEngine>>;

/** Lets this many pending steps happen. */
async function ticks(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) await null;
}

async function tell({ engine }: Opened, sessionKey: string, timeoutMs = 0): Promise<string> {
  const accepted = await engine.accept({ sessionKey, input: { text: "go" }, timeoutMs });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run.runId;
}

test("I2: if the engine stops at any time while a run is accepted, no run stays `running`, and no crash is counted", async () => {
  for (let steps = 60; steps < 260; steps += 4) {
    let executing = 0;
    const opened = await openTestEngine({
      async execute(handle) {
        executing += 1;
        await new Promise((resolve) => {
          if (handle.signal.aborted) resolve(undefined);
          handle.signal.addEventListener("abort", resolve, { once: true });
        });
        executing -= 1;
        return { state: "aborted" };
      },
    });
    await makeSessions(opened.store, "a");
    const accepting = tell(opened, "a").catch(() => undefined);
    await ticks(steps);
    await opened.engine.stop(0);
    const runId = await accepting;
    expect(executing, `after ${steps} steps`).toBe(0);
    if (runId !== undefined) {
      expect((await runRow(opened.store, runId)).state, `after ${steps} steps`).toBe("queued");
    }
    await opened.store.close();
  }
});

test("L2: lanes that wait for a slot get one in order, even if another run is accepted while a slot becomes free", async () => {
  for (let delay = 0; delay < 12; delay += 1) {
    const begun: string[] = [];
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const opened = await openTestEngine({
      settings: { maxConcurrent: 1 },
      async execute({ run }) {
        begun.push(run.sessionKey);
        started.resolve();
        if (run.sessionKey === "a") await release.promise;
        return ok("done");
      },
    });
    await makeSessions(opened.store, "a", "b", "c", "late");
    await tell(opened, "a");
    await started.promise;
    await tell(opened, "b");
    const last = await tell(opened, "c");
    const late = Promise.withResolvers<string>();
    const off = opened.engine.bus.subscribe((event) => {
      if (event.kind !== "run_ended") return;
      off();
      ticks(delay).then(() => late.resolve(tell(opened, "late")));
    });
    release.resolve();
    await endOf(opened.engine, last);
    await endOf(opened.engine, await late.promise);
    expect(begun, `accepted ${delay} steps later`).toEqual(["a", "b", "c", "late"]);
  }
});

test("DD2: a deadline whose handler fails is postponed, and later deadlines are handled", async () => {
  const world = fakeWorld();
  const worked: string[] = [];
  const { engine, store } = await openTestEngine({
    world,
    execute: async () => ({ state: "ok" }),
    deadlineHandlers: new Map([
      [
        "test",
        async (_unit: unknown, key: string) => {
          if (key === "bad") throw new Error("never works");
          worked.push(key);
          return "done" as const;
        },
      ],
    ]),
  });
  await engine.commit(async (unit) => {
    await unit.setDeadline({ kind: "test", key: "bad", dueAt: unit.now });
    await unit.setDeadline({ kind: "test", key: "good", dueAt: unit.now + 1 });
  });
  for (let step = 0; step < 20; step += 1) await world.advance(10);
  expect(worked).toEqual(["good"]);
  const left = await store.db.selectFrom("deadlines").select(["key", "due_at"]).execute();
  expect(left).toEqual([{ key: "bad", due_at: expect.any(Number) }]);
  expect(left[0]?.due_at).toBeGreaterThan(world.clock.now());
});

test.each([
  ["done", []],
  [3_600_000, [{ kind: "test", key: "one", due_at: 3_600_000 }]],
] as const)(
  "DD2: a deadline that was handled is not postponed if the answer to its commit is lost (verdict: %s)",
  async (verdict, left) => {
    const world = fakeWorld();
    const start = world.clock.now();
    let calls = 0;
    let isLost = false;
    const { engine, store } = await openTestEngine({
      world,
      execute: async () => ({ state: "ok" }),
      wrapStore: (disk) => ({
        ...disk,
        async transaction(work) {
          const value = await disk.transaction(work);
          if (calls === 0 || isLost) return value;
          isLost = true;
          throw new StoreProblem("unreachable", "store", { detail: "connection lost", inDoubt: true });
        },
      }),
      deadlineHandlers: new Map([
        [
          "test",
          async () => {
            calls += 1;
            return verdict === "done" ? verdict : start + verdict;
          },
        ],
      ]),
    });
    await engine.commit((unit) => unit.setDeadline({ kind: "test", key: "one", dueAt: unit.now }));
    for (let seconds = 0; seconds < 120; seconds += 1) await world.advance(1_000);
    expect({ calls, isLost }).toEqual({ calls: 1, isLost: true });
    const rows = await store.db.selectFrom("deadlines").selectAll().execute();
    expect(rows).toEqual(left.map((row) => ({ ...row, due_at: start + row.due_at })));
  },
);

test("a run waits while the disk is full for minutes, says so once, and stores its entry when there is space", async () => {
  const world = fakeWorld();
  const full = { times: 0 };
  const outcome = Promise.withResolvers<string>();
  const { engine, store } = await openTestEngine({
    world,
    async execute(handle) {
      full.times = 600;
      const call = { type: "toolCall" as const, id: "t1", name: "exec", arguments: {} };
      const stored = handle.append({ ...assistantText("m1", ""), content: [call], stopReason: "toolUse" });
      outcome.resolve(await stored.then(() => "stored"));
      return ok("done");
    },
    wrapStore: (disk) => ({
      ...disk,
      transaction: (work) => {
        if (full.times === 0) return disk.transaction(work);
        full.times -= 1;
        return Promise.reject(new StoreProblem("full", "the store"));
      },
    }),
  });
  await makeSessions(store, "a");
  const run = await engine.accept({ sessionKey: "a", input: { text: "one" } });
  if (!run.ok) throw new Error(run.error);
  for (let half = 0; half < 700; half += 1) await world.advance(500);
  expect(await outcome.promise).toBe("stored");
  const lines = world.logged.filter(({ text }) => text.startsWith("the store "));
  expect(lines.map(({ level }) => level)).toEqual(["warn", "info"]);
  expect(await runRow(store, run.value.run.runId)).toMatchObject({ state: "ok", reply: "done" });
  const written = await readRun(store.db, run.value.run.runId);
  expect(written.filter((message) => message.id === "m1")).toHaveLength(1);
});

test("a stop ends the wait of a run for a full disk", async () => {
  let isFull = false;
  const waiting = Promise.withResolvers<void>();
  let outcome: Promise<unknown> | undefined;
  const { engine, store } = await openTestEngine({
    async execute(handle) {
      isFull = true;
      const stored = handle.append({ ...assistantText("m1", ""), stopReason: "toolUse" });
      outcome = stored.catch((error: unknown) => error);
      waiting.resolve();
      await stored;
      return ok("done");
    },
    wrapStore: (disk) => ({
      ...disk,
      transaction: (work) =>
        isFull ? Promise.reject(new StoreProblem("full", "the store")) : disk.transaction(work),
    }),
  });
  await makeSessions(store, "a");
  const run = await engine.accept({ sessionKey: "a", input: { text: "one" } });
  if (!run.ok) throw new Error(run.error);
  await waiting.promise;
  await engine.stop(0);
  expect(await outcome).toBeInstanceOf(StoreProblem);
});

test("U3: if another program locks the database for a long time, a run does not end", async () => {
  let conflicts = 0;
  const { engine, store } = await openTestEngine({
    async execute(handle) {
      conflicts = 30;
      const call = { type: "toolCall" as const, id: "t1", name: "exec", arguments: {} };
      await handle.append({ ...assistantText("m1", ""), content: [call], stopReason: "toolUse" });
      return ok("done");
    },
    wrapStore: (disk) => ({
      ...disk,
      transaction: (work) => {
        if (conflicts === 0) return disk.transaction(work);
        conflicts -= 1;
        return Promise.reject(new StoreConflict("55P03", "canceling statement due to lock timeout"));
      },
    }),
  });
  await makeSessions(store, "a");
  const run = await engine.accept({ sessionKey: "a", input: { text: "one" } });
  if (!run.ok) throw new Error(run.error);
  expect(await endOf(engine, run.value.run.runId)).toMatchObject({ state: "ok", reply: "done" });
});

test("U4: if an action after a commit throws, the transaction succeeds and the next action runs", async () => {
  const { engine, store } = await openTestEngine({ execute: async () => ok("done") });
  let told = 0;
  const value = await engine.commit(async (unit) => {
    await insertSession(unit.tx, sessionRow("a"));
    unit.after(() => {
      throw new Error("a listener failed");
    });
    unit.after(() => {
      told += 1;
    });
    return "stored";
  });
  expect([value, told]).toEqual(["stored", 1]);
  expect(await getSession(store.db, "a")).toBeDefined();
});

test("I4: an abort does not store a text that is stored already, even if the caller does not know that yet", async () => {
  const storing = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<void>();
  let holds = false;
  const opened = await openTestEngine({
    // The commit is on disk before its caller gets the answer.
    wrapStore: (disk) => ({
      ...disk,
      async transaction(work) {
        const value = await disk.transaction(work);
        if (!holds) return value;
        holds = false;
        storing.resolve();
        await heard.promise;
        return value;
      },
    }),
    async execute(handle) {
      handle.text(whole("half a thought"));
      const call = { type: "toolCall" as const, id: "c1", name: "look", arguments: {} };
      const { content, ...message } = assistantText("m1", "half a thought");
      holds = true;
      await handle.append({ ...message, content: [...content, call], stopReason: "toolUse" });
      return { state: "aborted" };
    },
  });
  await makeSessions(opened.store, "a");
  const runId = await tell(opened, "a");
  await storing.promise;
  await opened.engine.abort({ sessionKey: "a", runId });
  heard.resolve();
  expect((await endOf(opened.engine, runId)).state).toBe("aborted");
  const roles = (await readRun(opened.store.db, runId)).map((message) => message.role);
  expect(roles).toEqual(["user", "assistant", "toolResult"]);
});

test("a stop that waited for its run keeps the text that the run wrote meanwhile", async () => {
  const started = Promise.withResolvers<LaneHandle>();
  const opened = await openTestEngine({
    on: "postgres",
    async execute(handle) {
      handle.text(whole("half"));
      started.resolve(handle);
      await once(handle.signal, "abort");
      return { state: "aborted" };
    },
  });
  const { engine, store } = opened;
  await makeSessions(store, "a");
  const runId = await tell(opened, "a");
  const handle = await started.promise;
  const { stopping } = await store.transaction(async (tx) => {
    await holdRun(tx, runId);
    const stopping = engine.abort({ sessionKey: "a", runId });
    const waiting = "select pid from pg_locks where not granted";
    await until(async () => (await runSql(await serverUrl(), waiting)).length > 0);
    handle.text(whole("half a thought"));
    return { stopping };
  });
  expect(await stopping).toMatchObject({ aborted: true });
  expect((await readRun(store.db, runId)).map(textOf)).toEqual(["go", "half a thought"]);
});
