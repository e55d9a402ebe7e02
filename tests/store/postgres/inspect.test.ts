// Inspects a PostgreSQL store without opening it, also as a user with few rights.

import { expect, test } from "vitest";
import { inspectPostgres } from "../../../src/store/postgres/inspect.ts";
import { joinProcesses, leave } from "../../../src/store/queries/processes.ts";
import { SCHEMA_VERSION } from "../../../src/store/schema/conversion.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { runSql } from "../../kit/store/postgres.ts";
import { freshUrl, inPostgres, saySomething, schemaOf } from "../transfer/moves.ts";

const known = SCHEMA_VERSION;

/**
 * Returns an address with a new user. The user may log in, and has the rights that these statements grant.
 */
async function asUser(url: string, gifts: (user: string) => string): Promise<string> {
  const user = `u_${schemaOf(url)}`;
  await runSql(url, `create role "${user}" login password 'x'; ${gifts(user)}`);
  cleanup(async () => {
    await runSql(url, `drop owned by "${user}" cascade; drop role "${user}"`);
  });
  const mine = new URL(url);
  mine.username = user;
  mine.password = "x";
  return mine.href;
}

const look = (url: string) => inspectPostgres(url, quietWorld(), { counted: true });

test("inspecting a database without a store creates no schema", async () => {
  const url = await freshUrl();
  const found = await look(url);
  expect(found).toMatchObject({
    server: expect.stringMatching(/^\d+\.\d+$/),
    schema: { name: schemaOf(url), known },
    missingRights: [],
    processes: [],
    unsafe: ["fsync = off"],
  });
  expect(found.schema.version).toBeUndefined();
  expect(found.holds).toBeUndefined();
  expect(Math.abs(found.clockAheadMs)).toBeLessThan(1_000);
  expect(await runSql(url, `select 1 from pg_namespace where nspname = '${schemaOf(url)}'`)).toEqual([]);
});

test("the report contains a store's version, its contents and the live processes", async () => {
  const url = await freshUrl();
  await inPostgres(url, async (store) => {
    await saySomething(store);
    for (const processId of ["a", "b", "gone"]) {
      const facts = { processId, host: `host of ${processId}`, version: "1.2" };
      await store.transaction((tx) => joinProcesses(tx, facts, 0));
    }
    await store.transaction((tx) => leave(tx, "gone"));
    // One process is alive during the whole test. The other one stopped long ago.
    for (const [processId, beat_at] of [["a", 4e12] as const, ["b", 1] as const]) {
      await store.transaction((tx) =>
        tx.updateTable("processes").set({ beat_at }).where("process_id", "=", processId).execute(),
      );
    }
  });
  const { schema, holds, processes } = await look(url);
  expect(schema.version).toBe(known);
  expect(holds).toMatchObject({ tally: { sessions: 1, messages: 1, runs: 0 } });
  expect(holds?.bytes).toBeGreaterThan(100_000);
  const shown = processes.map(({ processId, host, version, alive }) => ({ processId, host, version, alive }));
  expect(shown.sort((a, b) => (a.processId < b.processId ? -1 : 1))).toEqual([
    { processId: "a", host: "host of a", version: "1.2", alive: true },
    { processId: "b", host: "host of b", version: "1.2", alive: false },
  ]);
});

test("a schema of the next version can be read; later ones are refused", async () => {
  const url = await freshUrl();
  await inPostgres(url, saySomething);
  const set = (version: number) =>
    runSql(url, `update "${schemaOf(url)}".schema_version set version = ${version}`);
  await set(known + 1);
  expect(await look(url)).toMatchObject({
    schema: { version: known + 1 },
    holds: { tally: { messages: 1 } },
  });
  await set(known + 2);
  await expect(look(url)).rejects.toMatchObject({ problem: "newer" });
});

test("if the user lacks rights that a gateway needs, the report lists the statements that grant them", async () => {
  const url = await freshUrl();
  const bare = await asUser(url, () => "");
  const before = await look(bare);
  expect(before.missingRights).toEqual([expect.stringMatching(/^grant create on database postgres to \w+$/)]);
  await inPostgres(url, saySomething);
  await runSql(
    url,
    `grant usage on schema "${schemaOf(url)}" to "u_${schemaOf(url)}";
    grant select on "${schemaOf(url)}".schema_version to "u_${schemaOf(url)}"`,
  );
  const inside = await look(bare);
  expect(inside.missingRights.map((statement) => statement.split(" ").slice(0, 3).join(" "))).toEqual([
    ...["grant usage, create", "grant select, insert,", "grant postgres to"],
  ]);
  expect(inside.holds).toBeUndefined();
  for (const statement of inside.missingRights) await runSql(url, statement);
  expect(await look(bare)).toMatchObject({ missingRights: [], holds: { tally: { messages: 1 } } });
});

test("if a user's transactions are read-only, the report says how to allow writes", async () => {
  const url = await asUser(
    await freshUrl(),
    (user) => `alter role "${user}" set default_transaction_read_only = on;
    grant create on database postgres to "${user}"`,
  );
  const { missingRights } = await look(url);
  expect(missingRights).toEqual([expect.stringContaining("set default_transaction_read_only = off")]);
});

test("the reported connection limit is the smallest of the limits of server, database and user", async () => {
  const url = await freshUrl();
  const [row] = await runSql(url, "select current_setting('max_connections')::int - 3 as max");
  expect((await look(url)).connections).toMatchObject({ max: row?.max, ofProcess: 17 });
  const limited = await asUser(url, (user) => `alter role "${user}" connection limit 7`);
  expect((await look(limited)).connections.max).toBe(7);
});

test("settings that may lose a commit are reported, with their values for this user", async () => {
  const url = await asUser(await freshUrl(), (user) => `alter role "${user}" set synchronous_commit = off`);
  expect((await look(url)).unsafe).toEqual(["fsync = off", "synchronous_commit = off"]);
});

test("the report contains the difference between the local clock and the database's clock", async () => {
  const url = await freshUrl();
  const world = quietWorld();
  for (const aheadMs of [-90_000, 3_600_000]) {
    const clock = { ...world.clock, now: () => world.clock.now() + aheadMs };
    const { clockAheadMs } = await inspectPostgres(url, { ...world, clock }, { counted: false });
    expect(Math.abs(clockAheadMs - aheadMs)).toBeLessThan(1_000);
  }
});

test("an unsuitable or unreachable database is reported as a problem with a clear message", async () => {
  const url = await freshUrl();
  await runSql(url, `create schema "${schemaOf(url)}"; create table "${schemaOf(url)}".notes (text text)`);
  await expect(look(url)).rejects.toThrow("contains tables of another program");
  await expect(look("postgres://u:geheim@127.0.0.1:1/d")).rejects.toThrow("127.0.0.1:1/d cannot be reached");
  await expect(look("postgres://u:geheim@127.0.0.1:1")).rejects.toThrow("names no database");
});
