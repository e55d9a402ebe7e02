// The inbox of an MCP client: waiting for messages, acknowledging them, and the receipts that senders see.

import { expect } from "vitest";
import { operatorViewer } from "../../../src/access/access.ts";
import type { EventPayloads } from "../../../src/contract/events.ts";
import type { McpClient } from "../../../src/features/mcp-server/client.ts";
import { inboxOf } from "../../../src/features/mcp-server/inbox.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import {
  type Answer,
  INBOX_LOOK_MS,
  oldClient,
  openPeer,
  SPEAKERS,
  sendAs,
  written,
} from "../../gateway/clients/mcp.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { openerOf } from "../../gateway/opener.ts";
import { both, share, test } from "../../kit/deep.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { settableWorld } from "../../kit/world.ts";

const OPEN = { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } };
const RESEARCH = "agent:research:main";
const KEY = "agent:main:mcp:desk";
const DESK = { headers: { "x-parley-handle": "desk" } };

/** Calls a tool as the agent of a session. */
async function callAs(house: House, sessionKey: string, tool: string, args: Answer): Promise<Answer> {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ tool, args, sessionKey });
  const response = await fetch(`${house.http}/tools/invoke`, { method: "POST", headers, body });
  const answer = (await response.json()) as { result?: Answer; error?: Answer };
  return answer.result ?? answer.error ?? {};
}

const stateOf = async (house: House, messageId: unknown): Promise<unknown> =>
  (await callAs(house, RESEARCH, "session_status", { messageId: String(messageId) })).state;

const reaches = (house: House, messageId: unknown, state: string): Promise<unknown> =>
  until(async () => (await stateOf(house, messageId)) === state);

test.each(SPEAKERS)(
  "%s: a message's receipt is `offered` when the client has received it, and `in_turn` when the client has acknowledged it",
  async (speaker) => {
    const house = await openHouse({ choices: { tools: OPEN } });
    const peer = await openPeer(house, speaker, DESK);
    await peer.call("sessions_inbox");
    const sent = await sendAs(house, RESEARCH, KEY, "which port?");
    await until(async () => Number((await peer.call("sessions_inbox", { limit: 1 })).count) === 1);
    await reaches(house, sent.messageId, "offered");
    const inbox = (await peer.call("sessions_inbox")) as { messages: Answer[] };
    expect(inbox.messages).toMatchObject([{ id: sent.messageId, from: RESEARCH, replyTo: RESEARCH }]);
    expect(inbox.messages[0]).not.toHaveProperty("acknowledged");

    const ack = [sent.messageId];
    expect(await peer.call("sessions_inbox", { ack: [sent.messageId, "m-of-others"] })).toMatchObject({
      code: "message_not_found",
      error: expect.stringContaining("m-of-others"),
    });
    expect(await stateOf(house, sent.messageId)).toBe("offered");
    expect(await peer.call("sessions_inbox", { ack })).toMatchObject({ messages: [{ acknowledged: true }] });
    expect(await peer.call("sessions_inbox", { ack })).toMatchObject({ messages: [{ acknowledged: true }] });
    expect(await stateOf(house, sent.messageId)).toBe("in_turn");

    await peer.call("sessions_send", { sessionKey: RESEARCH, message: "port 80", timeoutSeconds: 0 });
    const report = await callAs(house, RESEARCH, "session_status", { messageId: sent.messageId });
    expect(report).toMatchObject({ state: "answered", from: expect.any(String), to: KEY });
    expect(Object.keys(report.times as Answer)).toEqual(["queued", "offered", "in_turn", "answered"]);
    expect(
      await callAs(house, "agent:main:main", "session_status", { messageId: sent.messageId }),
    ).toMatchObject({
      code: "not_visible",
    });
  },
);

