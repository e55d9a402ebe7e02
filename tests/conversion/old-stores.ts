// Stores that the real program of version 0.1 wrote, on both databases. Its gateway was killed while a run waited
// for another one, a sub-agent worked for a caller that waited, a text was queued, and a command waited for an
// owner. `store-0.1.sql.gz` holds the statements of the migrations of then and the rows.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import type { Table } from "../../src/store/schema/definition.ts";
import { TABLES } from "../../src/store/schema/tables.ts";
import { STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { runSql } from "../kit/store/postgres.ts";
import { freshUrl, schemaOf } from "../store/transfer/moves.ts";

export const fixture = (name: string): Buffer => gunzipSync(readFileSync(join(import.meta.dirname, name)));

/** Moves what was due within days to the year 2096, so that it is still open whenever this test runs. */
const STILL_OPEN = `update waits set deadline_at = 4000000000000;
  update job_waits set deadline_at = 4000000000000; update deadlines set due_at = 4000000000000;
  update permissions set expires_at = 4000000000000; update cron_jobs set next_at = 4000000000000;`;

/** Returns a store directory. */
export function oldFile(): string {
  const dir = temporaryFolder();
  writeFileSync(join(dir, STORE_FILE), fixture("store-0.1.sqlite.gz"));
  const file = new DatabaseSync(join(dir, STORE_FILE));
  file.exec(STILL_OPEN);
  file.close();
  return dir;
}

/** Returns the address of a store. */
export async function oldSchema(): Promise<string> {
  const url = await freshUrl();
  const schema = schemaOf(url);
  const begin = `create schema ${schema}; set search_path to ${schema};`;
  await runSql(url, `${begin} ${fixture("store-0.1.sql.gz")} ${STILL_OPEN}`);
  return url;
}

/** Returns the rows of each table of a file that a backup holds, sorted. */
export function rowsOf(file: string): Record<string, string[]> {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const tables = database
      .prepare("select name from pragma_table_list where type = 'table' and name not like 'sqlite_%'")
      .all()
      .map(({ name }) => String(name))
      .filter((name) => (TABLES as Record<string, Table>)[name]?.rules.isPassing !== true);
    const rows = (table: string) => database.prepare(`select * from "${table}"`).all();
    return Object.fromEntries(
      tables.sort().map((table) => [
        table,
        rows(table)
          .map((row) => JSON.stringify(row))
          .sort(),
      ]),
    );
  } finally {
    database.close();
  }
}
