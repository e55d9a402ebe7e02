// When the log of the embedded store is written back.

import { copyFileSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Store } from "../../../src/store/sql.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { fakeWorld } from "../../kit/world.ts";
import { keptLog, temporaryDir } from "../samples.ts";

const MIB = 1024 * 1024;
const { clock, advance } = fakeWorld();
const log = keptLog();
let dir: string;
let remove: () => void;
let store: Store;

beforeEach(async () => {
  const made = temporaryDir();
  ({ dir, remove } = made);
  store = await openSqlite({ dir, durability: "full", log, clock });
});
afterEach(async () => {
  await store.close();
  remove();
});

/** Returns whether the database file, without its log, contains this row. */
const isWrittenBack = (key: string): boolean => readFileSync(join(dir, STORE_FILE)).includes(key);

async function write(key: string, bytes: number): Promise<void> {
  const about = { caller: "c", method: "m", params_hash: "h", created_at: 1 };
  const row = { key, ...about, answer_json: "x".repeat(bytes) };
  await store.transaction((tx) => tx.insertInto("idempotency").values(row).execute());
}

test("a log with a huge commit is written back at once, and a small one after half a minute", async () => {
  await write("huge-row", 17 * MIB);
  expect(isWrittenBack("huge-row")).toBe(true);
  await write("small-row", 100);
  expect(isWrittenBack("small-row")).toBe(false);
  await advance(30_000);
  expect(isWrittenBack("small-row")).toBe(true);
  expect(log.lines).toEqual([]);
});

/** Copies the files as they are now, as if the process were killed, and opens the copy. */
async function openCopy(): Promise<Store> {
  const copy = temporaryDir();
  for (const ending of ["", "-wal", "-mark"])
    copyFileSync(join(dir, `${STORE_FILE}${ending}`), join(copy.dir, `${STORE_FILE}${ending}`));
  return openSqlite({ dir: copy.dir, durability: "full", log, clock });
}

const logBytes = (): number => statSync(join(dir, `${STORE_FILE}-wal`)).size;

test("the log is emptied on request, and a start after a kill finds the store complete", async () => {
  await write("first-row", 10_000);
  await advance(100);
  // Not in the high-water mark yet.
  await write("second-row", 10_000);
  store.emptyLog?.();
  await expect.poll(logBytes).toBe(0);
  await write("third-row", 10);
  for (const delay of [0, 100]) {
    await advance(delay);
    const copy = await openCopy();
    expect((await copy.db.selectFrom("idempotency").select("key").execute()).length).toBe(3);
    await copy.close();
  }
  expect(log.lines).toEqual([]);
});

test("the log is emptied at a commit after a pause if another connection reads it", async () => {
  await write("first-row", 10_000);
  const reader = new DatabaseSync(join(dir, STORE_FILE), { readOnly: true });
  reader.exec("begin; select count(*) from idempotency");
  await write("second-row", 10_000);
  store.emptyLog?.();
  await write("third-row", 10);
  expect(logBytes()).toBeGreaterThan(0);
  reader.close();
  await advance(30_000);
  await write("fourth-row", 10);
  expect(logBytes()).toBe(0);
});
