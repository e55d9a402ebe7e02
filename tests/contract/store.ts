// What every store must do, whatever database it stands on: transactions, lanes, sessions, outbox, ledger.
// Lists and transcripts have files of their own beside this one.

import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ZERO_USAGE } from "../../src/core/message.ts";
import type { Route, Session } from "../../src/core/session.ts";
import * as deliveries from "../../src/store/deliveries.ts";
import { pruneAnswers, recallAnswer, rememberAnswer } from "../../src/store/idempotency.ts";
import { addUsageRow, usageOf } from "../../src/store/ledger.ts";
import { insertRun } from "../../src/store/runs.ts";
import * as sessions from "../../src/store/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { appendEntry } from "../../src/store/transcripts.ts";
import { sampleRun, sampleSession, userMessage } from "../store/samples.ts";
import { listContract } from "./store-lists.ts";
import { transcriptContract } from "./store-transcripts.ts";

/** An empty store, and the way to close it and remove what it wrote. */
export interface OpenedStore {
  readonly store: Store;
  dispose(): Promise<void>;
}
export type OpenStore = () => Promise<OpenedStore>;

export function storeContract(name: string, open: OpenStore): void {
  describe(name, () => {
    let opened: OpenedStore;
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened.dispose());
    const store = (): Store => opened.store;

    describe("transactions", () => transactionContract(store));
    describe("lanes", () => laneContract(store));
    describe("sessions", () => sessionContract(store));
    describe("session lists", () => listContract(store));
    describe("transcripts", () => transcriptContract(store));
    describe("outbox", () => outboxContract(store));
    describe("ledger and answers", () => bookContract(store));
  });
}

function transactionContract(store: () => Store): void {
  const chain = async (id: string) =>
    await store().db.selectFrom("chains").select("runs").where("chain_id", "=", id).executeTakeFirst();

  test("what a transaction wrote can be read once it resolved", async () => {
    const answer = await store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      return "done";
    });
    expect(answer).toBe("done");
    expect((await chain("a"))?.runs).toBe(1);
  });

  test("a transaction that throws leaves nothing behind, and the next one works", async () => {
    const failing = store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await chain("a")).toBeUndefined();
    await store().transaction((tx) => tx.insertInto("chains").values({ chain_id: "b", runs: 1 }).execute());
    expect((await chain("b"))?.runs).toBe(1);
  });

  test("transactions that overlap lose no update", async () => {
    await store().transaction((tx) => tx.insertInto("chains").values({ chain_id: "a", runs: 0 }).execute());
    const bump = () =>
      store().transaction(async (tx) => {
        const bumped = tx.updateTable("chains").set((eb) => ({ runs: eb("runs", "+", 1) }));
        await bumped.where("chain_id", "=", "a").execute();
        await Promise.resolve();
      });
    await Promise.all(Array.from({ length: 25 }, bump));
    expect((await chain("a"))?.runs).toBe(25);
  });

  test("reading neither waits for an open transaction nor sees what it wrote", async () => {
    const opened = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const writing = store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      opened.resolve();
      await release.promise;
    });
    await opened.promise;
    expect(await chain("a")).toBeUndefined();
    release.resolve();
    await writing;
    expect((await chain("a"))?.runs).toBe(1);
  });
}

