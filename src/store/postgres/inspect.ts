// Inspects a PostgreSQL store for `parley doctor` and `parley store show`: the server, its suitability and
// the gateways that use it. Changes nothing, and does not create or migrate a store. Facts that need more
// rights than the user has are missing from the result.

import { Kysely } from "kysely";
import type { Client } from "pg";
import { optional } from "../../core/optional.ts";
import type { ProcessRow } from "../../core/shapes/process.ts";
import type { World } from "../../world.ts";
import { listProcesses } from "../queries/processes.ts";
import { SCHEMA_VERSION } from "../schema/conversion.ts";
import { triggersSql } from "../schema/statements.ts";
import type { Tables } from "../schema/tables.ts";
import { type Tally, tallyOf } from "../transfer/tally.ts";
import { type PostgresAddress, postgresAddress } from "./address.ts";
import { type Connecting, connectClient, endClient } from "./connection.ts";
import { look, refuseUnfit, refuseVersion, schemaVersion, serverVersion } from "./migrate.ts";
import { Outage, PostgresPool, postgresDialect } from "./pool.ts";
import { CONNECTIONS_OF_PROCESS, TIMEOUTS } from "./postgres.ts";
import { asPostgresProblem } from "./problems.ts";

/** Counting the rows of a large store is slow, so statements have no time limit. */
const UNHURRIED = { ...TIMEOUTS, statementMs: 0 };

export interface PostgresInspection {
  readonly place: string;
  /** For example `18.4`. */
  readonly server: string;
  readonly schema: {
    readonly name: string;
    /** Schema version. Absent if there is no schema yet; the first start of a gateway creates it. */
    readonly version?: number;
    /** Schema version that this program writes. */
    readonly known: number;
  };
  /** Schema objects that differ from this program's schema, for example `unknown trigger "x"`. */
  readonly differences: readonly string[];
  /** SQL statements with which an administrator grants the rights that a gateway needs and the user lacks. */
  readonly missingRights: readonly string[];
  /** Local time minus the database's time, as accurate as the round trip allows. */
  readonly clockAheadMs: number;
  readonly connections: {
    /** Maximum number of connections to this database for the user, including those of other programs. */
    readonly max: number;
    /** Connections of programs other than gateways. */
    readonly others: number;
    /** Maximum number of connections of one gateway. */
    readonly ofProcess: number;
  };
  /** Server settings that can lose a committed transaction, for example `fsync = off`. */
  readonly unsafe: readonly string[];
  /** All known gateways, newest first. Empty if there is no schema. */
  readonly processes: readonly ProcessRow[];
  /** Row counts and size in bytes. Absent unless the caller passed `counted`. */
  readonly holds?: { readonly tally: Tally; readonly bytes: number };
}

interface Facts {
  readonly now: number;
  readonly user: string;
  readonly database: string;
  readonly mayCreate: boolean;
  readonly readOnly: boolean;
  readonly max: number;
  readonly others: number;
  readonly fsync: string;
  readonly synchronous: string;
  readonly fullPages: string;
}

/** Reads facts that every user may read, on all supported server versions. A limit of -1 means "no limit". */
const FACTS = `select
    (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
    quote_ident(current_user) as user,
    quote_ident(current_database()) as database,
    has_database_privilege(current_database(), 'create') as "mayCreate",
    current_setting('default_transaction_read_only') = 'on' as "readOnly",
    least(
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0),
      (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
      (select nullif(datconnlimit, -1) from pg_database where datname = current_database())
    ) as max,
    (select count(*)::int from pg_stat_activity
      where backend_type = 'client backend' and coalesce(application_name, '') <> 'parley') as others,
    current_setting('fsync') as fsync,
    current_setting('synchronous_commit') as synchronous,
    current_setting('full_page_writes') as "fullPages"`;

/**
 * Counts tables on which the user lacks a right that a gateway needs, and reads whether the user may create
 * objects in the schema.
 */
const SCHEMA_RIGHTS = `select
    has_schema_privilege(n.oid, 'usage') and has_schema_privilege(n.oid, 'create') as "mayAdd",
    (select count(*)::int from pg_class c where c.relnamespace = n.oid and c.relkind in ('r', 'p') and not (
      has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
      and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))) as closed,
    (select min(quote_ident(pg_get_userbyid(c.relowner))) from pg_class c where c.relnamespace = n.oid
      and c.relkind in ('r', 'p') and not pg_has_role(c.relowner, 'usage')) as owner,
    (select coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 from pg_class c
      where c.relnamespace = n.oid and c.relkind in ('r', 'p')) as bytes
  from pg_namespace n where n.nspname = $1`;

/**
 * Lists triggers, rules and other objects that can change the effect of a statement, except those of
 * extensions.
 */
const ACTING_OBJECTS = `select 'trigger' as type, t.tgname as name from pg_trigger t
    join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and not t.tgisinternal
  union all select 'function', p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = $1
      and not exists (select 1 from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  union all select 'rule', r.rulename from pg_rewrite r
    join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('r', 'p')
  union all select 'view', c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('v', 'm', 'f')
      and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')
  order by 1, 2`;

