// Transactions and statements on a real server: their results, and the kinds of failures.

import { type Kysely, sql } from "kysely";
import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { openPostgres, type PostgresOptions } from "../../../src/store/postgres/postgres.ts";
import { prepared } from "../../../src/store/prepared.ts";
import { StoreConflict, StoreProblem } from "../../../src/store/problems.ts";
import { insertRun } from "../../../src/store/queries/runs/runs.ts";
import type { Db, Store, Tx } from "../../../src/store/sql.ts";
import { together } from "../../../src/store/transaction.ts";
import { realWorld } from "../../../src/world.ts";
import { openPostgresStore, runSql, serverUrl } from "../../kit/store/postgres.ts";
import { keptLog, sampleRun } from "../samples.ts";
import { openTcpProxy } from "./tcp-proxy.ts";

const undo: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function open(options: Partial<PostgresOptions> = {}): Promise<Store & { url: string }> {
  const { store, url, dispose } = await openPostgresStore(options);
  undo.push(dispose);
  return { ...store, url };
}

const timeouts = (over: object): Partial<PostgresOptions> => ({ timeouts: over });
const put = (tx: Tx, id: string) => tx.insertInto("chains").values({ chain_id: id, runs: 1 }).execute();
const ids = async (db: Db) =>
  (await db.selectFrom("chains").select("chain_id").orderBy("chain_id").execute()).map((row) => row.chain_id);
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => "no failure",
    (error: unknown) => error,
  );
const ask = async <T>(db: Kysely<never> | Db, text: string): Promise<T[]> =>
  (await sql.raw<T>(text).execute(db as Db)).rows;

/** Opens a store through a proxy, and the same store without it. */
async function tapped(options: Partial<PostgresOptions> = {}) {
  const { port } = new URL(await serverUrl());
  const tap = await openTcpProxy(Number(port));
  undo.push(() => tap.close());
  const direct = await open();
  const url = direct.url.replace(`:${port}/`, `:${tap.port}/`);
  const store = await openPostgres({ ...options, url, world: realWorld({ level: "silent" }) });
  undo.push(() => store.close());
  return { tap, store, direct };
}

/** Runs two transactions that each hold a row which the other one needs. */
async function crossing(store: Store): Promise<unknown[]> {
  await store.transaction((tx) => Promise.all([put(tx, "a"), put(tx, "b")]));
  const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const bump = (tx: Tx, id: string) =>
    tx.updateTable("chains").set({ runs: 2 }).where("chain_id", "=", id).execute();
  const cross = (mine: 0 | 1, first: string, second: string) =>
    store.transaction(async (tx) => {
      await bump(tx, first);
      both[mine].resolve();
      await both[mine === 0 ? 1 : 0].promise;
      await bump(tx, second);
    });
  return await Promise.all([failureOf(cross(0, "a", "b")), failureOf(cross(1, "b", "a"))]);
}

test("integers and fractions are returned as numbers, and the driver's global type parsers stay unchanged", async () => {
  const { db } = await open();
  const [row] = await ask(
    db,
    `select 9007199254740991::bigint as big, 1.5::numeric as exact, 0.1::float8 as broken, 7 as small,
      sum(n) as sum, count(*) as n, true as yes, null::bigint as nothing, 'a' as text
      from (values (2::bigint), (3)) as v (n)`,
  );
  expect(row).toEqual({
    ...{ big: 9_007_199_254_740_991, exact: 1.5, broken: 0.1, small: 7, sum: 5, n: 2, yes: true },
    ...{ nothing: null, text: "a" },
  });
  expect(pg.types.getTypeParser(20)("1")).toBe("1");
});

test("U+0000, which PostgreSQL rejects, is stored as U+FFFD, also in a list of texts", async () => {
  const { db, transaction } = await open();
  await transaction((tx) => put(tx, "a\0b"));
  expect(await ids(db)).toEqual(["a\ufffdb"]);
  expect(await db.selectFrom("chains").select("runs").where("chain_id", "=", "a\0b").execute()).toHaveLength(
    1,
  );
  const { rows } = await sql`select unnest(${["x\0", "y"]}::text[]) as t`.execute(db);
  expect(rows).toEqual([{ t: "x\ufffd" }, { t: "y" }]);
});

test("a connection keeps only prepared statements of queries marked with `prepare`", async () => {
  const { db } = await open({ readersMax: 1 });
  const sum = prepared(
    (_, { a, b }: { a: number; b: number }) => sql<{ n: number }>`select ${a}::int + ${b}::int as n`,
  );
  for (let n = 0; n < 20; n += 1) {
    expect(await ask(db, "select 1 as n")).toEqual([{ n: 1 }]);
    expect((await sum(db, { a: n, b: 1 })).rows).toEqual([{ n: n + 1 }]);
  }
  expect(
    await ask(db, "select statement, generic_plans > 0 as planned_once from pg_prepared_statements"),
  ).toEqual([{ statement: "select $1::int + $2::int as n", planned_once: true }]);
});

