// Creating, changing, archiving, resetting and deleting sessions, on a real store and engine.

import { afterEach, expect, test } from "vitest";
import { operatorViewer, sessionViewer } from "../../../src/access/access.ts";
import { fail, ok, type Result } from "../../../src/core/shapes/errors.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import type { Run } from "../../../src/core/shapes/run.ts";
import type { Session } from "../../../src/core/shapes/session.ts";
import type { TokenScope } from "../../../src/core/shapes/settings/settings.ts";
import {
  createSession,
  deleteSession,
  ensureMainSessions,
  injectMessage,
  type LifecycleContext,
  type PatchRequest,
  patchSession,
  resetSession,
} from "../../../src/flows/session/lifecycle.ts";
import { getFlow } from "../../../src/store/queries/chains/flows.ts";
import { usageOf } from "../../../src/store/queries/runs/ledger.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { findSessionId, getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { lastMessages } from "../../../src/store/queries/transcripts/transcripts.ts";
import { type App, message, openApp } from "../../tools/app.ts";
import { MAIN, RESEARCH, turns } from "../conversation/asking.ts";

const ADMIN = operatorViewer(["operator.admin"]);

let apps: App[] = [];
afterEach(async () => {
  for (const app of apps) await app.close();
  apps = [];
});

interface Stage extends App {
  readonly ctx: LifecycleContext;
  readonly dropped: string[];
  readonly events: LiveEvent[];
}

async function open(choices: Parameters<typeof openApp>[0] = {}): Promise<Stage> {
  const app = await openApp(choices);
  apps.push(app);
  const dropped: string[] = [];
  const events: LiveEvent[] = [];
  app.engine.bus.subscribe((event) => events.push(event));
  const ctx: LifecycleContext = {
    engine: app.engine,
    settings: app.settings,
    checkModel: (name) =>
      name === "local/qwen3" ? ok(name) : fail("invalid_model", `no model ${name}; valid: local/qwen3`),
    dropTranscript: async (sessionId) => {
      dropped.push(sessionId);
    },
  };
  return { ...app, ctx, dropped, events };
}

