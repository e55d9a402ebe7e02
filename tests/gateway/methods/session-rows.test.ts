// Rows of the session list for a tree: roots, children, waits, costs, and the rights to see them.

import { expect, test } from "vitest";
import type { ListedRow } from "../../../src/contract/methods/sessions.ts";
import type { ParamsOf } from "../../../src/contract/methods.ts";
import type { Session } from "../../../src/core/shapes/session.ts";
import { insertRun } from "../../../src/store/queries/runs/runs.ts";
import { insertWait } from "../../../src/store/queries/runs/waits.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { assistantText } from "../../kit/engine/engine.ts";
import { sampleRun, sampleSession } from "../../store/samples.ts";
import { type House, type HouseOptions, openHouse } from "../kit.ts";

const MAIN = "agent:main:main";
const OTHERS = ["agent:main:subagent:a", "agent:research:subagent:b", "agent:research:subagent:c"] as const;
const [A, B, C] = OTHERS;
const NARROW = { token: "narrow", role: "operator" as const, scopes: ["operator.read" as const] };

/** Opens a gateway with a tree: main spawned a and b; a spawned c, which is archived. */
async function openTree(options: HouseOptions = {}): Promise<House> {
  const house = await openHouse(options);
  const child = (key: string, spawnedBy: string, more: Partial<Session> = {}) =>
    sampleSession({
      key,
      sessionId: `id ${key}`,
      spawnedBy,
      agentId: key.split(":")[1] ?? "",
      kind: "other",
      ...more,
    });
  await house.store.transaction(async (tx) => {
    await insertSession(tx, child(A, MAIN, { updatedAt: 9 }));
    await insertSession(tx, child(B, MAIN, { updatedAt: 8 }));
    await insertSession(tx, child(C, A, { archivedAt: 7 }));
  });
  return house;
}

async function listed(house: House, params: ParamsOf<"sessions.list">, token?: string) {
  const client = await house.client(token === undefined ? {} : { token });
  return (await client.request("sessions.list", params)).sessions;
}

const keysOf = (rows: readonly ListedRow[]) => rows.map((row) => row.key).toSorted();

test("root rows are sessions without a parent, with the number of their children", async () => {
  const house = await openTree();
  const roots = await listed(house, { roots: true, includeChildren: true });
  expect(keysOf(roots)).toEqual([MAIN, "agent:research:main", "agent:writer:main"].toSorted());
  expect(roots.find((row) => row.key === MAIN)).toMatchObject({ children: 2 });
  expect(roots.filter((row) => row.key !== MAIN)).toMatchObject([{ children: 0 }, { children: 0 }]);
  const below = await listed(house, { spawnedBy: MAIN, includeChildren: true });
  expect(below).toMatchObject([
    { key: A, children: 0 },
    { key: B, children: 0 },
  ]);
  const withArchived = await listed(house, { spawnedBy: MAIN, includeChildren: true, includeArchived: true });
  expect(withArchived).toMatchObject([
    { key: A, children: 1 },
    { key: B, children: 0 },
  ]);
  expect((await listed(house, { spawnedBy: MAIN }))[0]).not.toHaveProperty("children");
});

