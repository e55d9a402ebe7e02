// Runs work in one transaction on one connection, for both databases. If anything fails between begin and
// commit, the whole transaction is rolled back.
// TX2: a finished transaction refuses further statements, because its connection would run them outside a
//      transaction or in another one.
// Statements that are issued together are sent together. The query builder's own transactions are not used,
// because they wait for the answer to each step: an additional round trip on a shared database.

import { type DatabaseConnection, type Dialect, type Driver, Transaction } from "kysely";
import { executorsOf } from "./executor.ts";
import { asInDoubt } from "./problems.ts";
import type { Tables } from "./schema/tables.ts";
import type { Store, Tx } from "./sql.ts";

/** A connection that runs one transaction at a time. */
export interface TransactionConnection extends DatabaseConnection {
  begin(): Promise<void> | void;
  commit(): Promise<void> | void;
  /** Never rejects. */
  rollback(): Promise<void> | void;
}

/** A pool of connections. Each connection has one user at a time. */
export interface Connections<C extends TransactionConnection> {
  acquire(): Promise<C>;
  release(connection: C): void;
}

/**
 * Returns a function that makes a `Tx` for a connection on which a transaction has begun. After `end` it
 * refuses further statements (TX2).
 */
export function transactionOpener<C extends DatabaseConnection>(dialect: Dialect) {
  const parts = { config: { dialect }, dialect, driver: dialect.createDriver() };
  const executorOn = executorsOf(dialect);
  return (connection: C) => {
    let isOver = false;
    const executor = executorOn(() => {
      if (isOver) throw new Error("this transaction has ended and accepts no further statement");
      return connection;
    });
    return {
      tx: new Transaction<Tables>({ ...parts, executor }),
      end: () => {
        isOver = true;
      },
    };
  };
}

/** Runs each transaction on a connection from the pool. */
export function transactionsOn<C extends TransactionConnection>(
  connections: Connections<C>,
  dialect: Dialect,
): Store["transaction"] {
  const open = transactionOpener<C>(dialect);
  return async (work) => {
    const connection = await connections.acquire();
    const { tx, end } = open(connection);
    try {
      await connection.begin();
      const value = await work(tx);
      end();
      try {
        await connection.commit();
      } catch (error) {
        throw asInDoubt(error);
      }
      return value;
    } catch (error) {
      end();
      await connection.rollback();
      throw error;
    } finally {
      connections.release(connection);
    }
  };
}

/** Work that `atCommit` adds to a transaction. */
export type LastWork = (tx: Tx) => Promise<void>;

const lastWork = new WeakMap<Tx, LastWork[]>();

/**
 * Starts an empty list of work for a transaction; `atCommit` then adds to this list. Returns the list. The
 * caller must do the work in it before the commit.
 */
export function notesOf(tx: Tx): readonly LastWork[] {
  const notes: LastWork[] = [];
  lastWork.set(tx, notes);
  return notes;
}

/**
 * Runs `work`, on which nothing else in the transaction depends. PostgreSQL runs it at once. The embedded
 * store runs it before the commit, after all transactions that share the commit. If the work fails, all these
 * transactions fail.
 */
export async function atCommit(tx: Tx, work: LastWork): Promise<void> {
  const notes = lastWork.get(tx);
  if (notes === undefined) await work(tx);
  else notes.push(work);
}

/**
 * Runs parts of a transaction concurrently; they start in the given order. Waits until all of them have
 * ended, even if one fails, and then rejects with the first failure. This ensures that no part is still
 * running when the transaction is rolled back.
 */
export async function together<const T extends readonly unknown[]>(
  ...parts: T
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const ends = await Promise.allSettled(parts);
  const failure = ends.find((end) => end.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  return ends.map((end) => (end.status === "fulfilled" ? end.value : undefined)) as {
    -readonly [K in keyof T]: Awaited<T[K]>;
  };
}

/** Stubs of the driver methods for transactions, which the query builder must not call. */
export const NO_TRANSACTIONS: Pick<
  Driver,
  "init" | "beginTransaction" | "commitTransaction" | "rollbackTransaction" | "destroy"
> = {
  init: async () => {},
  beginTransaction: refuse,
  commitTransaction: refuse,
  rollbackTransaction: refuse,
  destroy: async () => {},
};

async function refuse(): Promise<void> {
  throw new Error("use the store's `transaction`, not the query builder's");
}
