// A store that has lost data is refused and not changed. The store of a killed process opens normally.

import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { checkStoreDir } from "../../../src/store/inspect.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openJsonlCopies } from "../../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { PATIENCE_MS } from "../../kit/until.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";
import { keptLog, sampleSession, silentLog, userMessage } from "../samples.ts";

const KEY = "agent:main:main";
const ID = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11";
const LONG = "word ".repeat(2_000);

const open = (dir: string, more: object = {}): Promise<Store> =>
  openSqlite({ dir, durability: "full", log: silentLog, ...more });

async function say(store: Store, id: string, text = LONG): Promise<void> {
  await store.transaction((tx) =>
    appendEntry(tx, { sessionKey: KEY, sessionId: ID, entry: userMessage(id, text) }, plainRedactor),
  );
}

/** Writes a chain without messages. Neither the JSONL copies nor a sequence number would show its loss. */
async function note(store: Store, name: string): Promise<void> {
  await store.transaction((tx) => tx.insertInto("chains").values({ chain_id: name, runs: 1 }).execute());
}

async function copiesOf(dir: string, store: Store): Promise<void> {
  const jsonlCopies = openJsonlCopies({ dir, log: silentLog, db: store.db });
  await jsonlCopies.flush();
  await jsonlCopies.flush();
}

/** Makes a store with five messages and their JSONL copy. */
async function spoken(dir: string): Promise<Store> {
  const store = await open(dir);
  await store.transaction((tx) => insertSession(tx, sampleSession({ key: KEY, sessionId: ID })));
  for (const id of ["m1", "m2", "m3", "m4", "m5"]) await say(store, id);
  await copiesOf(dir, store);
  return store;
}

/** Copies the files in the state in which a kill at this moment would leave them. */
function killed(dir: string): string {
  const to = temporaryFolder();
  const names = readdirSync(dir).filter((name) => !/^gateway\.|-shm$/.test(name));
  for (const name of names) copyFileSync(join(dir, name), join(to, name));
  return to;
}

/** Returns the folder with the files that a killed gateway leaves. */
async function killedStore(more: (store: Store) => Promise<void> = async () => {}): Promise<string> {
  const dir = join(temporaryFolder(), "state");
  const store = await spoken(dir);
  cleanup(() => store.close());
  await more(store);
  return killed(dir);
}

async function problemIn(dir: string): Promise<StoreProblem> {
  const before = contents(dir);
  const outcome = await open(dir).catch((error: unknown) => error);
  if (!(outcome instanceof StoreProblem)) {
    await (outcome as Store).close?.();
    throw new Error(`a problem was expected, not ${outcome}`);
  }
  expect(contents(dir)).toEqual(before);
  return outcome;
}

/**
 * Returns the files with their contents, except the lock and the shared index, which each opening recreates.
 */
function contents(dir: string): Map<string, string> {
  const names = readdirSync(dir).filter(
    (name) => !/^gateway\.|-shm$/.test(name) && statSync(join(dir, name)).isFile(),
  );
  const files = names.map((name): [string, string] => [
    name,
    readFileSync(join(dir, name)).toString("latin1"),
  ]);
  return new Map(files.filter(([, text]) => text !== ""));
}

async function expectWhole(dir: string, count: number): Promise<void> {
  const store = await open(dir);
  try {
    expect(await store.db.selectFrom("messages").select("id").execute()).toHaveLength(count);
    await copiesOf(dir, store);
    expect(readFileSync(join(dir, `${ID}.jsonl`), "utf8").split("\n")).toHaveLength(count + 2);
  } finally {
    await store.close();
  }
}

const log = (dir: string): string => join(dir, `${STORE_FILE}-wal`);
const mark = (dir: string): string => join(dir, `${STORE_FILE}-mark`);

test("damage: the store of a killed process opens with all its data, and opens again after a planned stop", async () => {
  const dir = await killedStore();
  await expectWhole(dir, 5);
  expect(existsSync(log(dir))).toBe(false);
  await expectWhole(dir, 5);
});

test.each(["removed", "emptied", "garbage"])(
  "damage: a store whose log was %s is refused, and no file is truncated",
  async (how) => {
    const dir = await killedStore();
    if (how === "removed") rmSync(log(dir));
    else writeFileSync(log(dir), how === "emptied" ? "" : "x".repeat(statSync(log(dir)).size));
    const found = await problemIn(dir);
    expect(found.problem).toBe("behind");
    expect(found.message).toContain("npx parley-gateway store recover");
  },
);

