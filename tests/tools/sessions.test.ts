// The answers of the session tools without their own test file: every field, every default, every limit.

import { beforeAll, expect, test } from "vitest";
import { sessionViewer } from "../../src/access/access.ts";
import { NOT_VISIBLE, type Viewer } from "../../src/core/rules/visibility.ts";
import {
  type AssistantMessage,
  type Message,
  type UserMessage,
  ZERO_USAGE,
} from "../../src/core/shapes/message.ts";
import type { Session } from "../../src/core/shapes/session.ts";
import { deleteSession } from "../../src/flows/session/lifecycle.ts";
import { addUsageRow } from "../../src/store/queries/runs/ledger.ts";
import { getRun, listRuns } from "../../src/store/queries/runs/runs.ts";
import { insertWait } from "../../src/store/queries/runs/waits.ts";
import { callTool, invokeTool } from "../../src/tools/catalog.ts";
import type { ToolResult } from "../../src/tools/tool.ts";
import { type App, agentSettings, message, settingsWith } from "./app.ts";
import { appsOfFile } from "./apps.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const LIST = "sessions_list";
const HISTORY = "sessions_history";
const SECRET = "sk-abcdefghijklmnopqrstuvwx1234";

let app: App;
const other = appsOfFile();

beforeAll(async () => {
  app = await other();
});

const messagesOf = (result: ToolResult): Message[] => result.messages as Message[];
const textsOf = (result: ToolResult): string[] =>
  messagesOf(result).map((one) =>
    one.content.map((block) => (block.type === "text" ? block.text : "")).join(),
  );

async function conversation(on: App, size: number): Promise<Session> {
  const session = await on.add(`agent:main:chat:history-${size}`);
  const messages = Array.from({ length: size }, (_, index) =>
    message(`message ${index}`, index % 2 === 0 ? "user" : "assistant", `m${size}-${index}`),
  );
  await on.say(session, ...messages);
  return session;
}

test("history returns the last 50 messages, oldest first, and earlier pages lead back to the beginning", async () => {
  const session = await conversation(app, 120);
  const first = await app.call(MAIN, HISTORY, { sessionKey: session.key });
  expect(Object.keys(first).sort()).toEqual(
    ["bytes", "droppedMessages", "messages", "nextBefore", "sessionId", "sessionKey", "truncated"].sort(),
  );
  expect(first).toMatchObject({
    sessionKey: session.key,
    sessionId: session.sessionId,
    nextBefore: "m120-70",
    truncated: false,
    droppedMessages: 0,
  });
  expect(messagesOf(first).map((one) => one.id)).toEqual(
    Array.from({ length: 50 }, (_, n) => `m120-${n + 70}`),
  );
  expect(first.bytes).toBe(Buffer.byteLength(JSON.stringify(first.messages)));
  const second = await app.call(MAIN, HISTORY, { sessionKey: session.sessionId, before: "m120-70" });
  expect(second.nextBefore).toBe("m120-20");
  const last = await app.call(MAIN, HISTORY, { sessionKey: session.key, before: "m120-20", limit: 500 });
  expect(messagesOf(last)).toHaveLength(20);
  expect(last.nextBefore).toBeUndefined();
});

test("if `before` names a message of another transcript, the error says what to do", async () => {
  await conversation(app, 3);
  const result = await app.call(MAIN, HISTORY, { sessionKey: RESEARCH, before: "m3-1" });
  expect(result).toMatchObject({ status: "error", code: "message_not_found", hint: expect.any(String) });
});

test("history says what it has cut, and nextBefore is the id of the oldest returned message", async () => {
  const small = await other({ tools: { history: { maxTextChars: 50, maxBytes: 2_000 } } });
  const session = await small.add("agent:main:chat:big");
  const texts = Array.from({ length: 30 }, (_, index) =>
    message(`${index} ${"z".repeat(500)}`, "user", `big-${index}`),
  );
  await small.say(session, ...texts);
  const result = await small.call(MAIN, HISTORY, { sessionKey: session.key });
  expect(result.truncated).toBe(true);
  expect(result.bytes).toBeLessThanOrEqual(2_000);
  expect(result.droppedMessages).toBe(30 - messagesOf(result).length);
  expect(result.nextBefore).toBe(messagesOf(result)[0]?.id);
  const before = await small.call(MAIN, HISTORY, { sessionKey: session.key, before: result.nextBefore });
  expect(messagesOf(before).at(-1)?.id).toBe(`big-${30 - messagesOf(result).length - 1}`);
});

