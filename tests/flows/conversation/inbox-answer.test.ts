// A sender waits for the answer of an external session: a client that reads its inbox and sends back.

import { describe, expect } from "vitest";
import { sentSoFar } from "../../../src/flows/conversation/send.ts";
import { openExternal } from "../../../src/flows/session/external.ts";
import { resetSession } from "../../../src/flows/session/lifecycle.ts";
import { receiptsOf } from "../../../src/store/queries/runs/receipts.ts";
import { sendResult } from "../../../src/tools/sessions/send.ts";
import { both, share, test } from "../../kit/deep.ts";
import { cleanup, endOf, temporaryFolder } from "../../kit/engine/engine.ts";
import {
  type FlowApp,
  type FlowAppOptions,
  openFlowApp,
  type Play,
  sendAs,
} from "../../kit/engine/flow-app.ts";
import { openPostgresStore } from "../../kit/store/postgres.ts";
import { MAIN, RESEARCH } from "./asking.ts";

const DESK = "agent:main:mcp:desk";

/**
 * Returns a turn in which main sends to the external session and answers with the result as JSON. Main
 * repeats any other message.
 */
const asksDesk =
  (timeoutSeconds: number): Play =>
  async (actor) =>
    actor.handle.run.input.provenance === undefined
      ? JSON.stringify(await actor.send(DESK, "which port?", timeoutSeconds))
      : `heard ${actor.input}`;

async function withDesk(app: FlowApp): Promise<FlowApp> {
  const admin = { kind: "operator", scopes: ["operator.admin"] } as const;
  const opened = await openExternal(app, admin, { agentId: "main", handle: "desk" });
  if (!opened.ok) throw new Error(opened.error);
  return app;
}

async function openDesk(options: Partial<FlowAppOptions> = {}): Promise<FlowApp> {
  return withDesk(await openFlowApp({ plays: { [MAIN]: asksDesk(600) }, ...options }));
}

const inInbox = (app: FlowApp, ...texts: string[]) =>
  expect.poll(() => app.texts(DESK)).toEqual(texts.map((text) => `user: ${text}`));

async function resultOf(app: FlowApp, runId: string): Promise<Record<string, unknown>> {
  return JSON.parse((await endOf(app.engine, runId)).reply ?? "{}");
}

async function receiptsIn(app: FlowApp, ...ids: string[]): Promise<unknown[]> {
  const runs = await app.runs(DESK);
  const wanted = ids.flatMap((id) => runs.filter(({ runId }) => runId === id));
  const receipts = await receiptsOf(app.store.db, wanted);
  return ids.map((id) => receipts.get(id)?.state);
}

const kinds = async (app: FlowApp, key: string): Promise<string[]> =>
  (await app.runs(key)).map((run) => `${run.kind} ${run.state}`);

/** Opens an app in which main asks two questions at once. Returns the ids of the questions. */
async function askTwice(open = openDesk) {
  const app = await open({
    plays: {
      [MAIN]: async (actor) => {
        if (actor.step !== "message" || actor.input !== "go") return `heard ${actor.input}`;
        const first = actor.send(DESK, "one?", 600, "first");
        await inInbox(app, "one?");
        return JSON.stringify(await Promise.all([first, actor.send(DESK, "two?", 600, "second")]));
      },
    },
  });
  const { runId, chainId } = await app.tell(MAIN, "go");
  await inInbox(app, "one?", "two?");
  const [one = "", two = ""] = (await app.runs(DESK)).map((run) => run.runId);
  return { app, runId, chainId, one, two };
}

