// Relates records to the rows of their tables: one declaration serves both directions. The column
// `session_key` has the field `sessionKey`. The column `route_json` has the field `route`, as JSON. A flag
// is a boolean that is stored as 0 or 1. Null means that the record has no such field.

import type {
  ExpressionBuilder,
  Insertable,
  Kysely,
  QueryResult,
  Selectable,
  SelectQueryBuilder,
  Updateable,
} from "kysely";
import { held } from "./locks.ts";
import { prepared } from "./prepared.ts";
import type { Tables } from "./schema/tables.ts";
import { changesRows, type Db, type Tx } from "./sql.ts";

type Row<N extends keyof Tables> = Selectable<Tables[N]>;
type Column<N extends keyof Tables> = keyof Row<N> & string;
type Camel<S extends string> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S;
type FieldName<C extends string> = Camel<C extends `${infer Name}_json` ? Name : C>;

/** Columns whose fields are neither in `Typed` nor stored as JSON. */
type Plain<N extends keyof Tables, Typed> = {
  [C in Column<N>]: C extends `${string}_json` ? never : FieldName<C> extends keyof Typed ? never : C;
}[Column<N>];
type OrNull<N extends keyof Tables, C extends Column<N>> = C extends unknown
  ? null extends Row<N>[C]
    ? C
    : never
  : never;

/**
 * The record of a row, without the columns `Omitted`. `Typed` has the fields whose types the table does not
 * tell: JSON, flags, and texts of which only some are allowed.
 */
export type RecordOf<N extends keyof Tables, Typed = unknown, Omitted extends Column<N> = never> = Typed & {
  readonly [C in Exclude<Plain<N, Typed>, Omitted | OrNull<N, Column<N>>> as FieldName<C>]: Row<N>[C];
} & {
  readonly [C in Exclude<OrNull<N, Plain<N, Typed>>, Omitted> as FieldName<C>]?: NonNullable<Row<N>[C]>;
};

/** Changes of a record. Null removes a field; an absent field does not change. */
export type Changes<T> = { readonly [K in keyof T]?: T[K] | null };

/** Relates columns of a table to the fields of a record. */
interface Declaration<C extends string> {
  /** Columns that identify a row. */
  readonly key: readonly C[];
  readonly columns?: readonly C[];
  readonly flags?: readonly C[];
  /**
   * Columns with fields of other names. `place.owner` is the part `owner` of the object `place`, which is
   * absent if the columns of all its parts are null.
   */
  readonly names?: { readonly [K in C]?: string };
  /** Columns that the database fills. They are only read. */
  readonly generated?: readonly C[];
  /** Parses JSON. Default: throws an error if it is damaged. If it returns undefined, the field is absent. */
  readonly parse?: (json: string) => unknown;
}

type Member<D, K extends string> = {
  [P in K]: D extends { readonly [Q in P]: infer List } ? List[keyof List & number] : never;
}[K];
type Named<D> = D extends { readonly names: infer Names } ? Names[keyof Names] : never;
/** The columns of a declaration. */
type Selected<D> =
  | Member<D, "key" | "columns" | "flags" | "generated">
  | keyof (D extends { readonly names: infer Names } ? Names : unknown);
type Declared<D> =
  | FieldName<Extract<Member<D, "key" | "columns" | "flags" | "generated">, string>>
  | (Named<D> extends infer V ? (V extends `${infer Name}.${string}` ? Name : V) : never);
/** Matches no declaration that forgets a field of the record. */
type Complete<T, D> =
  Exclude<keyof T, Declared<D>> extends never ? unknown : { readonly forgets: Exclude<keyof T, Declared<D>> };

type Values = Readonly<Record<string, unknown>>;
/** The query builder, for a table whose name is known only at run time. */
type AnyTable = Kysely<AnyColumns>;
type AnyColumns = { readonly table: Record<string, unknown> };

export interface Field {
  readonly column: string;
  readonly kind: "plain" | "flag" | "json";
  readonly isGenerated: boolean;
  readonly name: string;
  /** Set for a part of an object. */
  readonly part: string | undefined;
}

function fieldsOf(declaration: Declaration<string>): Field[] {
  const { key, columns = [], flags = [], names = {}, generated = [] } = declaration;
  return [...new Set([...key, ...columns, ...flags, ...Object.keys(names), ...generated])].map((column) => {
    const plain = column.replace(/_json$/, "").replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    const [name = "", part] = (names[column] ?? plain).split(".");
    return {
      column,
      name,
      part,
      isGenerated: generated.includes(column),
      kind: flags.includes(column) ? "flag" : column.endsWith("_json") ? "json" : "plain",
    };
  });
}

/** Reads and writes the records of one table. `S` has their fields as they are stored. */
export class Records<S extends object, T, N extends keyof Tables, C extends keyof Row<N>> {
  readonly #table: "table";
  readonly #key: readonly string[];
  readonly #fields: readonly Field[];
  readonly #written: readonly Field[];
  readonly #parse: (json: string) => unknown;
  readonly #refine: (stored: S) => T;
  /** Prepared queries, by the columns by which they find rows. */
  readonly #finders = new Map<string, (db: Db, columns: Values) => Promise<QueryResult<Pick<Row<N>, C>>>>();

  constructor(table: N, declaration: Declaration<string>, refine: (stored: S) => T) {
    this.#table = table as string as "table";
    this.#key = declaration.key;
    this.#fields = fieldsOf(declaration);
    this.#written = this.#fields.filter(({ isGenerated }) => !isGenerated);
    this.#parse = declaration.parse ?? JSON.parse;
    this.#refine = refine;
  }