test("I14: by default history omits tool results; secrets, images and signatures are always omitted", async () => {
  const session = await app.add("agent:main:chat:secrets");
  const [asked, said] = [message(`my key is ${SECRET}`), message("x", "assistant", "thinks")];
  const image = { type: "image" as const, data: "QUJDRA==", mimeType: "image/png" };
  await app.say(session, { ...asked, content: [...asked.content, image] } as Message);
  await app.say(session, {
    ...said,
    content: [{ type: "thinking", thinking: "hmm", thinkingSignature: "SIGNED" }],
  } as Message);
  await app.say(session, {
    id: "result",
    role: "toolResult",
    toolCallId: "c",
    toolName: "read",
    content: [{ type: "text", text: "TOOL OUTPUT" }],
    isError: false,
    timestamp: 1,
  });
  const plain = JSON.stringify(await app.call(RESEARCH, HISTORY, { sessionKey: session.key }));
  expect(plain).toContain("my key is [redacted]");
  for (const hidden of [SECRET, "QUJDRA", "SIGNED", "TOOL OUTPUT"]) expect(plain).not.toContain(hidden);
  const full = await app.call(RESEARCH, HISTORY, { sessionKey: session.key, includeTools: true });
  expect(textsOf(full).at(-1)).toBe("TOOL OUTPUT");
});

test("a search finds words only in visible transcripts, redacts them, and returns ids that history accepts", async () => {
  const tree = await other({ tools: { visibility: "tree" } });
  const mine = await tree.session(MAIN);
  const hidden = await tree.session(RESEARCH);
  await tree.say(mine, message("the walrus has a plan", "user", "hit-1"), message(`walrus token ${SECRET}`));
  await tree.say(hidden, message("a hidden walrus"));
  const result = await tree.call(MAIN, "sessions_search", { query: "WALRUS" });
  expect(result.count).toBe(2);
  const hits = result.hits as ToolResult[];
  expect(hits.at(-1)).toMatchObject({
    sessionKey: "main",
    sessionId: mine.sessionId,
    messageId: "hit-1",
    role: "user",
    excerpt: expect.stringContaining("walrus"),
  });
  expect(JSON.stringify(result)).not.toContain(SECRET);
  expect(JSON.stringify(result)).not.toContain("hidden");
  const elsewhere = await tree.call(MAIN, "sessions_search", { query: "walrus", sessionKey: RESEARCH });
  expect(elsewhere).toMatchObject({ status: "forbidden", code: "not_visible" });
  const page = await tree.call(MAIN, "sessions_search", { query: "walrus", limit: 1 });
  expect(page).toMatchObject({ count: 1, nextCursor: expect.any(String) });
  const next = await tree.call(MAIN, "sessions_search", { query: "walrus", cursor: page.nextCursor });
  expect(next.count).toBe(1);
});

test("I9: a hit names its author, but neither a session that the viewer may not see, nor a secret", async () => {
  const tree = await other({ tools: { visibility: "tree" } });
  const mine = await tree.session(MAIN);
  await tree.session(RESEARCH);
  const step = { chainId: "c", hop: 1, sourceTool: "sessions_send" };
  const from = (key: string) => ({ kind: "inter_session" as const, sourceSessionKey: key, ...step });
  const text = (id: string, more: Partial<UserMessage>) =>
    ({ ...message("a gull", "user", id), ...more }) as UserMessage;
  const answer = message("a gull", "assistant", "by-agent") as AssistantMessage;
  await tree.say(
    mine,
    text("by-reader", {}),
    text("by-person", { senderName: `Ada ${SECRET}` }),
    text("by-hidden", { provenance: from(RESEARCH) }),
    text("by-main", { provenance: from(MAIN) }),
    text("by-gateway", { provenance: { kind: "notice", sourceSessionKey: RESEARCH } }),
    text("by-job", { provenance: { kind: "cron", source: "daily" } }),
    answer,
    { ...answer, id: "by-operator", stopReason: "injected" },
  );
  const { hits } = await tree.call(MAIN, "sessions_search", { query: "gull" });
  const authors = (hits as ToolResult[]).map(({ messageId, author }) => [messageId, author]);
  expect(Object.fromEntries(authors)).toEqual({
    "by-reader": { kind: "person" },
    "by-person": { kind: "person", name: "Ada [redacted]" },
    "by-hidden": { kind: "session", sessionKey: NOT_VISIBLE },
    "by-main": { kind: "session", sessionKey: "main" },
    "by-gateway": { kind: "notice", sessionKey: NOT_VISIBLE },
    "by-job": { kind: "cron", name: "daily" },
    "by-agent": { kind: "agent", name: "main" },
    "by-operator": { kind: "note" },
  });
});