test("a duplicate row is a conflict that names its index but no text of the row", async () => {
  const { transaction } = await open();
  const add = (runId: string) =>
    transaction((tx) => insertRun(tx, sampleRun({ runId, state: "running", input: { text: "private" } })));
  await add("r1");
  const failure = await failureOf(add("r2"));
  expect(failure).toBeInstanceOf(StoreConflict);
  expect(failure).toMatchObject({ code: "23505", constraint: "runs_one_writer" });
  const broken = await failureOf(
    transaction((tx) => sql`insert into chains (chain_id, runs) values ('private', null)`.execute(tx)),
  );
  expect(broken).not.toBeInstanceOf(StoreConflict);
  expect(broken).not.toBeInstanceOf(StoreProblem);
  expect(JSON.stringify([failure, broken, Object.entries(broken as object)])).not.toContain("private");
});

test("after a lock timeout or a deadlock, one transaction fails with a conflict, and the other one commits", async () => {
  const impatient = await crossing(await open(timeouts({ lockMs: 100 })));
  expect(impatient).toContainEqual(expect.objectContaining({ name: "StoreConflict", code: "55P03" }));
  const patient = await crossing(await open(timeouts({ lockMs: 20_000 })));
  expect(patient).toContainEqual(expect.objectContaining({ name: "StoreConflict", code: "40P01" }));
  expect(patient).toContain("no failure");
});

test("a statement that exceeds its time limit is reported as a problem, and its connection stays usable", async () => {
  const { db, transaction } = await open({ ...timeouts({ statementMs: 100 }), readersMax: 1, writersMax: 1 });
  const pid = async () => (await ask<{ pid: number }>(db, "select pg_backend_pid() as pid"))[0]?.pid;
  const before = await pid();
  const slow = await failureOf(ask(db, "select pg_sleep(20)"));
  expect(slow).toMatchObject({
    problem: "unreachable",
    message: expect.stringContaining("statement timeout"),
  });
  expect(await pid()).toBe(before);
  const work = transaction(async (tx) => {
    await put(tx, "half");
    await ask(tx, "select pg_sleep(20)");
  });
  expect(await failureOf(work)).toBeInstanceOf(StoreProblem);
  await transaction((tx) => put(tx, "next"));
  expect(await ids(db)).toEqual(["next"]);
});

test("a transaction that is idle for too long is certainly rolled back, so its failure can be retried", async () => {
  const log = keptLog();
  const world = { ...realWorld({ level: "silent" }), log };
  // The timeout still leaves enough time for the last transaction on a busy machine.
  const { db, transaction } = await open({ ...timeouts({ idleInTransactionMs: 400 }), writersMax: 1, world });
  const work = transaction(async (tx) => {
    await put(tx, "half");
    // The server releases the row's lock when it ends the transaction, so this waits for the lock.
    const held = () =>
      ask(
        db,
        "select 1 from pg_locks l join pg_class c on c.oid = l.relation where c.relname = 'chains' and l.mode = 'RowExclusiveLock'",
      );
    while ((await held()).length > 0);
    await put(tx, "rest");
  });
  const failure = await failureOf(work);
  expect(failure).toBeInstanceOf(StoreConflict);
  expect(failure).toMatchObject({ message: expect.stringContaining("idle-in-transaction") });
  await transaction((tx) => put(tx, "next"));
  expect(await ids(db)).toEqual(["next"]);
  expect(log.lines.map(({ text }) => text)).toEqual([
    "lost a connection to the store",
    "the store is reachable again",
  ]);
});

test("PC2: statements after a failed one report its failure, so a transaction in parts still ends with its conflict", async () => {
  const { db, transaction } = await open({ writersMax: 1 });
  const work = transaction(async (tx) => {
    await put(tx, "a");
    const inTwoSteps = async () => {
      await ask(tx, "select 1");
      await put(tx, "b");
    };
    await together(inTwoSteps(), put(tx, "a"));
  });
  expect(await failureOf(work)).toMatchObject({ name: "StoreConflict", code: "23505" });
  // The next transaction on the same connection reports its own failure.
  const broken = await failureOf(transaction((tx) => ask(tx, "select 1 / 0")));
  expect(broken).toMatchObject({ code: "22012" });
  await transaction((tx) => put(tx, "next"));
  expect(await ids(db)).toEqual(["next"]);
});

test("reads continue while all connections for writes are busy; further transactions wait, and all commit", async () => {
  const { db, transaction } = await open({ writersMax: 2, readersMax: 1 });
  const release = Promise.withResolvers<void>();
  const begun: string[] = [];
  const work = Array.from({ length: 8 }, (_, index) =>
    transaction(async (tx) => {
      await put(tx, `c${index}`);
      begun.push(`c${index}`);
      await release.promise;
    }),
  );
  while (begun.length < 2) expect(await ids(db)).toEqual([]);
  expect(begun).toHaveLength(2);
  release.resolve();
  await Promise.all(work);
  expect(await ids(db)).toHaveLength(8);
});

