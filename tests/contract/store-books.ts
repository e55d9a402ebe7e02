// Tests of the outbox, the usage ledger, and the stored answers of idempotency keys.

import { expect, test } from "vitest";
import { ZERO_USAGE } from "../../src/core/shapes/message.ts";
import type { Route } from "../../src/core/shapes/session.ts";
import * as deliveries from "../../src/store/queries/channels/deliveries.ts";
import { deliveryFigures } from "../../src/store/queries/channels/delivery-figures.ts";
import * as deadlines from "../../src/store/queries/deadlines.ts";
import {
  eraseAnswers,
  pruneAnswers,
  recallAnswer,
  rememberAnswer,
  reserveKey,
  settleKey,
} from "../../src/store/queries/idempotency.ts";
import { joinProcesses } from "../../src/store/queries/processes.ts";
import { hasOrphans } from "../../src/store/queries/runs/claims.ts";
import { addUsageRow, usageOf } from "../../src/store/queries/runs/ledger.ts";
import {
  answerWaits,
  confirmAnswer,
  countOpenWaits,
  giveUpCallerWaits,
  insertWait,
  loseAnswer,
  waitsOfCall,
} from "../../src/store/queries/runs/waits.ts";
import type { Store } from "../../src/store/sql.ts";

export function outboxContract(store: () => Store): void {
  const route: Route = { channel: "webchat", to: "a" };
  const add = (id: string, over: Partial<deliveries.NewDelivery> = {}) =>
    store().transaction((tx) =>
      deliveries.insertDelivery(tx, {
        ...{ id, sessionKey: "s", kind: "send", route, text: id, state: "pending", createdAt: 100 },
        ...over,
      }),
    );
  /** Returns the places with pending deliveries. */
  const places = (now = 1_000) => deadlines.storedKinds(store().db, now);
  const due = async (now = 1_000) => {
    const rows = (await places(now)).map(({ kind: place }) =>
      deliveries.dueDeliveries(store().db, { place, now, limit: 10 }),
    );
    return (await Promise.all(rows)).flat().map(({ id }) => id);
  };
  const begin = (id: string, owner = "p") =>
    store().transaction((tx) => deliveries.beginAttempt(tx, { id, partsSent: 0 }, owner));
  const end = (id: string, outcome: deliveries.AttemptOutcome) =>
    store().transaction((tx) => deliveries.endAttempt(tx, { id, owner: "p" }, outcome, 500));

  test("I5: a delivery attempt stays open until its outcome is known, and only one process can begin it", async () => {
    await add("a");
    expect(await begin("a")).toBe(true);
    // The answer to the first call was lost, so the second call begins the same attempt.
    expect(await begin("a")).toBe(true);
    expect(await begin("a", "another process")).toBe(false);
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

  test("the outbox counts pending and undismissed failed deliveries by route prefix, and has the time of the last success", async () => {
    const hook = { channel: "webhook", to: "news_%" };
    const prefixes = [deliveries.channelPrefix("webchat"), deliveries.routeKeyOf(hook)];
    const figures = () => deliveryFigures(store().db, prefixes);
    expect(await figures()).toEqual(Array(3).fill({ pending: 0, failed: 0, retrying: 0 }));
    await add("a");
    await add("b", { route: { channel: "webchat", to: "b" } });
    await add("c", { route: hook, kind: "hook" });
    await add("d", { route: { ...hook, to: "newsXX" }, kind: "hook" });
    await add("e", { route: hook, state: "failed", code: "x", error: "lost", createdAt: 90 });
    await add("f", { state: "skipped", code: "x", error: "not this one" });
    for (const id of ["a", "b", "c"]) await begin(id);
    await end("a", { kind: "sent" });
    await end("b", { kind: "failed", code: "x", error: "no" });
    await end("c", { kind: "retry", error: "busy", nextAttemptAt: 2_000 });
    const webchat = {
      pending: 0,
      failed: 1,
      retrying: 0,
      lastError: "no",
      lastErrorAt: 500,
      lastSentAt: 500,
    };
    const other = { pending: 1, failed: 0, retrying: 0 };
    expect(await figures()).toEqual([
      webchat,
      { pending: 1, failed: 1, retrying: 1, nextAttemptAt: 2_000, lastError: "busy" },
      other,
    ]);
    await store().transaction((tx) => deliveries.dismissDelivery(tx, "b", 600));
    await begin("c");
    await end("c", { kind: "sent" });
    expect(await figures()).toEqual([
      { ...webchat, failed: 0 },
      { pending: 0, failed: 1, retrying: 0, lastError: "lost", lastErrorAt: 90, lastSentAt: 500 },
      other,
    ]);
    expect(await deliveryFigures(store().db, [])).toMatchObject([{ pending: 1, failed: 1 }]);
  });

  test("deliveries of one route are sent in order, and do not block other routes", async () => {
    await add("a");
    await add("b", { route: { to: "a", channel: "webchat" } });
    await add("c", { route: { ...route, threadId: "t" } });
    expect(await due()).toEqual(["a", "c"]);
    await begin("a");
    expect(await due()).toEqual(["c"]);
    await end("a", { kind: "retry", error: "busy", nextAttemptAt: 2_000 });
    expect(await due()).toEqual(["c"]);
    expect(await due(2_000)).toEqual(["a", "c"]);
    expect(await places()).toEqual([{ kind: "texts webchat ", firstAt: 100, nextAt: 2_000 }]);
    await begin("a");
    await end("a", { kind: "failed", code: "refused", error: "no" });
    expect(await due()).toEqual(["b", "c"]);
  });

  test("each account has its own due deliveries, and those of a program are in order for each session only", async () => {
    const chat = { channel: "telegram", to: "chat" };
    await add("a", { route: { ...chat, accountId: "one" } });
    await add("b", { route: { ...chat, accountId: "two" } });
    const hook = { kind: "hook", route: { channel: "webhook", to: "news" } } as const;
    for (const id of ["c", "d"]) await add(id, hook);
    await add("e", { ...hook, sessionKey: "other" });
    const two = { place: "texts telegram two", now: 1_000, limit: 10 };
    expect((await deliveries.dueDeliveries(store().db, two)).map(({ id }) => id)).toEqual(["b"]);
    expect(await places(50)).toEqual([
      { kind: "hooks webhook news", firstAt: 100, nextAt: 100 },
      { kind: "texts telegram one", firstAt: 100, nextAt: 100 },
      { kind: "texts telegram two", firstAt: 100, nextAt: 100 },
    ]);
    const news = { place: "hooks webhook news", now: 1_000, limit: 10 };
    expect((await deliveries.dueDeliveries(store().db, news)).map(({ id }) => id)).toEqual(["c", "e"]);
  });

  test("a requeued delivery is the first of its route again, and gets a day of its own", async () => {
    await add("a");
    await add("b");
    await begin("a");
    await end("a", { kind: "failed", code: "gave_up", error: "no" });
    await begin("b");
    await end("b", { kind: "retry", error: "busy", nextAttemptAt: 9_000_000_000 });
    expect(await due()).toEqual([]);
    await store().transaction((tx) => deliveries.requeueDelivery(tx, "a", 900));
    expect(await due()).toEqual(["a"]);
    const givesUp = async (id: string) => (await deliveries.getDelivery(store().db, id))?.giveUpAt;
    expect([await givesUp("a"), await givesUp("b")]).toEqual([86_400_900, 86_400_100]);
    await begin("a");
    await end("a", { kind: "sent" });
    expect(await due()).toEqual([]);
    expect(await due(9_000_000_000)).toEqual(["b"]);
    await begin("b");
    await end("b", { kind: "sent" });
    expect(await places()).toEqual([]);
  });

  test("a delivery that is queued while the only one of its route is settled becomes due", async () => {
    for (let round = 0; round < 20; round += 1) {
      await add(`first ${round}`);
      await begin(`first ${round}`);
      await Promise.all([end(`first ${round}`, { kind: "sent" }), add(`second ${round}`)]);
      expect(await due()).toEqual([`second ${round}`]);
      await begin(`second ${round}`);
      await end(`second ${round}`, { kind: "sent" });
    }
    expect(await places()).toEqual([]);
  });

  test("a skipped delivery is kept and never becomes due", async () => {
    await add("a", { state: "skipped", code: "send_denied", error: "no" });
    expect(await due()).toEqual([]);
    expect(await places()).toEqual([]);
    expect(await deliveries.getDelivery(store().db, "a")).toMatchObject({
      state: "skipped",
      code: "send_denied",
      settledAt: 100,
    });
  });

  test("I5: an interrupted attempt is repeated only if the channel recognizes repeated texts", async () => {
    await add("a");
    await add("b", { route: { channel: "telegram", to: "b" } });
    await begin("a");
    await begin("b");
    const failed = await store().transaction((tx) =>
      deliveries.recoverOpenAttempts(tx, { at: 700, canRepeat: ({ channel }) => channel === "webchat" }),
    );
    expect(failed.map(({ id }) => id)).toEqual(["b"]);
    expect(await due()).toEqual(["a"]);
    expect(await deliveries.getDelivery(store().db, "b")).toMatchObject({
      state: "failed",
      code: "ambiguous",
    });
  });

  test("I5: a process settles its own open attempts, except those that it is still executing", async () => {
    await add("a");
    await add("b", { route: { channel: "webchat", to: "b" } });
    await begin("a");
    await begin("b");
    const living = { process_id: "p", host: "", version: "", started_at: 1, beat_at: 4e12 };
    await store().transaction((tx) => tx.insertInto("processes").values(living).execute());
    const own = { owner: "p", isUnderWay: (id: string) => id === "b" };
    const recovery = { at: 700, canRepeat: () => true, from: "the dead" as const, own };
    await store().transaction((tx) => deliveries.recoverOpenAttempts(tx, recovery));
    expect(await due()).toEqual(["a"]);
    expect(await deliveries.getDelivery(store().db, "b")).toMatchObject({ attemptOpen: true });
  });

  test("I5: an open attempt without an owner, as an older version writes it, counts as interrupted", async () => {
    await add("a");
    await add("b", { route: { channel: "telegram", to: "b" } });
    await begin("a");
    await begin("b");
    const recover = (from?: "the dead") =>
      store().transaction((tx) =>
        deliveries.recoverOpenAttempts(tx, {
          at: 700,
          canRepeat: ({ channel }) => channel === "webchat",
          from,
        }),
      );
    await store().transaction((tx) => tx.updateTable("deliveries").set({ attempt_owner: null }).execute());
    expect((await recover("the dead")).map(({ id }) => id)).toEqual(["b"]);
    expect(await due()).toEqual(["a"]);
    await begin("a");
    await store().transaction((tx) => tx.updateTable("deliveries").set({ attempt_owner: null }).execute());
    await recover();
    expect(await deliveries.getDelivery(store().db, "a")).toMatchObject({
      ...{ state: "pending", attemptOpen: false },
    });
  });

  test("an open wait without an owner, as an older version writes it, counts as ended", async () => {
    const ends = { waiterRunId: "", waiterSessionKey: "", targetId: "r", targetSessionKey: "s" };
    const wait = { ...ends, kind: "run" } as const;
    await store().transaction(async (tx) => {
      await joinProcesses(tx, { processId: "alive", host: "", version: "" }, Date.now());
      await insertWait(tx, { callId: "old", ...wait, state: "open", deadlineAt: Date.now() + 60_000 });
    });
    expect(await hasOrphans(store().db)).toBe(true);
    expect(await countOpenWaits(store().db)).toBe(1);
    await store().transaction((tx) => giveUpCallerWaits(tx, "the dead"));
    expect(await countOpenWaits(store().db)).toBe(0);
    expect(await waitsOfCall(store().db, "old")).toMatchObject([{ state: "ended" }]);
  });

  test("an outcome that a dead process had not sent to its client is taken over once", async () => {
    const wait = {
      waiterRunId: "",
      waiterSessionKey: "client",
      targetSessionKey: "s",
      state: "open",
    } as const;
    const deadlineAt = Date.now() + 60_000;
    const add = (callId: string, owner: string, waiterSessionKey = "client") =>
      store().transaction((tx) =>
        insertWait(
          tx,
          { ...wait, callId, waiterSessionKey, kind: "run", targetId: `run of ${callId}`, deadlineAt },
          owner,
        ),
      );
    const end = (callId: string) =>
      store().transaction((tx) => answerWaits(tx, `run of ${callId}`, Date.now()));
    await store().transaction((tx) =>
      joinProcesses(tx, { processId: "alive", host: "", version: "" }, Date.now()),
    );
    await add("lost", "dead");
    await add("written", "dead");
    await add("its own", "alive");
    await add("no client", "dead", "");
    for (const callId of ["lost", "written", "its own", "no client"]) expect(await end(callId)).toBe(true);
    await store().transaction((tx) => confirmAnswer(tx, "written"));
    expect(await hasOrphans(store().db)).toBe(true);
    const giveUp = () => store().transaction((tx) => giveUpCallerWaits(tx, "the dead"));
    expect(await giveUp()).toEqual(["run of lost"]);
    expect(await giveUp()).toEqual([]);
    expect(await hasOrphans(store().db)).toBe(false);
    const states = async (callId: string) => (await waitsOfCall(store().db, callId))[0]?.state;
    expect(await states("written")).toBe("answered");
    expect(await states("no client")).toBe("answered");
    expect(await states("its own")).toBe("ready");
    const lose = (callId: string) => store().transaction((tx) => loseAnswer(tx, callId));
    expect(await lose("its own")).toEqual(["run of its own"]);
    expect(await lose("its own")).toEqual([]);
    expect(await lose("written")).toEqual([]);
  });

  test("the wait of a dead process's client for a job is found and ended; other such waits stay open", async () => {
    const wait = { waiterRunId: "", waiterSessionKey: "client", targetSessionKey: "s" } as const;
    const add = (callId: string, owner: string) =>
      store().transaction((tx) => {
        const row = {
          ...wait,
          callId,
          kind: "job",
          targetId: "f",
          state: "open",
          deadlineAt: Date.now() + 60_000,
        } as const;
        return insertWait(tx, row, owner);
      });
    await store().transaction((tx) =>
      joinProcesses(tx, { processId: "alive", host: "", version: "" }, Date.now()),
    );
    await add("its own", "alive");
    expect(await hasOrphans(store().db)).toBe(false);
    await add("left", "dead");
    expect(await hasOrphans(store().db)).toBe(true);
    await store().transaction((tx) => giveUpCallerWaits(tx, "the dead"));
    expect(await hasOrphans(store().db)).toBe(false);
    const states = async (callId: string) =>
      (await waitsOfCall(store().db, callId)).map(({ state }) => state);
    expect([await states("left"), await states("its own")]).toEqual([["ended"], ["open"]]);
  });

  test("a failed delivery can be requeued at its old position, or dismissed, but only once", async () => {
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

export function bookContract(store: () => Store): void {
  test("usage is summed by session, and kept after the session is deleted", async () => {
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

  test("a cost is returned as exactly the stored value", async () => {
    const costs = [0.1, 1e-7, 123_456.789_012_3, 0.1 + 0.2];
    for (const [n, total] of costs.entries()) {
      const usage = { ...ZERO_USAGE, input: 4_000_000_000, cost: { ...ZERO_USAGE.cost, total } };
      const row = {
        runId: "r",
        agentId: "main",
        provider: "p",
        model: "m",
        at: 1,
        sessionKey: `s${n}`,
        usage,
      };
      await store().transaction((tx) => addUsageRow(tx, row));
      expect(await usageOf(store().db, { sessionKey: `s${n}` })).toMatchObject({
        cost: total,
        input: 4_000_000_000,
      });
    }
  });

  test("an idempotency key returns its first answer again; for a different call it is a conflict", async () => {
    const call = { key: "k", owner: "c", method: "send", paramsHash: "h" };
    expect(await recallAnswer(store().db, call)).toBe("none");
    await store().transaction((tx) => rememberAnswer(tx, call, { runId: "r" }, 100));
    await store().transaction((tx) => rememberAnswer(tx, call, { runId: "other" }, 100));
    expect(await recallAnswer(store().db, call)).toEqual({ answer: { runId: "r" } });
    for (const other of [{ method: "agent" }, { paramsHash: "i" }]) {
      expect(await recallAnswer(store().db, { ...call, ...other })).toBe("conflict");
    }
    expect(await store().transaction((tx) => pruneAnswers(tx, 100))).toBe(0);
    expect(await store().transaction((tx) => pruneAnswers(tx, 101))).toBe(1);
    expect(await recallAnswer(store().db, call)).toBe("none");
  });

  test("a deleted session leaves the ids and the words of the protocol in stored answers, and no text", async () => {
    const call = { key: "k", owner: "c", method: "tools.invoke", paramsHash: "h" };
    const sent = { runId: "r", sessionKey: "agent:a:chat:1", status: "accepted", receipt: "queued" };
    const answer = { ...sent, delivery: { status: "pending", mode: "announce" } };
    await store().transaction((tx) => rememberAnswer(tx, call, { ...answer, reply: "a secret" }, 100));
    await store().transaction((tx) => eraseAnswers(tx, "agent:a:chat:1", 100));
    expect(await recallAnswer(store().db, call)).toEqual({ answer: { ...answer, reply: "" } });
  });

  test("ID4: if a running call holds a key, the key returns the answer of that call, or a failure after a crash", async () => {
    const call = { key: "k", owner: "c", method: "tools.invoke", paramsHash: "h" };
    const other = { ...call, paramsHash: "i" };
    const reserve = (one: typeof call, processId: string) =>
      store().transaction((tx) => reserveKey(tx, one, { ifLost: "unknown", at: 100, processId }));
    const remember = (one: typeof call, answer: string) =>
      store().transaction((tx) => rememberAnswer(tx, one, answer, 100));
    expect(await reserve(call, "one")).toBe(true);
    expect([await reserve(call, "two"), await reserve(other, "one")]).toEqual([false, false]);
    expect(await reserve(call, "one"), "its own commit may have lost its answer").toBe(true);
    expect(await recallAnswer(store().db, call)).toEqual({ answer: "unknown", begunBy: "one" });
    expect(await remember(other, "of another request")).toBe(false);
    await store().transaction((tx) => settleKey(tx, call, "two"));
    expect(await remember(call, "done")).toBe(true);
    expect(await recallAnswer(store().db, call)).toEqual({ answer: "done" });
    expect([await remember(call, "again"), await reserve(call, "one")]).toEqual([false, false]);
    const lost = { ...call, key: "l" };
    await reserve(lost, "one");
    await store().transaction((tx) => settleKey(tx, lost, "one"));
    expect(await remember(lost, "too late")).toBe(false);
    expect(await recallAnswer(store().db, lost)).toEqual({ answer: "unknown" });
  });

  test("ID3: if two owners use one key, each gets its own answer", async () => {
    const call = { key: "k", owner: "token", method: "send", paramsHash: "h" };
    const others = ["other", "token:device", "token:device-2"].map((owner) => ({ ...call, owner }));
    const remember = (one: typeof call) =>
      store().transaction((tx) => rememberAnswer(tx, one, { of: one.owner }, 100));
    expect(await remember(call)).toBe(true);
    for (const other of others) {
      expect(await recallAnswer(store().db, other)).toBe("none");
      expect(await remember({ ...other, method: "agent", paramsHash: "i" })).toBe(true);
      expect(await recallAnswer(store().db, other)).toBe("conflict");
    }
    expect(await remember(call)).toBe(false);
    expect(await recallAnswer(store().db, call)).toEqual({ answer: { of: "token" } });
  });

  test("ID3: an answer that an older version stored belongs to its token only", async () => {
    const [row] = [{ key: "k", caller: "token", method: "send", params_hash: "h", answer_json: '"old"' }];
    await store().transaction((tx) =>
      tx
        .insertInto("idempotency")
        .values({ ...row, created_at: 100 })
        .execute(),
    );
    const call = { key: "k", owner: "token:device", method: "send", paramsHash: "h" };
    const by = (caller: string) => recallAnswer(store().db, { ...call, older: { key: "k", caller } });
    expect(await by("token")).toEqual({ answer: "old" });
    expect(await by("other")).toBe("none");
    expect(await recallAnswer(store().db, call)).toBe("none");
  });
}
