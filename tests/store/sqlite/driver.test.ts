import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createPaces } from "../../../src/core/pace.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import type { Db, Store, Tx } from "../../../src/store/sql.ts";
import { committedRows, sqliteTransactions } from "../../../src/store/sqlite/driver.ts";
import { together } from "../../../src/store/transaction.ts";

let database: DatabaseSync;
let db: Db;
let transaction: Store["transaction"];

beforeEach(() => {
  database = new DatabaseSync(":memory:");
  database.exec("create table t (id integer primary key, text text)");
  db = committedRows(database, "the file");
  transaction = sqliteTransactions(database, "the file");
});
afterEach(() => database.close());

const put = (tx: Tx, id: number, text: string) =>
  sql`insert into t (id, text) values (${id}, ${text})`.execute(tx);
const count = () => database.prepare("select count(*) as n from t").get()?.n;

test("D1: transactions that are requested together run one after the other, in order", async () => {
  const steps: string[] = [];
  const work = (name: string) =>
    transaction(async (tx) => {
      steps.push(`${name} begins`);
      await put(tx, steps.length, name);
      await new Promise((resolve) => setImmediate(resolve));
      steps.push(`${name} ends`);
    });
  await Promise.all(["a", "b", "c"].map(work));
  expect(steps).toEqual(["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]));
});

test("D2: if the database rolls a transaction back, no further statement of it is executed", async () => {
  const work = transaction(async (tx) => {
    await put(tx, 1, "before");
    database.exec("rollback");
    await put(tx, 2, "after").catch(() => {});
  });
  await expect(work).rejects.toThrow("rolled back this transaction");
  expect(count()).toBe(0);
  await transaction((tx) => put(tx, 3, "next"));
  expect(count()).toBe(1);
});

test("D4: other work can run between the statements of a long transaction", async () => {
  let now = 0;
  const order: string[] = [];
  database.function("work", (id) => {
    order.push(`statement ${id}`);
    now += Number(id) > 3 ? 0 : 10;
    return id;
  });
  const gather = async (): Promise<void> => {
    order.push("other work");
  };
  const paced = sqliteTransactions(database, "the file", {
    paceOf: createPaces({ clock: { monotonic: () => now }, gather }),
  });
  const step = (tx: Tx, id: number) => sql`insert into t (id, text) values (work(${id}), 'slow')`.execute(tx);
  await paced((tx) => together(...[1, 2, 3, 4, 5].map((id) => step(tx, id))));
  const slow = [1, 2, 3].flatMap((id) => [`statement ${id}`, "other work"]);
  expect(order).toEqual([...slow, "statement 4", "statement 5"]);
  expect(count()).toBe(5);
});

test("a database that cannot grow fails with `full`, and later work succeeds", async () => {
  database.exec("pragma max_page_count = 10");
  const big = "x".repeat(100_000);
  const work = transaction(async (tx) => {
    await put(tx, 1, "small");
    await put(tx, 2, big);
  });
  const error = await work.catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(StoreProblem);
  expect(error).toMatchObject({ problem: "full", place: "the file" });
  expect(count()).toBe(0);
  await transaction((tx) => put(tx, 3, "small"));
  expect(count()).toBe(1);
});

test("TX2: a finished transaction refuses further statements", async () => {
  let kept: Tx | undefined;
  await transaction(async (tx) => {
    kept = tx;
    await put(tx, 1, "in time");
  });
  await expect(put(kept as Tx, 2, "late")).rejects.toThrow("this transaction has ended");
  expect(count()).toBe(1);
});

test("if parallel work in a transaction fails, everything is rolled back, and no part runs after the transaction", async () => {
  const parts: string[] = [];
  const work = transaction((tx) =>
    together(
      put(tx, 1, "a"),
      put(tx, 1, "a again"),
      (async () => {
        await put(tx, 2, "b");
        await new Promise((resolve) => setImmediate(resolve));
        await put(tx, 3, "c");
        parts.push("the last part is done");
      })(),
    ),
  );
  await expect(work).rejects.toThrow("UNIQUE constraint failed");
  expect(parts).toEqual(["the last part is done"]);
  expect(count()).toBe(0);
});

test("errors that say nothing about the state of the file are thrown unchanged", async () => {
  await transaction((tx) => put(tx, 1, "a"));
  const again = transaction((tx) => put(tx, 1, "a"));
  await expect(again).rejects.toThrow("UNIQUE constraint failed");
  await expect(sql`select nonsense`.execute(db)).rejects.not.toBeInstanceOf(StoreProblem);
});

test("statements return their own results, even if there are more statements than the cache holds", async () => {
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 600; n++) {
      const { rows } = await sql<{ n: number }>`select ${sql.lit(n)} as n`.execute(db);
      expect(rows).toEqual([{ n }]);
    }
  }
});

const refused = new Error("refused");
/** Returns true if a transaction is open in the file. */
const isOpen = () => database.isTransaction;

test("SG1, SG2: transactions that are ready at the same time share a commit; if one fails, only its own changes are undone", async () => {
  const commits: number[] = [];
  const ends = await Promise.allSettled(
    [1, 2, 3, 4].map(async (id) => {
      await transaction(async (tx) => {
        await put(tx, id, "by a member");
        if (id % 2 === 0) throw refused;
      }).finally(() => commits.push(isOpen() ? 0 : Number(count())));
    }),
  );
  expect(ends.map((end) => end.status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
  // When each promise settled, both rows were in the file and no transaction was open.
  expect(commits).toEqual([2, 2, 2, 2]);
});

test("SG2: if the first transaction of a group fails, the others are committed", async () => {
  const first = transaction(async (tx) => {
    await put(tx, 1, "first");
    throw refused;
  });
  const second = transaction((tx) => put(tx, 2, "second"));
  await expect(first).rejects.toBe(refused);
  await second;
  expect(database.prepare("select id from t").all()).toEqual([{ id: 2 }]);
});

test("SG3: if the database rolls back a group, every transaction in it fails", async () => {
  const [first, second, third] = [1, 2, 3].map((id) =>
    transaction(async (tx) => {
      await put(tx, id, "by a member");
      if (id === 2) database.exec("rollback");
      if (id === 2) throw refused;
    }),
  );
  await expect(second).rejects.toBe(refused);
  await expect(first).rejects.toBeInstanceOf(StoreProblem);
  // The third transaction had not begun, so it belongs to the next group.
  await third;
  expect(database.prepare("select id from t").all()).toEqual([{ id: 3 }]);
});

test("SG4: if the function `gather` fails, no transaction is blocked", async () => {
  const gather = (): Promise<void> => Promise.reject(new Error("the event loop is gone"));
  const grouped = sqliteTransactions(database, "the file", { gather });
  await grouped((tx) => put(tx, 1, "first"));
  await grouped((tx) => put(tx, 2, "second"));
  expect(count()).toBe(2);
});

test("SG4: transactions that are requested within one turn of the event loop share a group", async () => {
  let rounds = 0;
  const gather = async (): Promise<void> => {
    rounds += 1;
    await new Promise((resolve) => setImmediate(resolve));
  };
  const grouped = sqliteTransactions(database, "the file", { gather });
  const asked = [1, 2, 3].map(async (id) => {
    await new Promise((resolve) => setImmediate(resolve));
    await grouped((tx) => put(tx, id, "in one round"));
  });
  await Promise.all(asked);
  expect(rounds).toBe(1);
  expect(count()).toBe(3);
});
