// Defines how a table is written down once for both databases: its columns, keys and indexes, what the
// deletion of a session does with its texts, and how its rows are copied. From this come the types of the
// rows and the statements that create the table (statements.ts).
// ER1: a deletion removes or blanks every text of the session. Texts that other sessions hold are theirs and
//      stay: a requester keeps the result of its sub-agent, and a fork its beginning.
// ER2: a text that waits to be delivered still goes out, and is blanked when it is settled.
// Times are ms since 1970, flags are 0 or 1, and `*_json` columns hold JSON text.

import type { ColumnType, Generated, RawBuilder, SqlBool } from "kysely";

export type StoreKind = "sqlite" | "postgres";

/** PostgreSQL type of texts. They are ordered and compared by their bytes, as in the embedded database. */
export const POSTGRES_TEXT = 'text collate "C"';

/** A column. `T` is the type of its values for the query builder. */
export interface Column<T = unknown> {
  readonly type: "id" | "text" | "integer" | "real" | "row number" | "lasting number" | "computed";
  readonly isNullable?: boolean;
  readonly isUnique?: boolean;
  readonly default?: string | number;
  /** The type of a computed column and its expression, in the words of each database. */
  readonly made?: Readonly<Record<StoreKind, string>>;
  /** Only carries the type. */
  readonly value?: T;
}

/** An id, a state, a setting or another short text. It stays when its session is deleted. */
export const id: Column<string> = { type: "id" };
/** A text that somebody wrote. `Rules` says what the deletion of a session does with it. */
export const text: Column<string> = { type: "text" };
export const integer: Column<number> = { type: "integer" };
export const real: Column<number> = { type: "real" };
/** The number of a row, which the database gives, and which is the primary key. */
export const rowNumber: Column<Generated<number>> = { type: "row number" };
/** The same, but the number of a deleted row is never given again. */
export const lastingNumber: Column<Generated<number>> = { type: "lasting number" };

/** An `id` with one of a few values. */
export const word = <T extends string>(): Column<T> => ({ type: "id" });
export const nullable = <T>(column: Column<T>): Column<T | null> => ({ ...column, isNullable: true });
export const unique = <T>(column: Column<T>): Column<T> => ({ ...column, isUnique: true });
export const orElse = <T extends string | number>(column: Column<T>, value: T) =>
  ({ ...column, default: value }) as Column<unknown> as Column<Generated<T>>;
/** A column whose value the database computes from other columns. */
export const computed = (made: Column["made"] & object): Column<ColumnType<number, never, never>> => ({
  type: "computed",
  made,
});

/** The rows whose column `of` names the session get these values, if `when` is true. */
export interface Blanked<Name extends string = string> {
  readonly of: Name;
  readonly when?: RawBuilder<SqlBool>;
  readonly columns: { readonly [K in Name]?: string | null };
}

export interface Rules<Name extends string = string> {
  /** Columns of the primary key. Absent if a column of a row number is the key. */
  readonly key?: readonly Name[];
  /** Columns that are unique together. */
  readonly unique?: readonly Name[];
  /** Indexes of both databases, as `name (columns)` and what may follow, after `unique` if they are. */
  readonly indexes?: readonly string[];
  /** Indexes that only one of the databases needs. */
  readonly sqliteIndexes?: readonly string[];
  readonly postgresIndexes?: readonly string[];
  /** The embedded table stores its rows by number, because they are large or have been since version 0.1. */
  readonly hasRowid?: true;
  /** Percentage of a page that PostgreSQL fills, so that changed rows find space in their page. */
  readonly fill?: number;
  /** The rows describe running processes. They are not copied, and do not survive a crash of PostgreSQL. */
  readonly isPassing?: true;
  readonly isUnlogged?: true;

  /** Returns SQL that says which rows are old at a time. They go. */
  readonly old?: (now: number) => string;
  /** The rows give rights that nobody can see in a backup. A restore drops them. */
  readonly isUnseen?: true;
  /** The rows go whose column `of` names the session, or one of its transcripts, if `when` is true. */
  readonly removed?: { readonly of: Name; readonly when?: RawBuilder<SqlBool> };
  /** SQL that says which rows end with a session, even if its transcripts stay. One `?` is the key. */
  readonly endsWith?: string;
  readonly blanked?: readonly Blanked<Name>[];
  /** Texts that a query of their own blanks. */
  readonly blankedByQuery?: readonly Name[];
  /** Texts that stay, because they belong to nobody's session. */
  readonly kept?: readonly Name[];
}

export type Columns = Readonly<Record<string, Column>>;

export interface Table<C extends Columns = Columns> {
  readonly columns: C;
  readonly rules: Rules;
}

export const table = <C extends Columns>(columns: C, rules: Rules<keyof C & string> = {}): Table<C> => ({
  columns,
  rules: rules as Rules,
});

/** The row of a table, for the query builder. */
export type RowOf<T extends Table> = {
  [K in keyof T["columns"]]: T["columns"][K] extends Column<infer V> ? V : never;
};