describe.each(share(["embedded"], ["PostgreSQL"]))("a message for an external session, %s", (kind) => {
  const test = both;
  async function open(options: Partial<FlowAppOptions> = {}): Promise<FlowApp> {
    if (kind === "embedded") return openDesk(options);
    const { store, dispose } = await openPostgresStore();
    cleanup(dispose);
    return openDesk({ disk: store, ...options });
  }

  test("a waiting sender gets the answer once, as its reply, in the same chain", async () => {
    const app = await open();
    const { runId, chainId } = await app.tell(MAIN, "go");
    await inInbox(app, "which port?");
    const answer = await app.send(DESK, MAIN, "port 80", 30);
    expect(answer).toMatchObject({ status: "accepted", delivery: { status: "skipped" } });
    expect(await resultOf(app, runId)).toMatchObject({
      status: "ok",
      reply: "port 80",
      sessionKey: DESK,
      delivery: { mode: "inbox" },
    });
    await app.quiet();
    expect(await kinds(app, MAIN)).toEqual(["turn ok", "append ok"]);
    expect((await app.runs(MAIN))[1]).toMatchObject({ runId: answer.runId, chainId, hop: 2 });
    expect(await app.texts(MAIN)).toHaveLength(2);
    expect(await app.texts(DESK)).toEqual([
      "user: which port?",
      "assistant: [to agent:main:main]\n\nport 80",
    ]);
  });

  test("a message with timeoutSeconds 0 is accepted at once, and its answer arrives as a new message", async () => {
    const app = await open({ plays: { [MAIN]: asksDesk(0) } });
    const { runId, chainId } = await app.tell(MAIN, "go");
    const result = await resultOf(app, runId);
    expect(result).toEqual({
      runId: expect.any(String),
      messageId: result.runId,
      receipt: "queued",
      status: "accepted",
      sessionKey: DESK,
      delivery: { status: "pending", mode: "inbox" },
    });
    await inInbox(app, "which port?");
    expect(await app.send(DESK, MAIN, "port 80", 30)).toMatchObject({
      status: "ok",
      reply: "heard port 80",
    });
    await app.quiet();
    expect(await kinds(app, MAIN)).toEqual(["turn ok", "turn ok"]);
    expect((await app.runs(MAIN))[1]).toMatchObject({ chainId });
  });

  test("if a wait ends before the answer, it reports a timeout, and the answer arrives as a new message in the same chain", async () => {
    const app = await open({ plays: { [MAIN]: asksDesk(0.05) } });
    const { runId, chainId } = await app.tell(MAIN, "go");
    const result = await resultOf(app, runId);
    expect(result).toMatchObject({ status: "timeout", delivery: { mode: "inbox" } });
    expect(result.error).toContain(`is in the inbox of "${DESK}"`);
    await app.quiet();
    expect(await app.send(DESK, MAIN, "port 80", 30)).toMatchObject({
      status: "ok",
      reply: "heard port 80",
    });
    expect((await app.runs(MAIN))[1]).toMatchObject({ kind: "turn", chainId });
  });

  test("only the first text that is sent back counts as the answer; a second one is a new message", async () => {
    const app = await open();
    const { runId } = await app.tell(MAIN, "go");
    await inInbox(app, "which port?");
    await app.send(DESK, MAIN, "port 80", 0);
    await app.send(DESK, MAIN, "or 443", 0);
    expect(await resultOf(app, runId)).toMatchObject({ reply: "port 80" });
    await app.quiet();
    expect(await kinds(app, MAIN)).toEqual(["turn ok", "append ok", "turn ok"]);
  });

  test("I7: a wait that would close a cycle through an external session is refused", async () => {
    const plays: FlowAppOptions["plays"] = {
      [MAIN]: async (actor) => JSON.stringify(await actor.send(RESEARCH, "ask the desk")),
      [RESEARCH]: async (actor) =>
        actor.step === "round1" ? JSON.stringify(await actor.send(DESK, "which port?")) : "REPLY_SKIP",
    };
    const app = await open({ plays });
    const [requester, target] = [await app.session(DESK), await app.session(MAIN)];
    const { signal } = new AbortController();
    const call = { callId: "call-1", text: "go", timeoutSeconds: 600, signal, confirmsAnswers: true };
    const { reply } = (await sendAs(app, { requester, target, ...call })) as { reply: string };
    expect(JSON.parse(JSON.parse(reply).reply)).toMatchObject({
      code: "wait_cycle",
      cycle: [RESEARCH, DESK, MAIN, RESEARCH],
    });
  });

  test("I7: a client cannot wait for a session that waits for the client, but may still answer", async () => {
    const plays: FlowAppOptions["plays"] = {
      [MAIN]: async (actor) =>
        actor.step === "message" ? JSON.stringify(await actor.send(RESEARCH, "ask", 600)) : "REPLY_SKIP",
      [RESEARCH]: async (actor) =>
        actor.step === "round1" ? String((await actor.send(DESK, "which port?", 600)).reply) : "REPLY_SKIP",
    };
    const app = await open({ plays });
    const { runId } = await app.tell(MAIN, "go");
    await inInbox(app, "which port?");
    const [requester, target] = [await app.session(DESK), await app.session(MAIN)];
    const { signal } = new AbortController();
    const call = { callId: "call-1", text: "why?", timeoutSeconds: 600, signal, confirmsAnswers: true };
    expect(await sendAs(app, { requester, target, ...call })).toMatchObject({
      code: "wait_cycle",
      cycle: [DESK, MAIN, RESEARCH, DESK],
    });
    await app.send(DESK, RESEARCH, "port 80", 0);
    expect(await resultOf(app, runId)).toMatchObject({ status: "ok", reply: "port 80" });
  });

  test("if two messages wait, each gets the answer that names it, in any order", async () => {
    const { app, runId, one, two } = await askTwice(open);
    await app.send(DESK, MAIN, "2", 0, two);
    expect(await receiptsIn(app, one, two)).toEqual(["queued", "answered"]);
    await app.send(DESK, MAIN, "1", 0, one);
    expect(await resultOf(app, runId)).toMatchObject([{ reply: "1" }, { reply: "2" }]);
  });

  test("a wait ends with session_reset if the external session is reset before it answers", async () => {
    const app = await open();
    const { runId } = await app.tell(MAIN, "go");
    await inInbox(app, "which port?");
    await resetSession(app, await app.session(DESK));
    expect(await resultOf(app, runId)).toMatchObject({ status: "error", code: "session_reset" });
  });
});

