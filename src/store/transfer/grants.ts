// Lists the rows of a backup that give rights. A backup file may come from anybody, so a restore copies them
// only if a person has accepted their kind.

import { sql } from "kysely";
import { visibleText } from "../../core/text/safe-text.ts";
import { added } from "../../features.ts";
import type { Table } from "../schema/definition.ts";
import { type CopiedTable, TABLES } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

/** The grants of one kind in a backup. */
export interface Grants {
  readonly kind: string;
  readonly count: number;
  /** One line for each of the first ones. */
  readonly lines: readonly string[];
}

/** The tables of a kind of grants. */
export interface GrantRows {
  readonly tables: readonly CopiedTable[];
  /** SQL expression that describes a row of the first table. */
  readonly line: string;
  /** Whether a row that is too long to be judged is not restored, although its kind was accepted. */
  readonly isRefusedIfLong?: true;
}

const LINES_MAX = 1_000;
/** A row with a longer description can't be judged by a person, so it is not restored. */
const LINE_CHARS = 2_000;

export const GRANTS: Readonly<Record<string, GrantRows>> = {
  rules: {
    tables: ["permission_rules"],
    line: "agent_id || ' may run in ' || folder || ': ' || command",
    isRefusedIfLong: true,
  },
  people: {
    tables: ["channel_peers"],
    line: "channel || ':' || peer_id || ' ' || coalesce(name, '') || ' (' || state || ')'",
  },
  memory: { tables: ["agent_memory"], line: "agent_id || ' remembers: ' || text" },
  tokens: { tables: ["access_tokens", "device_tokens"], line: "name || ' with ' || scopes_json" },
  ...added("grants"),
};

/** Returns the grants that a store has, by kind. */
export async function grantsIn(db: Db): Promise<Grants[]> {
  const found: Grants[] = [];
  for (const [kind, { tables, line }] of Object.entries(GRANTS)) {
    let count = 0;
    for (const table of tables) {
      const { rows } = await sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.execute(db);
      count += Number(rows[0]?.n ?? 0);
    }
    if (count === 0) continue;
    const [first = ""] = tables;
    const { rows } = await sql<{ line: string }>`select ${sql.raw(line)} as line from ${sql.table(first)}
      limit ${sql.lit(LINES_MAX)}`.execute(db);
    found.push({ kind, count, lines: rows.map((row) => visibleText(row.line)) });
  }
  return found;
}

/** Returns the tables that hold grants of these kinds. */
export function tablesOf(kinds: readonly string[]): ReadonlySet<CopiedTable> {
  return new Set(kinds.flatMap((kind) => GRANTS[kind]?.tables ?? []));
}

/**
 * Removes from an accepted backup what gives rights and nobody could see in it: answers to permission
 * requests, addresses that get results, rows that are too long to be judged, the files for which a command
 * was allowed, so that a command which names files asks again, and the texts that would count in place of
 * instruction files whose changes wait for an owner.
 */
export async function dropUnseen(tx: Tx): Promise<void> {
  for (const [name, { rules }] of Object.entries<Table>(TABLES))
    if (rules.isUnseen === true) await sql`delete from ${sql.table(name)}`.execute(tx);
  for (const { tables, line, isRefusedIfLong } of Object.values(GRANTS)) {
    if (isRefusedIfLong !== true) continue;
    const [table = ""] = tables;
    const isLong = sql`length(${sql.raw(line)}) > ${sql.lit(LINE_CHARS)}`;
    await sql`delete from ${sql.table(table)} where ${isLong}`.execute(tx);
  }
  await tx.updateTable("permission_rules").set({ digest: "[]" }).execute();
  await tx.deleteFrom("instruction_contents").where("state", "=", "confirmed").execute();
  await tx.updateTable("instruction_contents").set({ text: null, bytes: null }).execute();
}
