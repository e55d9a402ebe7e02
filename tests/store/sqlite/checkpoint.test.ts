// When the log of the embedded store is written back, and in which thread.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Db, Store } from "../../../src/store/sql.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { fakeWorld } from "../../kit/world.ts";
import { keptLog, temporaryDir } from "../samples.ts";

const MIB = 1024 * 1024;
const { clock, advance } = fakeWorld();
const log = keptLog();
let dir: string;
let remove: () => void;
let store: Store;
let threadsBefore: number;

beforeEach(async () => {
  const made = temporaryDir();
  ({ dir, remove } = made);
  store = await openSqlite({ dir, durability: "full", log, clock });
  threadsBefore = threads();
});
afterEach(async () => {
  await store.close();
  remove();
});

function threads(): number {
  const { workers } = process.report.getReport() as unknown as { workers: readonly unknown[] };
  return workers.length;
}

/** Returns whether the database file, without its log, contains this row. */
const isWrittenBack = (key: string): boolean => readFileSync(join(dir, STORE_FILE)).includes(key);

async function write(key: string, bytes: number): Promise<void> {
  const about = { caller: "c", method: "m", params_hash: "h", created_at: 1 };
  const row = { key, ...about, answer_json: "x".repeat(bytes) };
  await store.transaction((tx) => tx.insertInto("idempotency").values(row).execute());
}

test("a log with a huge commit is written back in another thread, because that takes long", async () => {
  await write("huge-row", 17 * MIB);
  expect(isWrittenBack("huge-row")).toBe(false);
  await advance(100);
  await expect.poll(() => isWrittenBack("huge-row")).toBe(true);
  expect(threads()).toBe(threadsBefore + 1);
  // The next log is small again.
  await write("small-row", 100);
  await advance(30_000);
  expect(isWrittenBack("small-row")).toBe(true);
  expect(await store.db.selectFrom("idempotency").select("key").orderBy("key").execute()).toEqual([
    { key: "huge-row" },
    { key: "small-row" },
  ]);
  expect(log.lines).toEqual([]);
});

test("a later huge commit is written back in the other thread, too", async () => {
  await write("huge-row", 17 * MIB);
  await advance(100);
  await expect.poll(() => isWrittenBack("huge-row")).toBe(true);
  // The thread answers only after the checkpoint, so the next commit begins a new round of the log.
  await (store.readWorker as Db).selectFrom("idempotency").select("key").execute();
  await write("second-row", 17 * MIB);
  const advanced = advance(100);
  // The timer has fired, and the event loop was not free since then.
  expect(isWrittenBack("second-row")).toBe(false);
  await advanced;
  await expect.poll(() => isWrittenBack("second-row")).toBe(true);
  expect(log.lines).toEqual([]);
});

test("a log of small commits is written back without another thread", async () => {
  await write("small-row", 100);
  await advance(29_999);
  expect(isWrittenBack("small-row")).toBe(false);
  await advance(1);
  expect(isWrittenBack("small-row")).toBe(true);
  expect(threads()).toBe(threadsBefore);
});

test("a store can be closed while its log is written back", async () => {
  await write("huge-row", 17 * MIB);
  await advance(100);
  await store.close();
  expect(log.lines).toEqual([]);
  store = await openSqlite({ dir, durability: "full", log, clock });
  expect(await store.db.selectFrom("idempotency").select("key").execute()).toEqual([{ key: "huge-row" }]);
});