test("if two messages wait, a text that names none is a message of its own in the chain of the last one, and says so", async () => {
  const { app, runId, chainId, one, two } = await askTwice();
  const sent = await app.send(DESK, MAIN, "2", 0);
  expect(sent).toMatchObject({ status: "accepted", note: expect.stringContaining("set inReplyTo") });
  expect(await receiptsIn(app, one, two)).toEqual(["queued", "queued"]);
  await app.send(DESK, MAIN, "1", 0, one);
  expect(await app.send(DESK, MAIN, "2", 0)).toMatchObject({ receipt: "answered" });
  expect(await resultOf(app, runId)).toMatchObject([{ reply: "1" }, { reply: "2" }]);
  await app.quiet();
  expect((await app.runs(MAIN)).find(({ runId }) => runId === sent.runId)).toMatchObject({
    kind: "turn",
    reply: "heard 2",
    chainId,
    hop: 2,
  });
});

test("a message whose sender no longer waits counts: the next text without a name answers neither it nor the new one", async () => {
  const app = await openDesk({ plays: { [MAIN]: asksDesk(600) } });
  await app.send(MAIN, DESK, "earlier?", 0);
  const { runId } = await app.tell(MAIN, "go");
  await inInbox(app, "earlier?", "which port?");
  const [earlier = "", port = ""] = (await app.runs(DESK)).map((run) => run.runId);
  await app.send(DESK, MAIN, "later", 0);
  expect(await receiptsIn(app, earlier, port)).toEqual(["queued", "queued"]);
  await app.send(DESK, MAIN, "port 80", 0, port);
  expect(await resultOf(app, runId)).toMatchObject({ reply: "port 80" });
  await app.send(DESK, MAIN, "to the earlier one", 0, earlier);
  expect(await receiptsIn(app, earlier, port)).toEqual(["answered", "answered"]);
  await app.quiet();
  expect(await kinds(app, MAIN)).toEqual(["turn ok", "turn ok", "append ok", "turn ok"]);
});

test("an answer that names an answered message, none, or one of another session is refused and writes nothing", async () => {
  const { app, runId, one, two } = await askTwice();
  const asked = app.send(RESEARCH, DESK, "three?", 600);
  await inInbox(app, "one?", "two?", "three?");
  await app.send(DESK, MAIN, "1", 0, one);
  const three = (await app.runs(DESK)).find(({ input }) => input.text === "three?")?.runId ?? "";
  const before = await app.texts(DESK);
  for (const id of [one, three, "no-such-message"])
    expect(await app.send(DESK, MAIN, "again", 0, id)).toMatchObject({
      code: "message_not_found",
      error: expect.stringContaining("nothing was sent"),
      hint: expect.stringContaining("awaitsAnswer"),
    });
  expect(await app.send(RESEARCH, MAIN, "again", 0, two)).toMatchObject({ code: "message_not_found" });
  expect(await app.texts(DESK)).toEqual(before);
  expect(await receiptsIn(app, two, three)).toEqual(["queued", "queued"]);
  await app.send(DESK, MAIN, "2", 0, two);
  await app.send(DESK, RESEARCH, "3", 0, three);
  expect(await resultOf(app, runId)).toMatchObject([{ reply: "1" }, { reply: "2" }]);
  expect(await asked).toMatchObject({ reply: "3" });
});

