// Receipts of messages between sessions, on both stores and across crashes: every accepted message reaches a
// final state, no state is lost, and the sender is notified once of a failure.

import { describe, expect } from "vitest";
import { INBOX_EXPIRES_MS } from "../../../src/core/rules/receipt.ts";
import { injectedMessage } from "../../../src/core/shapes/message.ts";
import { createInboxExpiry, noteReading } from "../../../src/flows/conversation/inbox-receipts.ts";
import { openExternal } from "../../../src/flows/session/external.ts";
import { deleteSession, resetSession } from "../../../src/flows/session/lifecycle.ts";
import { receiptsOf } from "../../../src/store/queries/runs/receipts.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { both, share } from "../../kit/deep.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp } from "../../kit/engine/flow-app.ts";
import { openPostgresStore } from "../../kit/store/postgres.ts";
import { MAIN, RESEARCH } from "./asking.ts";

const DESK = "agent:main:mcp:desk";
const ADMIN = { kind: "operator", scopes: ["operator.admin"] } as const;

async function receiptOf(app: FlowApp, runId: unknown) {
  const run = await getRun(app.store.db, String(runId));
  return run && (await receiptsOf(app.store.db, [run])).get(run.runId);
}

/** Returns the states of a message that events reported, in order. */
const told = (app: FlowApp, runId: unknown): string[] =>
  app.events.flatMap((event) => (event.kind === "receipt" && event.runId === runId ? [event.state] : []));

const notices = async (app: FlowApp, key: string): Promise<string[]> =>
  (await app.runs(key)).flatMap(({ input }) => (input.provenance?.kind === "notice" ? [input.text] : []));

async function withDesk(app: FlowApp): Promise<FlowApp> {
  const opened = await openExternal(app, ADMIN, { agentId: "main", handle: "desk" });
  if (!opened.ok) throw new Error(opened.error);
  return app;
}

const expire = (app: FlowApp, runId: unknown) =>
  app.engine.commit((unit) =>
    createInboxExpiry({ settings: app.settings, engine: () => app.engine })(unit, String(runId)),
  );

