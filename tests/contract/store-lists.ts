// Compares lists of sessions with a simple model that filters and sorts in memory.

import * as fc from "fast-check";
import type { Insertable } from "kysely";
import { expect, test } from "vitest";
import type { Scope } from "../../src/core/rules/visibility.ts";
import type { Session } from "../../src/core/shapes/session.ts";
import { matchesPattern } from "../../src/core/text/pattern.ts";
import { fillFirstWords } from "../../src/store/first-words.ts";
import { StoreProblem } from "../../src/store/problems.ts";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import {
  type ChildCounts,
  childCounts,
  filterCounts,
  type SumBelow,
  sumsBelow,
} from "../../src/store/queries/sessions/counts.ts";
import {
  isSessionCursor,
  listSessions,
  type SessionFilter,
} from "../../src/store/queries/sessions/session-lists.ts";
import {
  deleteSessionRows,
  getSession,
  insertSession,
  replaceSessionId,
  updateSession,
} from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import { linkFork } from "../../src/store/queries/transcripts/forks.ts";
import type { SessionTable } from "../../src/store/schema/tables.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import { quietWorld } from "../kit/engine/engine.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { assistantMessage, sampleRun, sampleSession, userMessage } from "../store/samples.ts";

const AGENTS = ["main", "research", "other"];
const KINDS = ["main", "group", "cron", "hook", "node", "other"] as const;
const KEYS = Array.from({ length: 24 }, (_, index) => `agent:${AGENTS[index % 3]}:chat:${index}`);
const LABELS = ["alpha", "Alpine", "50%_off", "bet\\a"];

/**
 * Positions of matches in a long list. They are far apart, and some are at the end of a page of 10,000 rows.
 */
const RARE = [3, 1_999, 2_000, 2_001];

/** Number of rows per statement. */
const TOGETHER = 500;

/**
 * Inserts copies of a sample with these differences. It inserts many rows with each statement, because one
 * statement for each row would take ten seconds.
 */
async function insertCopies(
  tx: Tx,
  rows: readonly (Partial<Insertable<SessionTable>> & Pick<SessionTable, "key" | "session_id">)[],
): Promise<void> {
  await insertSession(tx, sampleSession());
  const {
    row_id: _,
    archived: __,
    ...sample
  } = await tx.selectFrom("sessions").selectAll().executeTakeFirstOrThrow();
  await tx.deleteFrom("sessions").execute();
  await tx.deleteFrom("session_ids").execute();
  for (let at = 0; at < rows.length; at += TOGETHER) {
    const some = rows.slice(at, at + TOGETHER);
    await tx
      .insertInto("sessions")
      .values(some.map((row) => ({ ...sample, ...row })))
      .execute();
    const ids = some.map(({ session_id, key }) => ({ session_id, session_key: key, created_at: 0 }));
    await tx.insertInto("session_ids").values(ids).execute();
  }
}

/** Lanes with an unfinished run, and lanes with a finished run of the token `t`. Other lanes have no run. */
interface Work {
  readonly busy: readonly string[];
  readonly asked: readonly string[];
}

const NO_WORK: Work = { busy: [], asked: [] };

async function insertWork(tx: Tx, { busy, asked }: Work): Promise<void> {
  await tx.deleteFrom("runs").execute();
  for (const [at, sessionKey] of busy.entries()) {
    const state = (["queued", "running", "waiting"] as const)[at % 3] ?? "queued";
    await insertRun(tx, sampleRun({ runId: `run of ${sessionKey}`, sessionKey, state, askedBy: "tu" }));
  }
  for (const [at, sessionKey] of asked.entries()) {
    const askedBy = at % 2 === 0 ? "t" : "t:device";
    const run = { runId: `asked ${sessionKey}`, state: "ok" as const, laneSeq: 2, askedBy };
    await insertRun(tx, sampleRun({ ...run, sessionKey }));
  }
}