test.each(SPEAKERS)(
  "%s: each of two callers gets the answer that names its message; without a name neither is answered",
  async (speaker) => {
    const house = await openHouse({ choices: { tools: OPEN }, play: () => "heard" });
    const peer = await openPeer(house, speaker, DESK);
    await peer.call("sessions_inbox");
    const answer = (message: string, more: Answer = {}) =>
      peer.call("sessions_send", { sessionKey: RESEARCH, message, timeoutSeconds: 0, ...more });
    const callers = ["which port?", "which host?"].map((text) => sendAs(house, RESEARCH, KEY, text, 600));
    await until(async () => (await peer.call("sessions_inbox")).count === 2);
    const { messages } = (await peer.call("sessions_inbox")) as { messages: Answer[] };
    expect(messages.map(({ awaitsAnswer }) => awaitsAnswer)).toEqual([true, true]);
    const idOf = (text: string) => messages.find((message) => message.text === text)?.id;

    const unnamed = await answer("80, I think");
    expect(unnamed).toMatchObject({ status: "accepted", note: expect.stringContaining("inReplyTo") });
    expect(await answer("80", { inReplyTo: "m-of-others" })).toMatchObject({
      code: "message_not_found",
      error: expect.stringContaining("m-of-others"),
    });
    expect(await answer("web-1", { inReplyTo: idOf("which host?") })).toMatchObject({ receipt: "answered" });
    expect(await callers[1]).toMatchObject({ status: "ok", reply: "web-1" });
    expect(await answer("web-2", { inReplyTo: idOf("which host?") })).toMatchObject({
      code: "message_not_found",
    });
    const left = (await peer.call("sessions_inbox")) as { messages: Answer[] };
    const waiting = left.messages.filter(({ awaitsAnswer }) => awaitsAnswer === true);
    expect(waiting.map(({ text }) => text)).toEqual(["which port?"]);
    // Only one message waits now, so a text without a name answers it.
    await answer("80");
    expect(await callers[0]).toMatchObject({ status: "ok", reply: "80" });
  },
);

test("only a program with an inbox sees the argument that names the answered message", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const desk = await oldClient(house, "desk");
  const sendOf = <T extends { name: string }>(tools: readonly T[]): T | undefined =>
    tools.find(({ name }) => name === "sessions_send");
  const shown = sendOf((await desk.listTools()).tools)?.inputSchema.properties;
  const { tools } = await (await house.client()).request("tools.catalog", { sessionKey: RESEARCH });
  expect(shown).toHaveProperty("inReplyTo");
  expect(sendOf(tools)?.parameters).toMatchObject({ properties: { message: {} } });
  expect(sendOf(tools)?.parameters).not.toHaveProperty("properties.inReplyTo");
});

test.each(SPEAKERS)("%s: a call with waitSeconds returns when a message arrives", async (speaker) => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const peer = await openPeer(house, speaker, DESK);
  await peer.call("sessions_inbox");
  const first = peer.call("sessions_inbox", { waitSeconds: 300 });
  const sent = await sendAs(house, RESEARCH, KEY, "one");
  expect(await first).toMatchObject({ count: 1, messages: [{ text: "one" }] });
  // The message is not acknowledged yet, so the call returns at once.
  expect(await peer.call("sessions_inbox", { waitSeconds: 300 })).toMatchObject({ count: 1 });
  const next = peer.call("sessions_inbox", {
    waitSeconds: 300,
    after: sent.messageId,
    ack: [sent.messageId],
  });
  await sendAs(house, RESEARCH, KEY, "two");
  expect(await next).toMatchObject({ count: 1, messages: [{ text: "two" }] });
  expect(await peer.call("sessions_inbox", { waitSeconds: -1 })).toMatchObject({ code: "invalid_argument" });
});

test("a call with waitSeconds ends in time, even if the wall clock is set back meanwhile", async () => {
  const { world, set } = settableWorld();
  const house = await openHouse({ choices: { tools: OPEN }, world });
  const peer = await openPeer(house, "version 1", DESK);
  await peer.call("sessions_inbox");
  const waiting = peer.call("sessions_inbox", { waitSeconds: 30 });
  for (const _ of [1, 2, 3]) {
    await until(() => world.pendingDelays().includes(INBOX_LOOK_MS));
    set(-3_600_000);
    await world.advance(INBOX_LOOK_MS);
  }
  expect(await waiting).toMatchObject({ count: 0 });
});