test("a list of given keys has one page, omits unknown keys, and applies the filters", async () => {
  const house = await openTree();
  expect(keysOf(await listed(house, { keys: [A, B, C, "agent:main:chat:none"] }))).toEqual([A, B]);
  expect(keysOf(await listed(house, { keys: [A, C], includeArchived: true }))).toEqual([A, C]);
  expect(keysOf(await listed(house, { keys: [A, B], agentId: "research" }))).toEqual([B]);
  expect(await listed(house, { keys: [] })).toEqual([]);
  const many = Array.from({ length: 201 }, (_, n) => `k${n}`);
  await expect(listed(house, { keys: many })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
});

test("I9: a token sees only children, keys and waits that it covers; a child of an uncovered session looks like a root", async () => {
  const tokens = [{ ...NARROW, sessions: ["agent:research:*"] }];
  const house = await openTree({ gateway: { tokens } });
  await house.store.transaction(async (tx) => {
    await insertSession(tx, sampleSession({ key: "agent:research:chat:d", sessionId: "d", spawnedBy: B }));
    await insertSession(tx, sampleSession({ key: "agent:RESEARCH:chat:d", sessionId: "D", spawnedBy: B }));
    await insertRun(tx, sampleRun({ runId: "w", sessionKey: B, sessionId: `id ${B}`, state: "waiting" }));
    for (const [callId, targetSessionKey] of [
      ["1", A],
      ["2", "agent:research:main"],
      ["3", "agent:research:main"],
    ] as const) {
      await insertWait(tx, {
        callId,
        waiterRunId: "w",
        waiterSessionKey: B,
        kind: "run",
        targetId: `t${callId}`,
        targetSessionKey,
        state: "open",
        deadlineAt: 9e15,
      });
    }
  });
  const asked = { roots: true, includeChildren: true, includeArchived: true };
  const roots = await listed(house, asked, "narrow");
  expect(keysOf(roots)).toEqual(["agent:research:main", B, C]);
  const b = roots.find((row) => row.key === B);
  expect(b).toMatchObject({ state: "waiting", waitingOn: ["agent:research:main"], children: 1 });
  expect(b).not.toHaveProperty("spawnedBy");
  expect(keysOf(await listed(house, { keys: [A, B] }, "narrow"))).toEqual([B]);
  expect(await listed(house, { spawnedBy: A }, "narrow")).toEqual([]);
  const [whole] = await listed(house, { keys: [B], includeChildren: true });
  expect(whole).toMatchObject({ waitingOn: [A, "agent:research:main"], children: 2, spawnedBy: MAIN });
});

test("a session's cost is the sum of its runs' costs, and a reset sets it to zero", async () => {
  const house = await openHouse({
    play: async (handle) => {
      const message = assistantText(`m-${handle.run.runId}`, "done");
      const cost = { ...message.usage.cost, total: 0.25 };
      await handle.append({ ...message, usage: { ...message.usage, cost } });
      return "";
    },
  });
  const client = await house.client();
  for (const idempotencyKey of ["one", "two"]) {
    await client.agent({ message: "x", sessionKey: MAIN, idempotencyKey }).done;
  }
  expect(await listed(house, { keys: [MAIN] })).toMatchObject([{ cost: 0.5 }]);
  const patched = await client.call("sessions.patch", { key: MAIN, label: "x" });
  expect(patched).toMatchObject({ entry: { cost: 0.5 } });
  expect(await client.call("sessions.reset", { key: MAIN })).toMatchObject({ entry: { cost: 0 } });
  expect(await listed(house, { keys: [MAIN] })).toMatchObject([{ cost: 0 }]);
});

test("contextTokens is the context window of the session's model, contextUsed the used part; an unknown model has neither", async () => {
  const house = await openHouse();
  const row = (key: string, more: Partial<Session>) =>
    sampleSession({
      key,
      sessionId: `id ${key}`,
      kind: "other",
      agentId: "main",
      spawnedBy: undefined,
      ...more,
    } as never);
  await house.store.transaction(async (tx) => {
    await insertSession(tx, row("agent:main:chat:known", { contextUsed: 17, model: "offline/rehearsal" }));
    await insertSession(tx, row("agent:main:chat:gone", { contextUsed: 5, model: "gone/model" }));
  });
  const rows = await listed(house, {});
  const figures = (key: string) => {
    const found = rows.find((one) => one.key === key);
    return { contextTokens: found?.contextTokens, contextUsed: found?.contextUsed };
  };
  expect(figures("agent:main:chat:known")).toEqual({ contextTokens: 200_000, contextUsed: 17 });
  expect(figures("agent:main:chat:gone")).toEqual({ contextTokens: null, contextUsed: 5 });
});
