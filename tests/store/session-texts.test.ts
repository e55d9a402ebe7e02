// Checks that each text column of both databases says what the deletion of a session does with it.

import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { SESSION_TEXTS } from "../../src/store/schema/session-texts.ts";
import { migrate } from "../../src/store/schema/sqlite-schema.ts";
import { freshUrl, inPostgres } from "./transfer/moves.ts";

interface Column {
  readonly table: string;
  readonly name: string;
}

/** The full-text indexes, which hold words of rows of other tables and lose them with these rows. */
const INDEXES = ["session_names", "message_texts", "message_parts"];
/** The version of the schema. */
const NOT_OURS = ["schema_version"];

/** Returns the columns that SESSION_TEXTS does not list, and those that it lists twice or that are missing. */
function unclassified(columns: readonly Column[]): string[] {
  const problems: string[] = [];
  const known = columns.filter(({ table }) => !NOT_OURS.includes(table) && !INDEXES.includes(table));
  for (const { table, name } of known) {
    const texts = Object.entries(SESSION_TEXTS).find(([listed]) => listed === table)?.[1];
    if (texts === undefined) problems.push(`${table} is not listed`);
    else if (!("removed" in texts)) {
      const blanked = new Set((texts.blanked ?? []).flatMap((one) => Object.keys(one.columns)));
      const places = [...blanked, ...(texts.byQuery ?? []), ...texts.kept].filter((one) => one === name);
      if (places.length !== 1) problems.push(`${table}.${name} is listed ${places.length} times`);
    }
  }
  for (const [table, texts] of Object.entries(SESSION_TEXTS)) {
    const names = "removed" in texts ? [texts.removed] : [...(texts.byQuery ?? []), ...texts.kept];
    const missing = names.filter((name) => !columns.some((one) => one.table === table && one.name === name));
    problems.push(...missing.map((name) => `${table}.${name} does not exist`));
  }
  return problems;
}

test("every text column of the embedded database is listed once in SESSION_TEXTS", () => {
  const database = new DatabaseSync(":memory:");
  migrate(database, 0);
  const columns = database
    .prepare(
      `select m.name as "table", c.name from sqlite_schema m join pragma_table_xinfo(m.name) c
        where m.type = 'table' and m.name not like 'sqlite_%' and lower(c.type) = 'text'`,
    )
    .all() as unknown as Column[];
  expect(columns.length).toBeGreaterThan(150);
  expect(unclassified(columns)).toEqual([]);
  const more = [
    { table: "runs", name: "notes" },
    { table: "diary", name: "text" },
  ];
  expect(unclassified([...columns, ...more])).toEqual([
    "runs.notes is listed 0 times",
    "diary is not listed",
  ]);
});

test("every text column of PostgreSQL is listed once in SESSION_TEXTS", async () => {
  const columns = await inPostgres(await freshUrl(), async ({ db }) => {
    const { rows } = await sql<Column>`select table_name as "table", column_name as name
      from information_schema.columns where table_schema = current_schema() and data_type = 'text'`.execute(
      db,
    );
    return rows;
  });
  expect(columns.length).toBeGreaterThan(150);
  expect(unclassified(columns)).toEqual([]);
});
