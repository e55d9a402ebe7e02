// Calls each method of a real gateway once, and checks that its answer fits the contract.
// tests/kit/gateway.ts checks the events.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { EVENTS } from "../../src/contract/events.ts";
import { NODE } from "../../src/contract/methods/parts.ts";
import { type MethodName, methodOf, type ParamsOf } from "../../src/contract/methods.ts";
import { ok } from "../../src/core/shapes/errors.ts";
import type { PermissionRule } from "../../src/core/shapes/permission.ts";
import { putPeer } from "../../src/store/queries/channels/channel-peers.ts";
import { insertDelivery } from "../../src/store/queries/channels/deliveries.ts";
import { insertSentFile } from "../../src/store/queries/channels/sent-files.ts";
import { insertBinding } from "../../src/store/queries/channels/thread-bindings.ts";
import { insertRule } from "../../src/store/queries/permission-rules.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { LogTail } from "../../src/world/log-tail.ts";
import { configFileWith } from "../kit/config-file.ts";
import { askIn } from "../kit/engine/asking.ts";
import { misfits } from "../kit/event-check.ts";
import { peopleChannel, telegramAccount } from "../kit/platforms/people-channel.ts";
import { until } from "../kit/until.ts";
import { fakeWorld } from "../kit/world.ts";
import { httpServer, mcpWith, nodeServer, REFERENCE } from "../tools/mcp-kit.ts";
import {
  answer,
  asked,
  codeIn,
  joinedNode,
  NODE_TOKEN,
  NODE_TOKENS,
  newDevice,
  pairedDevice,
  tryNode,
} from "./clients/devices.ts";
import { type House, joined, openHouse, TOKEN } from "./kit.ts";

const MAIN = "agent:main:main";
const NOTES = "agent:main:notes";
/** A browser's subscription, with the keys of RFC 8291. */
const BROWSER = {
  ...{ endpoint: "https://push.example.com/1", name: "phone", auth: "BTBZMqHH6r4Tts7J_aSIgg" },
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
};
const BROWSER_ID = createHash("sha256").update(BROWSER.endpoint).digest("hex").slice(0, 32);
const LOGIN = { name: "lab", redirectUrl: "http://127.0.0.1/" };
const PERSON = { channel: "telegram", accountId: "default" } as const;
const SENT = { sessionKey: NOTES, message: "hello", timeoutSeconds: 0 };
const RIGHT = { title: "run a program", kind: "execute", rawInput: { command: "ls" } };
const CHECKED = {
  ...{ path: "parley.json", exists: true, ok: true, errors: [], warnings: ["one"] },
  ...{
    differs: true,
    changed: ["models.providers"],
    restart: ["channels"],
    settings: { gateway: { port: 1 } },
  },
};

interface Scene {
  /** Id of an access token. */
  readonly tokenId: string;
  /** Id of a run in the main session that has ended. */
  readonly runId: string;
  readonly messageId: string;
  readonly chainId: string;
  /** Ids of failed runs; each is the last run of its session. */
  readonly failed: { readonly retried: string; readonly dismissed: string };
  /** Id of a run that waits for a permission. */
  readonly waiting: string;
  readonly jobId: string;
  readonly permissionId: string;
  readonly ruleId: string;
  readonly nodeId: string;
  /** Pairing codes of two devices that request pairing. */
  readonly codes: readonly [string, string];
  /** Another gateway, and its pairing code for a peer. */
  readonly peer: { readonly url: string; readonly code: string };
  /** The query with which the browser came back from the sign-in at an MCP server. */
  readonly query: string;
}

/** These need a chain of real agents. The tests of the feature call them. */
type Replays = "chains.replay" | "chains.replay.stop" | "chains.diff";
type Examples = { readonly [M in Exclude<MethodName, Replays>]: (scene: Scene) => ParamsOf<M> };

const RULE: PermissionRule = {
  id: "",
  agentId: "main",
  sessionKey: MAIN,
  scope: "always",
  command: "make",
  folder: "/project",
  createdAt: 1,
  createdBy: "me",
};

const nothing = () => ({});

/**
 * Params for each method. The order matters, because the last methods delete the rows that the others read.
 */
