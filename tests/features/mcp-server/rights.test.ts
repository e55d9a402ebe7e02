// Rights of an MCP client. In its own session it has the rights of its token; in another session it has that
// session's rights, limited by its token (I9).

import { expect, test } from "vitest";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type Answer, ask, objectOf, openPeer, raw, sendAs, written } from "../../gateway/clients/mcp.ts";
import { openHouse, operatorToken } from "../../gateway/kit.ts";

const READER = "a-token-that-only-reads";
const ANNA = "the-token-of-anna-alone";
const NODE = "the-token-of-some-node";
const TOKENS = [
  { token: READER, role: "operator" as const, scopes: ["operator.read" as const] },
  operatorToken(ANNA, "operator.write", ["agent:main:mcp:anna*", "agent:research:main"]),
  { token: NODE, role: "node" as const, scopes: [] },
];
const OPEN = { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } };
const WITH_TOKENS = { gateway: { tokens: TOKENS } };

function bearer(token: string, more: Record<string, string> = {}): Record<string, string> {
  return { authorization: `Bearer ${token}`, ...more };
}

async function call(
  house: { http: string },
  name: string,
  args: Answer,
  headers: Record<string, string>,
): Promise<Answer> {
  const answer = await ask(house, "tools/call", { name, arguments: args }, headers);
  return "result" in answer ? objectOf(answer.result) : answer;
}

test("a token that may only read sends nothing, and creates no session", async () => {
  const house = await openHouse(WITH_TOKENS);
  const headers = bearer(READER, { "x-parley-handle": "reader" });
  expect(await call(house, "sessions_list", {}, headers)).toMatchObject({ count: 3 });
  expect(await call(house, "sessions_inbox", {}, headers)).toMatchObject({ count: 0 });
  const sent = await call(house, "sessions_send", { sessionKey: "main", message: "hi" }, headers);
  expect(sent).toMatchObject({ status: "forbidden", code: "missing_scope" });
  const spawned = await call(house, "sessions_spawn", { task: "dig" }, headers);
  expect(spawned).toMatchObject({ status: "forbidden", code: "missing_scope" });
  expect(await call(house, "subagents", { action: "cancel", sessionKey: "all" }, headers)).toMatchObject({
    code: "missing_scope",
  });
  expect(await getSession(house.store.db, "agent:main:mcp:reader")).toBeUndefined();
});

test("a token for some sessions sees only those, can act as one of them, and can spawn only sub-agents of them", async () => {
  const house = await openHouse(WITH_TOKENS);
  const anna = bearer(ANNA, { "x-parley-handle": "anna" });
  const { sessions } = (await call(house, "sessions_list", {}, anna)) as { sessions: { key: string }[] };
  expect(sessions.map(({ key }) => key).sort()).toEqual(["agent:main:mcp:anna", "agent:research:main"]);
  const hidden = await call(house, "sessions_send", { sessionKey: "main", message: "hi" }, anna);
  const missing = await call(
    house,
    "sessions_send",
    { sessionKey: "agent:main:chat:none", message: "hi" },
    anna,
  );
  expect([hidden, missing]).toMatchObject([
    { status: "forbidden", code: "not_visible" },
    { status: "forbidden", code: "not_visible" },
  ]);
  expect(
    await call(house, "sessions_send", { sessionKey: "agent:research:main", message: "hi" }, anna),
  ).toMatchObject({ status: "ok" });
  expect(await call(house, "sessions_spawn", { task: "dig" }, anna)).toMatchObject({
    status: "forbidden",
    code: "spawn_denied",
    hint: expect.stringContaining("agent:main:subagent:*"),
  });
  const other = await raw(house, {
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    headers: bearer(ANNA, { "x-parley-handle": "bert" }),
  });
  expect(other.status).toBe(403);
  expect(await other.json()).toMatchObject({
    id: 1,
    error: { message: expect.stringContaining("x-parley-handle"), data: { code: "not_visible" } },
  });
  expect(await getSession(house.store.db, "agent:main:mcp:bert")).toBeUndefined();
});

test("I9: an inbox names no sender outside of the token's sessions, and gives no reply address that the client cannot use", async () => {
  const house = await openHouse({ ...WITH_TOKENS, choices: { tools: OPEN } });
  const anna = bearer(ANNA, { "x-parley-handle": "anna" });
  const rowsFor = async (headers: Record<string, string>) =>
    (await call(house, "sessions_inbox", {}, headers)).messages as Answer[];
  await rowsFor(anna);
  for (const from of ["agent:writer:main", "agent:research:main"]) {
    const came = written(house, "agent:main:mcp:anna");
    await sendAs(house, from, "agent:main:mcp:anna", `from ${from.slice(6, 12)}`);
    await came;
  }
  const [hidden, seen] = await rowsFor(anna);
  expect(hidden).toMatchObject({ kind: "inter_session", from: "(not visible)", text: "from writer" });
  expect(hidden).not.toHaveProperty("replyTo");
  expect(seen).toMatchObject({ from: "agent:research:main", replyTo: "agent:research:main" });

  const [, read] = await rowsFor(bearer(READER, { "x-parley-handle": "anna" }));
  expect(read).toMatchObject({ from: "agent:research:main" });
  expect(read).not.toHaveProperty("replyTo");
});

