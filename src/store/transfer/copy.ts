// Copies all rows from one database to another. The two may be of different kinds (SQLite, PostgreSQL).
// Columns are copied unchanged, except for numbers that the target generates. Rows keep their order.
// The state of running processes (heartbeats, open listeners, live events) is not copied.
// The copy holds at most one page in memory. A page is limited by rows and bytes, but has at least one row.
// After each table the rows are counted, and a difference between source and target is an error.

import { sql } from "kysely";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Table } from "../schema/definition.ts";
import { COPIED_TABLES, type CopiedTable, TABLES } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";
import { type Row, writeMessages } from "./copy-messages.ts";

/** Maximum number of rows, and of bytes, in one page. */
const PAGE_ROWS = 256;
const PAGE_BYTES = 4 * 1024 * 1024;
/** Rows per statement. Using only a few sizes keeps the number of different SQL texts small. */
const STATEMENT_ROWS = [128, 16, 1];

interface Plan {
  /** Columns that sort the rows in a unique order. */
  readonly order: readonly string[];
  /** Columns that may hold long texts. */
  readonly long: readonly string[];
  /** Columns whose values the target generates. */
  readonly made: readonly string[];
}

function planOf(table: CopiedTable): Plan {
  const { columns, rules }: Table = TABLES[table];
  const namesOf = (type: RegExp): string[] =>
    Object.keys(columns).filter((name) => type.test(columns[name]?.type ?? ""));
  const numbers = namesOf(/number$/);
  return {
    order: rules.key ?? numbers,
    long: namesOf(/^text$/),
    made: [...numbers, ...namesOf(/^computed$/)],
  };
}

const numberOf = async (db: Db, table: CopiedTable): Promise<number> =>
  (await sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.execute(db)).rows[0]?.n ?? 0;

function keyValuesOf({ order }: Plan, row: Row) {
  return sql.join(order.map((name) => row[name] ?? null));
}

/** Returns the last row of the page that follows `last`, or undefined if there are no more rows. */
async function endOfPage(db: Db, table: CopiedTable, last: Row | undefined): Promise<Row | undefined> {
  const plan = planOf(table);
  const columns = sql.join(plan.order.map((name) => sql.ref(name)));
  const sizes = plan.long.map((name) => sql`coalesce(octet_length(${sql.ref(name)}), 0)`);
  const size = sizes.length === 0 ? sql`0` : sql.join(sizes, sql` + `);
  const behind = last === undefined ? sql`` : sql`where (${columns}) > (${keyValuesOf(plan, last)})`;
  const { rows } = await sql<Row>`select ${columns}, ${size} as size from ${sql.table(table)} ${behind}
    order by ${columns} limit ${sql.lit(PAGE_ROWS)}`.execute(db);
  let bytes = 0;
  const full = rows.findIndex((row) => {
    bytes += Number(row.size);
    return bytes > PAGE_BYTES;
  });
  return full === -1 ? rows.at(-1) : rows[Math.max(0, full - 1)];
}

/** Splits rows into groups whose sizes are in `STATEMENT_ROWS`. */
function* statements(rows: readonly Row[]): Generator<readonly Row[]> {
  let at = 0;
  while (at < rows.length) {
    const left = rows.length - at;
    const size = STATEMENT_ROWS.find((most) => most <= left) ?? 1;
    yield rows.slice(at, at + size);
    at += size;
  }
}

/** Signal, redactor and progress callback of a copy. */
export interface CopyWatch {
  /** Cancels the copy at the next page. */
  readonly signal: AbortSignal;
  /** Removes secrets from the text that the search index stores. */
  readonly redactor: Redactor;
  /** Tables whose rows are left out. Default: none. */
  readonly withheld?: ReadonlySet<CopiedTable>;
  /** Called from time to time with the number of rows copied so far. */
  copied?(rows: number): void;
}

async function copyTable(
  from: Db,
  to: Tx,
  table: CopiedTable,
  watch: Required<Omit<CopyWatch, "withheld">>,
): Promise<void> {
  const before = await numberOf(to, table);
  const { made } = planOf(table);
  let last: Row | undefined;
  for (;;) {
    watch.signal.throwIfAborted();
    const end = await endOfPage(from, table, last);
    if (end === undefined) break;
    const plan = planOf(table);
    const columns = sql.join(plan.order.map((name) => sql.ref(name)));
    const behind = last === undefined ? sql`` : sql`and (${columns}) > (${keyValuesOf(plan, last)})`;
    const query = sql<Row>`select * from ${sql.table(table)}
    where (${columns}) <= (${keyValuesOf(plan, end)}) ${behind} order by ${columns}`;
    const rows = (await query.execute(from)).rows;
    const copied = rows.map(
      (row): Row => Object.fromEntries(Object.entries(row).filter(([name]) => !made.includes(name))),
    );
    for (const some of statements(copied))
      await (table === "messages"
        ? writeMessages(to, some, watch.redactor)
        : to
            .insertInto(table)
            .values(some as never)
            .execute());
    watch.copied(rows.length);
    last = end;
  }
  const [wanted, got] = [await numberOf(from, table), (await numberOf(to, table)) - before];
  if (wanted !== got) throw new Error(`copied ${got} of ${wanted} rows of ${table}`);
}

/**
 * Copies all rows. `from` must not change while it is copied: use a store without writers, or a snapshot
 * transaction. If the promise rejects, the caller must roll back `to`.
 */
export async function copyRows(from: Db, to: Tx, watch: CopyWatch): Promise<void> {
  const { signal, redactor, copied, withheld } = watch;
  let sum = 0;

  for (const table of COPIED_TABLES) {
    if (withheld?.has(table) === true) continue;
    await copyTable(from, to, table, {
      signal,
      redactor,
      copied(rows) {
        sum += rows;
        copied?.(sum);
      },
    });
  }
}
