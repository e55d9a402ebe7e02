// Checks a PostgreSQL database before use, and migrates it to this version's schema.
// Each migration is one transaction, under a lock for the whole deployment. If several processes start at the
// same time, only one of them runs the migration.
// A server, database or schema that does not meet the requirements is left unchanged. A store that is only
// inspected or read is not migrated. postgres-schema.ts documents which program versions work with which
// schema.

import type { Client } from "pg";
import { StoreConflict, StoreProblem } from "../problems.ts";
import { type Connecting, connectClient, endClient } from "./connection.ts";
import { asPostgresProblem, postgresProblem } from "./problems.ts";

/** The oldest supported server, as `server_version_num`. */
const SERVER_MIN = 150_000;
/** Maximum time that a starting process waits while another one migrates. */
const TURN_TIMEOUT = "10min";
/**
 * Maximum time that a migration waits for a table lock. Other processes cannot use the table while it waits.
 */
const TABLE_TIMEOUT = "20s";

/** Facts about a database and its server. They are read first, to decide whether it can hold a store. */
export interface Look {
  /** As `server_version_num`. */
  readonly server: number;
  readonly encoding: string;
  readonly standby: boolean;
  /** True if this program created the schema. */
  readonly versioned: boolean;
  /** True if a schema with this name exists. */
  readonly schema: boolean;
  readonly tables: number;
}

/** Reads these facts, with a query that every version of the server accepts. */
export async function look(client: Client, schema: string): Promise<Look> {
  const { rows } = await client.query({
    text: `select current_setting('server_version_num')::int as server,
        current_setting('server_encoding') as encoding,
        pg_is_in_recovery() as standby,
        to_regclass($1) is not null as versioned,
        exists (select 1 from pg_namespace where nspname = $2) as schema,
        (select count(*)::int from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f')) as tables`,
    values: [`${schema}.schema_version`, schema],
  });
  return rows[0] as Look;
}

/** Returns the version of an existing Parley schema. */
export async function schemaVersion(client: Client, schema: string): Promise<number> {
  const { rows } = await client.query(`select version from "${schema}".schema_version`);
  return Number(rows[0]?.version);
}

/** Formats the version for people: `18.4`. */
export function serverVersion({ server }: Look): string {
  return `${Math.floor(server / 10_000)}.${server % 10_000}`;
}

/** Applies the next migration, unless another process has done so. */
async function step(client: Client, schema: string, migrations: readonly string[]): Promise<void> {
  await client.query("begin");
  await client.query(`set local lock_timeout = '${TURN_TIMEOUT}'`);
  await client.query({
    text: "select pg_advisory_xact_lock(hashtextextended($1, 0))",
    values: [`parley:${schema}`],
  });
  await client.query(`set local lock_timeout = '${TABLE_TIMEOUT}'`);
  const found = await look(client, schema);
  if (!found.schema) await client.query(`create schema "${schema}"`);
  if (!found.versioned) {
    await client.query("create table schema_version (version bigint not null)");
    await client.query("insert into schema_version (version) values (0)");
  }
  const version = await schemaVersion(client, schema);
  const migration = migrations[version];
  if (migration !== undefined) {
    await client.query(migration);
    await client.query(`update schema_version set version = ${version + 1}`);
  }
  await client.query("commit");
}

/** Throws a `StoreProblem` if the database cannot hold a store. */
export function refuseUnfit({ address }: Connecting, found: Look): void {
  const refuse = (problem: "too_old" | "unfit" | "unreachable", detail: string): never => {
    throw postgresProblem(problem, address, detail);
  };
  if (found.server < SERVER_MIN) {
    refuse("too_old", `version ${serverVersion(found)}, and ${SERVER_MIN / 10_000} or newer is needed`);
  }
  if (found.encoding !== "UTF8") refuse("unfit", `its encoding is ${found.encoding}, and UTF8 is needed`);
  if (found.standby) refuse("unreachable", "the server is a read-only standby");
  if (!found.versioned && found.tables > 0) {
    refuse("unfit", `the schema ${address.schema} contains tables of another program`);
  }
}

async function bringUp(client: Client, connecting: Connecting, migrations: readonly string[]): Promise<void> {
  const { address, world } = connecting;
  const { schema } = address;
  const found = await look(client, schema);
  refuseUnfit(connecting, found);
  await client.query(
    `set search_path to "${schema}"; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0;
     set default_transaction_isolation to 'read committed'`,
  );
  const from = found.versioned ? await schemaVersion(client, schema) : 0;
  let version = from;
  while (version < migrations.length) {
    await step(client, schema, migrations);
    version = await schemaVersion(client, schema);
  }
  if (version > migrations.length + 1) {
    const newest = migrations.length + 1;
    const detail = `it has schema version ${version}; this program supports versions up to ${newest}`;
    throw postgresProblem("newer", address, detail);
  }
  if (from > 0 && version > from) {
    world.log.info({ place: address.place, from, to: version }, "store migrated");
  }
}

/** Throws unless the schema has exactly this program's version. */
async function refuseOther(
  client: Client,
  connecting: Connecting,
  migrations: readonly string[],
): Promise<void> {
  const { address } = connecting;
  const found = await look(client, address.schema);
  refuseUnfit(connecting, found);
  if (!found.versioned) throw postgresProblem("absent", address, `there is no schema ${address.schema}`);
  const version = await schemaVersion(client, address.schema);
  if (version === migrations.length) return;
  const detail = `version ${version}, not ${migrations.length}`;
  throw postgresProblem(version > migrations.length ? "newer" : "older", address, detail);
}

/**
 * Checks the database, and creates or migrates the schema. With `asItIs`, changes nothing and refuses a
 * schema of another version. Rejects with a `StoreProblem`.
 */
export async function migratePostgres(
  connecting: Connecting,
  migrations: readonly string[],
  asItIs: boolean,
): Promise<void> {
  const { address, world } = connecting;
  // Sends no settings, because an old server would reject settings that it does not know.
  const client = await connectClient(connecting, { options: "", query_timeout: 0 });
  try {
    await (asItIs ? refuseOther : bringUp)(client, connecting, migrations);
  } catch (error) {
    const problem = asPostgresProblem(error, address);
    if (!(problem instanceof StoreConflict)) throw problem;
    throw new StoreProblem("locked", address.place, { detail: problem.message, on: "server" });
  } finally {
    await endClient(client, world);
  }
}
