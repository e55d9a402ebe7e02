// I14: secrets planted in messages and errors appear in no payload, event or log line.

import { expect, test } from "vitest";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import { putPeer } from "../../../src/store/queries/channels/channel-peers.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { joined, openHouse, openRaw, type Play, type Raw } from "../kit.ts";
import { refusingModel } from "./refusing-model.ts";

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";
const PASSWORD = "correct-horse-7-battery";

/** Returns the configuration of a provider with a model of this name. */
function provider(baseUrl: string, id: string): Record<string, unknown> {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const models = [{ id, contextWindow: 10_000, cost }];
  return {
    models: { providers: { local: { api: "openai-completions", baseUrl, apiKey: KEY, models } } },
    agents: { defaults: { model: `local/${id}` } },
  };
}

const QUOTED = `the key ${KEY} is not good`;

async function say(raw: Raw, id: string, method: string, params: object = {}): Promise<void> {
  raw.send({ type: "req", id, method, params });
  const answer = await raw.res(id);
  expect(answer.ok, `${id} ${answer.error?.message}`).toBe(true);
}

/** Sends every request about a session. */
async function askEverything(raw: Raw, key: string): Promise<void> {
  for (const method of ["health", "status", "agents.list", "models.list", "tools.catalog"]) {
    await say(raw, method, method);
  }
  await say(raw, "list", "sessions.list", { includeDerivedTitles: true, includeLastMessage: true });
  await say(raw, "preview", "sessions.preview", { keys: [key] });
  await say(raw, "history", "chat.history", { sessionKey: key });
  await say(raw, "outbox", "deliveries.list");
  const tools = [
    ["sessions_list", { messageLimit: 5 }],
    ["sessions_history", { sessionKey: key, includeTools: true }],
    ["session_status", {}],
    ["sessions_search", { query: "password" }],
  ] as const;
  for (const [name, args] of tools) await say(raw, name, "tools.invoke", { name, arguments: args });
}

test("I14: a key that a provider quotes and a secret that a person sent are in no payload or log line", async () => {
  const baseUrl = await refusingModel(QUOTED);
  const gateway = await startProcess({ config: provider(baseUrl, "refuser") });
  const raw = await openRaw(gateway.url);
  await say(raw, "hello", "connect", {
    minProtocol: 3,
    maxProtocol: 3,
    client: { id: "x", version: "1", platform: "p", mode: "m", displayName: `me ${KEY}` },
    auth: { token: gateway.token },
  });
  const message = `my password: "${PASSWORD}" and my key ${KEY}`;
  raw.send({ type: "req", id: "a", method: "agent", params: { message, idempotencyKey: "run" } });
  const end = await raw.next(({ id, payload }) => id === "a" && payload?.status !== "accepted");
  expect(end.payload).toMatchObject({ status: "error", summary: expect.stringContaining("is not good") });
  await say(raw, "wait", "agent.wait", { runId: "run" });
  await say(raw, "inject", "chat.inject", { sessionKey: "main", message: `note: ${KEY}` });
  await say(raw, "send", "send", { to: "main", message: `for you: ${KEY}`, idempotencyKey: "s" });
  await raw.next((frame) => frame.event === "chat" && frame.payload.stopReason === "injected");
  await askEverything(raw, "agent:main:main");
  await gateway.end("SIGTERM");
  expect(gateway.stderr()).toContain("model retry");
  for (const secret of [KEY, PASSWORD, gateway.token]) {
    expect(JSON.stringify(raw.frames)).not.toContain(secret);
    expect(gateway.stderr()).not.toContain(secret);
  }
});

test("I14: a secret in the name of a person on a channel is in no list of people", async () => {
  const house = await openHouse();
  const person = { channel: "telegram", accountId: "default", peerId: "1", name: `me ${KEY}` };
  const times = { askedAt: house.engine.now(), toldAt: 0 };
  await house.store.transaction((tx) => putPeer(tx, { ...person, ...times, state: "approved" }));
  const { peers } = await (await house.client()).request("channels.pair.list", {});
  expect(peers).toMatchObject([{ peerId: "1", name: expect.stringMatching(/^me /) }]);
  expect(JSON.stringify(peers)).not.toContain(KEY);
});

test("I14: secrets are redacted in every log line", async () => {
  const gateway = await startProcess({ config: provider(await refusingModel(QUOTED), KEY) });
  const client = await gateway.connect();
  await client.agent({ message: "x", idempotencyKey: "run" }).done;
  await gateway.end("SIGTERM");
  expect(gateway.stderr()).toContain('"model":"local/[redacted]"');
  expect(gateway.stderr()).not.toContain(KEY);
});

const RUN = { runId: "r", sessionKey: "agent:main:main" };
const CALL = { ...RUN, kind: "tool", callId: "c", name: "exec", atMs: 1 } as const;
const FLOW = { ...RUN, kind: "flow", flowId: "f", step: "reply", turn: 1, turnsMax: 5, atMs: 1 } as const;
const TOLD: [string, LiveEvent][] = [
  ["the arguments of a tool", { ...CALL, phase: "start", arguments: { deep: [{ env: `KEY=${KEY}` }] } }],
  ["a field of that name", { ...CALL, phase: "start", arguments: { password: KEY } }],
  ["the result of a tool", { ...CALL, phase: "end", result: `it is ${KEY}` }],
  ["the cut of a result", { ...CALL, phase: "end", result: `${"x ".repeat(7_992)}${KEY}` }],
  ["a step of a flow", { ...FLOW, from: "agent:main:main", to: "agent:research:main", text: KEY }],
  [
    "the name of one that is not reached",
    { ...FLOW, step: "refused", from: "agent:main:main", to: KEY, text: "" },
  ],
  ["the text so far", { ...RUN, kind: "text", part: "1.0", offset: 0, text: `so it is ${KEY} ` }],
  ["a delivered text", { ...RUN, kind: "delivered", deliveryId: "d", text: `for you: ${KEY}`, atMs: 1 }],
];
test.each(TOLD)("I14: a secret in %s is redacted in its event", async (_, event) => {
  const house = await openHouse();
  const raw = await joined(house);
  house.engine.bus.publish(event);
  const told = await raw.next((frame) => frame.event === "agent" || frame.event === "chat");
  expect(JSON.stringify(told)).toContain("[redacted]");
  expect(JSON.stringify(raw.frames)).not.toContain(KEY.slice(0, 10));
});

test("I14: a secret in a reply, an error or a label is redacted in every answer", async () => {
  const play: Play = ({ run }) => {
    if (run.input.text === "fail") throw new Error(`no: ${KEY}`);
    return `yes: ${KEY}`;
  };
  const house = await openHouse({ play });
  const client = await house.client();
  const good = await client.agent({ message: "x", idempotencyKey: "good" }).done;
  const bad = await client.agent({ message: "fail", idempotencyKey: "bad" }).done;
  const answers = [
    good,
    bad,
    await client.request("agent.wait", { runId: "bad" }),
    await client.request("sessions.patch", { key: "main", label: KEY }),
    await client.request("sessions.list", {}),
  ];
  for (const answer of answers) {
    expect(JSON.stringify(answer)).toContain("[redacted]");
    expect(JSON.stringify(answer)).not.toContain(KEY);
  }
});
