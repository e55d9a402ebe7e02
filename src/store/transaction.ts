// Owns how work runs in one transaction on one connection, whatever the database.
// TX1: what fails between begin and commit undoes all of it.
// TX2: a transaction that is over takes no further statement: on its connection that would be a change of its
//      own, or part of somebody else's transaction.
// TX3: statements that are given together are sent together. The query builder's own transactions send none
//      before the one before it was answered, which in a shared database costs a round trip each.

import {
  type ConnectionProvider,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  type Driver,
  Transaction,
} from "kysely";
import { asInDoubt } from "./problems.ts";
import type { Store, Tx } from "./sql.ts";
import type { Tables } from "./tables.ts";

/** A connection on which one transaction at a time may be under way. */
export interface TransactionConnection extends DatabaseConnection {
  begin(): Promise<void> | void;
  commit(): Promise<void> | void;
  /** Never fails. */
  rollback(): Promise<void> | void;
}

/** Who hands connections out, each to one user at a time. */
export interface Connections<C extends TransactionConnection> {
  acquire(): Promise<C>;
  release(connection: C): void;
}

/** A transaction as whoever works in it sees it, and what makes it take no further statement (TX2). */
interface OpenTransaction {
  readonly tx: Tx;
  readonly end: () => void;
}

/** Makes transactions on connections on which they have been begun. */
export function transactionOpener<C extends DatabaseConnection>(
  dialect: Dialect,
): (connection: C) => OpenTransaction {
  const parts = { config: { dialect }, dialect, driver: dialect.createDriver() };
  const [compiler, adapter] = [dialect.createQueryCompiler(), dialect.createAdapter()];
  return (connection) => {
    let isOver = false;
    const provider: ConnectionProvider = {
      async provideConnection(use) {
        if (isOver) throw new Error("this transaction is over; it takes no further statement");
        return use(connection);
      },
    };
    const executor = new DefaultQueryExecutor(compiler, adapter, provider);
    return {
      tx: new Transaction<Tables>({ ...parts, executor }),
      end: () => {
        isOver = true;
      },
    };
  };
}

/** Runs work in transactions, each on a connection of its own. */
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
      await committed(connection);
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

async function committed(connection: TransactionConnection): Promise<void> {
  try {
    await connection.commit();
  } catch (error) {
    throw asInDoubt(error);
  }
}

/**
 * Does parts of a transaction's work together, each begun in this order. Waits for all of them, also when one
 * fails, and fails with the first failure: no part may go on while the transaction is undone.
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

/** What the query builder asks of a driver besides connections: transactions, which it does not make here. */
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
  throw new Error("transactions of the store are made by its `transaction`");
}