const key = fc.constantFrom(...KEYS);
const someSessions: fc.Arbitrary<Session[]> = fc
  .uniqueArray(
    fc.record(
      {
        key,
        kind: fc.constantFrom(...KINDS),
        updatedAt: fc.nat({ max: 6 }),
        label: fc.constantFrom(...LABELS),
        displayName: fc.constantFrom("Überblick", "alphabet"),
        archivedAt: fc.constant(1),
        failedRun: fc.constant("r"),
        abortedLastRun: fc.boolean(),
        spawnedBy: key,
        totalTokens: fc.nat({ max: 9 }),
        cost: fc.nat({ max: 9 }),
      },
      { requiredKeys: ["key", "kind", "updatedAt"] },
    ),
    { selector: (session) => session.key, minLength: 5, maxLength: KEYS.length },
  )
  .map((rows) =>
    rows.map((row) =>
      sampleSession({ ...row, sessionId: `id ${row.key}`, agentId: row.key.split(":")[1] ?? "" }),
    ),
  );

const pattern = fc.constantFrom("*", "agent:main:*", "*:1*", "agent:research:chat:1", "agent:other:chat:2*");
const scope: fc.Arbitrary<Scope> = fc.oneof(
  fc.constant({ all: true } as const),
  fc.record(
    {
      all: fc.constant(false as const),
      self: key,
      treeOf: key,
      agentIds: fc.oneof(fc.constant("any" as const), fc.subarray(AGENTS)),
      patterns: fc.array(pattern, { maxLength: 2 }),
    },
    { requiredKeys: ["all"] },
  ),
);
const filter: fc.Arbitrary<SessionFilter> = fc.record(
  {
    scope,
    kinds: fc.subarray([...KINDS], { minLength: 1 }),
    agentId: fc.constantFrom(...AGENTS),
    activeSinceMs: fc.nat({ max: 6 }),
    search: fc.constantFrom("al", "ALP", "alpha", "%", "über", "agent:", "\\", "0%_", '"', "zzz"),
    label: fc.constantFrom(...LABELS),
    spawnedBy: key,
    roots: fc.boolean(),
    keys: fc.subarray(KEYS),
    doing: fc.constantFrom("running", "failed"),
    askedBy: fc.constant("t"),
    includeArchived: fc.boolean(),
    excludeKeys: fc.array(key, { maxLength: 3 }),
    limit: fc.integer({ min: 1, max: 7 }),
  },
  { requiredKeys: ["scope", "limit"] },
);

const work: fc.Arbitrary<Work> = fc.record({ busy: fc.subarray(KEYS), asked: fc.subarray(KEYS) });

function inTree(session: Session, root: string, rows: readonly Session[]): boolean {
  let at: string | undefined = session.key;
  for (let steps = 0; at !== undefined && steps <= rows.length; steps++) {
    if (at === root) return true;
    at = rows.find((row) => row.key === at)?.spawnedBy;
  }
  return false;
}

function inScope(session: Session, wanted: Scope, rows: readonly Session[]): boolean {
  if (wanted.all) return true;
  const { self, treeOf, agentIds, patterns } = wanted;
  const covered = patterns === undefined || patterns.some((one) => matchesPattern(one, session.key));
  const reached =
    agentIds === "any" ||
    session.key === self ||
    (treeOf !== undefined && inTree(session, treeOf, rows)) ||
    (agentIds?.includes(session.agentId) ?? false);
  return covered && reached;
}

/**
 * Returns true if a session is a root: it has no spawner, or its spawner does not exist or does not match the
 * patterns of the scope.
 */
function isRoot({ spawnedBy }: Session, wanted: Scope, rows: readonly Session[]): boolean {
  if (spawnedBy === undefined || !rows.some((row) => row.key === spawnedBy)) return true;
  if (wanted.all || wanted.patterns === undefined) return false;
  return !wanted.patterns.some((one) => matchesPattern(one, spawnedBy));
}

