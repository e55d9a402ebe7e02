// Agents elsewhere in the tools for sessions: receipts, sub-agents and budgets.

import { expect, test } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { readRun } from "../../../src/store/queries/transcripts/transcripts.ts";
import { limitsIn, openExposed, runStates } from "../../gateway/clients/a2a.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { openStore } from "../../kit/engine/engine.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { takeRun } from "../../kit/store/take-run.ts";
import { agentSettings, type Choices } from "../../tools/app.ts";

/** Tokens that each answer of the agent elsewhere uses. */
const TOKENS = 50_000;
const HERE = "agent:main:main";

/** Opens a gateway whose agent `far` is the agent `research` of another one. */
async function open(
  more: Choices = {},
  own: Parameters<typeof agentSettings>[1] = {},
  session?: Choices["session"],
): Promise<{ client: GatewayClient; far: House }> {
  const far = await openExposed({
    model: scriptedModel(() => ({ text: "All is well", totalTokens: TOKENS })),
    choices: more,
  });
  const card = `${far.http}/a2a/research`;
  const runtime = { type: "a2a", card, token: TOKEN, allowUnsigned: true } as const;
  const near = await openHouse({
    model: scriptedModel(() => "Thanks"),
    choices: {
      ...(session === undefined ? {} : { session }),
      agents: [
        agentSettings("main", { subagents: { allowAgents: ["far"] } }),
        agentSettings("far", { runtime, ...own }),
      ],
    },
  });
  return { client: await near.client(), far };
}

/** Calls a tool as the main agent. */
const invoke = (client: GatewayClient, name: string, args: Record<string, unknown>) =>
  client.request("tools.invoke", { name, sessionKey: HERE, arguments: args });

const send = (client: GatewayClient) =>
  invoke(client, "sessions_send", { sessionKey: "agent:far:main", message: "Hello", timeoutSeconds: 20 });

async function textsIn(client: GatewayClient, sessionKey: string): Promise<string[]> {
  const { messages } = await client.request("chat.history", { sessionKey });
  return messages.map(textOf);
}

/** Returns the hop of each run that was asked for over A2A. */
async function hopsAt({ store }: House): Promise<number[]> {
  const rows = await store.db.selectFrom("runs").select("hop").where("asked_by", "is not", null).execute();
  return rows.map(({ hop }) => hop);
}

test("a message to an agent elsewhere is answered, and its receipt says so", async () => {
  const { client, far } = await open();
  const sent = await send(client);
  expect(sent).toMatchObject({ status: "ok", reply: "All is well", receipt: "answered" });
  const { messageId } = sent as unknown as { messageId: string };
  expect(JSON.stringify(await invoke(client, "session_status", { messageId }))).toContain("answered");
  expect(await hopsAt(far)).toEqual([1]);
});

test("an agent elsewhere works as a sub-agent, and its result is announced", async () => {
  const { client, far } = await open();
  const spawned = await invoke(client, "sessions_spawn", { agentId: "far", task: "Dig" });
  expect(spawned).toMatchObject({ status: "accepted" });
  await expect.poll(() => textsIn(client, HERE)).toContainEqual(expect.stringContaining("All is well"));
  // The second run is the announce turn of the sub-agent.
  expect(await hopsAt(far)).toEqual([1, 1]);
});

test("I8: the tokens of an agent elsewhere count in its budget here", async () => {
  const { client } = await open({}, { budget: { dailyTokens: TOKENS } });
  expect(await send(client)).toMatchObject({ status: "ok", reply: "All is well" });
  expect(await send(client)).toMatchObject({
    ...{ status: "error", receipt: "declined" },
    error: expect.stringContaining(`has used ${TOKENS} tokens today, and its dailyTokens is ${TOKENS}`),
  });
});

test("I8: if the budget of the agent elsewhere is used up, the message fails with that reason", async () => {
  const research = agentSettings("research", { budget: { dailyTokens: 1 } });
  const { client } = await open({ agents: [agentSettings("main"), research] });
  expect(await send(client)).toMatchObject({
    ...{ status: "error", receipt: "failed" },
    error: expect.stringContaining("its budget.dailyTokens is 1"),
  });
});

test("I8: the rest of the chain's budget goes along and limits the chain over there", async () => {
  const session = { agentToAgent: { maxPingPongTurns: 0, maxHops: 9, maxChainRuns: 9, maxChainTokens: 200 } };
  const { client, far } = await open({}, {}, session);
  expect(await send(client)).toMatchObject({
    ...{ status: "error", receipt: "failed" },
    error: expect.stringContaining("the limit of the program or gateway that asked is 200"),
  });
  expect(await limitsIn(far)).toEqual([200]);
});

test("I1: a run that another process has keeps no answer of the agent elsewhere, and does not change its task", async () => {
  const answer = Promise.withResolvers<string>();
  const far = await openExposed({ model: scriptedModel(() => answer.promise) });
  const card = `${far.http}/a2a/research`;
  const runtime = { type: "a2a", card, token: TOKEN, allowUnsigned: true } as const;
  const near = await openHouse({
    model: scriptedModel(() => "Thanks"),
    choices: { agents: [agentSettings("main"), agentSettings("far", { runtime })] },
  });
  const { db } = near.store;
  const accepted = await near.engine.accept({ sessionKey: "agent:far:main", input: { text: "Hello" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const { run } = accepted.value;
  const tasks = () => db.selectFrom("remote_tasks").selectAll().execute();
  await expect.poll(tasks).toHaveLength(1);
  await takeRun(near.store, run.runId);
  const [known] = await tasks();
  answer.resolve("All is well");
  await expect.poll(() => runStates(far)).toEqual(["ok"]);
  await near.engine.stop(60_000);
  expect(await tasks()).toEqual([known]);
  expect((await readRun(db, run.runId)).map(textOf)).toEqual(["Hello"]);
  // The run of the other process follows the task, so the task was not cancelled.
  expect(await runStates(far)).toEqual(["ok"]);
});

test("RT3: an abort cancels the task elsewhere even while no gateway executes the run", async () => {
  const model = scriptedModel(() => new Promise<never>(() => {}));
  const far = await openExposed({ model });
  const runtime = {
    type: "a2a",
    card: `${far.http}/a2a/research`,
    token: TOKEN,
    allowUnsigned: true,
  } as const;
  const agents = [agentSettings("main"), agentSettings("far", { runtime })];
  const first = await openHouse({ model, choices: { agents, maxConcurrent: 2 } });
  const client = await first.client();
  await client.request("chat.send", { sessionKey: HERE, message: "Think" });
  await client.request("chat.send", { sessionKey: "agent:far:main", message: "Take your time" });
  const tasks = () => first.store.db.selectFrom("remote_tasks").select("task_id").execute();
  await expect.poll(tasks).toEqual([{ task_id: expect.any(String) }]);
  await first.stop();
  expect(await runStates(far)).toEqual(["running"]);
  const disk = await openStore(first.dir);
  const later = Date.now() + 3_600_000;
  // A run that crashed pauses, so the other run takes the only slot.
  await disk.transaction((tx) =>
    tx.updateTable("runs").set({ ready_at: later }).where("agent_id", "=", "far").execute(),
  );
  const second = await openHouse({ dir: first.dir, disk, model, choices: { agents, maxConcurrent: 1 } });
  await expect.poll(() => runStates(second)).toEqual(["running", "queued"]);
  const again = await second.client();
  expect(await again.request("chat.abort", { sessionKey: "agent:far:main" })).toMatchObject({
    aborted: true,
  });
  await expect.poll(() => runStates(far)).toEqual(["aborted"]);
});