const EXAMPLES: Examples = {
  "sessions.create": () => ({ key: NOTES, label: "notes", idempotencyKey: "create" }),
  "agents.describe": nothing,
  "agents.prompt": () => ({ agentId: "main" }),
  "agents.memory.get": () => ({ agentId: "main" }),
  "agents.memory.set": () => ({ agentId: "main", text: "- a fact", revision: 0 }),
  "models.discover": nothing,
  "models.test": () => ({ model: "offline/rehearsal" }),
  "tokens.create": () => ({
    name: "laptop",
    scopes: ["operator.read"],
    sessions: ["agent:main:*"],
    idempotencyKey: "token",
  }),
  "tokens.list": nothing,
  "tokens.narrow": ({ tokenId }) => ({ id: tokenId, scopes: ["operator.read"] }),
  "tokens.revoke": ({ tokenId }) => ({ id: tokenId }),
  "chat.send": () => ({ sessionKey: MAIN, message: "good evening", idempotencyKey: "chat" }),
  wake: () => ({ text: "the build is done", mode: "next-heartbeat" }),
  agent: () => ({ sessionKey: NOTES, message: "hello", idempotencyKey: "agent" }),
  "agent.wait": ({ runId }) => ({ runId }),
  "chat.inject": () => ({ sessionKey: NOTES, message: "a note", label: "desk" }),
  send: () => ({ to: MAIN, message: "tea is ready", idempotencyKey: "send" }),
  "sessions.patch": () => ({ key: NOTES, thinkingLevel: "high", verboseLevel: "on", sendPolicy: "allow" }),
  "sessions.list": () => ({ includeChildren: true, includeDerivedTitles: true, includeLastMessage: true }),
  "sessions.subscribe": () => ({ limit: 5, includeChildren: true }),
  "sessions.describe": () => ({ key: MAIN }),
  "sessions.resolve": () => ({ label: "notes" }),
  "sessions.preview": () => ({ keys: [MAIN, "agent:main:unknown"] }),
  "chat.history": () => ({ sessionKey: MAIN, includeRuns: true }),
  "chat.startup": () => ({ sessionKey: MAIN, limit: 1 }),
  "chat.file": () => ({ sessionKey: MAIN, fileId: "file" }),
  "chat.image": ({ messageId }) => ({ sessionKey: MAIN, messageId, index: 1 }),
  "chains.list": () => ({ includeSingle: true }),
  "chains.get": ({ chainId }) => ({ chainId }),
  "chains.record": ({ chainId }) => ({ chainId }),
  "access.explain": () => ({ viewer: NOTES, target: MAIN }),
  "labels.list": () => ({ limit: 5 }),
  "labels.explain": () => ({ sessionKey: MAIN, sink: "fetch", to: "https://tea.example/x" }),
  "labels.release": () => ({ sessionKey: NOTES }),
  "cron.add": () => ({
    schedule: { kind: "cron", expr: "0 9 * * *" },
    message: "m",
    deliver: { to: "main" },
  }),
  "cron.update": ({ jobId }) => ({ id: jobId, patch: { name: "new" } }),
  "cron.preview": () => ({ schedule: { kind: "every", everyMs: 60_000 } }),
  "cron.run": ({ jobId }) => ({ id: jobId }),
  "cron.get": ({ jobId }) => ({ id: jobId }),
  "cron.runs": ({ jobId }) => ({ id: jobId }),
  "cron.list": () => ({ limit: 1 }),
  "cron.remove": ({ jobId }) => ({ id: jobId }),
  "channels.status": nothing,
  "channels.test": () => ({ channel: "telegram" }),
  "channels.pair.list": nothing,
  "channels.pair.approve": () => ({ code: "ABCDEFGH" }),
  "channels.pair.reject": () => ({ code: "BCDEFGHJ" }),
  "channels.pair.remove": () => ({ channel: "telegram", peerId: "one" }),
  "bindings.list": nothing,
  "bindings.unbind": () => ({ sessionKey: MAIN }),
  "deliveries.list": () => ({ maxChars: 3, limit: 2 }),
  "deliveries.retry": () => ({ id: "again" }),
  "deliveries.dismiss": () => ({ id: "no more" }),
  health: nothing,
  "system-presence": nothing,
  "agents.list": nothing,
  "models.list": nothing,
  "metrics.history": nothing,
  usage: () => ({ by: "session" }),
  "logs.tail": nothing,
  "servers.list": nothing,
  "servers.test": () => ({ name: "notes" }),
  "servers.login.finish": ({ query }) => ({ query }),
  "servers.login": () => LOGIN,
  "servers.logout": () => ({ name: "lab" }),
  "store.backup": nothing,
  "store.backups": nothing,
  doctor: () => ({ offline: true }),
  "push.subscribe": () => BROWSER,
  "push.list": nothing,
  "push.test": () => ({ id: BROWSER_ID }),
  "push.remove": () => ({ id: BROWSER_ID }),
  "config.check": nothing,
  "config.get": nothing,
  "config.patch": () => ({
    changes: [{ path: "session.queueMax", value: 8 }],
    revision: "none",
    dryRun: true,
  }),
  "config.set": () => ({ text: "{ session: { queueMax: 7 } }", revision: "none" }),
  "config.schema": nothing,
  "tools.catalog": nothing,
  "tools.invoke": () => ({ name: "sessions_send", arguments: SENT }),
  "attention.list": nothing,
  "runs.list": nothing,
  "runs.retry": ({ failed }) => ({ runId: failed.retried }),
  "runs.dismiss": ({ failed }) => ({ runId: failed.dismissed }),
  "runs.hold": ({ waiting }) => ({ runId: waiting }),
  "runs.release": ({ waiting }) => ({ runId: waiting }),
  "permissions.list": nothing,
  "permissions.answer": ({ permissionId }) => ({ id: permissionId, decision: "allow" }),
  "permissions.rules": nothing,
  "permissions.forget": ({ ruleId }) => ({ id: ruleId }),
  "demo.start": nothing,
  status: nothing,
  "demo.stop": nothing,
  "device.token.list": nothing,
  "node.invoke": ({ nodeId }) => ({ nodeId, command: "exec", params: ["uptime"], idempotencyKey: "i" }),
  "node.invoke.result": () => ({ id: "gone", ok: true }),
  "node.event": () => ({ event: "agent.request", payload: { message: "hello" } }),
  "node.list": nothing,
  "node.describe": ({ nodeId }) => ({ nodeId }),
  "node.rename": ({ nodeId }) => ({ nodeId, displayName: "renamed" }),
  "node.pair.list": nothing,
  "node.pair.approve": ({ codes }) => ({ code: codes[0] }),
  "node.pair.reject": ({ codes }) => ({ code: codes[1] }),
  "device.token.revoke": ({ nodeId }) => ({ deviceId: nodeId }),
  "session.token.revoke": () => ({ series: "one" }),
  "node.pair.remove": ({ nodeId }) => ({ nodeId }),
  "peers.add": ({ peer }) => ({ name: "lab", ...peer }),
  "peers.list": nothing,
  "peers.update": () => ({ name: "lab", agents: ["main"] }),
  "peers.remove": () => ({ name: "lab" }),
  "chat.abort": () => ({ sessionKey: MAIN }),
  "sessions.fork": ({ messageId }) => ({ sessionKey: MAIN, at: messageId, label: "f", idempotencyKey: "f" }),
  "sessions.compact": () => ({ key: MAIN, idempotencyKey: "compact" }),
  "sessions.reset": () => ({ key: MAIN }),
  "sessions.earlier": () => ({ key: MAIN }),
  "sessions.search": () => ({ query: "hello" }),
  "sessions.delete": () => ({ key: NOTES }),
};