test("a message counts as offered only after the answer was written to the client's connection", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  await (await openPeer(house, "version 1", DESK)).call("sessions_inbox");
  const came = written(house, KEY);
  const sent = await sendAs(house, RESEARCH, KEY, "one");
  await came;
  const session = await getSession(house.store.db, KEY);
  if (session === undefined) throw new Error("the client has a session");
  const client = { session, viewer: operatorViewer(["operator.admin"]) } as unknown as McpClient;
  const deps = { engine: house.engine, settings: house.settings, world: quietWorld() } as never;
  const { signal } = new AbortController();
  const ends: ((written: boolean) => void)[] = [];
  const read = () => inboxOf(deps, client, {}, { signal, atEnd: (action) => void ends.push(action) });
  expect(await read()).toMatchObject({ ok: true, value: { count: 1 } });
  ends.shift()?.(false);
  await house.engine.commit(async () => {});
  expect(await stateOf(house, sent.messageId)).toBe("queued");
  await read();
  ends.shift()?.(true);
  await reaches(house, sent.messageId, "offered");
});

both.each(share(["embedded"], ["PostgreSQL"]))(
  "%s: if a message is sent to a client, its chain is in the list of chains",
  async (kind) => {
    const open = await openerOf(kind);
    const house = await open({ choices: { tools: OPEN } });
    await (await openPeer(house, "version 1", DESK)).call("sessions_inbox");
    await sendAs(house, RESEARCH, KEY, "which port?");
    const client = await house.client();
    expect(await client.request("chains.list", {})).toMatchObject({
      chains: [{ sessions: expect.arrayContaining([RESEARCH, KEY]), runs: 0 }],
    });
  },
);

test("a reply to a deleted or archived session fails at once with the reason", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const peer = await openPeer(house, "version 1", DESK);
  await peer.call("sessions_send", { sessionKey: RESEARCH, message: "hello" });
  const client = await house.client();
  await client.request("sessions.delete", { key: KEY });
  expect(await callAs(house, RESEARCH, "sessions_send", { sessionKey: KEY, message: "late" })).toMatchObject({
    code: "session_not_found",
    error: expect.stringContaining("was deleted after it wrote to you"),
  });
  expect(await getSession(house.store.db, KEY)).toBeUndefined();
  // If the target never wrote to the sender, the sender gets the ordinary error.
  expect(
    await callAs(house, RESEARCH, "sessions_send", { sessionKey: "agent:main:mcp:other", message: "?" }),
  ).not.toMatchObject({ error: expect.stringContaining("wrote to you") });
});

test("each new state of a message is sent as message.receipt to connections that may see its sender or recipient", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const client = await house.client();
  const states: string[] = [];
  client.onEvent(({ event, payload }) => {
    if (event !== "message.receipt") return;
    const { from, to, state } = payload as EventPayloads["message.receipt"];
    states.push(`${from} ${to} ${state}`);
  });
  await callAs(house, "agent:main:main", "sessions_send", { sessionKey: RESEARCH, message: "hi" });
  const line = (state: string) => `agent:main:main ${RESEARCH} ${state}`;
  await until(async () => states.includes(line("answered")));
  expect(states.slice(0, 4)).toEqual(["queued", "offered", "in_turn", "answered"].map(line));
});

test("with `limit` 0, sessions_inbox waits for new messages and counts them, but does not offer them", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const peer = await openPeer(house, "version 1", DESK);
  const counted = (more: Answer = {}) => peer.call("sessions_inbox", { limit: 0, ...more });
  expect(await counted()).toMatchObject({ count: 0, messages: [], more: false });
  const waiting = counted({ waitSeconds: 60 });
  const sent = await sendAs(house, RESEARCH, KEY, "which port?");
  expect(await waiting).toMatchObject({ count: 1, messages: [], more: true });
  expect(await stateOf(house, sent.messageId)).toBe("queued");
  await peer.call("sessions_inbox");
  await reaches(house, sent.messageId, "offered");
  expect(await counted()).toMatchObject({ count: 0, nextAfter: sent.messageId, more: false });
});

test("a client that listens hears of messages to it, and not of the note of what it sent", async () => {
  const house = await openHouse({ choices: { tools: OPEN } });
  const peer = await openPeer(house, "version 1", DESK);
  const heard: string[] = [];
  await peer.subscribe(() => heard.push("news"));
  await peer.call("sessions_send", { sessionKey: RESEARCH, message: "hello" });
  const noted = async () => JSON.stringify(await peer.call("sessions_history", { sessionKey: KEY }));
  await until(async () => (await noted()).includes("hello"));
  heard.push("sent");
  await sendAs(house, RESEARCH, KEY, "which port?");
  await until(async () => heard.includes("news"));
  expect(heard).toEqual(["sent", "news"]);
});