test("I9: a hit does not name a deleted session, whose key does not tell who could see it", async () => {
  const agent = await other({ tools: { visibility: "agent" } });
  const sourceSessionKey = "agent:main:subagent:676406b5-11e8-4c04-8bcd-871c0edf8f97";
  const step = { chainId: "c", hop: 1, sourceTool: "sessions_send" };
  const provenance = { kind: "inter_session" as const, sourceSessionKey, ...step };
  const said = { ...message("a gull", "user", "by-deleted"), provenance } as UserMessage;
  await agent.say(await agent.session(MAIN), said);
  const { hits } = await agent.call(MAIN, "sessions_search", { query: "gull" });
  expect(hits).toMatchObject([{ author: { kind: "session", sessionKey: NOT_VISIBLE } }]);
});

test("I9: history and list do not name the source of a message that the viewer may not see", async () => {
  const tree = await other({ tools: { visibility: "tree" } });
  const step = { chainId: "c", hop: 1, sourceTool: "sessions_send" };
  const from = (key: string) => ({ kind: "inter_session" as const, sourceSessionKey: key, ...step });
  const said = (id: string, provenance: UserMessage["provenance"]) =>
    ({ ...message("hello", "user", id), provenance }) as UserMessage;
  const child = await tree.add("agent:main:subagent:676406b5-11e8-4c04-8bcd-871c0edf8f97", {
    ...{ spawnedBy: MAIN, spawnDepth: 1 },
  });
  const notice = { kind: "notice" as const, sourceSessionKey: RESEARCH };
  await tree.say(child, said("hidden", from(RESEARCH)), said("notice", notice), said("seen", from(MAIN)));
  const page = await tree.call(MAIN, HISTORY, { sessionKey: child.key });
  const listed = await tree.call(MAIN, LIST, { messageLimit: 5 });
  const row = (listed.sessions as ToolResult[]).find(({ key }) => key === child.key);
  const sources = [NOT_VISIBLE, NOT_VISIBLE, MAIN].map((sourceSessionKey) => ({
    provenance: { sourceSessionKey },
  }));
  expect(page.messages).toMatchObject(sources);
  expect(row?.messages).toMatchObject(sources);
});

test("session_status describes the caller's own session by default, with usage and cost from the ledger", async () => {
  const usage = {
    ...ZERO_USAGE,
    input: 10,
    output: 5,
    totalTokens: 15,
    cost: { ...ZERO_USAGE.cost, total: 0.25 },
  };
  const row = { runId: "r1", sessionKey: MAIN, agentId: "main", provider: "p", model: "m", usage, at: 1 };
  await app.engine.store.transaction((tx) => addUsageRow(tx, row));
  const status = await app.call(MAIN, "session_status", {});
  expect(status).toMatchObject({
    sessionKey: "main",
    agentId: "main",
    kind: "main",
    state: "idle",
    queuedRuns: 0,
    runs: [],
    openFlows: [],
    model: "offline/rehearsal",
    thinkingLevel: "off",
    usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 15 },
    cost: 0.25,
  });
});

test("a run's status is available until the run ends; an unknown run and a hidden run give the same error", async () => {
  const tree = await other({ tools: { visibility: "tree" } });
  const accepted = await tree.engine.accept({ sessionKey: MAIN, input: { text: `say ${SECRET}` } });
  const hidden = await tree.engine.accept({ sessionKey: RESEARCH, input: { text: "hi" } });
  if (!accepted.ok || !hidden.ok) throw new Error("not accepted");
  const { runId } = accepted.value.run;
  await tree.engine.waitForRun(runId, tree.engine.now() + 5_000);
  const status = await tree.call(MAIN, "session_status", { runId });
  expect(status).toMatchObject({ runId, sessionKey: "main", state: "ok", reply: "echo: say [redacted]" });
  const secret = hidden.value.run.runId;
  const answers = await Promise.all(
    [secret, "no-such-run"].map(async (id) =>
      JSON.stringify(await tree.call(MAIN, "session_status", { runId: id })).replaceAll(id, "ID"),
    ),
  );
  expect(answers[0]).toBe(answers[1]);
  expect(answers[0]).toContain("not_visible");
  const operator: Viewer = { kind: "operator", scopes: ["operator.read"] };
  expect(await tree.call(MAIN, "session_status", { runId: "no-such-run" }, operator)).toMatchObject({
    code: "run_not_found",
  });
});

