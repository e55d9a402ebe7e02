// The methods `store.backup` and `store.backups`, and the folder of backups.

import { mkdirSync, readdirSync, readFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { fail, ok, type Result } from "../../../src/core/shapes/errors.ts";
import { STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { Backups, backupInProcess } from "../../../src/store/transfer/backups.ts";
import { type Moved, restoreStore } from "../../../src/store/transfer/transfer.ts";
import { cleanup, openEmbedded, putEmptyStore, temporaryFolder } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { emptyUrl, good, inEmbedded, inPostgres, jobOn, saySomething } from "../../store/transfer/moves.ts";
import { type House, openHouse } from "../kit.ts";

const KEY = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";
const DAY_MS = 86_400_000;

/** Opens a gateway whose backups the test ends. */
async function heldHouse() {
  const held: { readonly file: string; readonly signal: AbortSignal; end(result: Result<Moved>): void }[] =
    [];
  const house = await openHouse({
    makeBackup: ({ file }, signal) => {
      const { promise, resolve } = Promise.withResolvers<Result<Moved>>();
      held.push({ file, signal, end: resolve });
      return promise;
    },
  });
  return { house, held };
}

const listed = async (house: House) => (await house.client()).request("store.backups", {});
const moved = (file: string): Result<Moved> =>
  ok({
    from: "a",
    to: file,
    tally: { sessions: 1, messages: 1, runs: 1, unfinishedRuns: 0, pendingDeliveries: 0 },
  });

test("a backup of a running gateway is listed with its size, and can be restored", async () => {
  const dir = temporaryFolder();
  const disk = await openEmbedded(dir);
  const house = await openHouse({ dir, disk });
  const client = await house.client();
  await client.agent({ message: "a message to keep", idempotencyKey: "kept" }).done;
  const begun = await client.request("store.backup", {});
  expect(begun.name).toMatch(/^parley-\d{4}-\d\d-\d\dT[\d-]+Z\.sqlite$/);
  const list = await until(async () => {
    const now = await client.request("store.backups", {});
    return now.running === undefined && now;
  });
  expect(list).toMatchObject({ total: 1, backups: [{ name: begun.name, bytes: expect.any(Number) }] });
  expect(list).not.toHaveProperty("failed");
  expect(readdirSync(list.folder)).toEqual([begun.name]);
  const target = temporaryFolder();
  good(await restoreStore(jobOn(target), join(list.folder, begun.name)));
  const rows = await inEmbedded(target, ({ db }) => db.selectFrom("messages").select("entry_json").execute());
  expect(JSON.stringify(rows)).toContain("a message to keep");
});

test("a store on PostgreSQL is backed up to the same folder", async () => {
  const url = await emptyUrl();
  await inPostgres(url, (store) => saySomething(store, "a message on a server"));
  const dir = temporaryFolder();
  const settings = { dir, durability: "normal", postgresUrl: url } as const;
  const backups = new Backups({ settings, world: fakeWorld(), secrets: [] });
  const { name } = good(await backups.begin());
  const list = await until(async () => {
    const now = good(await backups.list());
    return now.running === undefined && now;
  });
  expect(list).toMatchObject({ backups: [{ name }], total: 1 });
  const target = temporaryFolder();
  expect(good(await restoreStore(jobOn(target), join(list.folder, name))).tally.messages).toBe(1);
});

test("BK1: a second backup is refused while the first one runs; its progress and a failure are shown", async () => {
  const { house, held } = await heldHouse();
  const client = await house.client();
  const { name, startedAtMs } = await client.request("store.backup", {});
  await expect(client.request("store.backup", {})).rejects.toMatchObject({ code: "RATE_LIMITED" });
  const [first] = held;
  mkdirSync(`${first?.file}.unfinished-abc`);
  writeFileSync(join(`${first?.file}.unfinished-abc`, STORE_FILE), "x".repeat(1234));
  const running = { name, startedAtMs, bytes: 1234 };
  expect(await listed(house)).toMatchObject({ running, backups: [], total: 0 });
  first?.end(fail("store_unavailable", `the disk is full: ${KEY}`));
  const failed = await until(async () => (await listed(house)).failed);
  expect(failed).toMatchObject({ name, error: expect.stringMatching(/^the disk is full: /) });
  expect(failed.error).not.toContain(KEY);
  await client.request("store.backup", {});
  held[1]?.end(moved("b"));
  await until(async () => (await listed(house)).failed === undefined);
  expect(held).toHaveLength(2);
});

test("a gateway that stops cancels its backup, waits for its end and begins no other", async () => {
  const { house, held } = await heldHouse();
  await (await house.client()).request("store.backup", {});
  const [first] = held;
  let stopped = false;
  const stopping = house.stop().then(() => {
    stopped = true;
  });
  await until(() => first?.signal.aborted === true);
  expect(stopped).toBe(false);
  first?.end(fail("store_unavailable", "stopped"));
  await stopping;
  const settings = { dir: temporaryFolder(), durability: "normal" } as const;
  const backups = new Backups({ settings, world: fakeWorld(), secrets: [] });
  await backups.close();
  expect(await backups.begin()).toMatchObject({ code: "shutting_down" });
});

test("cancelling a backup kills its process within a call of SQLite, and leaves no file", async () => {
  const dir = temporaryFolder();
  await putEmptyStore(dir);
  // The process waits for this lock, in one call that does not return to its event loop.
  const locked = new DatabaseSync(join(dir, STORE_FILE));
  cleanup(() => locked.close());
  locked.exec("pragma locking_mode = exclusive; begin exclusive");
  const settings = { dir, durability: "normal" } as const;
  const folder = temporaryFolder();
  const stop = new AbortController();
  const made = backupInProcess({ settings, file: join(folder, "a.sqlite"), secrets: [] }, stop.signal);
  await until(() => readdirSync(folder).some((name) => name.startsWith("a.sqlite.unfinished-")));
  stop.abort();
  expect(await made).toMatchObject({ ok: false, error: "the gateway is stopping" });
  expect(readdirSync(folder)).toEqual([]);
});

test("BK2: an interrupted backup is not listed, and is removed after a day; other files stay", async () => {
  const dir = temporaryFolder();
  const backupDir = join(dir, "elsewhere");
  const world = fakeWorld();
  const now = world.clock.now();
  const settings = { dir, backupDir, durability: "normal" } as const;
  const make = async ({ file }: { file: string }) => moved(file);
  const backups = new Backups({ settings, world, secrets: [], make });
  const [old, fresh] = ["1", "2"].map((day) => `parley-2026-01-0${day}T00-00-00-000Z.sqlite.unfinished-a`);
  for (const [name, ageMs] of [
    [old, DAY_MS + 1_000],
    [fresh, DAY_MS - 1_000],
    ["x.sqlite.unfinished-a", 9 * DAY_MS],
  ] as const) {
    mkdirSync(join(backupDir, String(name)), { recursive: true });
    const at = new Date(now - ageMs);
    utimesSync(join(backupDir, String(name)), at, at);
  }
  mkdirSync(join(backupDir, "folder.sqlite"));
  expect(good(await backups.list())).toMatchObject({ folder: backupDir, backups: [] });
  good(await backups.begin());
  expect(readdirSync(backupDir).sort()).toEqual(["folder.sqlite", fresh, "x.sqlite.unfinished-a"]);
  await backups.close();
});

test("no backup begins if the disk has too little space for it", async () => {
  const dir = temporaryFolder();
  await putEmptyStore(dir);
  const file = join(dir, STORE_FILE);
  // The header says 4 TiB, and so does the size of the file, which has holes.
  const bytes = readFileSync(file);
  bytes.writeUInt32BE(2 ** 30, 28);
  writeFileSync(file, bytes);
  truncateSync(file, 2 ** 42);
  const settings = { dir, durability: "normal" } as const;
  const backups = new Backups({ settings, world: fakeWorld(), secrets: [] });
  expect(await backups.begin()).toMatchObject({ error: expect.stringContaining("too little free space") });
});

test("a folder that cannot be used is a failure that names the setting", async () => {
  const dir = temporaryFolder();
  const backupDir = join(dir, "file");
  writeFileSync(backupDir, "");
  const settings = { dir, backupDir, durability: "normal" } as const;
  const backups = new Backups({ settings, world: fakeWorld(), secrets: [] });
  const failure = { code: "store_unavailable", hint: expect.stringContaining("store.backupDir") };
  expect(await backups.begin()).toMatchObject(failure);
  expect(await backups.list()).toMatchObject(failure);
});
