// Creates the schema of an embedded file, converts the file of an earlier version, and compares the schema of
// a file with this program's. A foreign object in a file (a trigger, or a view in place of a table) is
// therefore never executed or trusted.

import { DatabaseSync } from "node:sqlite";
import { StoreProblem } from "../problems.ts";
import { describeNewer, GONE, isConvertible, SCHEMA_VERSION } from "../schema/conversion.ts";
import { schemaSql } from "../schema/statements.ts";
import { COPIED_TABLES } from "../schema/tables.ts";
import { distrust } from "./trust.ts";

/**
 * Identifies a file as this program's (`application_id`), so that the database of another program is never
 * changed.
 */
export const APPLICATION_ID = 0x5061726c;

/** Brings an open file of this version, or of one that can be converted, to this program's schema. */
export function bringUp(database: DatabaseSync, version: number): void {
  if (version === SCHEMA_VERSION) return;
  database.exec("begin immediate");
  try {
    // Without a version, existing tables are a damage: their creation then fails.
    const columns = version === 0 ? new Map<string, Set<string>>() : columnsOf(database, "main");
    database.exec(schemaSql("sqlite", version, columns));
    database.exec(`pragma application_id = ${APPLICATION_ID}`);
    database.exec("commit");
  } catch (error) {
    if (database.isTransaction) database.exec("rollback");
    throw error;
  }
}

/** Returns the problem of a file whose version this program cannot use. */
export function versionProblem(
  database: DatabaseSync,
  version: number,
  file: string,
): StoreProblem | undefined {
  if (version > SCHEMA_VERSION) {
    let release: unknown;
    try {
      release = database.prepare("select release from schema_release limit 1").get()?.release;
    } catch {
      // A later release may say it elsewhere.
    }
    return new StoreProblem("newer", file, { detail: describeNewer(version, release) });
  }
  if (version === 0 || isConvertible("sqlite", version)) return undefined;
  return new StoreProblem("unreleased", file, { detail: `schema version ${version}` });
}

/** Returns the stored columns of each table of an open or attached database. */
function columnsOf(database: DatabaseSync, attached: string): Map<string, Set<string>> {
  const rows = database
    .prepare(`select m.name as "table", c.name from ${attached}.sqlite_schema m
      join pragma_table_xinfo(m.name, ?) c where m.type = 'table'`)
    .all(attached);
  const columns = new Map<string, Set<string>>();
  for (const { table, name } of rows) {
    const known = columns.get(String(table)) ?? new Set();
    columns.set(String(table), known.add(String(name)));
  }
  return columns;
}

/** A schema object that differs from this program's schema. */
export interface SchemaDifference {
  /** Type in SQLite's terms: `table`, `trigger`, `view` or `index`. */
  readonly type: string;
  readonly name: string;
  readonly kind: "unknown" | "changed" | "missing";
}

/** Formats an object for people, for example `trigger "approve_all"`. */
export function shownObject({ type, name }: SchemaDifference): string {
  return `${type} ${JSON.stringify(name)}`;
}

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  /**
   * Normalised definition: the columns of an ordinary table, and for any other object its SQL text with
   * single spaces. Objects with the same shape behave in the same way.
   */
  readonly shape: readonly string[];
}

/** Matches SQLite's internal tables for statistics and row numbers. */
const OWN_NAME = /^sqlite_/;

function objectsOf(database: DatabaseSync): Map<string, SchemaObject> {
  const columns = database.prepare("select name, type, pk, hidden from pragma_table_xinfo(?)");
  const objects = database
    .prepare("select type, name, coalesce(sql, '') as text from sqlite_schema")
    .all()
    .map((row): SchemaObject => {
      const [type, name, text] = [String(row.type), String(row.name), String(row.text)];
      const isTable = type === "table" && !/^\s*create\s+virtual\s/i.test(text);
      const shape = isTable
        ? columns.all(name).map((column) => JSON.stringify(column))
        : [text.replaceAll(/\s+/g, " ").trim()];
      return { type, name, shape };
    });
  return new Map(
    objects.filter(({ name }) => !OWN_NAME.test(name)).map((object) => [object.name.toLowerCase(), object]),
  );
}

function expectedObjects(): Map<string, SchemaObject> {
  const model = new DatabaseSync(":memory:");
  try {
    bringUp(model, 0);
    return objectsOf(model);
  } finally {
    model.close();
  }
}

/** Returns whether an earlier version has this object, and this version does not. */
const isGone = ({ type, name }: SchemaObject): boolean =>
  (type === "table" || type === "index") && GONE.tables.some((table) => name.startsWith(table));
const isGoneColumn = (column: string): boolean =>
  Object.values(GONE.columns)
    .flat()
    .some((name) => column.startsWith(`{"name":"${name}"`));

/**
 * Returns all differences between an open file and this program's schema. A file of an earlier version may
 * lack objects and columns, which its conversion adds.
 */
export function schemaDifferences(database: DatabaseSync, version: number): SchemaDifference[] {
  const [found, expected] = [objectsOf(database), expectedObjects()];
  const isEarlier = version !== SCHEMA_VERSION;
  const differences: SchemaDifference[] = [];
  for (const [key, object] of found) {
    const { type, name, shape } = object;
    const wanted = expected.get(key);
    if (wanted === undefined) {
      if (!isEarlier || !isGone(object)) differences.push({ type, name, kind: "unknown" });
      continue;
    }
    const own = isEarlier ? shape.filter((one) => key !== "runs" || !isGoneColumn(one)) : shape;
    const isSame = own.every((one) => wanted.shape.includes(one));
    if (wanted.type !== type || !isSame || (!isEarlier && own.length < wanted.shape.length))
      differences.push({ type, name, kind: "changed" });
  }
  for (const [key, { type, name }] of expected) {
    if (!isEarlier && !found.has(key)) differences.push({ type, name, kind: "missing" });
  }
  return differences;
}

/**
 * Returns the first table that cannot be read because it is missing, has other columns, or is not a table.
 */
export function unreadableTable(differences: readonly SchemaDifference[]): SchemaDifference | undefined {
  const copied: readonly string[] = COPIED_TABLES;
  return differences.find(({ kind, name }) => kind !== "unknown" && copied.includes(name.toLowerCase()));
}

/**
 * Creates a file with this program's schema, and copies into it the rows of a file of an earlier version,
 * whose conversion is left to the next start.
 */
export function copyIntoOwnSchema(from: string, to: string, version: number): void {
  const database = new DatabaseSync(to);
  try {
    bringUp(database, 0);
    distrust(database);
    database.prepare("attach database ? as source").run(from);
    const [own, theirs] = [columnsOf(database, "main"), columnsOf(database, "source")];
    database.exec("begin immediate");
    for (const table of [...COPIED_TABLES, ...GONE.tables]) {
      const columns = [...(theirs.get(table) ?? [])].filter((name) => own.get(table)?.has(name) ?? true);
      const names = columns
        .filter((name) => name !== "archived")
        .map((name) => `"${name}"`)
        .join(", ");
      if (names === "") continue;
      const rows = `select ${names} from source."${table}"`;
      database.exec(
        own.has(table)
          ? `insert into main."${table}" (${names}) ${rows}`
          : `create table main."${table}" as ${rows}`,
      );
    }
    database.exec(`pragma user_version = ${version}; commit; detach database source`);
  } finally {
    database.close();
  }
}
