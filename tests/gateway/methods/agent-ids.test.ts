// Methods with an agent id, and jobs that run as an agent: the rights of a token for another agent.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { METHODS, type MethodName } from "../../../src/contract/methods.ts";
import { openHouse, operatorToken } from "../kit.ts";

const SCOPED = "a-token-for-agent-research-and-jobs";
const tokens = [operatorToken(SCOPED, "operator.admin", ["cron:*", "node-*", "agent:research:*"])] as const;
const EVERY = { kind: "every", everyMs: 3_600_000 } as const;

/** The params of each method, without the agent id. */
const NEEDED: Partial<Record<MethodName, object>> = {
  "agents.prompt": {},
  "agents.memory.get": {},
  "agents.memory.set": { text: "x", revision: 0 },
  "sessions.list": {},
  "sessions.subscribe": {},
  "sessions.search": { query: "x" },
  "sessions.resolve": { label: "x" },
  "sessions.create": { idempotencyKey: "k" },
  agent: { message: "hi", idempotencyKey: "k" },
  "chains.list": {},
  "cron.list": {},
  "cron.add": { schedule: EVERY, message: "tick" },
  "node.pair.approve": { code: "ABCD-EFGH" },
  usage: {},
  wake: { text: "x", idempotencyKey: "k" },
};
const takesAgent = (name: string): boolean =>
  "agentId" in ((METHODS[name as MethodName].params as { properties?: object }).properties ?? {});

async function refusal(work: Promise<unknown>): Promise<object> {
  return work.then(
    () => ({ code: "done" }),
    ({ code, reason, message }: { code: string; reason?: string; message: string }) => ({
      code,
      reason,
      message,
    }),
  );
}

const ask = (client: GatewayClient, name: string, params: object) =>
  client.call(name as MethodName, params as never);

test("the table of this test contains every method whose params have agentId", () => {
  expect(Object.keys(NEEDED).sort()).toEqual(Object.keys(METHODS).filter(takesAgent).sort());
});

test.each(Object.entries(NEEDED))(
  "a token that does not cover agent main is refused: %s",
  async (name, params) => {
    const { client: open } = await openHouse({ gateway: { tokens } });
    const client = await open({ token: SCOPED });
    for (const agentId of ["main", " MAIN "]) {
      expect(await refusal(ask(client, name, { ...params, agentId }))).toMatchObject({ code: "FORBIDDEN" });
    }
  },
);

test("I13: a token adds, changes and runs jobs only for agents that it covers, even if the job names no agent", async () => {
  const { client: open } = await openHouse({ gateway: { tokens } });
  const [admin, scoped] = [await open(), await open({ token: SCOPED })];
  const job = { schedule: EVERY, message: "tick" };
  const forbidden = { code: "FORBIDDEN", message: expect.stringContaining("does not cover the agent main") };
  expect(await refusal(ask(scoped, "cron.add", job))).toMatchObject(forbidden);
  const { job: ofMain } = await admin.request("cron.add", job);
  for (const [name, more] of [
    ["cron.update", { patch: { message: "mine now" } }],
    ["cron.run", {}],
    ["cron.remove", {}],
  ] as const) {
    expect(await refusal(ask(scoped, name, { id: ofMain.id, ...more }))).toMatchObject(forbidden);
  }
  const { job: own } = await scoped.request("cron.add", { ...job, agentId: "research" });
  const fired = await scoped.request("cron.run", { id: own.id });
  expect(await scoped.request("agent.wait", { runId: fired.runId })).toMatchObject({ status: "ok" });
});

test("a scoped token cannot approve a node whose messages would go to an agent that it does not cover", async () => {
  const { client: open } = await openHouse({ gateway: { tokens } });
  const scoped = await open({ token: SCOPED });
  const asked = ask(scoped, "node.pair.approve", { code: "ABCD-EFGH" });
  expect(await refusal(asked)).toMatchObject({
    code: "FORBIDDEN",
    message: expect.stringContaining("agent main"),
  });
});