test("if the server ends a connection, only its transaction fails, with one warning, and the store stays usable", async () => {
  const log = keptLog();
  const { db, transaction, url } = await open({ world: { ...realWorld({ level: "silent" }), log } });
  const end = (which: string) =>
    runSql(
      url,
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'parley' and ${which}`,
    );
  const mine = `pid in (select pid from pg_stat_activity where backend_start > now() - interval '1 hour')`;
  const work = transaction(async (tx) => {
    await put(tx, "half");
    const [own] = await ask<{ pid: number }>(tx, "select pg_backend_pid() as pid");
    await end(`pid = ${own?.pid} and ${mine}`);
    await put(tx, "rest");
  });
  expect(await failureOf(work)).toMatchObject({ problem: "unreachable" });
  await transaction((tx) => put(tx, "next"));
  expect(await ids(db)).toEqual(["next"]);
  expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
});

test("if the server ends an idle connection, no query fails", async () => {
  const lost = Promise.withResolvers<void>();
  const log = { ...keptLog(), warn: () => lost.resolve() };
  const { db, url } = await open({ readersMax: 1, world: { ...realWorld({ level: "silent" }), log } });
  const pid = async () => (await ask<{ pid: number }>(db, "select pg_backend_pid() as pid"))[0]?.pid;
  const before = await pid();
  await runSql(url, `select pg_terminate_backend(${before})`);
  await lost.promise;
  expect(await pid()).not.toBe(before);
});

test("a commit whose answer is lost fails as `unreachable`, because the server may have committed", async () => {
  const { tap, store, direct } = await tapped();
  tap.fromClient = (piece) => {
    if (piece.includes("commit\0")) tap.fromServer = () => "hang up";
    return piece;
  };
  const work = store.transaction((tx) => put(tx, "committed"));
  expect(await failureOf(work)).toMatchObject({ problem: "unreachable" });
  expect(await ids(direct.db)).toEqual(["committed"]);
  Object.assign(tap, { fromClient: (piece: Buffer) => piece, fromServer: (piece: Buffer) => piece });
  await store.transaction((tx) => put(tx, "next"));
  expect(await ids(store.db)).toEqual(["committed", "next"]);
});

test("if the server does not answer, a request fails, and the store closes without waiting for the server", async () => {
  const { tap, store } = await tapped(timeouts({ statementMs: 50 }));
  expect(await ids(store.db)).toEqual([]);
  tap.fromServer = () => Buffer.alloc(0);
  expect(await failureOf(ids(store.db))).toMatchObject({ problem: "unreachable" });
  const waiting = failureOf(store.transaction((tx) => put(tx, "late")));
  await store.close();
  expect(await waiting).toBeInstanceOf(Error);
});

test("PC1: statements of one step are sent without waiting for answers, and `begin` is sent together with the first read", async () => {
  const { tap, store } = await tapped();
  await store.transaction((tx) => together(ids(tx), put(tx, "warm")));
  let sent = "";
  const first = Promise.withResolvers<void>();
  tap.fromServer = () => Buffer.alloc(0);
  tap.fromClient = (piece) => {
    sent += piece.toString("latin1");
    if (sent.includes("second")) first.resolve();
    return piece;
  };
  const work = failureOf(
    store.transaction((tx) =>
      together(ids(tx), ids(tx), ask(tx, "select 'first'"), ask(tx, "select 'second'")),
    ),
  );
  await first.promise;
  expect(sent.indexOf("begin")).toBeLessThan(sent.indexOf("first"));
  await store.close();
  expect(await work).toBeInstanceOf(Error);
});

test("PC1: a write is sent only after the server has confirmed that its transaction began", async () => {
  const { tap, store, direct } = await tapped();
  await store.transaction((tx) => put(tx, "warm"));
  let sent = "";
  tap.fromClient = (piece) => {
    sent += piece.toString("latin1");
    // The proxy closes the connection before the server receives `begin`.
    return sent.includes("begin\0") && !sent.includes("insert") ? "hang up" : piece;
  };
  const work = store.transaction((tx) => together(ids(tx), put(tx, "a"), put(tx, "b")));
  expect(await failureOf(work)).toMatchObject({ problem: "unreachable" });
  expect(sent).not.toContain("insert");
  expect(await ids(direct.db)).toEqual(["warm"]);
});

test("a failed statement fails the whole transaction, even if the caller ignores the error", async () => {
  const { db, transaction } = await open();
  const work = transaction(async (tx) => {
    await put(tx, "a");
    await put(tx, "a").catch(() => {});
  });
  await expect(work).rejects.toThrow("rolled back this transaction");
  expect(await ids(db)).toEqual([]);
});
