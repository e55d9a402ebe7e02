// The answers of `sessions_list`: every field, every filter, every limit.

import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { Viewer } from "../../src/core/rules/visibility.ts";
import type { Message } from "../../src/core/shapes/message.ts";
import type { ToolResult } from "../../src/tools/tool.ts";
import { type App, message } from "./app.ts";
import { appsOfFile } from "./apps.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const GROUP = "agent:main:telegram:group:-5";
const CHILD = "agent:writer:subagent:00000000-0000-4000-8000-000000000001";
const LIST = "sessions_list";
const SECRET = "sk-abcdefghijklmnopqrstuvwx1234";

let app: App;
const other = appsOfFile();

beforeAll(async () => {
  app = await other();
  await app.add(GROUP, {
    updatedAt: 5_000,
    label: `key ${SECRET}`,
    displayName: "The team",
    groupChannel: "telegram",
    lastRoute: { channel: "telegram", to: "-5", accountId: "bot", threadId: "7" },
    thinkingLevel: "high",
    verboseLevel: "on",
    sendPolicy: "deny",
    model: "local/qwen3",
    contextUsed: 12,
    totalTokens: 34,
    systemSent: true,
    abortedLastRun: true,
  });
  await app.add(CHILD, { updatedAt: 4_000, spawnedBy: MAIN, spawnDepth: 1 });
  await app.add("cron:nightly", { updatedAt: 3_000, agentId: "research" });
  await app.add("agent:main:chat:archived", { updatedAt: 9_000, archivedAt: 1 });
  await app.add("unknown", { updatedAt: 9_500 });
});

const rowsOf = (result: ToolResult): ToolResult[] => result.sessions as ToolResult[];
const keysOf = (result: ToolResult): unknown[] => rowsOf(result).map((row) => row.key);
const messagesOf = (result: ToolResult): Message[] => result.messages as Message[];
const textsOf = (result: ToolResult): string[] =>
  messagesOf(result).map((one) =>
    one.content.map((block) => (block.type === "text" ? block.text : "")).join(),
  );

async function rowOf(key: string): Promise<ToolResult> {
  const row = rowsOf(await app.call(MAIN, LIST, {})).find((one) => one.key === key);
  if (row === undefined) throw new Error(`no row ${key}`);
  return row;
}

test("a row has exactly the fields of its session, and secrets are redacted", async () => {
  const { sessionId } = await app.session(GROUP);
  expect(await rowOf(GROUP)).toEqual({
    key: GROUP,
    kind: "group",
    channel: "telegram",
    label: "key [redacted]",
    displayName: "The team",
    agentId: "main",
    updatedAt: 5_000,
    sessionId,
    model: "local/qwen3",
    contextTokens: null,
    contextUsed: 12,
    totalTokens: 34,
    thinkingLevel: "high",
    verboseLevel: "on",
    systemSent: true,
    abortedLastRun: true,
    sendPolicy: "deny",
    lastChannel: "telegram",
    lastTo: "-5",
    lastAccountId: "bot",
    deliveryContext: { channel: "telegram", to: "-5", accountId: "bot", threadId: "7" },
    state: "idle",
    queuedRuns: 0,
  });
});

test("the caller's main session is shown as `main`, even as a spawner; other main sessions are shown with their full key", async () => {
  expect(await rowOf("main")).toMatchObject({ kind: "main", agentId: "main" });
  expect(await rowOf(CHILD)).toMatchObject({ spawnedBy: "main", channel: "unknown", kind: "other" });
  const seen = keysOf(await app.call(RESEARCH, LIST, {}));
  expect(seen).toEqual(expect.arrayContaining(["main", MAIN]));
  expect(seen).not.toContain(RESEARCH);
});

test("the newest sessions come first; archived sessions and reserved names are omitted", async () => {
  const result = await app.call(MAIN, LIST, {});
  const times = rowsOf(result).map((row) => row.updatedAt as number);
  expect(times).toEqual([...times].sort((a, b) => b - a));
  expect(keysOf(result)).not.toContain("agent:main:chat:archived");
  expect(keysOf(result)).not.toContain("unknown");
  expect(result).toMatchObject({ count: times.length, visibility: "all" });
});