/** Allows the sign-in at this address, as a person. Returns the query with which the browser comes back. */
async function allow(address: string): Promise<string> {
  const html = await (await fetch(address)).text();
  const form = new URLSearchParams({ token: TOKEN, answer: "allow", granted: "operator.write" });
  for (const [, name = "", value = ""] of html.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g))
    form.append(name, value.replaceAll("&amp;", "&"));
  const sent = { method: "POST", body: form, redirect: "manual" } as const;
  const { headers } = await fetch(new URL("/oauth/authorize", address), sent);
  return new URL(headers.get("location") ?? "http://nothing.invalid").search;
}

async function openScene() {
  const lab = await openHouse();
  const logTail = new LogTail();
  logTail.write(`${JSON.stringify({ level: 30, time: 1, part: "store", msg: "one", more: { field: 1 } })}\n`);
  logTail.write('{"level":30,"time":2,"msg":"a line that was c\n');
  const house = await openHouse({
    world: { ...fakeWorld({ clock: "real" }), logTail },
    gateway: { tokens: NODE_TOKENS, tickIntervalMs: 500 },
    choices: {
      channels: [telegramAccount("default")],
      tools: { mcp: mcpWith([nodeServer("notes", [REFERENCE]), httpServer("lab", `${lab.http}/mcp`)]) },
    },
    channels: [{ ...peopleChannel(["default"]), test: async () => ok("a bot") }],
    checkConfig: () => CHECKED,
    doctor: async () => ok([{ name: "node", level: "ok", text: "Node 24", mend: "Nothing." }]),
    configFile: configFileWith(undefined).configFile,
    play: (handle) => {
      const { run } = handle;
      if (run.input.text === "ask") return askIn({ engine: house.engine }, handle, RIGHT);
      if (run.input.text === "fail") throw new Error("failed as asked");
      return `echo ${run.input.text}`;
    },
    openDemo: async () => ok({ port: 1, token: "t", close: async () => {} }),
  });
  const admin = await house.client();
  const newest = await joined(house, { minProtocol: 4, maxProtocol: 4 });
  const seen = new Set<string>();
  admin.onEvent(({ event }) => seen.add(event));
  await plantRows(house);
  const { id: nodeId, ...key } = await pairedDevice(house);
  const node = await joinedNode(house, { id: nodeId, ...key });
  asked(node, 1).then((request) => answer(node, request, { ok: true, payload: { n: 1 } }));
  const pending = async () => codeIn((await tryNode(house, newDevice(), { token: NODE_TOKEN })).answer);
  const codes = [await pending(), await pending()] as const;
  const { job } = await admin.request("cron.add", {
    ...{ schedule: { kind: "at", atMs: 9_000_000_000_000 }, message: "m", name: "job" },
    ...{ deliver: { to: "main" }, thinking: "low", timeoutSeconds: 60 },
  });
  const { runId } = await admin.request("chat.send", {
    ...{ sessionKey: MAIN, message: "good morning" },
    attachments: [{ mimeType: "image/png", content: "aGVsbG8=" }],
  });
  await admin.request("agent.wait", { runId });
  const { messages } = await admin.request("chat.history", { sessionKey: MAIN });
  const messageId = messages.find(({ content }) => content[1]?.type === "image")?.id ?? "";
  const { chains } = await admin.request("chains.list", { includeSingle: true });
  const chainId = chains[0]?.chainId ?? "";
  const fails = async (label: string): Promise<string> => {
    const { key } = await admin.request("sessions.create", { label });
    const sent = await admin.request("chat.send", { sessionKey: key, message: "fail" });
    await admin.request("agent.wait", { runId: sent.runId });
    return sent.runId;
  };
  const failed = { retried: await fails("one"), dismissed: await fails("two") };
  const { key: asker } = await admin.request("sessions.create", { label: "asker" });
  const { runId: waiting } = await admin.request("chat.send", { sessionKey: asker, message: "ask" });
  const permissionId = await until(async () => {
    const { permissions } = await admin.request("permissions.list", {});
    return permissions[0]?.id;
  });
  const made = await admin.request("tokens.create", { name: "tablet", scopes: ["operator.write"] });
  const ruleId = "the-rule";
  await house.store.transaction((tx) => insertRule(tx, { ...RULE, id: ruleId }, []));
  const query = await allow((await admin.request("servers.login", LOGIN)).url);
  const invited = await (await lab.client()).request("peers.add", { name: "desk", agents: ["main"] });
  const peer = { url: lab.http, code: invited.code ?? "" };
  const one = { peer, query, tokenId: made.entry.id, jobId: job.id, nodeId, codes, runId, messageId };
  const scene = { ...one, chainId, failed, waiting, permissionId, ruleId };
  return { house, seen, admin, newest, node, scene };
}