test("I4: a repeated call that answers by name finds its first attempt", async () => {
  const { app, one } = await askTwice();
  const [requester, target] = [await app.session(DESK), await app.session(MAIN)];
  const { signal } = new AbortController();
  const call = { requester, target, callId: "call-1", text: "1", timeoutSeconds: 0, inReplyTo: one, signal };
  const first = await sendAs(app, call);
  expect(first).toMatchObject({ status: "accepted", receipt: "answered" });
  expect(await sendAs(app, call)).toEqual(first);
});

test("I3: a wait for an answer continues after a restart, with its original deadline", async () => {
  const dir = temporaryFolder();
  const first = await openDesk({ dir, dies: true });
  const { runId } = await first.tell(MAIN, "go");
  await inInbox(first, "which port?");
  const deadline = (app: FlowApp) => app.store.db.selectFrom("waits").select("deadline_at").execute();
  const before = await deadline(first);
  await first.store.close();
  const second = await openDesk({ dir });
  expect(await deadline(second)).toEqual(before);
  await second.send(DESK, MAIN, "port 80", 0);
  expect(await resultOf(second, runId)).toMatchObject({ status: "ok", reply: "port 80" });
});

test("if a client missed the answer to its send, the answer arrives once in its inbox, as a notice", async () => {
  const app = await openDesk({ plays: {} });
  const admin = { kind: "operator", scopes: ["operator.admin"] } as const;
  const opened = await openExternal(app, admin, { agentId: "main", handle: "asker" });
  if (!opened.ok) throw new Error(opened.error);
  const requester = opened.value;
  const { signal } = new AbortController();
  const call = { callId: "call-1", text: "which port?", timeoutSeconds: 600, signal, confirmsAnswers: true };
  const waiting = sendAs(app, { requester, target: await app.session(DESK), ...call });
  await inInbox(app, "which port?");
  await app.send(DESK, requester.key, "port 80", 0);
  expect(await waiting).toMatchObject({ status: "ok", reply: "port 80" });
  await app.engine.callerWaits.lose("call-1");
  await app.engine.callerWaits.lose("call-1");
  await app.quiet();
  const told = (await app.texts(requester.key)).filter((text) => text.startsWith("user: "));
  expect(told).toEqual([expect.stringMatching(/^user: Notice .*it was answered:\n\n\| port 80$/s)]);
});

test("if a caller disconnects or crashes, no open conversation is left", async () => {
  const dir = temporaryFolder();
  const first = await openDesk({ dir, dies: true, plays: {} });
  const [requester, target] = [await first.session(RESEARCH), await first.session(DESK)];
  const gone = new AbortController();
  const call = { requester, target, text: "one?", timeoutSeconds: 600, signal: gone.signal };
  const left = sendAs(first, { ...call, callId: "call-1" });
  await inInbox(first, "one?");
  gone.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  await first.quiet();
  void first.send(RESEARCH, DESK, "two?", 600).catch(() => {});
  await inInbox(first, "one?", "two?");
  expect(await first.isQuiet()).toBe(false);
  await first.store.close();
  const second = await openDesk({ dir, plays: {} });
  await second.quiet();
  expect(await second.texts(RESEARCH)).toEqual([]);
});

test("if a message has an MCP task, the task is `working` until the answer, which becomes its result", async () => {
  const app = await openDesk({ plays: {} });
  const [requester, target] = [await app.session(RESEARCH), await app.session(DESK)];
  const { signal } = new AbortController();
  const call = { requester, target, text: "which port?", timeoutSeconds: 600, signal };
  const waiting = sendAs(app, { ...call, callId: "call-1" });
  await inInbox(app, "which port?");
  const asked = await sentSoFar(app, { session: requester }, "call-1");
  expect(asked).toMatchObject({ run: { sessionKey: DESK, state: "ok" } });
  expect(asked).not.toHaveProperty("outcome");
  await app.send(DESK, RESEARCH, "port 80", 0);
  await waiting;
  const told = await sentSoFar(app, { session: requester }, "call-1");
  expect(told?.outcome && sendResult(app.settings, requester, told.outcome)).toMatchObject({
    status: "ok",
    reply: "port 80",
  });
});

test("in a cluster, a sender can wait in one process for an answer that arrives in another process", async () => {
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  const here = await openDesk({ disk: store, plays: {} });
  const there = await openFlowApp({ disk: store, plays: {} });
  const waiting = here.send(RESEARCH, DESK, "which port?", 600);
  await inInbox(there, "which port?");
  await there.send(DESK, RESEARCH, "port 80", 0);
  expect(await waiting).toMatchObject({ status: "ok", reply: "port 80" });
});