  /** Returns the record of a row. */
  readonly read = (row: Partial<Pick<Row<N>, C>>): T => {
    const record: Record<string, unknown> = {};
    for (const { column, kind, name, part } of this.#fields) {
      const stored = (row as Values)[column];
      if (stored === null || stored === undefined) continue;
      const value =
        kind === "plain" ? stored : kind === "flag" ? stored === 1 : this.#parse(stored as string);
      if (value === undefined) continue;
      if (part === undefined) record[name] = value;
      else {
        record[name] ??= {};
        (record[name] as Record<string, unknown>)[part] = value;
      }
    }
    return this.#refine(record as S);
  };

  /** Returns all columns of a record. */
  write(record: S): Insertable<Tables[N]> {
    return this.#encode(record, this.#written) as Insertable<Tables[N]>;
  }

  /** Returns the columns of the fields that are present. */
  columns(changes: Changes<S>): Updateable<Tables[N]> {
    const given = this.#fields.filter(({ name }) => (changes as Values)[name] !== undefined);
    return this.#encode(changes, given) as Updateable<Tables[N]>;
  }

  #encode(record: object, fields: readonly Field[]): Values {
    const columns: Record<string, unknown> = {};
    for (const { column, kind, name, part } of fields) {
      const field = (record as Values)[name];
      const value = (part === undefined ? field : (field as Values | null | undefined)?.[part]) ?? null;
      columns[column] =
        kind === "flag"
          ? Number(value === true)
          : kind === "json" && value !== null
            ? JSON.stringify(value)
            : value;
    }
    return columns;
  }

  /** Selects the columns of records, those with these fields. */
  rows(db: Db, where: Partial<S> = {}): SelectQueryBuilder<Tables, N, Pick<Row<N>, C>> {
    return this.#rows(db, this.columns(where));
  }

  #rows(db: Db, columns: Values): SelectQueryBuilder<Tables, N, Pick<Row<N>, C>> {
    const query = (db as unknown as AnyTable)
      .selectFrom(this.#table)
      .select(this.#fields.map(({ column }) => `${this.#table}.${column}` as const));
    const found = Object.keys(columns).length === 0 ? query : query.where((eb) => eb.and(columns));
    return found as unknown as SelectQueryBuilder<Tables, N, Pick<Row<N>, C>>;
  }

  /** Returns the records of a query. */
  async all(query: { execute(): Promise<Pick<Row<N>, C>[]> }): Promise<T[]> {
    return (await query.execute()).map(this.read);
  }

  /** Returns the record with these fields. */
  find(db: Db, where: Partial<S>): Promise<T | undefined> {
    return this.#find(db, where, "");
  }

  /** Like `find`, but locks the row until the transaction ends. */
  hold(tx: Tx, where: Partial<S>): Promise<T | undefined> {
    return this.#find(tx, where, "held");
  }

  async #find(db: Db, where: Partial<S>, lock: "" | "held"): Promise<T | undefined> {
    const columns = this.#nameColumns(where);
    const name = `${Object.keys(columns)} ${lock}`;
    const find =
      this.#finders.get(name) ??
      prepared((some, values: Values) => {
        const query = this.#rows(some, values);
        return lock === "" ? query : held(some as Tx, query);
      });
    this.#finders.set(name, find);
    const [row] = (await find(db, columns)).rows;
    return row && this.read(row);
  }

  async insert(tx: Tx, record: S): Promise<void> {
    await this.#insert(tx, record).execute();
  }

  /** Inserts a record, unless its key exists. Returns whether it was inserted. */
  add(tx: Tx, record: S): Promise<boolean> {
    return changesRows(
      tx,
      this.#insert(tx, record).onConflict((on) => on.columns(this.#key).doNothing()),
    );
  }

  /** Inserts a record, or replaces the one with its key. */
  async put(tx: Tx, record: S): Promise<void> {
    const entries = Object.entries(this.write(record)).filter(([column]) => !this.#key.includes(column));
    const insert = this.#insert(tx, record);
    await insert.onConflict((on) => on.columns(this.#key).doUpdateSet(Object.fromEntries(entries))).execute();
  }

  #insert(tx: Tx, record: S) {
    return (tx as unknown as AnyTable).insertInto(this.#table).values(this.write(record));
  }

  /** Changes the records with these fields. Returns whether there are any. */
  change(tx: Tx, where: Partial<S>, changes: Changes<S>): Promise<boolean> {
    const query = (tx as unknown as AnyTable).updateTable(this.#table).set(this.columns(changes));
    return changesRows(tx, query.where(this.#matching(where)));
  }

  /** Deletes the records with these fields. Returns whether there were any. */
  remove(tx: Tx, where: Partial<S>): Promise<boolean> {
    const query = (tx as unknown as AnyTable).deleteFrom(this.#table);
    return changesRows(tx, query.where(this.#matching(where)));
  }

  #matching(where: Partial<S>) {
    const columns = this.#nameColumns(where);
    return (eb: ExpressionBuilder<AnyColumns, "table">) => eb.and(columns);
  }

  #nameColumns(where: Partial<S>): Values {
    const columns: Values = this.columns(where);
    if (Object.keys(columns).length === 0) throw new Error(`name the rows of ${this.#table}`);
    return columns;
  }
}

/**
 * Returns the records of a table. `refine` makes a record of its stored fields, where these differ from
 * those of the record.
 */
export function recordsOf<S extends object, T = S>() {
  return <N extends keyof Tables, const D extends Declaration<Column<N>>>(
    table: N,
    declaration: D & Complete<S, D>,
    refine = (stored: S) => stored as unknown as T,
  ): Records<S, T, N, Extract<Selected<D>, keyof Row<N>>> =>
    new Records(table, declaration as Declaration<string>, refine);
}
