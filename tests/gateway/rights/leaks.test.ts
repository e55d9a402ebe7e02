// I9 and I14 for every method and event: a token for some sessions gets no text of other sessions and no
// secret. A method without an entry in this file fails the test.

import { expect, test } from "vitest";
import { METHODS, type MethodName } from "../../../src/contract/methods.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import { addRefusal } from "../../../src/store/queries/chains/refusals.ts";
import { putPeer } from "../../../src/store/queries/channels/channel-peers.ts";
import { insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import { insertSentFile } from "../../../src/store/queries/channels/sent-files.ts";
import { insertBinding } from "../../../src/store/queries/channels/thread-bindings.ts";
import { getSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { configFileWith } from "../../kit/config-file.ts";
import { endOf } from "../../kit/engine/engine.ts";
import { codesOf } from "../../kit/reference/codes.ts";
import { doing, sending, talkingModel } from "../../kit/talking-model.ts";
import { codeIn, newDevice, pairedDevice, tryNode } from "../clients/devices.ts";
import { type House, joined, openHouse, operatorToken, quiet, type Raw, TOKEN } from "../kit.ts";

const HIDDEN = "agent:main:main";
const SEEN = "agent:research:main";
const KEY = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";
const PLANTED = ["agent:main", "velvet", "hidden-chain", KEY.slice(0, 20)];

const scoped = operatorToken("scoped", "operator.admin", ["agent:research:*", "cron:*"]);

const TOKEN_QUESTIONS = {
  "agents.describe": [{}],
  "agents.prompt": [{ agentId: "main" }, { agentId: "research" }],
  "agents.memory.get": [{ agentId: "main" }],
  "agents.memory.set": [{ agentId: "main", text: "x", revision: 0 }],
  "models.discover": [{}],
  "models.test": [{ model: "offline/rehearsal" }],
  "tokens.list": [{}],
  "tokens.create": [{ name: KEY, scopes: ["operator.read"], idempotencyKey: "token" }],
  "tokens.narrow": [{ id: "none", scopes: ["operator.read"] }],
  "tokens.revoke": [{ id: "none" }],
} as const;

async function tell(house: House, sessionKey: string, text: string, senderName = "she"): Promise<string> {
  const accepted = await house.engine.accept({ sessionKey, input: { text, senderName } });
  if (!accepted.ok) throw new Error(accepted.error);
  const run = await endOf(house.engine, accepted.value.run.runId);
  await quiet(house);
  return run.chainId;
}

/** Creates activity in a hidden session, and messages between it and visible sessions. */
async function plant(house: House) {
  const admin = await house.client();
  await admin.call("sessions.patch", { key: HIDDEN, label: "velvet label" });
  await admin.call("sessions.patch", { key: SEEN, label: `seen ${KEY}` });
  const hiddenChain = await tell(house, HIDDEN, "velvet secret");
  const chainId = await tell(house, HIDDEN, doing(sending(SEEN, "what is new?")));
  await tell(house, SEEN, `my key is ${KEY}`, `sender ${KEY}`);
  const run = await house.store.db
    .selectFrom("runs")
    .select("run_id")
    .where("session_key", "=", SEEN)
    .where("chain_id", "=", chainId)
    .executeTakeFirstOrThrow();
  const job = await admin.request("cron.add", {
    name: `job ${KEY}`,
    schedule: { kind: "every", everyMs: 3_600_000 },
    message: "say it",
    deliver: { to: HIDDEN },
  });
  const jobId = job.job.id;
  const fired = await admin.request("cron.run", { id: jobId });
  await admin.call("agent.wait", { runId: fired.runId });
  await house.store.transaction(async (tx) => {
    await updateSession(tx, SEEN, { lastRoute: { channel: "webchat", to: SEEN } });
    await tx.updateTable("sessions").set({ spawned_by: HIDDEN }).where("key", "=", SEEN).execute();
    const error = `${HIDDEN} is not there; circle "${SEEN}","${HIDDEN}",${HIDDEN}: ${KEY}`;
    await insertDelivery(tx, {
      ...{ id: "d", sessionKey: SEEN, kind: "announce", text: `text ${KEY}`, runId: run.run_id },
      ...{ route: { channel: "internal", to: HIDDEN }, state: "failed", code: "x", error, createdAt: 1 },
    });
    const refusal = { chainId, runId: run.run_id, tool: "sessions_send", code: "wait_cycle", hop: 1, at: 1 };
    await addRefusal(tx, {
      ...{ ...refusal, callId: `${run.run_id}:m:0`, fromKey: SEEN, toKey: SEEN, named: `name ${KEY}` },
      ...{ error, cycle: [SEEN, HIDDEN, SEEN] },
    });
    await addRefusal(tx, {
      ...refusal,
      callId: "other",
      fromKey: SEEN,
      toKey: HIDDEN,
      named: "velvet",
      error,
    });
  });
  await plantPeople(house);
  const hidden = await getSession(house.store.db, HIDDEN);
  await house.store.transaction((tx) =>
    insertSentFile(tx, {
      ...{
        id: "hidden-file",
        sessionId: hidden?.sessionId ?? "",
        name: "velvet.txt",
        mimeType: "text/plain",
      },
      ...{ caption: "velvet", bytes: 6, content: "velvet", createdAt: 1 },
    }),
  );
  const { messages } = await admin.request("chat.history", { sessionKey: SEEN });
  return { chainId, jobId, hiddenChain, messageId: messages.at(-1)?.id ?? "" };
}

/** Adds people on a channel, one of whose chats is bound to the hidden session. */
async function plantPeople(house: House): Promise<void> {
  const route = { channel: "telegram", to: "velvet place", accountId: "default" };
  await house.store.transaction(async (tx) => {
    const peer = { channel: "telegram", accountId: "default", askedAt: 1, toldAt: 1, route };
    await putPeer(tx, { ...peer, peerId: "velvet 1", name: "velvet person", state: "approved" });
    await putPeer(tx, { ...peer, peerId: "velvet 2", state: "pending", code: "ABCDEFGH" });
    await insertBinding(tx, {
      ...{ route, sessionKey: HIDDEN, kind: "bound", createdAt: 1, usedAt: 1, idleMs: 0, maxAgeMs: 0 },
    });
  });
}

interface Nodes {
  readonly nodeId: string;
  readonly pairingCode: string;
}

/** Adds a paired device and a pairing request. The token covers neither of their sessions. */
async function plantNodes(house: House): Promise<Nodes> {
  const { id: nodeId } = await pairedDevice(house, TOKEN, { name: "velvet machine" });
  const { answer } = await tryNode(house, newDevice(), { token: TOKEN, name: "velvet telephone" });
  return { nodeId, pairingCode: codeIn(answer) };
}

const ABOUT_CHANNELS = {
  "channels.status": [{}],
  "channels.test": [{ channel: "telegram" }],
  "channels.pair.list": [{}],
  "channels.pair.approve": [{ code: "ABCDEFGH" }],
  "channels.pair.reject": [{ code: "ABCDEFGH" }],
  "channels.pair.remove": [{ channel: "telegram", peerId: "velvet 1" }],
  "bindings.list": [{}],
  "bindings.unbind": [{ sessionKey: SEEN }, { sessionKey: HIDDEN }],
} as const;

const WAKES = [{ text: "more", sessionKey: SEEN, mode: "next-heartbeat" }];
const ABOUT_USAGE = [
  ...["agent", "tree", "session", "chain", "model", "day"].map((by) => ({ by })),
  { by: "session", days: 1, agentId: "research" },
];
const ABOUT_ATTENTION = {
  "permissions.list": [{}],
  "permissions.answer": [{ id: "x", decision: "deny" }],
  "permissions.rules": [{}],
  "permissions.forget": [{ id: "x" }],
  "attention.list": [{}, { limit: 1 }],
  "runs.list": [{}, { limit: 1 }],
  "runs.retry": [{ runId: "a" }],
  "runs.dismiss": [{ runId: "a" }],
  "runs.hold": [{ runId: "a" }],
  "runs.release": [{ runId: "a" }],
} as const;

const ABOUT_CONFIGURATION = {
  "servers.list": [{}],
  "servers.test": [{ name: "velvet" }],
  "servers.login": [{ name: "velvet", redirectUrl: "http://127.0.0.1/" }],
  "servers.login.finish": [{ query: "?state=velvet" }],
  "servers.logout": [{ name: "velvet" }],
  "store.backups": [{}],
  "store.backup": [{}],
  doctor: [{}, { offline: true }],
  "config.check": [{}, { text: "{}" }],
  "config.get": [{}],
  "config.set": [{ text: "{}", revision: "none" }],
  "config.patch": [{ changes: [], revision: "none", dryRun: true }],
  "config.schema": [{}],
} as const;

const OVERVIEWS = { health: [{}], status: [{}], "agents.list": [{}], "models.list": [{}] } as const;

/** Methods that only clients of protocol version 4 call. */
const OF_VERSION_4 = {
  "system-presence": [{}],
  "sessions.subscribe": [{}, { includeDerivedTitles: true, includeChildren: true, includeGlobal: true }],
  "sessions.describe": [{ key: SEEN }, { key: HIDDEN }],
  "chat.startup": [{ sessionKey: SEEN, includeRuns: true }, { sessionKey: HIDDEN }],
} as const;

const TRANSCRIPTS = {
  "sessions.earlier": [{ key: SEEN }],
  "sessions.search": [{ query: "velvet" }, { query: "the", sessionKey: SEEN }],
  "chat.file": [{ sessionKey: SEEN, fileId: "hidden-file" }],
  "chat.image": [{ sessionKey: SEEN, messageId: "a", index: 0 }],
} as const;

const ABOUT_PEERS = {
  "peers.list": [{}],
  "peers.add": [{ name: "lab" }, { name: "lab", url: "http://127.0.0.1:1", code: "AAAA" }],
  "peers.update": [{ name: "lab", agents: [] }],
  "peers.remove": [{ name: "lab" }],
} as const;

/** Returns the requests for each method in their order: the last ones delete rows that earlier ones read. */
function questionsOf(planted: Awaited<ReturnType<typeof plant>> & Nodes) {
  const { chainId, hiddenChain, jobId, messageId, nodeId, pairingCode } = planted;
  return {
    ...OVERVIEWS,
    ...OF_VERSION_4,
    "sessions.list": [
      { includeDerivedTitles: true, includeLastMessage: true, includeChildren: true, includeGlobal: true },
      { roots: true, includeArchived: true, limit: 1 },
      { search: "velvet" },
      { label: "velvet label" },
    ],
    "sessions.resolve": [{ key: SEEN }, { label: "velvet label" }],
    "sessions.create": [{ agentId: "research", idempotencyKey: "c" }],
    "sessions.fork": [{ sessionKey: SEEN, at: messageId, idempotencyKey: "f" }],
    "sessions.compact": [{ key: SEEN, idempotencyKey: "compact" }],
    ...TRANSCRIPTS,
    "sessions.preview": [{ keys: [SEEN] }],
    "sessions.patch": [{ key: SEEN, thinkingLevel: "low" }],
    "chat.history": [
      { sessionKey: SEEN, includeRuns: true },
      { sessionKey: SEEN, limit: 1 },
    ],
    "chat.send": [{ sessionKey: SEEN, message: "more", idempotencyKey: "s" }],
    "chat.abort": [{ sessionKey: SEEN }],
    "chat.inject": [{ sessionKey: SEEN, message: "a note" }],
    ...{ agent: [{ sessionKey: SEEN, message: "more", idempotencyKey: "a" }], wake: WAKES },
    "agent.wait": [{ runId: "a" }],
    send: [{ to: SEEN, message: "for you", idempotencyKey: "t" }],
    "tools.catalog": [{ sessionKey: SEEN }],
    "tools.invoke": [{ name: "sessions_list", sessionKey: SEEN }],
    "deliveries.list": [{}, { includeDismissed: true, limit: 1 }],
    "deliveries.retry": [{ id: "d" }],
    "deliveries.dismiss": [{ id: "d" }],
    ...ABOUT_ATTENTION,
    "chains.list": [
      ...[{ includeSingle: true }, { limit: 1 }, { includeSingle: true, limit: 1 }, { state: "failed" }],
      { from: 0, includeSingle: true, search: "velvet" },
    ],
    "chains.get": [chainId, hiddenChain].map((id) => ({ chainId: id, includeCalls: true })),
    ...{ "chains.record": [{ chainId }], "chains.replay": [{ chainId }] },
    ...{ "chains.replay.stop": [{}], "chains.diff": [{ a: chainId, b: hiddenChain }] },
    ...{ "access.explain": [{ viewer: SEEN, target: SEEN }], "demo.start": [{}], "demo.stop": [{}] },
    ...ABOUT_CHANNELS,
    "labels.list": [{}],
    "labels.explain": [{ sessionKey: SEEN }, { sessionKey: SEEN, sink: "peer", to: "velvet" }],
    "labels.release": [{ sessionKey: SEEN }],
    "metrics.history": [{}],
    "push.list": [{}],
    "push.subscribe": [{ endpoint: `https://push.example/${KEY}`, p256dh: "x", auth: "x", name: "velvet" }],
    ...{ "push.test": [{ id: "ntfy" }], "push.remove": [{ id: "velvet" }] },
    usage: ABOUT_USAGE,
    "logs.tail": [{}],
    ...{ ...ABOUT_CONFIGURATION, ...ABOUT_PEERS },
    "cron.list": [{}, { limit: 1 }],
    "cron.get": [{ id: jobId }],
    "cron.runs": [{ id: jobId }],
    "cron.preview": [{ schedule: { kind: "cron", expr: "0 0 * * *" } }],
    "cron.add": [{ schedule: { kind: "every", everyMs: 60_000 }, message: "m" }],
    "cron.update": [{ id: jobId, patch: { name: `renamed ${KEY}` } }],
    "cron.run": [{ id: jobId }],
    "cron.remove": [{ id: jobId }],
    "device.token.list": [{}],
    "device.token.revoke": [{ deviceId: nodeId }],
    "session.token.revoke": [{ series: "unknown" }],
    "node.pair.list": [{}],
    "node.list": [{}],
    "node.describe": [{ nodeId }],
    "node.rename": [{ nodeId, displayName: "mine" }],
    ...TOKEN_QUESTIONS,
    "node.invoke": [{ nodeId, command: "exec", params: {}, idempotencyKey: "n" }],
    "node.pair.approve": [{ code: pairingCode }],
    "node.pair.reject": [{ code: pairingCode }],
    "node.pair.remove": [{ nodeId }],
    "node.invoke.result": [{ id: "x", ok: true }],
    "node.event": [{ event: "agent.request", payload: { message: "hello" } }],
    "sessions.reset": [{ key: SEEN }],
    "sessions.delete": [{ key: SEEN }],
  } as const satisfies { readonly [M in MethodName]: readonly object[] };
}

test("I9, I14: no answer and no event gives a scoped token a secret, or a session that it does not cover", async () => {
  const { checkConfig, configFile } = configFileWith(`// velvet\n{ commands: { owners: ["${KEY}"] } }`);
  const house = await openHouse({
    ...{ model: talkingModel(), checkConfig, configFile },
    doctor: async () => ok([{ name: "privacy", level: "warning", text: `velvet ${KEY}` }]),
    gateway: { tokens: [scoped] },
    choices: { session: { agentToAgent: { maxPingPongTurns: 2, maxHops: 16, maxChainRuns: 200 } } },
  });
  const raw: Raw = await joined(house, { auth: { token: "scoped" } });
  const planted = await plant(house);
  const { jobId, hiddenChain } = planted;
  const nodes = await plantNodes(house);
  const questions = questionsOf({ ...planted, ...nodes });
  expect(Object.keys(questions).sort()).toEqual(Object.keys(METHODS).sort());
  const jobChain = await house.store.db
    .selectFrom("runs")
    .select("chain_id")
    .where("session_key", "=", `cron:${jobId}`)
    .executeTakeFirstOrThrow();
  const asked = [
    ...Object.entries(questions).slice(0, -2),
    ["chains.get", [{ chainId: jobChain.chain_id }]] as const,
    ...Object.entries(questions).slice(-2),
  ];
  let at = 0;
  for (const [method, all] of asked)
    for (const params of all) {
      const id = `q${at++}`;
      raw.send({ type: "req", id, method, params });
      const frame = await raw.res(id);
      const answer = JSON.stringify(frame);
      const code = frame.error?.details?.code;
      if (code !== undefined)
        expect.soft(codesOf(method as MethodName), `${method}: ${answer}`).toContain(code);
      const found = [...PLANTED, hiddenChain].filter(
        (word) => answer.includes(word) && !JSON.stringify(params).includes(word),
      );
      expect.soft(found, `${method} ${JSON.stringify(params)}: ${answer}`).toEqual([]);
    }
  const events = raw.frames.filter(({ type }) => type === "event");
  expect(events.length).toBeGreaterThan(10);
  for (const event of events) {
    const text = JSON.stringify(event);
    expect
      .soft(
        [...PLANTED, hiddenChain].filter((word) => text.includes(word)),
        text,
      )
      .toEqual([]);
  }
});
