// Rows of the session list contain the outcome of the last turn, and the states of the session's jobs.

import type { KyselyPlugin } from "kysely";
import { expect, test } from "vitest";
import type { ListedRow } from "../../src/contract/methods/sessions.ts";
import type { ParamsOf } from "../../src/contract/methods.ts";
import { endRun, insertRun } from "../../src/store/queries/runs/runs.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { openStore, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { sampleRun, sampleSession } from "../store/samples.ts";
import { type House, openHouse, type Play } from "./kit.ts";

const MAIN = "agent:main:main";
const KEY = "sk-abcdefghijklmnopqrstuvwxyz123456";

async function listed(house: House, params: ParamsOf<"sessions.list"> = {}, token?: string) {
  const client = await house.client(token === undefined ? {} : { token });
  return (await client.request("sessions.list", params)).sessions;
}

async function mainRow(house: House): Promise<ListedRow> {
  const [row] = await listed(house, { keys: [MAIN] });
  if (row === undefined) throw new Error("a row was expected");
  return row;
}

/** Reads the row that comes with the conversation. */
async function openRow(house: House, token?: string): Promise<ListedRow | undefined> {
  const client = await house.client(token === undefined ? {} : { token });
  return (await client.request("chat.history", { sessionKey: MAIN, includeRuns: true })).now?.session;
}

async function say(house: House, message: string, idempotencyKey = message): Promise<void> {
  const client = await house.client();
  await client.agent({ message, sessionKey: MAIN, idempotencyKey }).done.catch(() => undefined);
}

const failsOn: Play = ({ run: { input } }) => {
  if (input.text.startsWith("fail")) throw new Error(`401 invalid key ${KEY}\n${"x".repeat(400)}`);
  return "done";
};

test("if the last turn failed, the session's row has the redacted reason until the next turn ends, even after a restart", async () => {
  const house = await openHouse({ play: failsOn });
  expect(await mainRow(house)).not.toHaveProperty("failure");
  await say(house, "fail");
  const { failure } = await mainRow(house);
  expect(failure).toEqual({
    runId: "fail",
    code: "run_failed",
    endedAt: expect.any(Number),
    retriable: true,
    reason: expect.stringMatching(/^401 invalid key \S+ x+…$/),
  });
  expect(failure?.reason).not.toContain(KEY);
  expect(failure?.reason?.length).toBeLessThanOrEqual(200);
  expect((await openRow(house))?.failure).toEqual(failure);
  const { dir } = house;
  await house.stop();
  const again = await openHouse({ play: failsOn, dir });
  expect((await mainRow(again)).failure).toEqual(failure);
  const client = await again.client();
  await client.call("chat.inject", { sessionKey: MAIN, message: "a note is no turn" });
  expect((await mainRow(again)).failure).toEqual(failure);
  await say(again, "fine");
  expect(await mainRow(again)).not.toHaveProperty("failure");
});

test("a reset clears the failure, and so does the start of the session's next run", async () => {
  let release = () => {};
  const play: Play = async (handle) => {
    if (handle.run.input.text === "long") await new Promise<void>((resolve) => (release = resolve));
    return failsOn(handle);
  };
  const house = await openHouse({ play });
  await say(house, "fail");
  const done = say(house, "long");
  await expect.poll(async () => (await mainRow(house)).state).toBe("running");
  expect(await mainRow(house)).not.toHaveProperty("failure");
  release();
  await done;
  await say(house, "fail again");
  expect((await mainRow(house)).failure).toMatchObject({ runId: "fail again" });
  await (await house.client()).call("sessions.reset", { key: MAIN });
  expect(await mainRow(house)).not.toHaveProperty("failure");
});