describe.each(share(["embedded"], ["PostgreSQL"]))("receipts, %s", (kind) => {
  const test = both;
  async function open(options: Partial<FlowAppOptions> = {}): Promise<FlowApp> {
    if (kind === "embedded") return withDesk(await openFlowApp({ plays: {}, ...options }));
    const { store, dispose } = await openPostgresStore();
    cleanup(dispose);
    return withDesk(await openFlowApp({ plays: {}, disk: store, ...options }));
  }

  test("an answered message goes through every state, with increasing times and one event each", async () => {
    const app = await open({ plays: { [RESEARCH]: () => "port 80" } });
    const sent = await app.send(MAIN, RESEARCH, "which port?", 30);
    expect(sent).toMatchObject({ status: "ok", receipt: "answered", messageId: sent.runId });
    await app.quiet();
    const receipt = await receiptOf(app, sent.messageId);
    expect(receipt?.state).toBe("answered");
    const { queued = 0, offered: began = 0, in_turn = 0, answered = 0 } = receipt?.times ?? {};
    expect([queued, began, in_turn, answered]).toEqual(
      [queued, began, in_turn, answered].sort((a, b) => a - b),
    );
    expect(queued).toBeGreaterThan(0);
    expect(told(app, sent.runId)).toEqual(["queued", "offered", "in_turn", "answered"]);
    const [message] = await app.store.db
      .selectFrom("messages")
      .select("role")
      .where("id", "=", String(sent.messageId))
      .execute();
    expect(message).toEqual({ role: "user" });
  });

  test("a silent reply gives the receipt `declined`, a failed run `failed`; a sender that no longer waits is notified once", async () => {
    const plays: FlowAppOptions["plays"] = {
      [RESEARCH]: ({ input }) => {
        if (input === "fail") throw new Error("no disk");
        return "REPLY_SKIP";
      },
      [MAIN]: () => "noted",
    };
    const app = await open({ plays });
    const silent = await app.send(MAIN, RESEARCH, "anything new?", 0);
    const failing = await app.send(MAIN, RESEARCH, "fail", 0);
    expect(silent).toMatchObject({ status: "accepted", receipt: "queued" });
    await app.quiet();
    expect(await receiptOf(app, silent.runId)).toMatchObject({ state: "declined" });
    expect(await receiptOf(app, failing.runId)).toMatchObject({ state: "failed", code: "run_failed" });
    const texts = await notices(app, MAIN);
    expect(texts.map((text) => [text.includes(String(silent.runId)), text.includes("no disk")])).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  test("a note of the runtime or an error is not an answer; a receipt keeps its times after the transcript is deleted", async () => {
    const plays: FlowAppOptions["plays"] = {
      [RESEARCH]: async ({ handle, input }) => {
        await handle.append(injectedMessage("note", "no tools yet", 1));
        if (input === "work") return "done";
        await handle.append({ ...injectedMessage("error", "API Error: 400", 2), stopReason: "error" });
        throw new Error("no credit");
      },
    };
    const app = await open({ plays });
    const failing = await app.send(MAIN, RESEARCH, "fail", 0);
    const working = await app.send(MAIN, RESEARCH, "work", 0);
    await app.quiet();
    const failed = await receiptOf(app, failing.runId);
    expect([failed?.state, failed?.times.in_turn]).toEqual(["failed", undefined]);
    expect(told(app, failing.runId)).toEqual(["queued", "offered", "failed"]);
    const answered = await receiptOf(app, working.runId);
    expect(answered?.times).toHaveProperty("in_turn");
    await resetSession(app, await app.session(RESEARCH));
    await app.store.transaction((tx) =>
      tx.deleteFrom("messages").where("session_key", "=", RESEARCH).execute(),
    );
    expect(await receiptOf(app, working.runId)).toEqual(answered);
  });

  test("a message that waits behind another run expires if its session is reset", async () => {
    const hold = Promise.withResolvers<string>();
    const app = await open({ plays: { [RESEARCH]: ({ input }) => (input === "hold" ? hold.promise : "x") } });
    await app.tell(RESEARCH, "hold");
    const sent = await app.send(MAIN, RESEARCH, "and me?", 0);
    expect(await receiptOf(app, sent.runId)).toMatchObject({ state: "queued" });
    await resetSession(app, await app.session(RESEARCH));
    hold.resolve("late");
    await app.quiet();
    expect(await receiptOf(app, sent.runId)).toMatchObject({ state: "expired", code: "session_reset" });
    expect(told(app, sent.runId)).toEqual(["queued", "expired"]);
    expect(await notices(app, MAIN)).toHaveLength(1);
  });

  test("a message in an inbox is offered, acknowledged and answered, and enters each state once", async () => {
    const app = await open();
    const sent = await app.send(MAIN, DESK, "which port?", 0);
    await app.quiet();
    expect(await receiptOf(app, sent.runId)).toMatchObject({ state: "queued" });
    const id = String(sent.runId);
    await noteReading(app.engine, [id], "offered");
    await noteReading(app.engine, [id], "offered");
    const first = await receiptOf(app, id);
    expect(first?.state).toBe("offered");
    await noteReading(app.engine, [id], "in_turn");
    await noteReading(app.engine, [id], "in_turn");
    expect((await receiptOf(app, id))?.times).toMatchObject(first?.times ?? {});
    await app.send(DESK, MAIN, "port 80", 0);
    await app.quiet();
    expect(await receiptOf(app, id)).toMatchObject({ state: "answered" });
    await expire(app, id);
    expect(await receiptOf(app, id)).toMatchObject({ state: "answered" });
    expect(told(app, id)).toEqual(["queued", "offered", "in_turn", "answered"]);
    expect(await notices(app, MAIN)).toEqual([]);
  });

  test("an unanswered message expires once at its stored time, and a later answer is a new message", async () => {
    const app = await open();
    const sent = await app.send(MAIN, DESK, "which port?", 0);
    await app.quiet();
    const [date] = await app.store.db
      .selectFrom("deadlines")
      .selectAll()
      .where("kind", "=", "inbox")
      .execute();
    const run = await getRun(app.store.db, String(sent.runId));
    expect(date).toMatchObject({ key: sent.runId });
    expect(Number(date?.due_at)).toBe((run?.acceptedAt ?? 0) + INBOX_EXPIRES_MS);
    await expire(app, sent.runId);
    await expire(app, sent.runId);
    await app.quiet();
    expect(await receiptOf(app, sent.runId)).toMatchObject({ state: "expired" });
    expect(await notices(app, MAIN)).toEqual([expect.stringContaining("no answer came within 7 days")]);
    await app.send(DESK, MAIN, "port 80", 0);
    await app.quiet();
    expect(await receiptOf(app, sent.runId)).toMatchObject({ state: "expired" });
  });

  test("I8: at the hop limit an answer is refused until the question has expired; then it begins a new chain", async () => {
    const agentToAgent = { maxPingPongTurns: 0, maxHops: 1, maxChainRuns: 200 };
    const app = await open({ choices: { session: { agentToAgent } } });
    const sent = await app.send(MAIN, DESK, "which port?", 0);
    await app.quiet();
    for (const text of ["port 80", "port 80, I said"])
      expect(await app.send(DESK, MAIN, text, 0)).toMatchObject({ code: "chain_limit" });
    await expire(app, sent.runId);
    const late = await app.send(DESK, MAIN, "port 80", 0);
    expect(late).toMatchObject({ status: "accepted" });
    await app.quiet();
    const [asked, answer] = [
      await getRun(app.store.db, String(sent.runId)),
      await getRun(app.store.db, String(late.runId)),
    ];
    expect(answer?.hop).toBe(1);
    expect(answer?.chainId).not.toBe(asked?.chainId);
  });

  test("deleting an inbox expires its messages; a waiting sender gets this as its result, without a notice", async () => {
    const app = await open();
    const left = await app.send(RESEARCH, DESK, "one", 0);
    const waiting = app.send(MAIN, DESK, "two", 600);
    await expect.poll(() => app.texts(DESK)).toHaveLength(2);
    const dropTranscript = async (): Promise<void> => {};
    await deleteSession({ ...app, dropTranscript }, await app.session(DESK));
    const result = await waiting;
    expect(result).toMatchObject({ status: "error", code: "session_deleted", receipt: "expired" });
    await app.quiet();
    expect(await receiptOf(app, left.runId)).toMatchObject({ state: "expired" });
    expect(await receiptOf(app, result.runId)).toMatchObject({ state: "expired" });
    expect(await notices(app, RESEARCH)).toEqual([expect.stringContaining("was deleted before")]);
    expect(await notices(app, MAIN)).toEqual([]);
  });
});
