// Stores on the run's one PostgreSQL server: each in a schema of its own, which is dropped with it.

import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import pg from "pg";
import { inject } from "vitest";
import { openPostgres, type PostgresOptions } from "../../src/store/postgres.ts";
import type { Store } from "../../src/store/sql.ts";
import { realWorld } from "../../src/world.ts";

let asked: Promise<string> | undefined;

/** The address of the run's server; the first to ask has it started. */
export function serverUrl(): Promise<string> {
  asked ??= text(connect(inject("postgresDoor"), "127.0.0.1")).then((answer) => {
    if (answer.startsWith("!")) throw new Error(`PostgreSQL could not be started: ${answer.slice(1)}`);
    return answer;
  });
  return asked;
}

/** An address with a schema that nobody else uses. */
export function freshSchema(url: string): { url: string; schema: string } {
  const schema = `t_${randomUUID().replaceAll("-", "")}`;
  return { url: `${url}?schema=${schema}`, schema };
}

/** Runs statements beside any store, as the superuser. */
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

export interface PostgresStore {
  readonly store: Store;
  readonly url: string;
  readonly schema: string;
  /** Closes the store and drops its schema. */
  dispose(): Promise<void>;
}

/** An empty store, or with `url` another one on that schema. */
export async function openPostgresStore(
  options: Partial<PostgresOptions> & { readonly schema?: string } = {},
): Promise<PostgresStore> {
  const fresh = freshSchema(await serverUrl());
  const { url = fresh.url, schema = fresh.schema, ...more } = options;
  const world = realWorld({ level: "silent", sync: true });
  const store = await openPostgres({ world, ...more, url });
  return {
    store,
    url,
    schema,
    dispose: async () => {
      await store.close();
      await runSql(url, `drop schema if exists ${schema} cascade`);
    },
  };
}
