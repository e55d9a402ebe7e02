// A bug in what follows from the end of a run: the run ends at once in each way, its lane continues, people see
// the failure, and what follows is made up for.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { EndFacts, Successors } from "../../src/engine/run/finish.ts";
import { FOLLOW_UP_DEADLINE } from "../../src/engine/run/follow-up.ts";
import { refusalsOf } from "../../src/store/queries/chains/refusals.ts";
import { endOf, makeSessions, openTestEngine, temporaryFolder } from "../kit/engine/engine.ts";
import { NO_SUCCESSORS } from "../kit/engine/no-successors.ts";
import { until } from "../kit/until.ts";
import { fakeWorld } from "../kit/world.ts";

/** Opens an engine whose successors fail for runs with this text until they are repaired. */
async function open(more: { readonly execute?: (handle: LaneHandle) => Promise<EndFacts> } = {}) {
  const world = fakeWorld();
  const followed: { text: string; answered: boolean }[] = [];
  let isBroken = true;
  const successors: Successors = {
    ...NO_SUCCESSORS,
    async runEnded(_acceptor, _unit, run, answered) {
      if (isBroken && run.input.text === "bad") throw new Error("a bug of ours");
      followed.push({ text: run.input.text, answered });
    },
  };
  const opened = await openTestEngine({
    world,
    successors,
    execute: more.execute ?? (async () => ({ state: "ok", reply: "done" })),
    settings: { maxChainTokens: 1_000, maxChainRuns: 1_000 },
    deadlineHandlers: new Map([[FOLLOW_UP_DEADLINE, (unit, key) => engine.followUp(unit, key)]]),
  });
  const engine: Engine = opened.engine;
  await makeSessions(opened.store, "a");
  const tell = async (text: string, kind: "turn" | "append" = "turn", timeoutMs = 0): Promise<string> => {
    const accepted = await engine.accept({ sessionKey: "a", kind, input: { text }, timeoutMs });
    if (!accepted.ok) throw new Error(accepted.error);
    return accepted.value.run.runId;
  };
  /** Checks that the failure is shown, and that what follows from the run happens once it can. */
  async function repair(runId: string): Promise<void> {
    const run = await endOf(engine, runId);
    expect(await refusalsOf(opened.store.db, run.chainId, 5)).toMatchObject([
      { runId, fromKey: "a", code: "run_failed", error: expect.stringContaining("a bug of ours") },
    ]);
    expect(world.logged).toContainEqual(
      expect.objectContaining({
        level: "error",
        text: expect.stringMatching(/^end of .+ failed; the rest is stored without it$/),
      }),
    );
    isBroken = false;
    await world.advance(60_000);
    await until(() => followed.some(({ text }) => text === "bad"));
    expect(await opened.store.db.selectFrom("deadlines").select("key").execute()).toEqual([]);
  }
  return { ...opened, world, followed, tell, repair };
}

const untilAborted = ({ signal, run }: LaneHandle): Promise<EndFacts> =>
  run.input.text === "bad"
    ? new Promise((resolve) => signal.addEventListener("abort", () => resolve({ state: "aborted" })))
    : Promise.resolve({ state: "ok", reply: "done" });

test("L4: a turn whose successors fail ends at once, its lane continues, and they are made up for", async () => {
  const app = await open();
  const bad = await app.tell("bad");
  const next = await app.tell("next");
  expect(await endOf(app.engine, bad)).toMatchObject({ state: "ok", reply: "done" });
  expect(await endOf(app.engine, next)).toMatchObject({ state: "ok" });
  await app.repair(bad);
  expect(app.followed.map(({ text }) => text)).toEqual(["next", "bad"]);
});

test("L4: a text that is only appended ends, too, in the transaction that accepts it", async () => {
  const app = await open();
  const bad = await app.tell("bad", "append");
  expect(await endOf(app.engine, bad)).toMatchObject({ state: "ok" });
  await app.repair(bad);
});

test("L4: an abort ends a run whose successors fail", async () => {
  const app = await open({ execute: untilAborted });
  const bad = await app.tell("bad");
  await until(async () => (await app.engine.load()).running === 1);
  expect(await app.engine.abort({ sessionKey: "a", runId: bad })).toEqual({ aborted: true, runIds: [bad] });
  expect(await endOf(app.engine, await app.tell("next"))).toMatchObject({ state: "ok" });
  await app.repair(bad);
});

test("L4: a run whose successors fail ends when it times out", async () => {
  const app = await open({ execute: untilAborted });
  const bad = await app.tell("bad", "turn", 5_000);
  await until(async () => (await app.engine.load()).running === 1);
  await app.world.advance(5_000);
  expect(await endOf(app.engine, bad)).toMatchObject({ state: "timeout" });
  expect(await endOf(app.engine, await app.tell("next"))).toMatchObject({ state: "ok" });
  await app.repair(bad);
});

test("L4: an abort ends the run of a session although the jobs below it cannot be stopped", async () => {
  const world = fakeWorld();
  const successors: Successors = { ...NO_SUCCESSORS, cancelBelow: () => Promise.reject(new Error("a bug")) };
  const { engine, store } = await openTestEngine({ world, successors, execute: untilAborted });
  await makeSessions(store, "a");
  const accepted = await engine.accept({ sessionKey: "a", input: { text: "bad" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const { runId } = accepted.value.run;
  expect(await engine.abort({ sessionKey: "a" })).toEqual({ aborted: true, runIds: [runId] });
  expect(await endOf(engine, runId)).toMatchObject({ state: "aborted" });
  expect(world.logged).toContainEqual(
    expect.objectContaining({ level: "error", text: "jobs below a failed; the rest is stored without it" }),
  );
});

test("a run whose stored message is damaged ends as failed, and its lane continues", async () => {
  const dir = temporaryFolder();
  const before = await openTestEngine({ dir, start: false, execute: untilAborted });
  await makeSessions(before.store, "a");
  for (const [n, kind] of (["turn", "append", "turn"] as const).entries()) {
    await before.engine.commit((unit) =>
      before.engine.acceptIn(unit, { sessionKey: "a", runId: `run-${n}`, kind, input: { text: "hello" } }),
    );
  }
  await before.store.transaction((tx) =>
    sql`update runs set input_json = 'x' where run_id <> 'run-2'`.execute(tx),
  );
  await before.store.close();
  const { engine } = await openTestEngine({ dir, execute: untilAborted });
  for (const damaged of ["run-0", "run-1"]) {
    expect(await endOf(engine, damaged)).toMatchObject({
      state: "error",
      error: expect.stringMatching(/is damaged and can't be read/),
    });
  }
  expect(await endOf(engine, "run-2")).toMatchObject({ state: "ok" });
});
