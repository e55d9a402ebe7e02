// The read worker of the embedded store: answers, cancelled requests, and how it ends.

import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StoreProblem } from "../../../src/store/problems.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Db, Store } from "../../../src/store/sql.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { sampleSession, silentLog, temporaryDir } from "../samples.ts";

let store: Store;
let readWorker: Db;
let remove: () => void;
beforeEach(async () => {
  const folder = temporaryDir();
  remove = folder.remove;
  store = await openSqlite({ dir: folder.dir, durability: "normal", log: silentLog });
  if (store.readWorker === undefined) throw new Error("the embedded store has no read worker");
  readWorker = store.readWorker;
});
afterEach(async () => {
  await store.close();
  remove();
});

/** Counts this many rows. A million of them take about 0.1 s. */
const count = (rows: number) => sql<{ n: number }>`
  with recursive steps (n) as (select 1 union all select n + 1 from steps where n < ${rows})
  select max(n) as n from steps`;

test("AW1: a request sees earlier commits, and cannot write", async () => {
  const keys = async () =>
    (await readWorker.selectFrom("sessions").select("key").execute()).map(({ key }) => key);
  expect(await keys()).toEqual([]);
  await store.transaction((tx) => insertSession(tx, sampleSession()));
  expect(await keys()).toEqual([sampleSession().key]);
  await expect(sql`delete from sessions`.execute(readWorker)).rejects.toThrow("readonly");
  expect(await keys()).toEqual([sampleSession().key]);
});

test("an invalid request fails with SQLite's message, and no other request fails", async () => {
  const wrong = sql`select x from nowhere`.execute(readWorker);
  const right = count(2).execute(readWorker);
  await expect(wrong).rejects.toThrow("no such table: nowhere");
  expect((await right).rows).toEqual([{ n: 2 }]);
});

test("SA2: a waiting request that is cancelled is dropped, and the next one is answered", async () => {
  const [underWay, waiting] = [new AbortController(), new AbortController()];
  const first = count(2_000_000).execute(readWorker, { signal: underWay.signal });
  const second = count(1e12).execute(readWorker, { signal: waiting.signal });
  const third = count(3).execute(readWorker);
  underWay.abort(new Error("left"));
  waiting.abort(new Error("left too"));
  await expect(first).rejects.toThrow("left");
  await expect(second).rejects.toThrow("left too");
  expect((await third).rows).toEqual([{ n: 3 }]);
});

test("SA3: a request beyond the limit is refused with a message, and the other requests are answered", async () => {
  const long = count(1_000_000).execute(readWorker);
  await new Promise((resolve) => setImmediate(resolve));
  const asked = [long, ...Array.from({ length: 257 }, () => count(1).execute(readWorker))];
  const outcomes = await Promise.allSettled(asked);
  const refused = outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason);
  expect(refused).toHaveLength(1);
  expect(refused[0]).toBeInstanceOf(StoreProblem);
  expect(String(refused[0])).toMatch(/overloaded .*\(256 searches are waiting already\)\. Try again/);
});

test("closing ends the thread, answers the current request and rejects waiting requests", async () => {
  const first = count(1_000_000).execute(readWorker);
  const second = count(1).execute(readWorker);
  await new Promise((resolve) => setImmediate(resolve));
  const closed = store.close();
  await expect(second).rejects.toThrow("the store is closed");
  expect((await first).rows).toEqual([{ n: 1_000_000 }]);
  await closed;
  await expect(count(1).execute(readWorker)).rejects.toThrow("the store is closed");
});

test("the read worker starts even if the gateway was started with V8 flags", async () => {
  const flags = ["--max-old-space-size=4096", "--max_semi_space_size=16", "--expose-gc"];
  process.execArgv.push(...flags);
  try {
    expect((await count(2).execute(readWorker)).rows).toEqual([{ n: 2 }]);
  } finally {
    process.execArgv.splice(-flags.length);
  }
});