test("transcriptPath is returned if its file exists", async () => {
  const { sessionId } = await app.session(RESEARCH);
  const path = app.engine.store.transcriptPath(sessionId) ?? "";
  expect((await rowOf(RESEARCH)).transcriptPath).toBeUndefined();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "{}\n");
  expect(existsSync((await rowOf(RESEARCH)).transcriptPath as string)).toBe(true);
  rmSync(path);
});

test("filters: kinds, agentId, search, activeMinutes", async () => {
  const list = async (args: object) => keysOf(await app.call(MAIN, LIST, args));
  expect(await list({ kinds: ["group"] })).toEqual([GROUP]);
  expect(await list({ kinds: ["cron", "other", "cron"] })).toEqual([CHILD, "cron:nightly"]);
  expect(await list({ agentId: "Writer" })).toEqual(["agent:writer:main", CHILD]);
  expect(await list({ agentId: "nobody" })).toEqual([]);
  expect(await list({ search: "the TEAM" })).toEqual([GROUP]);
  expect(await list({ search: "nightly" })).toEqual(["cron:nightly"]);
  expect(await list({ search: "%" })).toEqual([]);
  expect(await list({ activeMinutes: 5 })).toHaveLength(3);
  expect(await list({ activeMinutes: 5 })).not.toContain(GROUP);
});

test("a row contains the state of its session", async () => {
  const busy = await other({});
  await busy.held(RESEARCH);
  for (const text of ["two", "three"]) await busy.engine.accept({ sessionKey: RESEARCH, input: { text } });
  const result = await busy.call(MAIN, LIST, { agentId: "research" });
  expect(rowsOf(result)[0]).toMatchObject({ state: "running", queuedRuns: 2 });
  const status = await busy.call(MAIN, "session_status", { sessionKey: RESEARCH });
  expect(status).toMatchObject({ state: "running", queuedRuns: 2 });
  expect(status.runs).toHaveLength(3);
});

test("if an operator acts as a session, the list is also limited by the patterns of the operator's token", async () => {
  const as = { key: MAIN, agentId: "main", sandboxed: false, sandboxClamp: "spawned" } as const;
  const viewer: Viewer = { kind: "operator", scopes: ["operator.admin"], patterns: ["agent:research:*"], as };
  expect(keysOf(await app.call(MAIN, LIST, {}, viewer))).toEqual([RESEARCH]);
});

test("with scope global the only session is listed as `main`, never with its key", async () => {
  const global = await other({ session: { scope: "global" } });
  await global.add("agent:research:chat:1");
  const result = await global.call("agent:research:chat:1", LIST, {});
  expect(keysOf(result)).toContain("main");
  expect(JSON.stringify(result)).not.toContain('"global"');
});

test("messageLimit adds the last messages, redacted and without tool results, newest sessions first, up to a limit", async () => {
  const small = await other({ tools: { history: { maxTextChars: 100, maxBytes: 1_000 } } });
  const older = await small.add("agent:main:chat:older", { updatedAt: 1 });
  const newer = await small.add("agent:main:chat:newer", { updatedAt: 2 });
  const call: Message = {
    id: "t1",
    role: "toolResult",
    toolCallId: "c",
    toolName: "x",
    isError: false,
    timestamp: 1,
    content: [{ type: "text", text: "tool text" }],
  };
  for (const session of [older, newer]) {
    const ids = [`a-${session.key}`, `b-${session.key}`];
    await small.say(session, message("first", "user", ids[0]), { ...call, id: `t-${session.key}` });
    await small.say(session, message(`token ${SECRET} ${"y".repeat(300)}`, "user", ids[1]));
  }
  const result = await small.call(MAIN, LIST, { messageLimit: 2, kinds: ["other"] });
  const [first] = rowsOf(result);
  expect(first?.key).toBe(newer.key);
  expect(textsOf(first as ToolResult)).toEqual(["first", expect.stringContaining("token [redacted]")]);
  expect(JSON.stringify(result)).not.toContain("tool text");
  expect(rowsOf(result).reduce((sum, row) => sum + JSON.stringify(row.messages).length, 0)).toBeLessThan(
    1_100,
  );
  expect(result.messagesTruncated).toBe(true);
  expect(await small.call(MAIN, LIST, {})).not.toHaveProperty("messagesTruncated");
});

