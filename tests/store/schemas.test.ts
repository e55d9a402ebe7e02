// The two schemas, and their histories: what a store that moves, and versions that run side by side, rely on.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { COPIED_TABLES } from "../../src/store/copy.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres-schema.ts";
import { temporaryFolder } from "../kit/engine.ts";
import { freshUrl, inEmbedded, inPostgres } from "./moves.ts";

interface Column {
  readonly table: string;
  readonly name: string;
  readonly required: number;
}

test("every table that moves has the same columns on both databases, and the same ones are required", async () => {
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

/** What the version before could not live with, in a migration that it meets while it runs. */
function takesAway(migration: string): string[] {
  const plain = migration.replace(/--.*$/gm, "");
  const words = [
    /\bdrop\s+(table|column|index|constraint|function|trigger|type|schema|default)\b/gi,
    /\brename\b/gi,
    /\balter\s+column\s+\S+\s+(set\s+not\s+null|type|set\s+data\s+type)\b/gi,
    /\badd\s+(constraint|check|unique|primary|foreign)\b/gi,
    /\bcreate\s+unique\s+index\b/gi,
    /\btruncate\b/gi,
    /\badd\s+column\s+[^,;]*\bnot\s+null\b(?![^,;]*\bdefault\b)(?<!\bdefault\b[^,;]*)/gi,
  ];
  return words.flatMap((word) => plain.match(word) ?? []);
}

test.each([
  ["alter table runs drop column pool", 1],
  ["alter table runs rename column pool to slots", 1],
  ["ALTER TABLE runs ALTER COLUMN pool SET NOT NULL", 1],
  ["alter table runs alter column hop type int", 1],
  ["alter table runs add constraint one check (hop < 3)", 1],
  ["create unique index one on runs (pool)", 1],
  ["alter table runs add column mood text not null", 1],
  ["drop index runs_by_end; truncate holdings", 2],
  ["alter table runs add column mood text not null default ''", 0],
  ["alter table runs add column mood text default '' not null", 0],
  ["alter table runs add column mood text; create index runs_by_mood on runs (mood)", 0],
  ["create table moods (name text not null primary key)", 0],
  ["-- nothing to drop table for", 0],
])("planted: of %j the rule finds %i", (migration, found) => {
  expect(takesAway(migration)).toHaveLength(found);
});

test("PG2: a migration that an older process meets only adds", () => {
  expect(POSTGRES_MIGRATIONS.slice(1).flatMap(takesAway)).toEqual([]);
});