async function differencesIn(client: Client, schema: string, version: number): Promise<string[]> {
  // A store that is not yet converted has what the conversion drops.
  const statements =
    version < SCHEMA_VERSION
      ? /\b(?:create or replace|drop) (trigger|function)(?: if exists)? (\w+)/g
      : /\bcreate or replace (trigger|function) (\w+)/g;
  const made = triggersSql("postgres").matchAll(statements);
  const known = new Set([...made].map(([, type, name]) => `${type} "${name}"`));
  const { rows } = await client.query<{ type: string; name: string }>(ACTING_OBJECTS, [schema]);
  return rows
    .map(({ type, name }) => `${type} ${JSON.stringify(name)}`)
    .filter((object) => !known.has(object))
    .map((object) => `unknown ${object}`);
}

interface SchemaFacts {
  readonly mayAdd: boolean;
  readonly closed: number;
  /** Role that owns tables of the schema, if the user is not a member of this role. */
  readonly owner: string | null;
  readonly bytes: number;
}

function missingRights(facts: Facts, schema: string, inSchema: SchemaFacts | undefined): string[] {
  const { user, database } = facts;
  const missing: string[] = [];
  if (facts.readOnly) missing.push(`alter role ${user} set default_transaction_read_only = off`);
  if (inSchema === undefined) {
    if (!facts.mayCreate) missing.push(`grant create on database ${database} to ${user}`);
    return missing;
  }
  if (!inSchema.mayAdd) missing.push(`grant usage, create on schema "${schema}" to ${user}`);
  if (inSchema.closed > 0) {
    missing.push(`grant select, insert, update, delete on all tables in schema "${schema}" to ${user}`);
  }
  // A later version must alter the tables, and only their owner can do so.
  if (inSchema.owner !== null) missing.push(`grant ${inSchema.owner} to ${user}`);
  return missing;
}

/** Opens the schema as a gateway does, and reads the processes and the row counts. */
async function rowsOf(
  connecting: Connecting,
  counted: boolean,
): Promise<{ processes: ProcessRow[]; tally?: Tally }> {
  const pool = new PostgresPool(connecting, new Outage(connecting), 1);
  const db = new Kysely<Tables>({ dialect: postgresDialect(pool) });
  try {
    const processes = await listProcesses(db, connecting.world.clock.now());
    return { processes, ...(counted ? { tally: await tallyOf(db) } : {}) };
  } finally {
    await pool.close();
  }
}

async function lookThrough(
  client: Client,
  connecting: Connecting,
  address: PostgresAddress,
  counted: boolean,
): Promise<PostgresInspection> {
  const { place, schema: name } = address;
  const found = await look(client, name);
  refuseUnfit(connecting, found);
  const version = found.versioned ? await schemaVersion(client, name) : undefined;
  if (version !== undefined) await refuseVersion(client, address, version);
  const { clock } = connecting.world;
  const before = clock.now();
  const facts = (await client.query(FACTS)).rows[0] as Facts;
  const after = clock.now();
  const inSchema = (await client.query(SCHEMA_RIGHTS, [name])).rows[0] as SchemaFacts | undefined;
  const missing = missingRights(facts, name, inSchema);
  const known = SCHEMA_VERSION;
  const readable = version !== undefined && inSchema?.closed === 0;
  const rows = readable ? await rowsOf(connecting, counted) : undefined;
  return {
    place,
    server: serverVersion(found),
    schema: { name, known, ...optional({ version }) },
    differences: await differencesIn(client, name, version ?? known),
    missingRights: missing,
    clockAheadMs: Math.round((before + after) / 2 - facts.now),
    connections: { max: facts.max, others: facts.others, ofProcess: CONNECTIONS_OF_PROCESS },
    unsafe: [
      ...(facts.fsync === "off" ? ["fsync = off"] : []),
      ...(facts.synchronous === "off" ? ["synchronous_commit = off"] : []),
      ...(facts.fullPages === "off" ? ["full_page_writes = off"] : []),
    ],
    processes: rows?.processes ?? [],
    ...(rows?.tally === undefined ? {} : { holds: { tally: rows.tally, bytes: inSchema?.bytes ?? 0 } }),
  };
}

/**
 * Inspects the store. `counted` also counts its rows. Rejects with a `StoreProblem` if its version cannot be
 * used, or if there is no store and the user could not create one.
 */
export async function inspectPostgres(
  url: string,
  world: World,
  { counted }: { counted: boolean },
): Promise<PostgresInspection> {
  const address = postgresAddress(url);
  const { default: driver } = await import("pg");
  const connecting: Connecting = { Client: driver.Client, address, timeouts: UNHURRIED, world };
  // Sends no settings, because an old server would reject settings that it does not know.
  const client = await connectClient(connecting, { options: "" });
  try {
    return await lookThrough(client, connecting, address, counted);
  } catch (error) {
    throw asPostgresProblem(error, address);
  } finally {
    await endClient(client, world);
  }
}
