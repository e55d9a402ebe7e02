// The store contract, for any database: transactions, lanes, sessions. A lane is the queue of a session's
// runs. Other files in this folder test lists, transcripts, the outbox and the ledger.

import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Run } from "../../src/core/shapes/run.ts";
import type { Session } from "../../src/core/shapes/session.ts";
import { endFlow, insertFlow } from "../../src/store/queries/chains/flows.ts";
import { claimRun, readyHeads, readyNext, requeueHeld } from "../../src/store/queries/runs/claims.ts";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import { releaseSlot, SUBAGENT_SLOTS, takeSlot } from "../../src/store/queries/runs/slots.ts";
import { settledAmong } from "../../src/store/queries/runs/waits.ts";
import * as sessions from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import { anyCharacter } from "../fuzz/nasty.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { sampleRun, sampleSession, userMessage } from "../store/samples.ts";
import { bookContract, outboxContract } from "./store-books.ts";
import { crashContract } from "./store-crashes.ts";
import { forkContract } from "./store-forks.ts";
import { instructionContract } from "./store-instructions.ts";
import { listContract } from "./store-lists.ts";
import { transcriptContract } from "./store-transcripts.ts";

/** An empty store. `close` closes the store and deletes its data. */
export interface OpenedStore {
  readonly store: Store;
  dispose(): Promise<void>;
}
export type OpenStore = () => Promise<OpenedStore>;

interface FeatureContract {
  storeContract(store: () => Store): void;
}
/** The tables of the features. */
const FEATURES = Object.values(
  import.meta.glob<FeatureContract>("../features/*/store-contract.ts", { eager: true }),
);

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
    describe("crashed runs", () => crashContract(store));
    describe("sessions", () => sessionContract(store));
    describe("session lists", () => listContract(store));
    describe("transcripts", () => transcriptContract(store));
    describe("forks", () => forkContract(store));
    describe("outbox", () => outboxContract(store));
    describe("ledger and answers", () => bookContract(store));
    for (const { storeContract: part } of FEATURES) part(store);
    describe("instruction files", () => instructionContract(store));
  });
}

