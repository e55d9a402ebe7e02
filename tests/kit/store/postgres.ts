// Stores on the only PostgreSQL server of the test run. Each one is a separate schema.

import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import pg from "pg";
import { inject } from "vitest";
import { openPostgres, type PostgresOptions } from "../../../src/store/postgres/postgres.ts";
import type { Store } from "../../../src/store/sql.ts";
import { realWorld } from "../../../src/world.ts";

let asked: Promise<string> | undefined;

/** Returns the address of the test run's server; the first call starts it. */
export function serverUrl(): Promise<string> {
  asked ??= text(connect(inject("postgresDoor"), "127.0.0.1")).then((answer) => {
    if (answer.startsWith("!")) throw new Error(`PostgreSQL could not be started: ${answer.slice(1)}`);
    return answer;
  });
  return asked;
}

/** Returns an address with the name of a new schema. */
export function freshSchema(url: string): { url: string; schema: string } {
  const schema = `t_${randomUUID().replaceAll("-", "")}`;
  return { url: `${url}?schema=${schema}`, schema };
}

/** Runs statements as the superuser, outside any store. */
export async function runSql(url: string, statements: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url.replace(/\?.*/, "") });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(statements)).rows;
  } finally {
    await client.end();
  }
}

/** On a busy machine a test may keep a transaction open longer than a gateway may. */
const PATIENT: NonNullable<PostgresOptions["timeouts"]> = {
  statementMs: 60_000,
  idleInTransactionMs: 60_000,
};

/** Migrated and empty schemas that tests can reuse. */
const spare: string[] = [];

/**
 * Deletes every row, after running transactions have ended, and without checking foreign keys. This is
 * cheaper than a new schema, which takes a quarter of a second of processor time, and than `truncate`, which
 * rewrites every file.
 */
const emptied = (schema: string): string => `do $$
  declare part record;
  begin
    set local session_replication_role = replica;
    for part in select c.oid::regclass as name, c.relkind as kind from pg_class c
      where c.relnamespace = '${schema}'::regnamespace and c.relname <> 'schema_version' and c.relkind in ('r', 'S')
      order by c.relkind, c.relname
    loop
      if part.kind = 'S' then perform setval(part.name, 1, false);
      else
        execute format('lock table %s in access exclusive mode', part.name);
        execute format('delete from %s', part.name);
      end if;
    end loop;
  end $$`;

export interface TestSchema {
  readonly url: string;
  readonly schema: string;
  /** Gives the schema back for reuse. Its store must be closed. */
  give(): Promise<void>;
}

/**
 * Returns a schema for a test that does not change the tables: a new schema, or an emptied one of an earlier
 * test.
 */
export async function takeSchema(): Promise<TestSchema> {
  const server = await serverUrl();
  const taken = spare.pop();
  const { url, schema } =
    taken === undefined ? freshSchema(server) : { url: `${server}?schema=${taken}`, schema: taken };
  return {
    url,
    schema,
    async give() {
      const [found] = await runSql(url, `select to_regclass('${schema}.schema_version') is not null as made`);
      if (found?.made !== true) return;
      await runSql(url, emptied(schema));
      spare.push(schema);
    },
  };
}

export interface PostgresStore {
  readonly store: Store;
  readonly url: string;
  readonly schema: string;
  /** Closes the store and returns its schema for reuse. */
  dispose(): Promise<void>;
}

/**
 * Opens an empty store. `own`: the test may change the schema, which is dropped afterwards. `url`: opens
 * another connection to the store at this address.
 */
export async function openPostgresStore(
  options: Partial<PostgresOptions> & { readonly own?: true } = {},
): Promise<PostgresStore> {
  const { url: given, own, ...more } = options;
  const { url, schema, give } = await (given !== undefined
    ? Promise.resolve(sharedSchema(given))
    : own === true
      ? ownSchema()
      : takeSchema());
  const world = realWorld({ level: "silent", sync: true });
  const store = await openPostgres({ world, timeouts: PATIENT, ...more, url });
  return {
    store,
    url,
    schema,
    dispose: async () => {
      await store.close();
      await give();
    },
  };
}

async function ownSchema(): Promise<TestSchema> {
  const { url, schema } = freshSchema(await serverUrl());
  return {
    url,
    schema,
    give: async () => void (await runSql(url, `drop schema if exists ${schema} cascade`)),
  };
}

/** Returns a schema whose reuse another store manages. */
function sharedSchema(url: string): TestSchema {
  return { url, schema: new URL(url).searchParams.get("schema") ?? "", give: async () => {} };
}