/** Adds rows to the outbox, people who have written, and a bound chat. */
async function plantRows({ store, engine }: House): Promise<void> {
  const route = { ...PERSON, to: "7" };
  const sessionId = (await getSession(store.db, MAIN))?.sessionId ?? "";
  await store.transaction((tx) =>
    insertSentFile(tx, {
      ...{ id: "file", sessionId, name: "a.txt", mimeType: "text/plain", caption: "" },
      ...{ bytes: 5, content: "aGVsbG8=", createdAt: 1 },
    }),
  );
  await store.transaction(async (tx) => {
    for (const id of ["again", "no more"]) {
      const failed = { state: "failed", code: "channel_failed", error: "no", createdAt: 1 } as const;
      await insertDelivery(tx, { id, sessionKey: MAIN, kind: "send", route, text: "a text", ...failed });
    }
    const asking = { ...PERSON, askedAt: engine.now(), toldAt: 1, route, state: "pending" } as const;
    await putPeer(tx, { ...asking, peerId: "one", name: "Anna", code: "ABCDEFGH" });
    await putPeer(tx, { ...asking, peerId: "two", code: "BCDEFGHJ" });
    const times = { createdAt: 1, usedAt: 1, idleMs: 0, maxAgeMs: 0 };
    await insertBinding(tx, { route, sessionKey: MAIN, kind: "bound", ...times });
  });
}

test("each answer and event matches its entry in the contract, and every event of the contract is sent", async () => {
  const { house, seen, admin, newest, node, scene } = await openScene();
  const late = { nodeId: scene.nodeId, command: "exec", timeoutMs: 1 };
  await expect(admin.request("node.invoke", late)).rejects.toMatchObject({ code: "AGENT_TIMEOUT" });
  for (const [method, paramsOf] of Object.entries(EXAMPLES)) {
    const { scope, result } = methodOf(method as MethodName);
    const params = paramsOf(scene);
    let payload: unknown;
    if (scope === NODE) {
      node.send({ type: "req", id: method, method, params });
      ({ payload } = await node.res(method));
    } else payload = await admin.call(method, params);
    const problems = misfits(result, payload);
    expect({ method, payload, problems }).toEqual({ method, payload: expect.any(Object), problems: [] });
  }
  await until(() => seen.has("health") && seen.has("tick"));
  house.gateway.configChanged({ ok: true, changed: [], restart: [] });
  await house.stop();
  for (const { event = "" } of [...node.frames, ...newest.frames]) seen.add(event);
  expect(Object.keys(EVENTS).filter((name) => name !== "replay" && !seen.has(name))).toEqual([]);
});
