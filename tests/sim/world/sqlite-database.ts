// The embedded store as a database of the simulation: one process at a time, in a folder.

import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { optional } from "../../../src/core/optional.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import type { Log } from "../../../src/world.ts";
import type { Database, NewDatabase, Row } from "./database.ts";

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Returns an empty store's file. It is made once and copied for each story, because making the tables is slow. */
async function blank(dir: string): Promise<string> {
  const file = join(dir, STORE_FILE);
  if (!existsSync(file)) await (await openSqlite({ dir, durability: "normal", log: SILENT })).close();
  return file;
}

/** Serves a repeated query from a cache until the next commit, because most queries return the same rows. */
function lookerOf(file: string) {
  let database: DatabaseSync | undefined;
  const statements = new Map<string, StatementSync>();
  const seen = new Map<string, readonly Row[]>();
  let version: unknown;
  const prepared = (query: string): StatementSync => {
    database ??= new DatabaseSync(file, { readOnly: true });
    const statement = statements.get(query) ?? database.prepare(query);
    statements.set(query, statement);
    return statement;
  };
  return {
    look(query: string, values: readonly SQLInputValue[]): readonly Row[] {
      const statement = prepared(query);
      const { data_version: now } = prepared("pragma data_version").get() ?? {};
      if (now !== version) seen.clear();
      version = now;
      if (values.length > 0) return statement.all(...values);
      const rows = seen.get(query) ?? statement.all();
      seen.set(query, rows);
      return rows;
    },
    close: () => database?.close(),
  };
}

/** Returns a function that makes databases. `templateDir`: the folder of the empty store that they copy. */
export function sqliteDatabases(templateDir: string): NewDatabase {
  return async (dir): Promise<Database> => {
    mkdirSync(dir, { recursive: true });
    const file = join(dir, STORE_FILE);
    copyFileSync(await blank(templateDir), file);
    const looker = lookerOf(file);
    return {
      processesMax: 1,
      async open(log, gather) {
        // Omits the read worker, because the answers of a second thread arrive at random times.
        const { readWorker: _, ...store } = await openSqlite({
          ...{ dir, durability: "normal", log },
          ...optional({ gather }),
        });
        // Closing rolls back an open transaction before it returns.
        return { store, kill: () => void store.close() };
      },
      look: async (query, ...values) => looker.look(query, values),
      idle: async () => {},
      remove: async () => looker.close(),
    };
  };
}