function expected(rows: readonly Session[], wanted: SessionFilter, { busy, asked } = NO_WORK): string[] {
  const search = wanted.search?.toLowerCase();
  const named = ({ key, label, displayName }: Session): boolean =>
    search === undefined || [key, label, displayName].some((name) => name?.toLowerCase().includes(search));
  return rows
    .filter((row) => inScope(row, wanted.scope, rows) && named(row))
    .filter((row) => wanted.includeArchived === true || row.archivedAt === undefined)
    .filter((row) => wanted.kinds === undefined || wanted.kinds.includes(row.kind))
    .filter((row) => wanted.agentId === undefined || row.agentId === wanted.agentId)
    .filter((row) => row.updatedAt >= (wanted.activeSinceMs ?? 0))
    .filter((row) => wanted.label === undefined || row.label === wanted.label)
    .filter((row) => wanted.spawnedBy === undefined || row.spawnedBy === wanted.spawnedBy)
    .filter((row) => wanted.roots !== true || isRoot(row, wanted.scope, rows))
    .filter((row) => wanted.keys?.includes(row.key) ?? true)
    .filter((row) => wanted.doing !== "running" || busy.includes(row.key))
    .filter((row) => wanted.doing !== "failed" || (row.failedRun !== undefined && !busy.includes(row.key)))
    .filter((row) => wanted.askedBy === undefined || asked.includes(row.key))
    .filter((row) => !(wanted.excludeKeys ?? []).includes(row.key))
    .toSorted((a, b) => b.updatedAt - a.updatedAt || (a.key < b.key ? 1 : -1))
    .map((row) => row.key);
}

async function allPages(store: Store, wanted: SessionFilter): Promise<string[]> {
  const keys: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listSessions(store.db, cursor === undefined ? wanted : { ...wanted, cursor });
    expect(page.rows.length).toBeLessThanOrEqual(wanted.limit);
    keys.push(...page.rows.map((row) => row.key));
    cursor = page.nextCursor;
    if (cursor !== undefined) expect(isSessionCursor(cursor)).toBe(true);
  } while (cursor !== undefined);
  return keys;
}

/** Returns the sums of all sessions below each session, or none if a session is below itself. */
function expectedBelow(rows: readonly Session[], wanted: SessionFilter): Map<string, SumBelow> {
  const children = new Map(rows.map(({ key }) => [key, expected(rows, { ...wanted, spawnedBy: key })]));
  const below = (key: string, levels = KEYS.length): string[] =>
    (levels === 0 ? [] : (children.get(key) ?? [])).flatMap((child) => [child, ...below(child, levels - 1)]);
  const sums = new Map<string, SumBelow>();
  for (const { key } of rows) {
    const keys = below(key);
    if (new Set(keys).size < keys.length) return new Map();
    const all = rows.filter((row) => keys.includes(row.key));
    const sum = (name: "totalTokens" | "cost") => all.reduce((total, row) => total + row[name], 0);
    if (all.length > 0)
      sums.set(key, { sessions: all.length, tokens: sum("totalTokens"), cost: sum("cost") });
  }
  return sums;
}

