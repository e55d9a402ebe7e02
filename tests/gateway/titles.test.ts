// Titles that the agent's model writes after the first answer of a conversation: a whole gateway, and a model
// server that a test scripts.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { getChain } from "../../src/store/queries/chains/chains.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import { STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import type { ServedRequest } from "../kit/model-server/requests.ts";
import type { Answer } from "../kit/model-server/server.ts";
import { hang, httpError, text, usage } from "../kit/model-server/steps.ts";
import { until } from "../kit/until.ts";
import { configOf, openStage } from "../telemetry/kit.ts";

const KEY = `sk-proj-${"aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v"}`;
const isTitle = ({ system }: ServedRequest): boolean => system.startsWith("You write the title");

interface Options {
  readonly titles?: "words" | "model";
  readonly home?: string;
  readonly defaults?: Record<string, unknown>;
  /** Answers a message. */
  readonly answer?: () => Answer;
}

/** Opens a gateway whose model answers requests for titles with `title`. */
async function open(title: (request: ServedRequest) => Answer | Promise<Answer>, options: Options = {}) {
  const { titles = "model", home, defaults, answer = () => "It is done." } = options;
  const { agents } = configOf("", "") as { agents: { defaults: object; list: object[] } };
  const stage = await openStage({
    script: (request) => (isTitle(request) ? title(request) : answer()),
    config: {
      agents: {
        list: [...agents.list, { id: "offline", model: "offline/rehearsal" }],
        defaults: { ...agents.defaults, titles, ...defaults },
      },
      telemetry: { traces: { enabled: false } },
    },
    ...(home === undefined ? {} : { home }),
  });
  const { client, model } = stage;
  const create = async (label?: string): Promise<string> =>
    (await client.request("sessions.create", label === undefined ? {} : { label })).key;
  const row = async (key: string) =>
    (await client.request("sessions.list", { keys: [key], includeArchived: true })).sessions[0];
  const say = (sessionKey: string) => client.agent({ sessionKey, message: "Plan my week" }).done;
  /** Waits for the title of another conversation, which begins after everything before. */
  const settle = async (agentId = "main"): Promise<void> => {
    const { key } = await client.request("sessions.create", { agentId });
    await say(key);
    await until(async () => (await row(key))?.displayName !== undefined);
  };
  const asked = (): number => model.requests.filter(isTitle).length;
  return { ...stage, create, row, say, settle, asked };
}

test("after the first answer, the model's title names the conversation, and clients are notified", async () => {
  const house = await open(() => '**"Planning the week"**\nIt is about a plan.');
  const key = await house.create();
  const changes: string[] = [];
  house.client.on("sessions", (event) => {
    if (event.key === key && event.change !== "state") changes.push(event.change);
  });
  expect(await house.say(key)).toMatchObject({ status: "ok" });
  await until(() => changes.includes("updated"));
  expect(await house.row(key)).toMatchObject({ displayName: "Planning the week" });
  const request = house.model.requests.find(isTitle);
  expect(request?.lastUserText).toBe("Message:\nPlan my week\n\nAnswer:\nIt is done.");
  await house.say(key);
  await house.settle();
  expect(house.asked()).toBe(2);
});

test("the call counts in the usage of agent and chain", async () => {
  const house = await open(() => "A title");
  const key = await house.create();
  const { runId } = await house.say(key);
  await until(async () => (await house.row(key))?.displayName !== undefined);
  const { db } = house.app.store;
  const rows = await db.selectFrom("ledger").selectAll().where("session_key", "=", key).execute();
  expect(rows.map((one) => [one.run_id, one.total_tokens])).toEqual([
    [runId, 120],
    [runId, 120],
  ]);
  const { chainId = "" } = (await getRun(db, runId)) ?? {};
  expect(await getChain(db, chainId)).toMatchObject({ tokens: 240 });
});

test("main sessions, sessions with a label and agents with the offline model get no title", async () => {
  const house = await open(() => "A title");
  const offline = await house.client.request("sessions.create", { agentId: "offline" });
  expect(await house.say(offline.key)).toMatchObject({ status: "ok" });
  const labelled = await house.create("mine");
  await house.say(labelled);
  await house.say("agent:main:main");
  await house.settle();
  expect(house.asked()).toBe(1);
  for (const key of [labelled, offline.key]) expect((await house.row(key))?.displayName).toBeUndefined();
});

test("a label that is given during the call stays the only name", async () => {
  const title = Promise.withResolvers<Answer>();
  const house = await open(() => title.promise);
  const key = await house.create();
  await house.say(key);
  await until(() => house.asked() === 1);
  await house.client.request("sessions.patch", { key, label: "my own name" });
  title.resolve("A title");
  await house.settle();
  const row = await house.row(key);
  expect(row).toMatchObject({ label: "my own name" });
  expect(row?.displayName).toBeUndefined();
});

test("a secret in a title is redacted before it is stored and cut to 60 characters", async () => {
  const house = await open(() => `Use of the key ${KEY} ${"and so on ".repeat(10)}`);
  const key = await house.create();
  await house.say(key);
  await until(async () => (await house.row(key))?.displayName !== undefined);
  const { db } = house.app.store;
  const stored = await db.selectFrom("sessions").select("display_name").where("key", "=", key).execute();
  expect(stored[0]?.display_name).toBe("Use of the key [redacted] and so on and so on and so on and…");
});

test("a failed call leaves the conversation without a title, and is not repeated", async () => {
  let calls = 0;
  const house = await open(() => (calls++ === 0 ? httpError(400, "no") : "A title"));
  const key = await house.create();
  expect(await house.say(key)).toMatchObject({ status: "ok" });
  await until(() => house.asked() === 1);
  expect(await house.say(key)).toMatchObject({ status: "ok" });
  await house.settle();
  expect(house.asked()).toBe(2);
  expect((await house.row(key))?.displayName).toBeUndefined();
});

test("no title is requested if the call does not fit the agent's daily budget", async () => {
  const inputs = [49_900];
  const house = await open(() => "A title", {
    defaults: { budget: { dailyTokens: 50_000 } },
    answer: () => [usage({ input: inputs.shift() ?? 100, output: 20 }), text("It is done.")],
  });
  expect(await house.say(await house.create())).toMatchObject({ status: "ok" });
  await house.settle("research");
  expect(house.asked()).toBe(1);
});

test("sessions without stored first words get them after the start, and are found by them", async () => {
  const home = temporaryFolder();
  const house = await open(() => "A title", { home, titles: "words" });
  const key = await house.create();
  await house.client.agent({ sessionKey: key, message: `Plan my week with ${KEY}` }).done;
  await house.stop();
  const file = new DatabaseSync(join(house.dir, STORE_FILE));
  file.exec("update sessions set first_words = null");
  file.close();
  const next = await open(() => "A title", { home, titles: "words" });
  const found = async (search: string) =>
    (await next.client.request("sessions.list", { search })).sessions.map((row) => row.key);
  await until(async () => (await found("my week")).length > 0);
  expect([await found("my week"), await found(KEY.slice(0, 20))]).toEqual([[key], []]);
});

test("a stop of the gateway aborts the call, and a restart does not repeat it", async () => {
  const home = temporaryFolder();
  const house = await open(() => [hang()], { home });
  const key = await house.create();
  await house.say(key);
  await until(() => house.asked() === 1);
  await house.stop();
  const next = await open(() => "A title", { home });
  await next.say(key);
  await next.settle();
  expect(next.asked()).toBe(1);
  expect((await next.row(key))?.displayName).toBeUndefined();
});