test("session_status names open conversations, and the other party only if it is visible", async () => {
  const held = await other({});
  held.hold();
  const sent = await held.call(MAIN, "sessions_send", {
    sessionKey: RESEARCH,
    message: "hi",
    timeoutSeconds: 0,
  });
  expect(sent.status).toBe("accepted");
  const status = await held.call(MAIN, "session_status", {});
  expect(status.openFlows).toEqual([expect.objectContaining({ from: "main", to: RESEARCH, turnsMax: 0 })]);
  const as = { key: RESEARCH, agentId: "research", sandboxed: false, sandboxClamp: "spawned" } as const;
  const narrow: Viewer = { kind: "operator", scopes: ["operator.read"], patterns: ["agent:research:*"], as };
  const seen = await held.call(RESEARCH, "session_status", {}, narrow);
  expect(seen.openFlows).toEqual([expect.objectContaining({ from: "(not visible)", to: "main" })]);
});

test("I9: session_status does not name the party of a message whose session an operator may not see", async () => {
  const one = await other({});
  const args = { sessionKey: RESEARCH, message: "hi", timeoutSeconds: 0 };
  const { messageId } = await one.call(MAIN, "sessions_send", args);
  const patterns = ["agent:research:*"];
  const narrow: Viewer = { kind: "operator", scopes: ["operator.read"], patterns };
  const report = (caller: string, viewer?: Viewer) =>
    one.call(caller, "session_status", { messageId }, viewer);
  expect(await report(RESEARCH, narrow)).toMatchObject({ from: NOT_VISIBLE, to: RESEARCH });
  expect(await report(RESEARCH)).toMatchObject({ from: MAIN, to: "main" });
});

test("I9: a refused wait does not name sessions of its cycle that the caller may not see", async () => {
  const one = await other({ tools: { agentToAgent: { enabled: true, allow: ["main", "research"] } } });
  const client = await one.add("agent:main:mcp:editor", { external: true });
  const writer = "agent:writer:main";
  const wait = { kind: "run", targetId: "x", state: "open", deadlineAt: one.engine.now() + 60_000 } as const;
  await one.engine.store.transaction(async (tx) => {
    const edge = (waiterSessionKey: string, targetSessionKey: string) =>
      insertWait(tx, {
        ...{ ...wait, callId: waiterSessionKey, waiterRunId: waiterSessionKey },
        ...{ waiterSessionKey, targetSessionKey },
      });
    await edge(RESEARCH, writer);
    await edge(writer, client.key);
  });
  const args = { sessionKey: RESEARCH, message: "hi", timeoutSeconds: 5 };
  // Only the wait of a client that confirms its answers is part of the graph.
  const ctx = { ...one.context(client), confirmsAnswers: true };
  const call = { callId: "closing", attempt: 1, name: "sessions_send", arguments: args };
  const refused = await callTool(ctx, call);
  const cycle = [client.key, RESEARCH, NOT_VISIBLE, client.key];
  expect(refused).toMatchObject({ code: "wait_cycle", error: expect.stringContaining(cycle.join(" -> ")) });
  expect(JSON.stringify(refused)).not.toContain("writer");
});

test("I9: agents_list shows an operator only agents that its token covers", async () => {
  const agents = [
    agentSettings("main", { subagents: { allowAgents: ["*"] } }),
    agentSettings("research"),
    agentSettings("writer"),
  ];
  const some = await other({ agents });
  const patterns = ["agent:main:*", "agent:research:subagent:*"];
  const narrow: Viewer = { kind: "operator", scopes: ["operator.write"], patterns };
  const listed = await some.call(MAIN, "agents_list", {}, narrow);
  expect((listed.agents as ToolResult[]).map(({ id }) => id)).toEqual(["main", "research"]);
});

test("sessions_send finds its target by key, id or label, and returns the answer of the run that it started", async () => {
  const labelled = await app.add("agent:research:chat:labelled", { label: "library" });
  for (const target of [
    { sessionKey: labelled.key },
    { sessionKey: labelled.sessionId },
    { label: "library", agentId: "research" },
    // The label belongs to only one visible session. It is another agent's session.
    { label: "library" },
  ]) {
    const result = await app.call(MAIN, "sessions_send", { ...target, message: "hello", timeoutSeconds: 20 });
    expect(result).toMatchObject({ status: "ok", reply: "echo: hello", sessionKey: labelled.key });
  }
});