test("a node's token is not accepted for MCP", async () => {
  const house = await openHouse(WITH_TOKENS);
  const answer = await raw(house, {
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    headers: bearer(NODE),
  });
  expect(answer.status).toBe(403);
});

test("a client that acts as another session cannot access sessions that this session may not see", async () => {
  const house = await openHouse({ choices: { tools: { visibility: "tree" } } });
  const as = await openPeer(house, "version 2, newest revision", {
    headers: { "x-parley-session": "agent:research:main" },
  });
  expect(await as.call("sessions_list")).toMatchObject({
    visibility: "tree",
    sessions: [{ key: "main", agentId: "research" }],
  });
  expect(await as.call("sessions_send", { sessionKey: "agent:main:main", message: "hi" })).toMatchObject({
    status: "forbidden",
    code: "not_visible",
    error: expect.stringContaining("tools.sessions.visibility"),
  });
  expect(await as.tools()).not.toContain("sessions_inbox");
  expect(await as.call("sessions_inbox")).toMatchObject({
    status: "error",
    error: expect.stringContaining("has no inbox"),
  });
});

test("in its own session a client has the rights of its token, and the visibility settings for agents do not apply", async () => {
  const house = await openHouse({ choices: { tools: { visibility: "self" } } });
  const peer = await openPeer(house, "version 1");
  expect(await peer.call("sessions_list")).toMatchObject({ count: 4, visibility: "all" });
  expect(await peer.call("sessions_send", { sessionKey: "agent:writer:main", message: "hi" })).toMatchObject({
    status: "ok",
  });
  expect(await peer.call("sessions_history", { sessionKey: "global" })).toMatchObject({
    code: "not_visible",
  });
});

test("the tool policy applies to clients: a denied tool is not listed, and the error of a call names the setting", async () => {
  const house = await openHouse({ choices: { tools: { filter: { allow: [], deny: ["sessions_search"] } } } });
  const peer = await openPeer(house, "version 1");
  expect(await peer.tools()).not.toContain("sessions_search");
  expect(await peer.call("sessions_search", { query: "x" })).toMatchObject({
    status: "forbidden",
    code: "tool_denied",
  });
});

test("I8: an answer continues the chain of its message, so two programs that answer each other stop at the chain's limit", async () => {
  const visible = { visibility: "all" as const, agentToAgent: { enabled: true, allow: [] } };
  const house = await openHouse({
    choices: {
      tools: visible,
      session: { agentToAgent: { maxPingPongTurns: 0, maxHops: 3, maxChainRuns: 50 } },
    },
  });
  const peer = await openPeer(house, "version 1", { headers: { "x-parley-handle": "echoer" } });
  const key = "agent:main:mcp:echoer";
  const chains = async () =>
    await house.store.db
      .selectFrom("runs")
      .select(["chain_id", "hop"])
      .where("session_key", "=", "agent:research:main")
      .orderBy("lane_seq")
      .execute();
  await peer.call("sessions_send", { sessionKey: "agent:research:main", message: "a new matter" });
  await sendAs(house, "agent:research:main", key, "a question");
  const [question] = await house.store.db
    .selectFrom("runs")
    .select(["chain_id", "hop"])
    .where("session_key", "=", key)
    .orderBy("lane_seq", "desc")
    .execute();
  await peer.call("sessions_send", { sessionKey: "agent:research:main", message: "the answer" });
  await peer.call("sessions_send", { sessionKey: "agent:research:main", message: "another matter" });
  const [first, answer, another] = await chains();
  expect(answer).toEqual({ chain_id: question?.chain_id, hop: (question?.hop ?? 0) + 1 });
  expect(new Set([first?.chain_id, answer?.chain_id, another?.chain_id]).size).toBe(3);
  expect([first?.hop, another?.hop]).toEqual([1, 1]);
});

test("a client ends its own connections only", async () => {
  const house = await openHouse(WITH_TOKENS);
  const clientInfo = { name: "anna", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const hello = await raw(house, { body, headers: bearer(ANNA) });
  const id = { "mcp-session-id": hello.headers.get("mcp-session-id") ?? "" };
  const ended = (token: string) => raw(house, { method: "DELETE", headers: bearer(token, id) });
  await ended(READER);
  expect(await ask(house, "tools/list", {}, bearer(ANNA, id))).toHaveProperty("result");
  expect((await ended(ANNA)).status).toBe(204);
  expect((await ended(ANNA)).status).toBe(404);
});