test("damage: a store is refused if its log was cut or overwritten anywhere before the last commit", async () => {
  const whole = await killedStore((store) => note(store, "last"));
  const { size } = statSync(log(whole));
  for (let part = 0; part < 24; part += 1) {
    const dir = killed(whole);
    const at = Math.floor((size * part) / 24);
    if (part % 2 === 0) truncateSync(log(dir), at);
    else {
      const bytes = readFileSync(log(dir));
      bytes.fill(0xa5, at, at + 16);
      writeFileSync(log(dir), bytes);
    }
    expect((await problemIn(dir)).problem, `at ${at} of ${size}`).toBe("behind");
  }
});

test("damage: a store is refused if its database was replaced by an older file, with or without a log", async () => {
  const dir = join(temporaryFolder(), "state");
  const store = await spoken(dir);
  await store.close();
  const older = readFileSync(join(dir, STORE_FILE));
  const again = await open(dir);
  await say(again, "m6");
  await copiesOf(dir, again);
  const crashed = killed(dir);
  await again.close();
  writeFileSync(join(dir, STORE_FILE), older);
  expect((await problemIn(dir)).message).toContain("messages ends at row 5, but had row 6 before");
  writeFileSync(join(crashed, STORE_FILE), older);
  rmSync(log(crashed));
  expect((await problemIn(crashed)).problem).toBe("behind");
});

test("damage: a database file that contains only its header is refused if there are JSONL copies or a high-water mark", async () => {
  const dir = await killedStore();
  rmSync(log(dir));
  expect((await problemIn(dir)).message).toContain("nothing is left in it");
  rmSync(mark(dir));
  expect((await problemIn(dir)).message).toContain("nothing is left in it");
});

test("damage: a store opens if another program has checkpointed and removed its log", async () => {
  const dir = await killedStore((store) => note(store, "last"));
  const other = new DatabaseSync(join(dir, STORE_FILE));
  expect(other.prepare("select count(*) as n from messages").get()).toEqual({ n: 5 });
  other.close();
  expect(existsSync(log(dir))).toBe(false);
  await expectWhole(dir, 5);
});

test("damage: a high-water mark that was stored before the last reset of the log is accepted", async () => {
  const dir = join(temporaryFolder(), "state");
  const store = await spoken(dir);
  cleanup(() => store.close());
  const early = readFileSync(mark(dir));
  const other = new DatabaseSync(join(dir, STORE_FILE));
  for (let round = 0; round < 3; round += 1) {
    other.exec("pragma wal_checkpoint(restart)");
    await note(store, `round ${round}`);
  }
  other.close();
  const left = killed(dir);
  writeFileSync(mark(left), early);
  await expectWhole(left, 5);
});

test("damage: if one of the two slots of the high-water mark is damaged, the other one is used; an unreadable mark is logged", async () => {
  const dir = await killedStore();
  const bytes = readFileSync(mark(dir));
  for (const slot of [0, 512]) {
    const half = killed(dir);
    writeFileSync(mark(half), Buffer.from(bytes).fill(0, slot, slot + 512));
    await expectWhole(half, 5);
    const other = killed(dir);
    writeFileSync(mark(other), Buffer.from(bytes).fill(0, slot, slot + 512));
    rmSync(log(other));
    expect((await problemIn(other)).problem).toBe("behind");
  }
  writeFileSync(mark(dir), "x".repeat(1_024));
  const lines = keptLog();
  await (await open(dir, { log: lines })).close();
  expect(JSON.stringify(lines.lines)).toContain(
    "could not read the high-water mark; opening the store without it",
  );
});

/** Counts the messages in the database file, without its log. */
function writtenBack(dir: string): number {
  const alone = join(temporaryFolder(), STORE_FILE);
  copyFileSync(join(dir, STORE_FILE), alone);
  const database = new DatabaseSync(alone);
  try {
    const tables = database.prepare("select count(*) as n from sqlite_schema").get()?.n;
    return tables === 0 ? 0 : Number(database.prepare("select count(*) as n from messages").get()?.n);
  } finally {
    database.close();
  }
}

test("damage: each commit is in the database file after at most half a minute, or after a planned stop", async () => {
  const dir = join(temporaryFolder(), "state");
  const world = fakeWorld();
  const store = await open(dir, { clock: world.clock });
  await say(store, "m1");
  expect(writtenBack(dir)).toBe(0);
  // This transaction stays open. It must not delay the write to the database file.
  const { promise, resolve } = Promise.withResolvers<void>();
  const long = store.transaction(async (tx) => {
    await tx.insertInto("chains").values({ chain_id: "long", runs: 1 }).execute();
    await promise;
  });
  await world.advance(30_000);
  expect(writtenBack(dir)).toBe(1);
  expect(world.pendingDelays()).toEqual([570_000]);
  resolve();
  await long;
  await say(store, "m2");
  await store.close();
  expect(writtenBack(dir)).toBe(2);
  expect(existsSync(log(dir))).toBe(false);
  expect(world.pendingDelays()).toEqual([]);
});

