// Interrupts store migrations: the target stays empty, the source stays unchanged, and a second attempt
// works.

import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { StoreConflict } from "../../../src/store/problems.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { copyFile } from "../../../src/store/sqlite/file.ts";
import { STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { backupStore, migrateStore, restoreStore } from "../../../src/store/transfer/transfer.ts";
import { dice } from "../../kit/dice.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { launch } from "../../kit/process/fleet.ts";
import { homeWith } from "../../kit/process/gateway-process.ts";
import { gateIn } from "../../kit/store/gate.ts";
import { runSql } from "../../kit/store/postgres.ts";
import { fillStore, rowsOf } from "../full-store.ts";
import { sampleSession } from "../samples.ts";
import { freshUrl, good, inEmbedded, inPostgres, jobOn, schemaOf, words } from "./moves.ts";

/** Maximum number of checks of the server before the test fails. */
const ASKED_MAX = 20_000;

/** Resolves when the server has ended a connection. */
async function gone(url: string, pid: number): Promise<void> {
  for (let asked = 0; asked < ASKED_MAX; asked += 1) {
    const rows = await runSql(url, `select 1 from pg_stat_activity where pid = ${pid}`);
    if (rows.length === 0) return;
  }
  throw new Error("the server still has the connection");
}

async function fullStore(): Promise<string> {
  const dir = temporaryFolder();
  await inEmbedded(dir, (store) => fillStore(store, dice("crash")));
  return dir;
}

async function expectEmpty(url: string): Promise<void> {
  const rows = await inPostgres(url, ({ db }) => rowsOf(db, { onServer: true }));
  expect(Object.values(rows).flat()).toEqual([]);
}

async function expectSame(dir: string, url: string): Promise<void> {
  const wanted = await inEmbedded(dir, ({ db }) => rowsOf(db, { onServer: true }));
  expect(await inPostgres(url, ({ db }) => rowsOf(db, { onServer: true }))).toEqual(wanted);
}

test("if the process is killed during a migration, the target is empty and the source unchanged", async () => {
  const dir = await fullStore();
  const before = readFileSync(join(dir, STORE_FILE));
  const url = await freshUrl();
  const gate = await gateIn(url);
  const child = launch(homeWith({ store: { dir } }), ["store", "migrate", "--to", url]);
  const ended = once(child, "exit");
  const pid = await gate.reached();
  child.kill("SIGKILL");
  await ended;
  await gate.open();
  await gone(url, pid);
  await expectEmpty(url);
  expect(readFileSync(join(dir, STORE_FILE)).equals(before)).toBe(true);
  good(await migrateStore(jobOn(dir), url));
  await expectSame(dir, url);
});

test("if the connection is lost during a migration, the target is empty", async () => {
  const dir = await fullStore();
  const url = await freshUrl();
  const gate = await gateIn(url);
  const moving = migrateStore(jobOn(dir), url);
  const pid = await gate.reached();
  await runSql(url, `select pg_terminate_backend(${pid})`);
  expect(words(await moving)).toContain("cannot be reached");
  await gate.open();
  await gone(url, pid);
  await expectEmpty(url);
});

test("during a migration other writers wait, and the migration moves everything", async () => {
  const dir = await fullStore();
  const url = await freshUrl();
  const gate = await gateIn(url);
  const moving = migrateStore(jobOn(dir), url);
  await gate.reached();
  const start = inPostgres(url, (store) => store.transaction((tx) => insertSession(tx, sampleSession())));
  await expect(start).rejects.toBeInstanceOf(StoreConflict);
  await gate.open();
  good(await moving);
  await expectSame(dir, url);
});

test("a migration waits for a gateway that has begun to write to the target, and is then refused", async () => {
  const dir = await fullStore();
  const url = await freshUrl();
  await inPostgres(url, async (store) => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const starting = store.transaction(async (tx) => {
      await insertSession(tx, sampleSession({ label: "here" }));
      begun.resolve();
      await end.promise;
    });
    await begun.promise;
    const moving = migrateStore(jobOn(dir), url);
    const waiting = `select 1 from pg_locks where mode = 'ShareRowExclusiveLock' and not granted
      and relation = '"${schemaOf(url)}".sessions'::regclass`;
    for (let asked = 0; (await runSql(url, waiting)).length === 0; asked += 1) {
      if (asked === ASKED_MAX) throw new Error("the move does not wait");
    }
    end.resolve();
    await starting;
    expect(words(await moving)).toContain("is not empty: it has sessions");
  });
});

test("a cancelled migration leaves no row, file or folder behind", async () => {
  const dir = await fullStore();
  const folder = temporaryFolder();
  const stopping = (at: string | { url: string }) => {
    const stop = new AbortController();
    const copied = (rows: number): void => {
      if (rows > 300) stop.abort();
    };
    return jobOn(at, { signal: stop.signal, copied });
  };
  const url = await freshUrl();
  expect(words(await migrateStore(stopping(dir), url))).toContain("stopped");
  await expectEmpty(url);
  good(await migrateStore(jobOn(dir), url));
  expect(words(await backupStore(stopping({ url }), join(folder, "b")))).toContain("stopped");
  expect(readdirSync(folder)).toEqual([]);
  const file = join(folder, "whole");
  good(await backupStore(jobOn({ url }), file));
  const other = await freshUrl();
  expect(words(await restoreStore(stopping({ url: other }), file))).toContain("stopped");
  await expectEmpty(other);
  const before = AbortSignal.abort();
  const to = temporaryFolder();
  expect(words(await restoreStore(jobOn(to, { signal: before }), file))).toContain("stopped");
  expect(readdirSync(to)).toEqual(["gateway.lock"]);
  expect(words(await backupStore(jobOn(dir, { signal: before }), join(folder, "c")))).toContain("stopped");
  expect(readdirSync(folder)).toEqual(["whole"]);
});

test("cancelling a backup stops the copy at once, before the file is read to the end", async () => {
  const copy = join(temporaryFolder(), "copy");
  const stopped = copyFile(join(await fullStore(), STORE_FILE), copy, AbortSignal.abort());
  await expect(stopped).rejects.toThrow("aborted");
  expect(statSync(copy).size).toBe(0);
});