export function listContract(store: () => Store): void {
  test("all pages together contain exactly the filtered sessions, each once, newest first", async () => {
    await fc.assert(
      fc.asyncProperty(
        someSessions,
        fc.array(filter, { minLength: 4, maxLength: 8 }),
        work,
        async (rows, filters, work) => {
          await store().transaction(async (tx) => {
            await tx.deleteFrom("sessions").execute();
            await tx.deleteFrom("session_ids").execute();
            for (const row of rows) await insertSession(tx, row);
            await insertWork(tx, work);
          });
          for (const wanted of filters)
            expect(await allPages(store(), wanted)).toEqual(expected(rows, wanted, work));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("after any inserts and deletes, the number of children equals the length of a list filtered by spawner", async () => {
    const scopes = fc.constantFrom<Scope>(
      { all: true },
      ...[["agent:main:*"], ["*:1*", "agent:other:chat:2?"], ["AGENT:*"]].map((patterns) => ({
        all: false as const,
        agentIds: "any" as const,
        patterns,
      })),
    );
    await fc.assert(
      fc.asyncProperty(
        someSessions,
        fc.subarray(KEYS),
        work,
        fc.array(fc.tuple(scopes, fc.boolean()), { minLength: 2, maxLength: 4 }),
        async (rows, removed, work, asked) => {
          await store().transaction(async (tx) => {
            await tx.deleteFrom("sessions").execute();
            await tx.deleteFrom("session_ids").execute();
            for (const row of rows) await insertSession(tx, row);
            for (const key of removed) await deleteSessionRows(tx, key, { transcripts: true });
            await insertWork(tx, work);
          });
          const left = rows.filter((row) => !removed.includes(row.key));
          for (const [scope, includeArchived] of asked) {
            const counts = await childCounts(store().db, { keys: KEYS, scope, includeArchived });
            const shown = new Map<string, ChildCounts>();
            for (const { key } of left) {
              const found = expected(left, { scope, includeArchived, spawnedBy: key, limit: 1 });
              const of = (doing: "running" | "failed") =>
                expected(left, { scope, includeArchived, spawnedBy: key, doing, limit: 1 }, work).length;
              const wasStopped = ({ key, abortedLastRun, failedRun }: Session) =>
                abortedLastRun && failedRun === undefined && !work.busy.includes(key);
              const stopped = left.filter((row) => found.includes(row.key) && wasStopped(row)).length;
              const counted = {
                children: found.length,
                running: of("running"),
                failed: of("failed"),
                stopped,
              };
              if (found.length > 0) shown.set(key, counted);
            }
            const keys = left.map(({ key }) => key);
            const added = await sumsBelow(store().db, { keys, scope, includeArchived });
            expect(added).toEqual(expectedBelow(left, { scope, includeArchived, limit: 1 }));
            const matches = (wanted: Partial<SessionFilter>) =>
              expected(left, { scope, limit: 1, ...wanted }, work).length;
            expect(await filterCounts(store().db, { scope, askedBy: "t" })).toEqual({
              running: matches({ doing: "running" }),
              failed: matches({ doing: "failed" }),
              mine: matches({ askedBy: "t" }),
            });
            expect(new Map([...counts].sort())).toEqual(new Map([...shown].sort()));
            expect(await allPages(store(), { scope, includeArchived, roots: true, limit: 5 })).toEqual(
              expected(left, { scope, includeArchived, roots: true, limit: 5 }),
            );
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test("at most 1,000 children are counted, and running and failed children are counted among these", async () => {
    await store().transaction(async (tx) => {
      await insertSession(tx, sampleSession({ key: "top", sessionId: "top" }));
      for (let n = 0; n < 1_004; n += 1) {
        const key = `child ${n}`;
        const outcome = n < 3 ? {} : { failedRun: "r" };
        await insertSession(tx, sampleSession({ key, sessionId: key, spawnedBy: "top", ...outcome }));
        if (n < 3) await insertRun(tx, sampleRun({ runId: key, sessionKey: key, state: "queued" }));
      }
    });
    const counts = await childCounts(store().db, { keys: ["top"], scope: { all: true } });
    expect(counts.get("top")).toEqual({ children: 1_000, running: 3, failed: 997, stopped: 0 });
    const all = { keys: ["top"], scope: { all: true } } as const;
    expect((await sumsBelow(store().db, all)).get("top")?.sessions).toBe(1_004);
    expect(await sumsBelow(store().db, all, 1_000)).toEqual(new Map());
  });

  test("a session whose spawner was deleted is a root, until a session with the spawner's key exists again", async () => {
    const roots = () => allPages(store(), { scope: { all: true }, limit: 5, roots: true });
    const above = sampleSession({ key: "above", sessionId: "s1", updatedAt: 5 });
    await store().transaction(async (tx) => {
      await insertSession(tx, above);
      await insertSession(tx, sampleSession({ key: "below", sessionId: "s2", spawnedBy: "above" }));
    });
    expect(await roots()).toEqual(["above"]);
    await store().transaction((tx) => deleteSessionRows(tx, "above", { transcripts: true }));
    expect(await roots()).toEqual(["below"]);
    await store().transaction((tx) => insertSession(tx, above));
    expect(await roots()).toEqual(["above"]);
  });

  test("sessions with the same time are ordered by the bytes of their keys, descending, on all pages", async () => {
    const keys = [
      "a",
      "B",
      "Z",
      "_",
      "~",
      "é",
      "É",
      "ß",
      "zz",
      "a b",
      "a-b",
      "aB",
      "ａ",
      "\u{10000}",
      "\uffee",
      "10",
      "9",
    ];
    await store().transaction(async (tx) => {
      for (const key of keys) await insertSession(tx, sampleSession({ key, sessionId: `id ${key}` }));
    });
    const byBytes = keys.toSorted((a, b) => Buffer.compare(Buffer.from(b), Buffer.from(a)));
    for (const limit of [2, 5, 50]) {
      expect(await allPages(store(), { scope: { all: true }, limit })).toEqual(byBytes);
    }
    const range: Scope = { all: false, agentIds: "any", patterns: ["a*"] };
    expect(await allPages(store(), { scope: range, limit: 50 })).toEqual(
      byBytes.filter((key) => key.startsWith("a")),
    );
  });

  test("a key, a label and a spawner are found by exact spelling, and a name in upper or lower case", async () => {
    await store().transaction(async (tx) => {
      await insertSession(tx, sampleSession({ key: "Köln", label: "ÄPFEL", displayName: "ΟΔΟΣ" }));
      await insertSession(tx, sampleSession({ key: "k2", sessionId: "s2", spawnedBy: "Köln" }));
    });
    const found = (more: Partial<SessionFilter>) =>
      allPages(store(), { scope: { all: true }, limit: 5, ...more });
    expect(await found({ label: "äpfel" })).toEqual([]);
    expect(await found({ label: "ÄPFEL" })).toEqual(["Köln"]);
    expect(await found({ spawnedBy: "köln" })).toEqual([]);
    expect(await found({ spawnedBy: "Köln" })).toEqual(["k2"]);
    expect(await getSession(store().db, "KÖLN")).toBeUndefined();
    for (const search of ["KÖL", "köln", "äpf", "ÄPFEL", "οδο"]) {
      expect(await found({ search })).toEqual(["Köln"]);
    }
    const jo = sampleSession({ key: "k3", sessionId: "s3", agentId: "jo", label: "Jürgen Ökonom" });
    await store().transaction((tx) => insertSession(tx, jo));
    expect(await found({ search: "jürgen ökonom" })).toEqual(["k3"]);
    const few = { all: false, agentIds: [], self: "k3" } as const;
    expect(await found({ search: "jürgen ökonom", scope: few })).toEqual(["k3"]);
  });

  test("a renamed session is found by its new name only, and a deleted session is not found at all", async () => {
    const found = (search: string) => allPages(store(), { scope: { all: true }, limit: 5, search });
    await store().transaction((tx) => insertSession(tx, sampleSession({ label: "before" })));
    await store().transaction((tx) => updateSession(tx, "agent:main:main", { label: "after" }));
    expect([await found("before"), await found("after")]).toEqual([[], ["agent:main:main"]]);
    await store().transaction((tx) => deleteSessionRows(tx, "agent:main:main", { transcripts: true }));
    expect(await found("after")).toEqual([]);
  });

  test("a session is found by its first words, which only its first message and a reset change", async () => {
    const found = (search: string) => allPages(store(), { scope: { all: true }, limit: 5, search });
    const say = (id: string, text: string, sessionId = "session-1") =>
      store().transaction(async (tx) => {
        const entry = userMessage(id, text);
        await appendEntry(tx, { sessionKey: "agent:main:main", sessionId, entry }, plainRedactor);
      });
    await store().transaction((tx) => insertSession(tx, sampleSession()));
    const picture = { ...userMessage("m0", ""), content: [] };
    const place = { sessionKey: "agent:main:main", sessionId: "session-1" };
    await store().transaction((tx) => appendEntry(tx, { ...place, entry: picture }, plainRedactor));
    await store().transaction((tx) =>
      appendEntry(tx, { ...place, entry: assistantMessage("m1", "greetings") }, plainRedactor),
    );
    await say("m2", `Über den\n\n Fluss\0${"x".repeat(10_000)} end`);
    await say("m3", "second words");
    expect((await getSession(store().db, "agent:main:main"))?.firstWords).toMatch(
      /^Über den Fluss\ufffdx+…$/,
    );
    for (const search of ["über DEN fluss", "Ü", "n f"])
      expect(await found(search)).toEqual(["agent:main:main"]);
    for (const search of ["greetings", "second", "x end"]) expect(await found(search)).toEqual([]);
    await store().transaction((tx) => replaceSessionId(tx, "agent:main:main", "session-2", 5));
    await say("m4", "late words of the earlier conversation");
    expect([await found("den fluss"), await found("late words")]).toEqual([[], []]);
    await say("m5", "third words", "session-2");
    expect(await found("third words")).toEqual(["agent:main:main"]);
    await store().transaction((tx) => deleteSessionRows(tx, "agent:main:main", { transcripts: true }));
    expect(await found("third words")).toEqual([]);
  });

  test("sessions of an earlier version get their first words, although the store refuses some transactions", async () => {
    const keys = Array.from({ length: 12 }, (_, n) => `agent:main:chat:${n}`);
    await store().transaction(async (tx) => {
      for (const [n, key] of keys.entries()) {
        await insertSession(tx, sampleSession({ key, sessionId: `s${n}`, updatedAt: 1 }));
        const words =
          n % 3 === 0 ? [] : [assistantMessage(`a${n}`, "hello"), userMessage(`m${n}`, `words ${n}.`)];
        for (const entry of words)
          await appendEntry(tx, { sessionKey: key, sessionId: `s${n}`, entry }, plainRedactor);
      }
      await linkFork(tx, "s2", { from: "s1", at: "m1" });
      await tx
        .updateTable("sessions")
        .set({ first_words: null })
        .where("key", "!=", "agent:main:chat:5")
        .execute();
      await tx
        .updateTable("sessions")
        .set({ first_words: "kept" })
        .where("key", "=", "agent:main:chat:5")
        .execute();
    });
    // The store is lost during the work, and comes back.
    const refusals = [2, 3];
    let tries = 0;
    const refusing: Store["transaction"] = async (work) => {
      tries += 1;
      if (refusals.includes(tries)) throw new StoreProblem("unreachable", "the database");
      return store().transaction(work);
    };
    const parts = { db: store().db, transaction: refusing };
    await fillFirstWords(parts, { world: { ...quietWorld(), redactor: plainRedactor }, rowsMax: 5 });
    const rows = await store().db.selectFrom("sessions").select(["key", "first_words"]).execute();
    const expected = keys.map((key, n) => {
      if (n % 3 === 0) return [key, null];
      return [key, n === 5 ? "kept" : `words ${n === 2 ? 1 : n}.`];
    });
    expect(Object.fromEntries(rows.map((row) => [row.key, row.first_words]))).toEqual(
      Object.fromEntries(expected),
    );
    const found = (search: string) => allPages(store(), { scope: { all: true }, limit: 5, search });
    expect(await found("words 11.")).toEqual(["agent:main:chat:11"]);
    expect(await found("words 1.")).toEqual(["agent:main:chat:2", "agent:main:chat:1"]);
  });

  test("a time between two milliseconds is accepted", async () => {
    await store().transaction((tx) => insertSession(tx, sampleSession({ updatedAt: 1_000 })));
    const since = (activeSinceMs: number) =>
      allPages(store(), { scope: { all: true }, limit: 5, activeSinceMs });
    expect([await since(999.5), await since(1_000.5)]).toEqual([["agent:main:main"], []]);
  });

  test("a forged cursor returns no rows", async () => {
    await store().transaction((tx) => insertSession(tx, sampleSession()));
    for (const cursor of [
      "",
      "x",
      "W10",
      Buffer.from("[1]").toString("base64url"),
      "'; drop table sessions --",
    ]) {
      expect(isSessionCursor(cursor)).toBe(false);
      expect((await listSessions(store().db, { scope: { all: true }, limit: 5, cursor })).rows).toEqual([]);
    }
  });

  test("a rare match among many sessions is found, because all pages are read", async () => {
    await store().transaction(async (tx) => {
      await insertCopies(
        tx,
        Array.from({ length: 12_000 }, (_, n) => ({
          ...{ key: `k${n}`, session_id: `s${n}`, display_name: "-X-", updated_at: n },
          label: RARE.includes(n) ? "q9" : null,
        })),
      );
    });
    expect(await allPages(store(), { scope: { all: true }, search: "q9", limit: 50 })).toEqual([
      ...["k2001", "k2000", "k1999", "k3"],
    ]);
    const first = await listSessions(store().db, { scope: { all: true }, search: "q9", limit: 50 });
    expect(first.rows.length).toBeLessThan(RARE.length);
    expect(first.nextCursor).toBeDefined();
    expect(await allPages(store(), { scope: { all: true }, search: "k11", limit: 500 })).toHaveLength(1_111);
    const many: Scope = { all: false, agentIds: "any", patterns: ["k*"] };
    expect(await allPages(store(), { scope: many, search: "AGENT", limit: 5_000 })).toEqual([]);
    expect(await allPages(store(), { scope: many, limit: 5_000 })).toHaveLength(12_000);
    expect(await allPages(store(), { scope: many, search: "-x-", limit: 5_000 })).toHaveLength(12_000);
  });
}