function laneContract(store: () => Store): void {
  const add = (over: Parameters<typeof sampleRun>[0]) =>
    store().transaction((tx) => insertRun(tx, sampleRun(over)));

  test("I1: a lane takes no second running or waiting run, and any number of queued ones", async () => {
    await add({ runId: "r1", state: "running" });
    await expect(add({ runId: "r2", state: "running" })).rejects.toThrow();
    await expect(add({ runId: "r3", state: "waiting" })).rejects.toThrow();
    await add({ runId: "r4", state: "queued" });
    await add({ runId: "r5", state: "queued" });
    await add({ runId: "r6", state: "running", sessionKey: "agent:main:chat:other" });
    await add({ runId: "r7", state: "ok" });
  });

  test("one tool call makes one run", async () => {
    await add({ runId: "r1", callId: "c" });
    await expect(add({ runId: "r2", callId: "c" })).rejects.toThrow();
  });

  test("I3: lane numbers taken at the same time are different and leave no gap", async () => {
    await store().transaction((tx) => sessions.insertSession(tx, sampleSession()));
    const take = () => store().transaction((tx) => sessions.takeLaneSeq(tx, "agent:main:main"));
    const taken = await Promise.all(Array.from({ length: 20 }, take));
    expect(taken.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });
}

const text = fc
  .string({ unit: "binary", maxLength: 40 })
  .map((value) => value.replaceAll("\0", "0").toWellFormed());

const anySession: fc.Arbitrary<Session> = fc.record(
  {
    key: fc.constant("agent:main:chat:x"),
    sessionId: fc.constant("session-x"),
    agentId: fc.constantFrom("main", "research"),
    kind: fc.constantFrom("main", "group", "cron", "hook", "node", "other"),
    label: text,
    displayName: text,
    createdAt: fc.nat(),
    updatedAt: fc.nat({ max: 4_000_000_000_000 }),
    archivedAt: fc.nat(),
    spawnedBy: fc.constant("agent:main:main"),
    spawnDepth: fc.nat({ max: 5 }),
    external: fc.boolean(),
    model: text,
    thinkingLevel: text,
    verboseLevel: text,
    sendPolicy: fc.constantFrom("allow", "deny"),
    systemSent: fc.boolean(),
    abortedLastRun: fc.boolean(),
    inputTokens: fc.nat(),
    outputTokens: fc.nat(),
    totalTokens: fc.nat(),
    contextTokens: fc.nat(),
    lastRoute: fc.record(
      { channel: text, to: text, accountId: text, threadId: text },
      { requiredKeys: ["channel", "to"] },
    ),
    groupChannel: text,
  },
  {
    requiredKeys: [
      ...([
        "key",
        "sessionId",
        "agentId",
        "kind",
        "createdAt",
        "updatedAt",
        "spawnDepth",
        "external",
      ] as const),
      ...([
        "systemSent",
        "abortedLastRun",
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "contextTokens",
      ] as const),
    ],
  },
);

function sessionContract(store: () => Store): void {
  const add = (over: Partial<Session>) =>
    store().transaction((tx) => sessions.insertSession(tx, sampleSession(over)));

  test("a session comes back as it was stored", async () => {
    await fc.assert(
      fc.asyncProperty(anySession, async (session) => {
        await store().transaction((tx) => sessions.insertSession(tx, session));
        expect(await sessions.getSession(store().db, session.key)).toEqual(session);
        await store().transaction((tx) => sessions.deleteSessionRows(tx, session.key, { transcripts: true }));
        expect(await sessions.getSession(store().db, session.key)).toBeUndefined();
      }),
      { numRuns: 50 },
    );
  });

  test("a patch changes what it names, null takes away, the rest stays", async () => {
    const route = { channel: "webchat", to: "a", threadId: "t" };
    await add({ label: "old", model: "m", lastRoute: route, contextTokens: 7 });
    const patch = { label: "new", model: null, systemSent: true, inputTokens: 3, updatedAt: 2_000 };
    await store().transaction((tx) => sessions.updateSession(tx, "agent:main:main", patch));
    const stored = await sessions.getSession(store().db, "agent:main:main");
    const changed = { label: "new", systemSent: true, inputTokens: 3, updatedAt: 2_000 };
    expect(stored).toEqual(sampleSession({ ...changed, lastRoute: route, contextTokens: 7 }));
    await store().transaction(async (tx) => {
      await sessions.updateSession(tx, "agent:main:main", { lastRoute: null });
      await sessions.updateSession(tx, "agent:main:main", {});
    });
    expect((await sessions.getSession(store().db, "agent:main:main"))?.lastRoute).toBeUndefined();
  });

  test("a reset gives a new transcript id, keeps settings and route, and the old id names the new one", async () => {
    const lastRoute = { channel: "webchat", to: "a" };
    await add({ label: "mine", inputTokens: 9, contextTokens: 9, systemSent: true, lastRoute });
    await store().transaction((tx) => sessions.replaceSessionId(tx, "agent:main:main", "session-2", 5_000));
    const stored = await sessions.getSession(store().db, "agent:main:main");
    expect(stored).toEqual(
      sampleSession({ label: "mine", sessionId: "session-2", updatedAt: 5_000, lastRoute }),
    );
    for (const id of ["session-1", "session-2"]) {
      const found = await sessions.findSessionId(store().db, id);
      expect(found).toEqual({ key: "agent:main:main", currentSessionId: "session-2" });
    }
    expect(await sessions.findSessionId(store().db, "session-3")).toBeUndefined();
  });

  test("a deleted session takes all its transcripts with it, or leaves them when asked to", async () => {
    for (const transcripts of [true, false]) {
      await add({ sessionId: `a-${transcripts}` });
      const args = { sessionKey: "agent:main:main", sessionId: `a-${transcripts}` };
      await store().transaction(async (tx) => {
        await appendEntry(tx, { ...args, entry: userMessage(`m-${transcripts}`, "hello") });
        await sessions.replaceSessionId(tx, "agent:main:main", `b-${transcripts}`, 2_000);
      });
      const gone = await store().transaction((tx) =>
        sessions.deleteSessionRows(tx, "agent:main:main", { transcripts }),
      );
      expect(gone.toSorted()).toEqual(transcripts ? ["a-true", "b-true"] : []);
      const rows = await store().db.selectFrom("messages").select("id").execute();
      expect(rows).toHaveLength(transcripts ? 0 : 1);
    }
  });

  test("a label finds its sessions, newest first, archived ones left out", async () => {
    await add({ key: "k1", sessionId: "1", label: "x", updatedAt: 1 });
    await add({ key: "k2", sessionId: "2", label: "x", updatedAt: 2, agentId: "research" });
    await add({ key: "k3", sessionId: "3", label: "x", updatedAt: 3, spawnedBy: "k1" });
    await add({ key: "k4", sessionId: "4", label: "x", updatedAt: 4, archivedAt: 4 });
    const keys = async (more: object) =>
      (await sessions.findByLabel(store().db, { label: "x", limit: 10, ...more })).map(({ key }) => key);
    expect(await keys({})).toEqual(["k3", "k2", "k1"]);
    expect(await keys({ agentId: "main" })).toEqual(["k3", "k1"]);
    expect(await keys({ spawnedBy: "k1" })).toEqual(["k3"]);
    expect(await keys({ limit: 1 })).toEqual(["k3"]);
  });

  test("ancestors come nearest first, descendants by generation, and a ring of spawners ends", async () => {
    await add({ key: "a", sessionId: "1" });
    await add({ key: "b", sessionId: "2", spawnedBy: "a" });
    await add({ key: "c", sessionId: "3", spawnedBy: "b" });
    await add({ key: "d", sessionId: "4", spawnedBy: "gone" });
    expect(await sessions.ancestorsOf(store().db, "c")).toEqual(["b", "a"]);
    expect(await sessions.ancestorsOf(store().db, "d")).toEqual(["gone"]);
    expect(await sessions.ancestorsOf(store().db, "a")).toEqual([]);
    expect(await sessions.descendantsOf(store().db, "a", 10)).toEqual(["b", "c"]);
    expect(await sessions.descendantsOf(store().db, "a", 1)).toEqual(["b"]);
    await add({ key: "r1", sessionId: "5", spawnedBy: "r2" });
    await add({ key: "r2", sessionId: "6", spawnedBy: "r1" });
    expect(new Set(await sessions.ancestorsOf(store().db, "r1"))).toEqual(new Set(["r1", "r2"]));
    expect(new Set(await sessions.descendantsOf(store().db, "r1", 10))).toEqual(new Set(["r1", "r2"]));
  });

  test("activity tells the state and the queue of each asked session", async () => {
    const run = (runId: string, sessionKey: string, state: "queued" | "running" | "waiting" | "ok") =>
      store().transaction((tx) => insertRun(tx, sampleRun({ runId, sessionKey, state })));
    await run("1", "busy", "running");
    await run("2", "busy", "queued");
    await run("3", "busy", "queued");
    await run("4", "waits", "waiting");
    await run("5", "next", "queued");
    await run("6", "done", "ok");
    const found = await sessions.activityOf(store().db, ["busy", "waits", "next", "done"]);
    expect(Object.fromEntries(found)).toEqual({
      busy: { state: "running", queuedRuns: 2 },
      waits: { state: "waiting", queuedRuns: 0 },
      next: { state: "queued", queuedRuns: 1 },
      done: { state: "idle", queuedRuns: 0 },
    });
  });
}

function outboxContract(store: () => Store): void {
  const route: Route = { channel: "webchat", to: "a" };
  const add = (id: string, over: Partial<deliveries.NewDelivery> = {}) =>
    store().transaction((tx) =>
      deliveries.insertDelivery(tx, {
        ...{ id, sessionKey: "s", kind: "send", route, text: id, state: "pending", createdAt: 100 },
        ...over,
      }),
    );
  const due = async (now = 1_000) =>
    (await deliveries.dueDeliveries(store().db, now, 10)).map(({ id }) => id);
  const begin = (id: string) => store().transaction((tx) => deliveries.beginAttempt(tx, id));
  const end = (id: string, outcome: deliveries.AttemptOutcome) =>
    store().transaction((tx) => deliveries.endAttempt(tx, id, outcome, 500));

  test("I5: an attempt is open until its outcome is known, and can be begun once", async () => {
    await add("a");
    expect(await begin("a")).toBe(true);
    expect(await begin("a")).toBe(false);
    expect(await deliveries.getDelivery(store().db, "a")).toMatchObject({
      attempts: 1,
      attemptOpen: true,
      state: "pending",
    });
    expect(await end("a", { kind: "sent" })).toBe(true);
    expect(await end("a", { kind: "failed", code: "x", error: "late" })).toBe(false);
    expect(await deliveries.getDelivery(store().db, "a")).toMatchObject({
      state: "sent",
      settledAt: 500,
      attemptOpen: false,
    });
    expect(await due()).toEqual([]);
  });

  test("one route goes in order, another does not wait for it", async () => {
    await add("a");
    await add("b", { route: { to: "a", channel: "webchat" } });
    await add("c", { route: { ...route, threadId: "t" } });
    expect(await due()).toEqual(["a", "c"]);
    await begin("a");
    expect(await due()).toEqual(["c"]);
    await end("a", { kind: "retry", error: "busy", nextAttemptAt: 2_000 });
    expect(await due()).toEqual(["c"]);
    expect(await due(2_000)).toEqual(["a", "c"]);
    expect(await deliveries.nextDueAt(store().db)).toBe(100);
    await begin("a");
    await end("a", { kind: "failed", code: "refused", error: "no" });
    expect(await due()).toEqual(["b", "c"]);
  });

  test("a skipped delivery is kept to be seen and never due", async () => {
    await add("a", { state: "skipped", code: "send_denied", error: "no" });
    expect(await due()).toEqual([]);
    expect(await deliveries.nextDueAt(store().db)).toBeUndefined();
    expect(await deliveries.getDelivery(store().db, "a")).toMatchObject({
      state: "skipped",
      code: "send_denied",
      settledAt: 100,
    });
  });

  test("I5: an attempt that a crash left open is repeated only where the channel can tell", async () => {
    await add("a");
    await add("b", { route: { channel: "telegram", to: "b" } });
    await begin("a");
    await begin("b");
    const failed = await store().transaction((tx) =>
      deliveries.recoverOpenAttempts(tx, 700, ({ channel }) => channel === "webchat"),
    );
    expect(failed.map(({ id }) => id)).toEqual(["b"]);
    expect(await due()).toEqual(["a"]);
    expect(await deliveries.getDelivery(store().db, "b")).toMatchObject({
      state: "failed",
      code: "ambiguous",
    });
  });

  test("a failed delivery can be tried again in its old place, or dismissed, once", async () => {
    await add("a");
    await add("b");
    await begin("a");
    await end("a", { kind: "failed", code: "x", error: "no" });
    const requeue = (id: string) => store().transaction((tx) => deliveries.requeueDelivery(tx, id, 900));
    const dismiss = (id: string) => store().transaction((tx) => deliveries.dismissDelivery(tx, id, 900));
    expect(await requeue("b")).toBe(false);
    expect(await requeue("a")).toBe(true);
    expect(await due()).toEqual(["a"]);
    await begin("a");
    await end("a", { kind: "failed", code: "x", error: "no" });
    expect(await dismiss("a")).toBe(true);
    expect(await dismiss("a")).toBe(false);
    expect(await requeue("a")).toBe(false);
  });

  test("the outbox is listed newest first, in pages", async () => {
    for (const id of ["a", "b", "c"]) await add(id, { sessionKey: id === "c" ? "t" : "s" });
    const page = await deliveries.listDeliveries(store().db, { limit: 2 });
    expect(page.rows.map(({ id }) => id)).toEqual(["c", "b"]);
    const { nextCursor } = page;
    if (nextCursor === undefined) throw new Error("a second page was expected");
    const rest = await deliveries.listDeliveries(store().db, { limit: 2, cursor: nextCursor });
    expect(rest.rows.map(({ id }) => id)).toEqual(["a"]);
    expect(rest.nextCursor).toBeUndefined();
    const ofSession = await deliveries.listDeliveries(store().db, {
      sessionKey: "s",
      state: "pending",
      limit: 9,
    });
    expect(ofSession.rows.map(({ id }) => id)).toEqual(["b", "a"]);
    expect((await deliveries.listDeliveries(store().db, { cursor: "x", limit: 9 })).rows).toEqual([]);
  });
}

function bookContract(store: () => Store): void {
  test("usage is summed by session and outlives it", async () => {
    const usage = { ...ZERO_USAGE, input: 2, output: 3, cacheRead: 1, cacheWrite: 4, totalTokens: 10 };
    const row = { runId: "r", agentId: "main", provider: "p", model: "m", at: 1 };
    const cost = { ...ZERO_USAGE.cost, total: 0.25 };
    await store().transaction(async (tx) => {
      await addUsageRow(tx, { ...row, sessionKey: "a", usage: { ...usage, cost } });
      await addUsageRow(tx, { ...row, sessionKey: "a", usage: { ...usage, cost } });
      await addUsageRow(tx, { ...row, sessionKey: "b", usage });
    });
    const sum = { input: 4, output: 6, cacheRead: 2, cacheWrite: 8, totalTokens: 20, cost: 0.5 };
    expect(await usageOf(store().db, { sessionKey: "a" })).toEqual(sum);
    expect(await usageOf(store().db, {})).toMatchObject({ input: 6, totalTokens: 30, cost: 0.5 });
    expect(await usageOf(store().db, { sessionKey: "none" })).toMatchObject({ totalTokens: 0, cost: 0 });
  });

  test("a key gives its first answer again, and conflicts with any other call", async () => {
    const call = { key: "k", caller: "c", method: "send", paramsHash: "h" };
    expect(await recallAnswer(store().db, call)).toBe("none");
    await store().transaction((tx) => rememberAnswer(tx, call, { runId: "r" }, 100));
    await store().transaction((tx) => rememberAnswer(tx, call, { runId: "other" }, 100));
    expect(await recallAnswer(store().db, call)).toEqual({ answer: { runId: "r" } });
    for (const other of [{ caller: "d" }, { method: "agent" }, { paramsHash: "i" }]) {
      expect(await recallAnswer(store().db, { ...call, ...other })).toBe("conflict");
    }
    expect(await store().transaction((tx) => pruneAnswers(tx, 100))).toBe(0);
    expect(await store().transaction((tx) => pruneAnswers(tx, 101))).toBe(1);
    expect(await recallAnswer(store().db, call)).toBe("none");
  });
}
