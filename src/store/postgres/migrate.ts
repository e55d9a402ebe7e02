// Checks a PostgreSQL database before use, and creates or converts its schema, in one transaction under a
// lock for the whole deployment. If several processes start at the same time, only one of them does so.
// A server, database or schema that does not meet the requirements is left unchanged. A store that is only
// inspected or read is not converted. schema/statements.ts says which versions work with which schema.

import type { Client } from "pg";
import { StoreConflict, StoreProblem } from "../problems.ts";
import { LEASE_MS } from "../queries/processes.ts";
import { describeNewer, FIRST_DEFINED, isConvertible, SCHEMA_VERSION } from "../schema/conversion.ts";
import { type ExistingTables, schemaSql } from "../schema/statements.ts";
import type { PostgresAddress } from "./address.ts";
import { type Connecting, connectClient, endClient } from "./connection.ts";
import { asPostgresProblem, postgresProblem } from "./problems.ts";

/** The oldest supported server, as `server_version_num`. */
const SERVER_MIN = 150_000;
/** Maximum time that a starting process waits while another one converts the store. */
const TURN_TIMEOUT = "10min";
/**
 * Maximum time that a conversion waits for a table lock. Other processes cannot use the table while it waits.
 */
const TABLE_TIMEOUT = "20s";

/** Facts about a database and its server. They are read first, to decide whether it can hold a store. */
export interface Look {
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

/** Returns the columns of each table of a schema. */
async function tablesIn(client: Client, schema: string): Promise<ExistingTables> {
  const { rows } = await client.query<{ table: string; columns: string }>({
    text: `select table_name as "table", string_agg(column_name, ' ') as columns
      from information_schema.columns where table_schema = $1 group by 1`,
    values: [schema],
  });
  return new Map(rows.map(({ table, columns }) => [table, new Set(columns.split(" "))]));
}

/** Refuses to convert a store that gateways of an earlier version use. */
async function refuseGateways(client: Client, { address }: Connecting): Promise<void> {
  const { rows } = await client.query(`select host from processes
    where beat_at > extract(epoch from clock_timestamp()) * 1000 - ${LEASE_MS}`);
  if (rows.length === 0) return;
  throw postgresProblem("in_use", address, `on ${rows.map(({ host }) => host).join(", ")}`);
}

/** Creates or converts the schema, unless another process has done so. Returns the version before. */
async function bringUp(client: Client, connecting: Connecting): Promise<number> {
  const { address } = connecting;
  const { schema } = address;
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
  if (version < SCHEMA_VERSION) {
    if (version > 0 && version < FIRST_DEFINED) await refuseGateways(client, connecting);
    await client.query(schemaSql("postgres", version, await tablesIn(client, schema)));
  }
  await client.query("commit");
  return version;
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

/**
 * Throws if this program can neither use nor convert a schema of this version. `newest`: the newest version
 * that it can use.
 */
export async function refuseVersion(
  client: Client,
  address: PostgresAddress,
  version: number,
  newest = SCHEMA_VERSION + 1,
): Promise<void> {
  if (version > newest) {
    const { rows } = await client.query(`select * from "${address.schema}".schema_version`);
    throw postgresProblem("newer", address, describeNewer(version, rows[0]?.release));
  }
  if (version > 0 && !isConvertible("postgres", version))
    throw postgresProblem("unreleased", address, `schema version ${version}`);
}

async function createOrConvert(client: Client, connecting: Connecting): Promise<void> {
  const { address, world } = connecting;
  const found = await look(client, address.schema);
  refuseUnfit(connecting, found);
  await client.query(
    `set search_path to "${address.schema}"; set statement_timeout = 0;
     set idle_in_transaction_session_timeout = 0; set default_transaction_isolation to 'read committed'`,
  );
  const version = found.versioned ? await schemaVersion(client, address.schema) : 0;
  await refuseVersion(client, address, version);
  const from = version < SCHEMA_VERSION ? await bringUp(client, connecting) : version;
  if (from > 0 && from < SCHEMA_VERSION)
    world.log.info({ place: address.place, from, to: SCHEMA_VERSION }, "store converted");
}

/** Throws unless the schema has exactly this program's version. */
async function refuseOther(client: Client, connecting: Connecting): Promise<void> {
  const { address } = connecting;
  const found = await look(client, address.schema);
  refuseUnfit(connecting, found);
  if (!found.versioned) throw postgresProblem("absent", address, `there is no schema ${address.schema}`);
  const version = await schemaVersion(client, address.schema);
  if (version === SCHEMA_VERSION) return;
  await refuseVersion(client, address, version, SCHEMA_VERSION);
  throw postgresProblem("older", address, `version ${version}, not ${SCHEMA_VERSION}`);
}

/**
 * Checks the database, and creates or converts the schema. With `asItIs`, changes nothing and refuses a
 * schema of another version. Rejects with a `StoreProblem`.
 */
export async function prepareSchema(connecting: Connecting, asItIs: boolean): Promise<void> {
  const { address, world } = connecting;
  // Sends no settings, because an old server would reject settings that it does not know.
  const client = await connectClient(connecting, { options: "", query_timeout: 0 });
  try {
    await (asItIs ? refuseOther : createOrConvert)(client, connecting);
  } catch (error) {
    const problem = asPostgresProblem(error, address);
    if (!(problem instanceof StoreConflict)) throw problem;
    throw new StoreProblem("locked", address.place, { detail: problem.message, on: "server" });
  } finally {
    await endClient(client, world);
  }
}
