// Compares the schemas of the two databases. Moved stores rely on both.

import { createHash } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { SCHEMA_VERSION } from "../../src/store/schema/conversion.ts";
import { schemaSql } from "../../src/store/schema/statements.ts";
import { COPIED_TABLES } from "../../src/store/schema/tables.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { freshUrl, inEmbedded, inPostgres } from "./transfer/moves.ts";

interface Column {
  readonly table: string;
  readonly name: string;
  readonly required: number;
}

test("both databases have the same columns and the same required columns in every table that is moved", async () => {
  const embedded = await inEmbedded(temporaryFolder(), async ({ db }) => {
    const { rows } = await sql<Column>`select m.name as "table", c.name,
        case when c."notnull" = 1 or c.pk > 0 then 1 else 0 end as required
      from sqlite_schema m join pragma_table_xinfo(m.name) c where m.type = 'table'`.execute(db);
    return rows;
  });
  const shared = await inPostgres(await freshUrl(), async ({ db }) => {
    const { rows } = await sql<Column>`select table_name as "table", column_name as name,
        case when is_nullable = 'NO' then 1 else 0 end as required
      from information_schema.columns where table_schema = current_schema()`.execute(db);
    return rows;
  });
  const shown = (columns: readonly Column[]) =>
    columns
      .filter(({ table, name }) => COPIED_TABLES.some((copied) => copied === table) && name !== "archived")
      .map(({ table, name, required }) => `${table}.${name}${required === 1 ? "" : "?"}`)
      .sort();
  expect(shown(shared).length).toBeGreaterThan(100);
  expect(shown(shared)).toEqual(shown(embedded));
});

test("a change of a table raises the version of the schema, so that older stores get what they lack", () => {
  const text = (["sqlite", "postgres"] as const).map((kind) => schemaSql(kind, 0, new Map())).join("\n");
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  // After a change: increase the version in src/store/schema/conversion.ts, and write both here.
  expect({ version: SCHEMA_VERSION, digest }).toEqual({ version: 55, digest: "dad63352852e2398" });
});