function transactionContract(store: () => Store): void {
  const chain = async (id: string) =>
    await store().db.selectFrom("chains").select("runs").where("chain_id", "=", id).executeTakeFirst();

  test("after a transaction has resolved, its rows can be read", async () => {
    const answer = await store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      return "done";
    });
    expect(answer).toBe("done");
    expect((await chain("a"))?.runs).toBe(1);
  });

  test("if a transaction throws, its changes are undone, and the next one succeeds", async () => {
    const failing = store().transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "a", runs: 1 }).execute();
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await chain("a")).toBeUndefined();
    await store().transaction((tx) => tx.insertInto("chains").values({ chain_id: "b", runs: 1 }).execute());
    expect((await chain("b"))?.runs).toBe(1);
  });

  test("no update of overlapping transactions is lost", async () => {
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

  test("a read neither waits for an open transaction nor sees its changes", async () => {
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

/** Leaves out no lane. */
const EVERY_LANE: Parameters<typeof readyHeads>[1] = { busy: [], passed: [] };

function laneContract(store: () => Store): void {
  const add = (over: Parameters<typeof sampleRun>[0]) =>
    store().transaction((tx) => insertRun(tx, sampleRun(over)));

  test("I1: a lane can have one running or waiting run, and any number of queued runs", async () => {
    await add({ runId: "r1", state: "running" });
    await expect(add({ runId: "r2", state: "running" })).rejects.toThrow();
    await expect(add({ runId: "r3", state: "waiting" })).rejects.toThrow();
    await add({ runId: "r4", state: "queued" });
    await add({ runId: "r5", state: "queued" });
    await add({ runId: "r6", state: "running", sessionKey: "agent:main:chat:other" });
    await add({ runId: "r7", state: "ok" });
  });

  test("I3: a run that returns to its lane is ready again, and no later run overtakes it", async () => {
    const held = { runId: "held", state: "running", owner: "dead", attempt: 1, laneSeq: 1 } as const;
    await store().transaction(async (tx) => {
      await sessions.insertSession(tx, sampleSession());
      await insertRun(tx, sampleRun({ runId: "held", laneSeq: 1 }), 1);
      await claimRun(tx, { ...sampleRun(), ...held, startedAt: 1_000 });
      await insertRun(tx, sampleRun({ runId: "behind", laneSeq: 2 }));
      await readyNext(tx, "agent:main:main", 5);
    });
    expect(await readyHeads(store().db, EVERY_LANE)).toEqual([]);
    await store().transaction((tx) => requeueHeld(tx, 9));
    expect(await readyHeads(store().db, EVERY_LANE)).toMatchObject([{ runId: "held", readyAt: 9 }]);
  });

  test("I6: each queue has its oldest ready run at its head, without busy lanes", async () => {
    const lane = (agentId: string, name: string, readyAt: number | null, more: Partial<Run> = {}) =>
      store().transaction((tx) => {
        const sessionKey = `agent:${agentId}:chat:${name}`;
        return insertRun(tx, sampleRun({ runId: name, sessionKey, agentId, ...more }), readyAt);
      });
    await lane("b", "b2", 2);
    await lane("b", "b1", 1);
    await lane("b", "b0", null);
    await lane("a", "a4", 4);
    await lane("a", "a3", 3, { state: "waiting" });
    await lane("a", "note", 9, { kind: "append" });
    const names = async (left: Partial<typeof EVERY_LANE>) =>
      (await readyHeads(store().db, { ...EVERY_LANE, ...left })).map(({ runId }) => runId).toSorted();
    expect(await names({})).toEqual(["a3", "b1", "note"]);
    expect(await names({ busy: ["agent:b:chat:b1", "agent:a:chat:a3"] })).toEqual(["a3", "b2", "note"]);
    expect(await names({ passed: ["agent:a:chat:a3", "agent:b:chat:b1", "agent:b:chat:b2"] })).toEqual([
      "a4",
      "note",
    ]);
  });

  test("I6: each slot is taken once, up to the limit, and free again when its run gives it back", async () => {
    const take = (runId: string, max = 2) => store().transaction((tx) => takeSlot(tx, runId, max));
    expect([await take("r1"), await take("r2"), await take("r3")]).toEqual([true, true, false]);
    expect(await take("r3", 3)).toBe(true);
    await store().transaction((tx) => releaseSlot(tx, "r1"));
    expect([await take("r4"), await take("r5")]).toEqual([true, false]);
  });

  test("I6: transactions that are open at the same time take different slots of sub-agents, up to their limit", async () => {
    const take = (tx: Tx, runId: string) => takeSlot(tx, runId, 2, SUBAGENT_SLOTS);
    await store().transaction(async (tx) => {
      for (const runId of ["s1", "s2"]) await take(tx, runId);
    });
    await store().transaction(async (tx) => {
      for (const runId of ["s1", "s2"]) await releaseSlot(tx, runId);
    });
    const isShared = store().kind === "postgres";
    const met = Promise.withResolvers<void>();
    const takeUntilMet = (runId: string) =>
      store().transaction(async (tx) => {
        const isTaken = await take(tx, runId);
        if (isShared && runId === "s3") await met.promise;
        if (runId === "s4") met.resolve();
        return isTaken;
      });
    expect(await Promise.all(["s3", "s4"].map(takeUntilMet))).toEqual([true, true]);
    expect(await store().transaction((tx) => take(tx, "s5"))).toBe(false);
    expect(await store().transaction((tx) => takeSlot(tx, "s5", 1))).toBe(true);
    await store().transaction((tx) => releaseSlot(tx, "s3"));
    expect(await store().transaction((tx) => take(tx, "s5"))).toBe(true);
  });

  test("one tool call creates one run", async () => {
    await add({ runId: "r1", callId: "c" });
    await expect(add({ runId: "r2", callId: "c" })).rejects.toThrow();
  });

  test("I3: lane numbers that are taken at the same time are different and have no gap", async () => {
    await store().transaction((tx) => sessions.insertSession(tx, sampleSession()));
    const take = () =>
      store().transaction(async (tx) => {
        const lane = await sessions.holdLane(tx, "agent:main:main");
        await sessions.takeLanePlace(tx, "agent:main:main", 1);
        return lane?.laneSeq ?? 0;
      });
    const taken = await Promise.all(Array.from({ length: 20 }, take));
    expect(taken.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });
}

const text = fc
  .string({ unit: anyCharacter, maxLength: 40 })
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
    failedRun: text,
    inputTokens: fc.nat(),
    outputTokens: fc.nat(),
    totalTokens: fc.nat(),
    contextUsed: fc.nat(),
    cost: fc.nat().map((n) => n / 1024),
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
        "contextUsed",
        "cost",
      ] as const),
    ],
  },
);