function value<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.code}: ${result.error}`);
  return result.value;
}

async function accept(app: App, sessionKey: string, text: string): Promise<Run> {
  return value(await app.engine.accept({ sessionKey, input: { text } })).run;
}

async function ended(app: App, run: Run): Promise<Run | undefined> {
  return app.engine.waitForRun(run.runId, app.engine.now() + 5_000);
}

const changes = (stage: Stage, key: string): string[] =>
  stage.events.flatMap((event) =>
    event.kind === "session" && event.sessionKey === key ? [event.change] : [],
  );

test("the main session of each configured agent is created once", async () => {
  const app = await open();
  const before = await app.session(RESEARCH);
  await ensureMainSessions(app);
  expect(await app.session(RESEARCH)).toEqual(before);
  expect(before).toMatchObject({ kind: "main", agentId: "research", spawnDepth: 0, external: false });
});

test("with scope `global` there is only one main session, and it belongs to the default agent", async () => {
  const app = await open({ session: { scope: "global" } });
  expect(await app.session("global")).toMatchObject({ kind: "main", agentId: "main" });
  expect(await getSession(app.engine.store.db, MAIN)).toBeUndefined();
});

test("a new session has a new key, and the callback `also` runs in the same transaction", async () => {
  const app = await open();
  const seen: string[] = [];
  const made = value(
    await createSession(app.ctx, ADMIN, {
      agentId: "Research",
      label: " ideas ",
      also: async (_unit, session) => {
        seen.push(session.key);
      },
    }),
  );
  expect(made.key).toMatch(/^agent:research:chat:[0-9a-f-]{36}$/);
  expect(made).toMatchObject({ agentId: "research", label: "ideas", kind: "other" });
  expect(seen).toEqual([made.key]);
  expect(changes(app, made.key)).toEqual(["created"]);
  const wrong = createSession(app.ctx, ADMIN, {
    also: async (_unit, session) => {
      seen.push(session.key);
      throw new Error("the store is full");
    },
  });
  await expect(wrong).rejects.toThrow("the store is full");
  expect(await getSession(app.engine.store.db, seen[1] ?? "")).toBeUndefined();
});

test.each([
  [{ agentId: "nobody" }, "agent_not_found"],
  [{ agentId: "" }, "agent_not_found"],
  [{ agentId: "../main" }, "agent_not_found"],
  [{ label: "" }, "invalid_argument"],
  [{ label: "a\nb" }, "invalid_argument"],
  [{ label: "a\u0000b" }, "invalid_argument"],
  [{ label: "x".repeat(201) }, "invalid_argument"],
])("creating a session with %j is refused: %s", async (request, code) => {
  const app = await open();
  expect(await createSession(app.ctx, ADMIN, request)).toMatchObject({ ok: false, code });
});

test("I9: a token creates only sessions that it covers", async () => {
  const app = await open();
  const narrow = operatorViewer(["operator.write"], ["agent:research:*"]);
  expect((await createSession(app.ctx, narrow, { agentId: "research" })).ok).toBe(true);
  expect(await createSession(app.ctx, narrow, {})).toMatchObject({ ok: false, code: "not_visible" });
  const reader = operatorViewer(["operator.read"]);
  expect(await createSession(app.ctx, reader, {})).toMatchObject({ ok: false, code: "missing_scope" });
});

test("a patch changes the named fields, and null removes a value", async () => {
  const app = await open();
  const session = await app.session(MAIN);
  const all: PatchRequest = {
    label: " desk ",
    thinkingLevel: "high",
    verboseLevel: "on",
    model: "local/qwen3",
    sendPolicy: "deny",
  };
  const patched = value(await patchSession(app.ctx, ADMIN, session, all));
  expect(patched).toMatchObject({ ...all, label: "desk" });
  expect(value(await patchSession(app.ctx, ADMIN, session, { label: "shelf" }))).toMatchObject({
    label: "shelf",
    model: "local/qwen3",
  });
  const cleared = value(
    await patchSession(app.ctx, ADMIN, session, {
      label: null,
      thinkingLevel: null,
      verboseLevel: null,
      model: null,
      sendPolicy: null,
    }),
  );
  for (const field of Object.keys(all)) expect(cleared).not.toHaveProperty(field);
  expect(changes(app, MAIN)).toEqual(["updated", "updated", "updated"]);
});

test.each<[PatchRequest, string, string]>([
  [{ label: "" }, "invalid_argument", "must not be empty"],
  [{ label: "x".repeat(201) }, "invalid_argument", "the maximum is 200"],
  [{ label: "a\u001bb" }, "invalid_argument", "control characters"],
  [{ thinkingLevel: "deep" }, "invalid_thinking", "valid: off, minimal, low, medium, high, xhigh, max"],
  [{ verboseLevel: "loud" }, "invalid_argument", "valid: off, on, full"],
  [{ model: "gpt" }, "invalid_model", "valid: local/qwen3"],
  [{ sendPolicy: "maybe" }, "invalid_argument", "valid: allow, deny"],
  [{ archived: true }, "invalid_argument", "only be false"],
])("a patch with %j is refused, and changes no field", async (request, code, text) => {
  const app = await open();
  const session = await app.session(MAIN);
  const result = await patchSession(app.ctx, ADMIN, session, { label: "kept out", ...request });
  expect(result).toMatchObject({ ok: false, code, error: expect.stringContaining(text) });
  expect(await app.session(MAIN)).toEqual(session);
});

test("only an administrator may change the send policy of a session", async () => {
  const app = await open();
  const session = await app.session(MAIN);
  const writer = operatorViewer(["operator.write"] satisfies TokenScope[]);
  for (const viewer of [writer, sessionViewer([session], app.settings)]) {
    const result = await patchSession(app.ctx, viewer, session, { sendPolicy: "allow" });
    expect(result).toMatchObject({ ok: false, code: "missing_scope" });
  }
  expect((await patchSession(app.ctx, writer, session, { label: "mine" })).ok).toBe(true);
});

test("an archived session is read-only until it is restored", async () => {
  const app = await open();
  const session = await app.add("agent:main:chat:old", { archivedAt: 5 });
  expect(await patchSession(app.ctx, ADMIN, session, { label: "x" })).toMatchObject({
    code: "session_archived",
  });
  expect(await resetSession(app.ctx, session)).toMatchObject({ code: "session_archived" });
  expect(await injectMessage(app.ctx, session, { message: "x" })).toMatchObject({ code: "session_archived" });
  const restored = value(await patchSession(app.ctx, ADMIN, session, { archived: false, label: "back" }));
  expect(restored).not.toHaveProperty("archivedAt");
  expect(restored.label).toBe("back");
});

test("a reset gives a new transcript and zero counters, and keeps settings, label and route", async () => {
  const app = await open();
  const kept = {
    label: "desk",
    model: "local/qwen3",
    thinkingLevel: "low",
    sendPolicy: "deny" as const,
    lastRoute: { channel: "telegram", to: "5" },
  };
  const before = await app.add("agent:main:chat:1", {
    ...kept,
    totalTokens: 9,
    contextUsed: 8,
    systemSent: true,
  });
  await app.say(before, message("old words"));
  const after = value(await resetSession(app.ctx, before));
  expect(after).toMatchObject({ ...kept, totalTokens: 0, contextUsed: 0, systemSent: false });
  expect(after.sessionId).not.toBe(before.sessionId);
  expect(await lastMessages(app.engine.store.db, after.sessionId, 5, { includeTools: true })).toEqual([]);
  expect(await findSessionId(app.engine.store.db, before.sessionId)).toMatchObject({
    currentSessionId: after.sessionId,
  });
  expect(changes(app, before.key)).toEqual(["reset"]);
});

test("I2: a reset ends all earlier runs and publishes their ends, but does not end later runs", async () => {
  const app = await open();
  const running = await app.held(MAIN);
  const queued = await accept(app, MAIN, "queued");
  const after = value(await resetSession(app.ctx, await app.session(MAIN)));
  for (const run of [running, queued]) {
    expect(await ended(app, run)).toMatchObject({ state: "aborted", code: "session_reset" });
  }
  const later = await accept(app, MAIN, "later");
  expect(later.sessionId).toBe(after.sessionId);
  expect(await getRun(app.engine.store.db, later.runId)).not.toMatchObject({ state: "aborted" });
});

test("main sessions can't be deleted", async () => {
  const app = await open();
  const result = await deleteSession(app.ctx, await app.session(MAIN));
  expect(result).toMatchObject({ ok: false, code: "protected_session" });
  const global = await open({ session: { scope: "global" } });
  expect(await deleteSession(global.ctx, await global.session("global"))).toMatchObject({ ok: false });
});

test("deleting a session ends its runs and its descendants' runs, and deletes all transcripts of the session", async () => {
  const app = await open();
  const first = await app.add("agent:main:chat:gone");
  const child = await app.add("agent:main:subagent:1", { spawnedBy: first.key, spawnDepth: 1 });
  await app.say(first, message("secret words", "user", "gone-1"));
  const second: Session = value(await resetSession(app.ctx, first));
  const running = await app.held(first.key);
  const below = await accept(app, child.key, "work");
  expect(value(await deleteSession(app.ctx, second))).toEqual({ key: first.key });
  expect(await ended(app, running)).toMatchObject({ state: "aborted", code: "session_deleted" });
  expect(await ended(app, below)).toMatchObject({ state: "aborted", code: "session_deleted" });
  expect(await getSession(app.engine.store.db, first.key)).toBeUndefined();
  expect(await findSessionId(app.engine.store.db, first.sessionId)).toBeUndefined();
  expect([...app.dropped].sort()).toEqual([first.sessionId, second.sessionId].sort());
  expect(await app.call(MAIN, "sessions_search", { query: "secret" })).toMatchObject({ count: 0 });
  expect(changes(app, first.key)).toContain("deleted");
  expect((await usageOf(app.engine.store.db, {})).totalTokens).toBe(0);
  expect(await deleteSession(app.ctx, second)).toMatchObject({ ok: false, code: "session_not_found" });
});

test("LC1: deleting a session ends the conversations of its descendants, too", async () => {
  const app = await open({ ...turns(5), tools: { subagents: { allow: ["sessions_send"], deny: [] } } });
  app.hold();
  const parent = await app.add("agent:main:chat:gone");
  const child = await app.add("agent:main:subagent:1", { spawnedBy: parent.key, spawnDepth: 1 });
  const sent = await app.call(child.key, "sessions_send", {
    sessionKey: MAIN,
    message: "hi",
    timeoutSeconds: 0,
  });
  expect(sent).toMatchObject({ status: "accepted" });
  value(await deleteSession(app.ctx, parent));
  const run = await getRun(app.engine.store.db, sent.runId as string);
  expect(await getFlow(app.engine.store.db, run?.flow?.flowId ?? "")).toMatchObject({
    open: false,
    endReason: "session_deleted",
  });
  expect(run?.state).toMatch(/queued|running/);
});

test("deleting a session keeps its transcript if requested", async () => {
  const app = await open();
  const session = await app.add("agent:main:chat:kept");
  await app.say(session, message("kept words"));
  value(await deleteSession(app.ctx, session, { deleteTranscript: false }));
  expect(app.dropped).toEqual([]);
  expect(await lastMessages(app.engine.store.db, session.sessionId, 5, { includeTools: true })).toHaveLength(
    1,
  );
});

test("an injected message becomes an assistant message without a model call, and is appended once for each id", async () => {
  const app = await open();
  const session = await app.session(MAIN);
  const request = { message: "The deploy is done.", label: "ops", runId: "note-1" };
  const one = value(await injectMessage(app.ctx, session, request));
  const two = value(await injectMessage(app.ctx, session, request));
  expect([one.fresh, two.fresh]).toEqual([true, false]);
  expect(await ended(app, one.run)).toMatchObject({ state: "ok" });
  const messages = await lastMessages(app.engine.store.db, session.sessionId, 5, { includeTools: true });
  expect(messages).toMatchObject([
    {
      role: "assistant",
      stopReason: "injected",
      content: [{ type: "text", text: "[ops]\n\nThe deploy is done." }],
    },
  ]);
});

test("an injected message waits for the run that holds the lane, so that it does not separate a tool call from its result", async () => {
  const app = await open();
  const running = await app.held(MAIN);
  const note = value(await injectMessage(app.ctx, await app.session(MAIN), { message: "later" }));
  expect((await getRun(app.engine.store.db, note.run.runId))?.state).toBe("queued");
  await app.engine.abort({ sessionKey: MAIN, runId: running.runId });
  expect(await ended(app, note.run)).toMatchObject({ state: "ok" });
});

test.each([
  [{ message: "" }, "invalid_argument"],
  [{ message: " \n" }, "invalid_argument"],
  [{ message: "x", label: "a\nb" }, "invalid_argument"],
  [{ message: "x".repeat(256 * 1024 + 1) }, "too_large"],
])("injecting %j is refused: %s", async (request, code) => {
  const app = await open();
  expect(await injectMessage(app.ctx, await app.session(MAIN), request)).toMatchObject({ ok: false, code });
});
