// Compares the schema of an embedded file with this program's schema. A foreign object in the file (a
// trigger, or a view in place of a table) is therefore never executed or trusted.

import { DatabaseSync } from "node:sqlite";
import { migrate } from "../schema/sqlite-schema.ts";
import { COPIED_TABLES } from "../transfer/copy.ts";
import { distrust } from "./trust.ts";

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
  /** Normalised definition. Objects with the same shape behave in the same way. */
  readonly shape: string;
}

/** Matches SQLite's internal tables for statistics and row numbers. */
const OWN_NAME = /^sqlite_/;

/**
 * Returns the normalised definition of an object. For an ordinary table, these are its columns as JSON; for
 * any other object, its SQL text with single spaces.
 */
function shapeOf(database: DatabaseSync, type: string, name: string, text: string): string {
  if (type !== "table" || /^\s*create\s+virtual\s/i.test(text)) return text.replaceAll(/\s+/g, " ").trim();
  const columns = database.prepare("select name, type, pk, hidden from pragma_table_xinfo(?)").all(name);
  return JSON.stringify(columns);
}

function objectsOf(database: DatabaseSync): Map<string, SchemaObject> {
  const rows = database.prepare("select type, name, coalesce(sql, '') as text from sqlite_schema").all();
  const objects = rows.map(({ type, name, text }): SchemaObject => {
    const [ofType, called] = [String(type), String(name)];
    return { type: ofType, name: called, shape: shapeOf(database, ofType, called, String(text)) };
  });
  return new Map(
    objects.filter(({ name }) => !OWN_NAME.test(name)).map((object) => [object.name.toLowerCase(), object]),
  );
}

function expectedObjects(version: number): Map<string, SchemaObject> {
  const model = new DatabaseSync(":memory:");
  try {
    migrate(model, 0, version);
    return objectsOf(model);
  } finally {
    model.close();
  }
}

/** Returns all differences between an open file and this program's schema of the given version. */
export function schemaDifferences(database: DatabaseSync, version: number): SchemaDifference[] {
  const [found, expected] = [objectsOf(database), expectedObjects(version)];
  const differences: SchemaDifference[] = [];
  for (const [key, { type, name, shape }] of found) {
    const wanted = expected.get(key);
    if (wanted === undefined) differences.push({ type, name, kind: "unknown" });
    else if (wanted.type !== type || wanted.shape !== shape)
      differences.push({ type, name, kind: "changed" });
  }
  for (const [key, { type, name }] of expected) {
    if (!found.has(key)) differences.push({ type, name, kind: "missing" });
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
 * Creates a file with this program's schema of the given version, and copies the rows of another file into
 * it.
 */
export function copyIntoOwnSchema(from: string, to: string, version: number): void {
  const database = new DatabaseSync(to);
  try {
    migrate(database, 0, version);
    distrust(database);
    database.prepare("attach database ? as source").run(from);
    database.exec("begin immediate");
    const columnNames = database.prepare("select name from pragma_table_xinfo(?, 'main') where hidden = 0");
    for (const table of COPIED_TABLES) {
      const columns = columnNames
        .all(table)
        .map(({ name }) => `"${String(name)}"`)
        .join(", ");
      // An older version does not have this table.
      if (columns === "") continue;
      database.exec(`insert into main."${table}" (${columns}) select ${columns} from source."${table}"`);
    }
    database.exec("commit; detach database source");
  } finally {
    database.close();
  }
}
