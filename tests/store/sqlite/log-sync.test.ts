// A commit is synced outside the event loop. Its rows stay invisible until they are on disk.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StoreProblem } from "../../../src/store/problems.ts";
import type { Db, Store } from "../../../src/store/sql.ts";
import { readMark } from "../../../src/store/sqlite/mark.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { watchWrites } from "../../../src/store/write-watch.ts";
import { replaceSync } from "../../kit/store/disk-sync.ts";
import { fakeWorld } from "../../kit/world.ts";
import { keptLog, temporaryDir } from "../samples.ts";

let dir: string;
let file: string;
const undo: (() => unknown)[] = [];

beforeEach(() => {
  const made = temporaryDir();
  dir = made.dir;
  file = join(dir, STORE_FILE);
  undo.push(made.remove);
});
afterEach(async () => {
  for (const action of undo.splice(0).toReversed()) await action();
});

async function open(more: Partial<Parameters<typeof openSqlite>[0]> = {}): Promise<Store> {
  const store = watchWrites(await openSqlite({ dir, durability: "full", log: keptLog(), ...more }));
  undo.push(() => store.close());
  return store;
}

/** Makes each sync fail. Returns a function that ends this. */
function failSyncs(): () => void {
  const failure = Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
  const restore = replaceSync((_, done) => done(failure));
  undo.push(restore);
  return restore;
}

/** Holds each sync until `go` is called. */
function holdSyncs(): { begun: () => number; go: () => void } {
  const held: (() => void)[] = [];
  let begun = 0;
  const undone = replaceSync((real, done) => {
    begun += 1;
    held.push(() => real(done));
  });
  const go = (): void => {
    for (const one of held.splice(0)) one();
  };
  undo.push(undone, go);
  return { begun: () => begun, go };
}

const put = (store: Store, id: string): Promise<unknown> =>
  store.transaction((tx) => tx.insertInto("chains").values({ chain_id: id, runs: 1 }).execute());
const chainsIn = async (db: Db): Promise<string[]> =>
  (await db.selectFrom("chains").select("chain_id").execute()).map((row) => row.chain_id);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function until(holds: () => boolean): Promise<void> {
  for (let at = 0; !holds(); at += 1) {
    if (at > 100_000) throw new Error("it never holds");
    await turn();
  }
}

/** Records the order in which promises settle. */
function noting(told: string[], promise: Promise<unknown>, name: string): Promise<unknown> {
  return promise.then(
    () => told.push(name),
    (error: Error) => told.push(`${name}: ${error instanceof StoreProblem ? error.problem : error.message}`),
  );
}

test("I2: transactions in a group, and readers of their rows, get their results only after the sync", async () => {
  const store = await open();
  // Starts the thread of the read worker.
  expect(await chainsIn(store.readWorker as Db)).toEqual([]);
  const { begun, go } = holdSyncs();
  const told: string[] = [];
  const member = noting(told, put(store, "a"), "member");
  await until(() => begun() === 1);
  const reads = [store.db, store.readWorker as Db].map(chainsIn);
  const readers = reads.map((read) => noting(told, read, "reader"));
  const next = noting(told, put(store, "b"), "next member");
  for (let at = 0; at < 200; at += 1) await turn();
  expect(told).toEqual([]);
  expect(begun()).toBe(1);
  go();
  await Promise.all([member, readers[0]]);
  expect(told).not.toContain("next member");
  expect(await reads[0]).toEqual(["a"]);
  await until(() => begun() === 2);
  go();
  // A slow read worker may answer during the second sync. Its reader then waits for that sync, too.
  await Promise.all([next, ...readers]);
  expect(told.toSorted()).toEqual(["member", "next member", "reader", "reader"]);
  expect(await chainsIn(store.db)).toEqual(["a", "b"]);
});

test("a transaction without writes does not wait for a sync", async () => {
  const store = await open();
  await put(store, "a");
  const { begun, go } = holdSyncs();
  const read = store.transaction((tx) => tx.selectFrom("chains").select("chain_id").execute());
  expect(await read).toEqual([{ chain_id: "a" }]);
  expect(begun()).toBe(0);
  const member = put(store, "b");
  await until(() => begun() === 1);
  go();
  await member;
});

test("LS2: after a failed sync the store refuses all work with the reason, and keeps its log for the next start", async () => {
  const log = keptLog();
  const store = await open({ log });
  await put(store, "before");
  const restore = failSyncs();
  const [one, other] = await Promise.allSettled([put(store, "lost"), put(store, "lost, too")]);
  restore();
  for (const end of [one, other]) {
    expect(end).toMatchObject({ status: "rejected", reason: { problem: "unsynced", inDoubt: true } });
  }
  for (const ask of [put(store, "later"), chainsIn(store.db), chainsIn(store.readWorker as Db)])
    await expect(ask).rejects.toMatchObject({ problem: "unsynced", inDoubt: false });
  expect(await store.refusal?.()).toContain("its disk failed");
  expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(1);
  await store.close();
  // The log must not be copied into the database, because the system may have dropped its pages.
  expect(existsSync(`${file}-wal`)).toBe(true);
  expect(await chainsIn((await open()).db)).toContain("before");
});

test("LS2: after a failed sync, no timer checkpoints the log", async () => {
  const { clock, advance } = fakeWorld();
  const log = keptLog();
  const store = await open({ clock, log });
  await put(store, "before");
  const before = readFileSync(file);
  const restore = failSyncs();
  await expect(put(store, "lost")).rejects.toMatchObject({ problem: "unsynced" });
  restore();
  await advance(30_000);
  expect(log.lines.map(({ level }) => level)).toEqual(["error"]);
  await store.close();
  expect(readFileSync(file).equals(before)).toBe(true);
});

test("LS2: if a reader waits for a sync and the sync fails, the reader gets no rows", async () => {
  const store = await open();
  let fail = (): void => {};
  undo.push(
    replaceSync((_, done) => {
      fail = () => done(Object.assign(new Error("EIO: i/o error"), { code: "EIO" }));
    }),
  );
  const none = fail;
  const member = put(store, "lost").catch((error: unknown) => error);
  await until(() => fail !== none);
  const read = chainsIn(store.db);
  for (let at = 0; at < 20; at += 1) await turn();
  fail();
  await expect(read).rejects.toMatchObject({ problem: "unsynced" });
  expect(await member).toMatchObject({ problem: "unsynced" });
});

test("KP1: the high-water mark includes a commit only after the commit is synced", async () => {
  const world = fakeWorld();
  const store = await open({ clock: world.clock });
  await put(store, "a");
  await world.advance(1_000);
  const before = readMark(file);
  await put(store, "b");
  const { begun, go } = holdSyncs();
  const member = put(store, "c");
  await until(() => begun() === 1);
  await world.advance(1_000);
  expect(readMark(file)).toEqual(before);
  go();
  await member;
  expect(readMark(file)).not.toEqual(before);
});

test("closing a store during a sync waits for the sync, and copies the log into the database", async () => {
  const store = await open();
  const { begun, go } = holdSyncs();
  const told: string[] = [];
  const member = noting(told, put(store, "a"), "member");
  await until(() => begun() === 1);
  const closed = noting(told, store.close(), "closed");
  for (let at = 0; at < 20; at += 1) await turn();
  expect(told).toEqual([]);
  go();
  await Promise.all([member, closed]);
  expect(told.toSorted()).toEqual(["closed", "member"]);
  expect(existsSync(`${file}-wal`)).toBe(false);
  expect(await chainsIn((await open()).db)).toEqual(["a"]);
});
