// A store on a real PostgreSQL server: how it is created, when it is refused, and its error messages.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { openPostgres, type PostgresOptions } from "../../../src/store/postgres/postgres.ts";
import { prepared } from "../../../src/store/prepared.ts";
import { StoreProblem, type StoreProblemKind } from "../../../src/store/problems.ts";
import { joinProcesses } from "../../../src/store/queries/processes.ts";
import { SCHEMA_VERSION } from "../../../src/store/schema/conversion.ts";
import type { Store } from "../../../src/store/sql.ts";
import { realWorld, type World } from "../../../src/world.ts";
import { freshSchema, runSql, serverUrl } from "../../kit/store/postgres.ts";
import { keptLog } from "../samples.ts";
import { openTcpProxy } from "./tcp-proxy.ts";

const world = realWorld({ level: "silent", sync: true });
const undo: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** Returns an address with a new schema, which is dropped after the test. */
async function freshUrl(): Promise<{ url: string; schema: string }> {
  const fresh = freshSchema(await serverUrl());
  undo.push(() => runSql(fresh.url, `drop schema if exists ${fresh.schema} cascade`));
  return fresh;
}

async function open(url: string, more: Partial<PostgresOptions> = {}): Promise<Store> {
  const store = await openPostgres({ url, world, ...more });
  undo.push(() => store.close());
  return store;
}

async function problemOf(url: string, more: Partial<PostgresOptions> = {}): Promise<StoreProblem> {
  const outcome = await open(url, more).catch((error: unknown) => error);
  if (!(outcome instanceof StoreProblem)) throw new Error(`a problem was expected, not ${outcome}`);
  return outcome;
}

const put = (store: Store, id: string) =>
  store.transaction((tx) => tx.insertInto("chains").values({ chain_id: id, runs: 1 }).execute());
const chains = async (store: Store) =>
  (await store.db.selectFrom("chains").select("chain_id").orderBy("chain_id").execute()).map(
    (row) => row.chain_id,
  );

describe("opening", () => {
  test("all data is in the store's schema, and is still there after the store is closed and opened again", async () => {
    const { url, schema } = await freshUrl();
    await put(await open(url), "kept");
    const rows = await runSql(
      url,
      `select distinct table_schema from information_schema.tables where table_name in ('runs', 'sessions')
        and table_schema = '${schema}'`,
    );
    expect(rows).toEqual([{ table_schema: schema }]);
    const again = await open(url);
    expect(await chains(again)).toEqual(["kept"]);
    expect(again.kind).toBe("postgres");
    expect(again.transcriptPath("abc")).toBeUndefined();
  });

  test("two schemas of one database are independent", async () => {
    const [a, b] = [await open((await freshUrl()).url), await open((await freshUrl()).url)];
    await put(a, "of a");
    expect(await chains(b)).toEqual([]);
  });

  test("a closed store refuses work, and can be closed again", async () => {
    const store = await open((await freshUrl()).url);
    await put(store, "a");
    await store.close();
    await store.close();
    await expect(store.transaction(async () => 1)).rejects.toThrow("closed");
    await expect(store.db.selectFrom("chains").selectAll().execute()).rejects.toThrow("closed");
  });

  test("closing during a transaction rolls it back", async () => {
    const { url } = await freshUrl();
    const store = await open(url);
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const writing = store.transaction(async (tx) => {
      await tx.insertInto("chains").values({ chain_id: "half", runs: 1 }).execute();
      started.resolve();
      await release.promise;
      await tx.insertInto("chains").values({ chain_id: "rest", runs: 1 }).execute();
    });
    await started.promise;
    await store.close();
    release.resolve();
    await expect(writing).rejects.toThrow();
    expect(await chains(await open(url))).toEqual([]);
  });
});