test("I9: a row names its session's parent only if the caller can see the parent", async () => {
  const mine = await other({ tools: { visibility: "agent" } });
  const child = "agent:main:subagent:00000000-0000-4000-8000-0000000000c1";
  await mine.add(child, { spawnedBy: RESEARCH, spawnDepth: 1 });
  const rows = rowsOf(await mine.call(MAIN, LIST, { search: child }));
  expect(rows).toMatchObject([{ key: child }]);
  expect(rows[0]).not.toHaveProperty("spawnedBy");
  const spawner = rowsOf(await mine.call(RESEARCH, LIST, { search: child }));
  expect(spawner).toMatchObject([{ key: child, spawnedBy: "main" }]);
});

const KID = "agent:research:subagent:00000000-0000-4000-8000-000000000002";

test.each([
  ["a sub-agent", KID, { spawnedBy: MAIN, spawnDepth: 1 }, "per-sender"],
  ["a session beside session.scope global", "agent:main:chat:beside", {}, "global"],
] as const)("I9: no cursor tells %s of sessions that it may not see", async (_, key, more, scope) => {
  const one = await other({
    tools: { visibility: "agent", subagents: { allow: ["sessions_list", "sessions_search"], deny: [] } },
    session: { scope },
  });
  await one.add(key, { ...more, updatedAt: 1_000 });
  // More than the pages of the store that one page of the answer may read.
  for (let at = 0; at < 12; at += 1) {
    const hidden = await one.add(`agent:research:chat:hidden-${at}`, { updatedAt: 9_000_000_000_000 + at });
    await one.say(hidden, message("the walrus has a plan"));
  }
  const list = await one.call(key, LIST, { limit: 1 });
  expect(list.nextCursor === undefined ? "" : atob(String(list.nextCursor))).not.toContain("hidden");
  expect(keysOf(list)).toHaveLength(1);
  expect(keysOf(await one.call(key, LIST, { search: "hidden", limit: 1 }))).toEqual([]);
  const found = await one.call(key, "sessions_search", { query: "walrus", limit: 1 });
  expect(found).toEqual({ count: 0, hits: [] });
});

test("I9: a list says by which settings and arguments it is filtered, whether or not there are hidden sessions", async () => {
  const tree = await other({ tools: { visibility: "tree" } });
  const filtered = async (args = {}) => (await tree.call(MAIN, LIST, args)).filtered;
  const before = await filtered();
  expect(before).toEqual({
    reasons: ["visibility"],
    hint:
      "This list may be incomplete. " + 'It has only what tools.sessions.visibility: "tree" shows to you.',
  });
  await tree.add("agent:research:chat:hidden");
  expect(await filtered()).toEqual(before);
  expect(await filtered({ kinds: ["group"], activeMinutes: 5 })).toMatchObject({
    reasons: ["visibility", "arguments"],
    hint: expect.stringContaining("It has only what kinds, activeMinutes match."),
  });
  const open = await other({ tools: { agentToAgent: { enabled: true, allow: ["main"] } } });
  expect(await open.call(MAIN, LIST, {})).toMatchObject({
    filtered: {
      reasons: ["visibility"],
      hint: expect.stringContaining("only what tools.agentToAgent shows"),
    },
  });
  const everything = await other({});
  expect(await everything.call(MAIN, LIST, {})).not.toHaveProperty("filtered");
  await everything.add("agent:main:chat:another");
  const paged = await everything.call(MAIN, LIST, { limit: 1 });
  expect(paged).toMatchObject({ nextCursor: expect.any(String), filtered: { reasons: ["limit"] } });
  const child = "agent:main:subagent:00000000-0000-4000-8000-0000000000c1";
  await tree.add(child, { spawnedBy: MAIN, spawnDepth: 1 });
  const viewer: Viewer = { kind: "operator", scopes: ["operator.read"], patterns: ["agent:main:*"] };
  expect(await tree.call(MAIN, LIST, {}, viewer)).toMatchObject({
    filtered: { hint: expect.stringContaining("only what gateway.auth.tokens[].sessions shows") },
  });
});