function sessionContract(store: () => Store): void {
  const add = (over: Partial<Session>) =>
    store().transaction((tx) => sessions.insertSession(tx, sampleSession(over)));

  test("a session is returned exactly as it was stored", async () => {
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

  test("a patch changes only the named fields; null removes a field", async () => {
    const route = { channel: "webchat", to: "a", threadId: "t" };
    await add({ label: "old", model: "m", lastRoute: route, contextUsed: 7 });
    const patch = { label: "new", model: null, systemSent: true, inputTokens: 3, updatedAt: 2_000 };
    await store().transaction((tx) => sessions.updateSession(tx, "agent:main:main", patch));
    const stored = await sessions.getSession(store().db, "agent:main:main");
    const changed = { label: "new", systemSent: true, inputTokens: 3, updatedAt: 2_000 };
    expect(stored).toEqual(sampleSession({ ...changed, lastRoute: route, contextUsed: 7 }));
    await store().transaction(async (tx) => {
      await sessions.updateSession(tx, "agent:main:main", { lastRoute: null });
      await sessions.updateSession(tx, "agent:main:main", {});
    });
    expect((await sessions.getSession(store().db, "agent:main:main"))?.lastRoute).toBeUndefined();
  });

  test("a reset gives the session a new transcript id, and keeps settings and route; the old id leads to the new one", async () => {
    const lastRoute = { channel: "webchat", to: "a" };
    await add({ label: "mine", failedRun: "r", inputTokens: 9, contextUsed: 9, systemSent: true, lastRoute });
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

  test("deleting a session deletes all its transcripts, or keeps them if requested", async () => {
    for (const transcripts of [true, false]) {
      await add({ sessionId: `a-${transcripts}` });
      const args = { sessionKey: "agent:main:main", sessionId: `a-${transcripts}` };
      await store().transaction(async (tx) => {
        await appendEntry(tx, { ...args, entry: userMessage(`m-${transcripts}`, "hello") }, plainRedactor);
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

  test("ancestors are returned nearest first and busy descendants by generation; a cycle of spawners ends the search", async () => {
    await add({ key: "a", sessionId: "1" });
    await add({ key: "b", sessionId: "2", spawnedBy: "a" });
    await add({ key: "c", sessionId: "3", spawnedBy: "b" });
    await add({ key: "d", sessionId: "4", spawnedBy: "gone" });
    expect(await sessions.ancestorsOf(store().db, "c")).toEqual(["b", "a"]);
    expect(await sessions.ancestorsOf(store().db, "d")).toEqual(["gone"]);
    expect(await sessions.ancestorsOf(store().db, "a")).toEqual([]);
    expect(await sessions.busyDescendantsOf(store().db, "a", 10)).toEqual([]);
    const works = (sessionKey: string) =>
      store().transaction((tx) => insertRun(tx, sampleRun({ runId: `run-${sessionKey}`, sessionKey })));
    for (const key of ["b", "c", "r1"]) await works(key);
    expect(await sessions.busyDescendantsOf(store().db, "a", 10)).toEqual(["b", "c"]);
    expect(await sessions.busyDescendantsOf(store().db, "a", 1)).toEqual(["b"]);
    await add({ key: "r1", sessionId: "5", spawnedBy: "r2" });
    await add({ key: "r2", sessionId: "6", spawnedBy: "r1" });
    expect(new Set(await sessions.ancestorsOf(store().db, "r1"))).toEqual(new Set(["r1", "r2"]));
    expect(new Set(await sessions.busyDescendantsOf(store().db, "r2", 10))).toEqual(new Set(["r1"]));
  });

  test("of more ids than a statement takes parameters, those of ended flows are returned", async () => {
    const flow = { kind: "send", chainId: "c", requesterKey: "a", requesterSessionId: "1" } as const;
    const more = { targetKey: "b", open: true, turnsMax: 0, requestText: "x", createdAt: 1 } as const;
    await store().transaction(async (tx) => {
      for (const flowId of ["f-over", "f-open"]) await insertFlow(tx, { flowId, ...flow, ...more });
      await endFlow(tx, "f-over", "done", 5);
    });
    const ids = Array.from({ length: 70_000 }, (_, n) => `none-${n}`);
    expect(await settledAmong(store().db, ["f-open", ...ids, "f-over"])).toEqual(["f-over"]);
  });

  test("the state and the queue of each session are returned", async () => {
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