describe("an unfit database is refused, with its address and without the password", () => {
  async function expectProblem(url: string, kind: StoreProblemKind, said: RegExp): Promise<void> {
    const problem = await problemOf(url, { timeouts: { connectMs: 1_000 } });
    expect({ kind: problem.problem, text: problem.message }).toEqual({
      kind,
      text: expect.stringMatching(said),
    });
    expect(problem.message).toContain(problem.wayOut);
    expect(`${problem.message} ${problem.stack} ${problem.cause}`).not.toMatch(/ss\/word|ss%2Fword|s3cret/);
  }
  type Parts = Partial<Record<"username" | "password" | "port" | "pathname" | "search", string>>;
  /** Returns the test server's address with some parts replaced. */
  const at = async (parts: Parts): Promise<string> => Object.assign(new URL(await serverUrl()), parts).href;

  test.each([
    ["nothing", "", /not a valid URL/],
    ["a path", "/var/lib/s3cret", /not a valid URL/],
    ["another protocol", "mysql://u:s3cret@h/db", /postgresql:\/\//],
    ["a script", "javascript:alert('s3cret')", /postgresql:\/\//],
    ["a # that is not encoded", "postgres://u:12#s3cret@h/db", /# in it/],
    ["a / that is not encoded", "postgres://u:s3cret/x@h/db", /not a valid URL|unknown parameter|too/],
    ["a % that is not encoded", "postgres://u:s3cret%zz@h/db", /% in its password/],
    ["no database", "postgres://u:s3cret@h", /no database/],
    ["a schema that is SQL", "postgres://u:s3cret@h/db?schema=a;drop%20schema%20b", /schema must be/],
    ["a schema with quotation marks", 'postgres://u:s3cret@h/db?schema="a"', /schema must be/],
    ["a schema in capitals", "postgres://u:s3cret@h/db?schema=Parley", /schema must be/],
    ["an empty schema", "postgres://u:s3cret@h/db?schema=", /schema must be/],
    ["the server's own schema", "postgres://u:s3cret@h/db?schema=pg_catalog", /schema must be/],
    ["a schema that is too long", `postgres://u:s3cret@h/db?schema=${"a".repeat(49)}`, /schema must be/],
    [
      "settings of the server",
      "postgres://u:s3cret@h/db?options=-c%20search_path=public",
      /unknown parameter/,
    ],
    ["settings of the driver", "postgres://u:s3cret@h/db?statement_timeout=0", /unknown parameter/],
    ["a doubtful TLS mode", "postgres://u:s3cret@h/db?sslmode=prefer", /sslmode must be/],
    [
      "a doubtful binding",
      "postgres://u:s3cret@h/db?channel_binding=yes",
      /channel_binding must be disable, prefer/,
    ],
    ["a certificate that is not there", "postgres://u:s3cret@h/db?sslrootcert=/no/s3cret.pem", /ENOENT/],
    ["several hosts", "postgres://u:s3cret@h1:1,h2:2/db", /not a valid URL/],
  ])("an address that is %s", async (_, url, said) => {
    await expectProblem(url, "bad_address", said);
  });

  test("a wrong password, an unknown user and an unknown database are refused", async () => {
    await expectProblem(await at({ password: "s3cret" }), "refused", /password authentication failed/);
    await expectProblem(await at({ password: "" }), "refused", /password must be a string/);
    await expectProblem(await at({ username: "nobody" }), "refused", /127\.0\.0\.1:\d+\/postgres/);
    const nowhere = await at({ pathname: "/no%0Awhere" });
    await expectProblem(nowhere, "refused", /127\.0\.0\.1:\d+\/no%0Awhere .*does not exist/s);
  });

  test("a missing server, one that never answers, one that is not PostgreSQL, and one without TLS each give their own error", async () => {
    const tap = await openTcpProxy(1);
    undo.push(() => tap.close());
    tap.deaf = true;
    const silent = `postgresql://u:s3cret@127.0.0.1:${tap.port}/db`;
    await expectProblem(silent, "unreachable", /timeout expired/);
    const gone = await openTcpProxy(1);
    await gone.close();
    const closed = `postgresql://u:s3cret@localhost:${gone.port}/db`;
    await expectProblem(closed, "unreachable", /ECONNREFUSED/);
    await expectProblem("postgresql://u:s3cret@no.such.host.invalid/db", "unreachable", /no\.such\.host/);
    await expectProblem("postgresql://u:s3cret@/db?host=/no/such/folder", "unreachable", /ENOENT/);
    const web = createServer((_, response) => void response.end("hello")).listen(0, "127.0.0.1");
    await once(web, "listening");
    undo.push(async () => web.close());
    const { port } = web.address() as AddressInfo;
    await expectProblem(`postgresql://u:s3cret@127.0.0.1:${port}/db`, "unreachable", /127\.0\.0\.1/);
    const encrypted = `${await serverUrl()}?sslmode=require`;
    await expectProblem(encrypted, "refused", /does not support SSL/);
  });

  test("a server that is too old is refused", async () => {
    const real = new URL(await serverUrl());
    const tap = await openTcpProxy(Number(real.port));
    undo.push(() => tap.close());
    const [shown] = await runSql(real.href, "show server_version_num");
    const version = String(shown?.server_version_num);
    tap.fromServer = (piece) => Buffer.from(piece.toString("latin1").replaceAll(version, "140012"), "latin1");
    await expectProblem(await at({ port: String(tap.port) }), "too_old", /version 14\.12, and 15/);
  });

  test("a database with another encoding, a schema of another program and a user without rights are refused", async () => {
    const server = await serverUrl();
    const { schema, url } = await freshUrl();
    await runSql(
      server,
      `create database ${schema} encoding 'LATIN1' locale 'C' locale_provider libc template template0`,
    );
    undo.push(() => runSql(server, `drop database ${schema} with (force)`));
    await expectProblem(await at({ pathname: schema }), "unfit", /encoding is LATIN1/);
    await runSql(server, `create schema ${schema}; create table ${schema}.notes (note text)`);
    await expectProblem(url, "unfit", /tables of another program/);
    expect(
      await runSql(server, `select count(*)::int as n from pg_tables where schemaname = '${schema}'`),
    ).toEqual([{ n: 1 }]);
    await runSql(server, `create role ${schema} login password 's3cret'`);
    undo.push(() => runSql(server, `drop role ${schema}`));
    const poor = await at({ username: schema, password: "s3cret", search: `?schema=${schema}_2` });
    await expectProblem(poor, "refused", /permission denied/);
  });
});

describe("the schema's version", () => {
  const version = async (url: string, schema: string) =>
    (await runSql(url, `select version::int from ${schema}.schema_version`))[0]?.version;
  const setVersion = (url: string, schema: string, to: number) =>
    runSql(url, `update ${schema}.schema_version set version = ${to}`);

  test("if several processes start at the same time on an empty database, the schema is created once, and all of them work", async () => {
    const { url, schema } = await freshUrl();
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(url)));
    for (const [index, store] of stores.entries()) await put(store, `c${index}`);
    expect(await chains(stores[0] as Store)).toHaveLength(6);
    expect(await version(url, schema)).toBe(SCHEMA_VERSION);
  });

  test("while the next version extends the schema, a process of this version runs, and another can start", async () => {
    const { url, schema } = await freshUrl();
    const before = await open(url, { readersMax: 1, writersMax: 1 });
    const all = prepared((db) => db.selectFrom("chains").selectAll());
    const added = prepared((tx, { id }: { id: string }) =>
      tx.insertInto("chains").values({ chain_id: id, runs: 1 }).returningAll(),
    );
    const read = async () => (await all(before.db, {})).rows;
    const write = (id: string) =>
      before.transaction(async (tx) => {
        await added(tx, { id });
        return await tx.selectFrom("chains").selectAll().where("chain_id", "=", id).execute();
      });
    for (const id of ["a", "b", "c"]) await write(id);
    await read();
    await runSql(
      url,
      `alter table ${schema}.chains add column mood text not null default 'calm';
      create table ${schema}.moods (mood text)`,
    );
    await setVersion(url, schema, SCHEMA_VERSION + 1);
    expect(await read()).toHaveLength(3);
    const first = await write("d").catch((error: unknown) => error);
    expect(first).toMatchObject({ name: "StoreConflict", code: "0A000" });
    expect(await write("d")).toMatchObject([{ chain_id: "d" }]);
    expect(await chains(await open(url))).toEqual(["a", "b", "c", "d"]);
    expect(await version(url, schema)).toBe(SCHEMA_VERSION + 1);
  });

  test("a schema that is two versions newer is refused and not changed", async () => {
    const { url, schema } = await freshUrl();
    await open(url);
    await setVersion(url, schema, SCHEMA_VERSION + 2);
    const problem = await problemOf(url);
    expect(problem).toMatchObject({ problem: "newer" });
    expect(problem.message).toContain(
      `it has schema version ${SCHEMA_VERSION + 2} of release 0.2.0; this program has version ${SCHEMA_VERSION} of release`,
    );
    expect(problem.message).toContain("Install the newer version");
    expect(await version(url, schema)).toBe(SCHEMA_VERSION + 2);
  });

  test("a schema of an unreleased version is refused and not changed, with the versions that are converted", async () => {
    const { url, schema } = await freshUrl();
    await open(url);
    await setVersion(url, schema, 40);
    const problem = await problemOf(url);
    expect(problem).toMatchObject({ problem: "unreleased" });
    expect(problem.message).toMatch(/\(schema version 40\).*version 0\.1.*schema=name/);
    expect(await version(url, schema)).toBe(40);
  });

  test("a store is not converted while a gateway of the version before uses it", async () => {
    const { url, schema } = await freshUrl();
    const store = await open(url);
    await store.transaction((tx) => joinProcesses(tx, { processId: "a", host: "here", version: "0" }, 0));
    const beatAt = (at: number) =>
      store.transaction((tx) => tx.updateTable("processes").set({ beat_at: at }).execute());
    await beatAt(4e12);
    await setVersion(url, schema, 45);
    const problem = await problemOf(url);
    expect(problem).toMatchObject({ problem: "in_use" });
    expect(problem.message).toMatch(/running gateways of an earlier version \(on here\).*Stop all of them/);
    expect(await version(url, schema)).toBe(45);
    await beatAt(1);
    const log = keptLog();
    await open(url, { world: { ...world, log } satisfies World });
    expect(log.lines).toMatchObject([{ text: "store converted", fields: { from: 45, to: SCHEMA_VERSION } }]);
    expect(await version(url, schema)).toBe(SCHEMA_VERSION);
  });

  test("a failed conversion leaves no changes", async () => {
    const { url, schema } = await freshUrl();
    await put(await open(url), "kept");
    await runSql(url, `alter table ${schema}.runs drop column queue`);
    // Version 0.1 had a table of waits for jobs.
    await setVersion(url, schema, 35);
    await expect(open(url)).rejects.toThrow("job_waits");
    expect(await version(url, schema)).toBe(35);
    const columns = `select 1 from information_schema.columns where table_schema = '${schema}'
      and table_name = 'runs' and column_name = 'queue'`;
    expect(await runSql(url, columns)).toEqual([]);
  });
});