test("damage: the high-water mark is written 100 ms after a commit, once for all commits in that time", async () => {
  const dir = join(temporaryFolder(), "state");
  const world = fakeWorld();
  const store = await open(dir, { clock: world.clock });
  cleanup(() => store.close());
  const before = readFileSync(mark(dir));
  for (let count = 0; count < 20; count += 1) await say(store, `m${count}`, "short");
  expect(readFileSync(mark(dir)).equals(before)).toBe(true);
  expect(world.pendingDelays()).toEqual([100, 30_000, 600_000]);
  await world.advance(100);
  const left = killed(dir);
  truncateSync(log(left), statSync(log(left)).size - 1);
  expect((await problemIn(left)).problem).toBe("behind");
});

/**
 * Waits for a condition. The check's thread runs in real time, but its pauses between tables use the fake
 * clock.
 */
async function soon(world: FakeWorld, isSo: () => boolean): Promise<void> {
  const look = async (): Promise<void> => {
    await world.advance(0);
    expect(isSo()).toBe(true);
  };
  await vi.waitFor(look, { timeout: PATIENCE_MS, interval: 1 });
}

/** Makes a closed store. It is so large that a damaged page in the middle contains messages. */
async function manyPages(): Promise<string> {
  const dir = join(temporaryFolder(), "state");
  const store = await spoken(dir);
  await store.transaction(async (tx) => {
    for (let at = 0; at < 200; at += 1) {
      await appendEntry(
        tx,
        { sessionKey: KEY, sessionId: ID, entry: userMessage(`n${at}`, LONG) },
        plainRedactor,
      );
    }
  });
  await copiesOf(dir, store);
  await store.close();
  return dir;
}

function damagePages(dir: string): void {
  const file = join(dir, STORE_FILE);
  const bytes = readFileSync(file);
  const middle = Math.floor(bytes.length / 4_096 / 2) * 4_096;
  bytes.fill(0xa5, middle, middle + 40 * 4_096);
  writeFileSync(file, bytes);
}

test("damage: the gateway's start and the doctor refuse a file that was cut in half, even with its log", async () => {
  const dir = await manyPages();
  const store = await open(dir);
  await note(store, "in the log");
  const left = killed(dir);
  await store.close();
  expect(checkStoreDir({ dir: left }).damage).toBeUndefined();
  truncateSync(join(left, STORE_FILE), Math.floor(statSync(join(left, STORE_FILE)).size / 2));
  const found = await problemIn(left);
  expect(found.problem).toBe("corrupt");
  expect(checkStoreDir({ dir: left }).damage).toBe(found.message);
});

test("damage: random page damage is found in the background, without delaying a run", async () => {
  const dir = await manyPages();
  damagePages(dir);
  const world = fakeWorld();
  const store = await open(dir, { clock: world.clock, log: world.log });
  cleanup(() => store.close());
  await world.advance(10 * 60_000);
  const found = (): boolean =>
    world.logged.some(({ level, text }) => level === "error" && text.includes("damaged pages"));
  // Writes to the store during the check.
  await note(store, "meanwhile");
  await soon(world, found);
  expect(world.logged.filter(({ level }) => level === "error")).toEqual([
    expect.objectContaining({
      fields: expect.objectContaining({
        damage: expect.arrayContaining([expect.stringContaining("messages")]),
      }),
    }),
  ]);
  expect(checkStoreDir({ dir })).toMatchObject({
    state: "in_use",
    damage: expect.stringContaining("npx parley-gateway store recover"),
  });
});

test("damage: the check of an undamaged store logs nothing, and is repeated after a day", async () => {
  const dir = await manyPages();
  const world = fakeWorld();
  const store = await open(dir, { clock: world.clock, log: world.log });
  await world.advance(10 * 60_000);
  await soon(world, () => world.pendingDelays().includes(24 * 3_600_000));
  expect(world.pendingDelays()).toEqual([24 * 3_600_000]);
  expect(world.logged).toEqual([]);
  await store.close();
  expect(world.pendingDelays()).toEqual([]);
  expect(checkStoreDir({ dir })).toMatchObject({ state: "free" });
});
