import { DatabaseSync } from "node:sqlite";
import { Kysely, sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StoreProblem } from "../../src/store/problems.ts";
import { sqliteDialect } from "../../src/store/sqlite-driver.ts";

let database: DatabaseSync;
let db: Kysely<{ t: { id: number; text: string } }>;

beforeEach(() => {
  database = new DatabaseSync(":memory:");
  database.exec("create table t (id integer primary key, text text)");
  db = new Kysely({ dialect: sqliteDialect(database, "the file", true) });
});
afterEach(() => database.close());

const count = () => database.prepare("select count(*) as n from t").get()?.n;

test("D1: transactions asked for together run one after the other, in that order", async () => {
  const steps: string[] = [];
  const work = (name: string) =>
    db.transaction().execute(async (tx) => {
      steps.push(`${name} begins`);
      await tx.insertInto("t").values({ id: steps.length, text: name }).execute();
      await new Promise((resolve) => setImmediate(resolve));
      steps.push(`${name} ends`);
    });
  await Promise.all(["a", "b", "c"].map(work));
  expect(steps).toEqual(["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]));
});

test("D2: after the database rolled back by itself nothing more of that transaction is written", async () => {
  const work = db.transaction().execute(async (tx) => {
    await tx.insertInto("t").values({ id: 1, text: "before" }).execute();
    database.exec("rollback");
    await tx
      .insertInto("t")
      .values({ id: 2, text: "after" })
      .execute()
      .catch(() => {});
  });
  await expect(work).rejects.toThrow("gave up this transaction");
  expect(count()).toBe(0);
  await db.transaction().execute((tx) => tx.insertInto("t").values({ id: 3, text: "next" }).execute());
  expect(count()).toBe(1);
});

test("a database that may not grow is a `full` problem, and what follows works", async () => {
  database.exec("pragma max_page_count = 10");
  const big = "x".repeat(100_000);
  const work = db.transaction().execute(async (tx) => {
    await tx.insertInto("t").values({ id: 1, text: "small" }).execute();
    await tx.insertInto("t").values({ id: 2, text: big }).execute();
  });
  const error = await work.catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(StoreProblem);
  expect(error).toMatchObject({ problem: "full", place: "the file" });
  expect(count()).toBe(0);
  await db.transaction().execute((tx) => tx.insertInto("t").values({ id: 3, text: "small" }).execute());
  expect(count()).toBe(1);
});

test("errors that say nothing about the file stay as they are", async () => {
  await db.transaction().execute((tx) => tx.insertInto("t").values({ id: 1, text: "a" }).execute());
  const again = db.transaction().execute((tx) => tx.insertInto("t").values({ id: 1, text: "a" }).execute());
  await expect(again).rejects.toThrow("UNIQUE constraint failed");
  await expect(sql`select nonsense`.execute(db)).rejects.not.toBeInstanceOf(StoreProblem);
});

test("more different statements than are kept prepared all give their own answer", async () => {
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 600; n++) {
      const { rows } = await sql<{ n: number }>`select ${sql.lit(n)} as n`.execute(db);
      expect(rows).toEqual([{ n }]);
    }
  }
});