test("sessions_send passes runTimeoutSeconds to the run, and refuses a limit beyond 30 days", async () => {
  const args = { sessionKey: RESEARCH, message: "hello", runTimeoutSeconds: 0.5 };
  const { runId } = await app.call(MAIN, "sessions_send", args);
  expect(await getRun(app.engine.store.db, String(runId))).toMatchObject({ timeoutMs: 500 });
  for (const runTimeoutSeconds of [-1, 30 * 86_400 + 1]) {
    const refused = await app.call(MAIN, "sessions_send", { ...args, runTimeoutSeconds });
    expect(refused).toMatchObject({ status: "error", code: "invalid_argument" });
    expect(refused.error).toContain("runTimeoutSeconds must be 0 (no limit) to 2592000");
  }
});

test("I9: a send to a hidden session is refused before anything is written", async () => {
  const tree = await other({ tools: { visibility: "tree" } });
  const result = await tree.call(MAIN, "sessions_send", { sessionKey: RESEARCH, message: "hello" });
  expect(result).toMatchObject({ status: "forbidden", code: "not_visible", settings: expect.any(Array) });
  const closed = await other({ tools: { agentToAgent: { enabled: false, allow: [] } } });
  const refused = await closed.call(MAIN, "sessions_send", { sessionKey: RESEARCH, message: "hello" });
  expect(refused).toMatchObject({ status: "forbidden", code: "agent_to_agent" });
  expect(refused.error).toContain("tools.agentToAgent.enabled");
  expect((await closed.engine.load()).queued + (await tree.engine.load()).queued).toBe(0);
});

test("I4: a send that was accepted before a restart is not checked again if the settings change", async () => {
  const some = await other({});
  const session = await some.add("agent:research:chat:soon-gone");
  const ctx = some.context(await some.session(MAIN));
  const narrow = settingsWith({ tools: { visibility: "self", filter: { allow: [], deny: ["sessions_*"] } } });
  const after = { ...ctx, settings: narrow, viewer: sessionViewer([ctx.session], narrow) };
  const answers = [];
  for (const timeoutSeconds of [20, 0]) {
    const args = { sessionKey: session.key, message: "hello", timeoutSeconds };
    const call = { callId: `again-${timeoutSeconds}`, attempt: 1, name: "sessions_send", arguments: args };
    const first = await callTool(ctx, call);
    expect(first.status).toBe(timeoutSeconds > 0 ? "ok" : "accepted");
    expect(await callTool(after, { ...call, attempt: 2 })).toEqual(first);
    answers.push({ call, first });
  }
  const facts = {
    engine: some.engine,
    settings: narrow,
    dropTranscript: async () => {},
  };
  await deleteSession(facts, session);
  const [waited, accepted] = answers;
  const again = (answer: typeof waited) => answer && callTool(after, { ...answer.call, attempt: 3 });
  expect(await again(waited)).toMatchObject({ status: "error", code: "session_deleted" });
  expect(await again(accepted)).toEqual(accepted?.first);
  const runs = await listRuns(some.engine.store.db, { sessionKey: session.key, limit: 10 });
  expect(runs.map(({ input }) => input.text)).toEqual(["", ""]);
});

test("the agent loop gets a tool's result as one JSON text, marked as an error if the call failed", async () => {
  const ctx = app.context(await app.session(MAIN));
  const good = await invokeTool(ctx, { callId: "i1", attempt: 1, name: LIST, arguments: { limit: 1 } });
  expect(good.isError).toBe(false);
  expect(JSON.parse(good.text)).toMatchObject({ count: 1 });
  const bad = await invokeTool(ctx, { callId: "i2", attempt: 1, name: HISTORY, arguments: {} });
  expect(bad.isError).toBe(true);
  expect(JSON.parse(bad.text)).toMatchObject({ status: "error", code: "invalid_argument" });
});

test("I9: each search hit passes the visibility check, even if the query was not limited", async () => {
  const global = await other({ session: { scope: "global" }, tools: { visibility: "agent" } });
  const mine = await global.add("agent:main:chat:mine");
  await global.say(mine, message("walnut mine"));
  await global.say(await global.add("agent:research:chat:theirs"), message("walnut theirs"));
  const result = await global.call(mine.key, "sessions_search", { query: "walnut" });
  expect(result).toMatchObject({ count: 1, hits: [{ sessionKey: mine.key }] });
});