test("I9: jobs are counted by state, but only jobs of sessions that the token covers", async () => {
  const narrow = {
    ...{ token: "narrow", role: "operator" as const, scopes: ["operator.read" as const] },
    sessions: [MAIN, "agent:research:*"],
  };
  const house = await openHouse({ gateway: { tokens: [narrow] } });
  const jobs = [
    { key: "agent:main:subagent:busy", state: "waiting", failedRun: "before" },
    { key: "agent:main:subagent:done" },
    { key: "agent:research:subagent:queued", state: "queued" },
    { key: "agent:research:subagent:failed", failedRun: "r" },
    { key: "agent:research:subagent:done" },
    { key: "agent:research:subagent:past", failedRun: "r", archivedAt: 5 },
    { key: "agent:main:subagent:stopped", abortedLastRun: true },
    { key: "agent:main:subagent:stopped-then-busy", abortedLastRun: true, state: "queued" },
  ] as const;
  await house.store.transaction(async (tx) => {
    for (const { key, ...job } of jobs) {
      const { state, ...more } = { state: undefined, ...job };
      const agentId = key.split(":")[1] ?? "";
      const child = { key, agentId, sessionId: `id ${key}`, spawnedBy: MAIN, kind: "other" as const };
      await insertSession(tx, sampleSession({ ...child, totalTokens: 10, cost: 0.25, ...more }));
      if (state !== undefined) await insertRun(tx, sampleRun({ runId: key, sessionKey: key, state }));
    }
  });
  const jobsOf = async (token?: string, includeArchived = false) =>
    (await listed(house, { keys: [MAIN], includeChildren: true, includeArchived }, token))[0];
  expect(await jobsOf()).toMatchObject({
    children: 7,
    jobs: { running: 3, done: 2, failed: 1, stopped: 1 },
    below: { sessions: 7, tokens: 70, cost: 1.75 },
  });
  expect(await jobsOf("narrow")).toMatchObject({
    children: 3,
    jobs: { running: 1, done: 1, failed: 1, stopped: 0 },
    below: { sessions: 3, tokens: 30, cost: 0.75 },
  });
  expect(await jobsOf(undefined, true)).toMatchObject({
    jobs: { running: 3, done: 2, failed: 2, stopped: 1 },
  });
  expect(await jobsOf("narrow")).not.toHaveProperty("failure");
  const [childless] = await listed(house, { keys: ["agent:writer:main"], includeChildren: true });
  expect(childless).not.toHaveProperty("jobs");
});

test("I9: running, failed and own sessions are listed and counted for each token separately", async () => {
  const tokens = [
    { token: "writer", role: "operator" as const, scopes: ["operator.write" as const] },
    {
      ...{ token: "narrow", role: "operator" as const, scopes: ["operator.read" as const] },
      sessions: ["agent:research:*"],
    },
  ];
  const house = await openHouse({ play: failsOn, gateway: { tokens } });
  const writer = await house.client({ token: "writer" });
  const fail = { message: "fail", sessionKey: "agent:writer:main", idempotencyKey: "w" };
  await writer.agent(fail).done.catch(() => undefined);
  await say(house, "fine");
  const answer = async (only: "failed" | "mine" | "running", token?: string) => {
    const client = await house.client(token === undefined ? {} : { token });
    const { sessions, counts } = await client.request("sessions.list", { only, includeCounts: true });
    return { keys: sessions.map((row) => row.key), counts };
  };
  const all = { running: 0, failed: 1, mine: 1 };
  expect(await answer("mine")).toEqual({ keys: [MAIN], counts: all });
  expect(await answer("failed")).toEqual({ keys: ["agent:writer:main"], counts: all });
  expect(await answer("running")).toEqual({ keys: [], counts: all });
  expect(await answer("mine", "writer")).toEqual({ keys: ["agent:writer:main"], counts: all });
  const none = { running: 0, failed: 0, mine: 0 };
  expect(await answer("failed", "narrow")).toEqual({ keys: [], counts: none });
});

test("the number of SQL statements for a page of sessions does not depend on the page's length", async () => {
  const world = quietWorld();
  const dir = temporaryFolder();
  const store = await openStore(dir, world);
  let statements = 0;
  const counting: KyselyPlugin = {
    transformQuery({ node }) {
      statements += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  const house = await openHouse({ dir, world, disk: { ...store, db: store.db.withPlugin(counting) } });
  await store.transaction(async (tx) => {
    for (let n = 0; n < 100; n++) {
      const [key, runId] = [`agent:main:chat:${n}`, `run ${n}`];
      await insertSession(tx, sampleSession({ key, sessionId: key, kind: "other", failedRun: runId }));
      await insertRun(tx, sampleRun({ runId, sessionKey: key, laneSeq: n }));
      const end = { state: "error" as const, endedAt: n, error: "no" };
      await endRun(tx, runId, { end, usage: sampleRun().usage });
      const child = { key: `agent:main:subagent:${n}`, sessionId: `below ${n}`, spawnedBy: key };
      await insertSession(tx, sampleSession({ ...child, kind: "other" }));
    }
  });
  const client = await house.client();
  const cost = async (limit: number) => {
    const before = statements;
    const { sessions } = await client.request("sessions.list", { limit, roots: true, includeChildren: true });
    const failed = sessions.filter((row) => row.failure?.reason === "no").length;
    return { failed, statements: statements - before };
  };
  const few = await cost(5);
  expect(few.failed).toBeGreaterThan(0);
  expect(few.statements).toBeLessThanOrEqual(5);
  expect(await cost(100)).toEqual({ failed: expect.any(Number), statements: few.statements });
  expect((await cost(200)).failed).toBe(100);
});
