// Owns a pool of connections for one kind of work, and makes them available to the query builder.
// Each connection serves one caller at a time. If none is free, callers wait in order; soon another one is
// opened. A lost connection is
// dropped, and a new one is opened on demand, so the store works again after a restart of the server. If no
// connection is left and none can be opened, all waiting callers fail at once.

import { type Dialect, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import { type Connections, NO_TRANSACTIONS } from "../transaction.ts";
import { type Connecting, PostgresConnection } from "./connection.ts";
import { postgresProblem } from "./problems.ts";

/** Maximum number of callers that wait for a connection. The pool refuses further callers immediately. */
const WAITING_MAX = 10_000;
/** When a connection is returned to the pool, those that have been idle for longer are closed. */
const IDLE_MS = 15_000;
/** A caller waits for a connection for this time before the pool opens another: most work takes less. */
const GROW_MS = 25;

interface Waiting {
  resolve(connection: PostgresConnection): void;
  reject(error: unknown): void;
}

/** Logs one message when the database becomes unreachable, and one when it is reachable again. */
export class Outage {
  readonly #connecting: Connecting;
  #away = false;

  constructor(connecting: Connecting) {
    this.#connecting = connecting;
  }

  noteLost(reason: unknown): void {
    if (this.#away) return;
    this.#away = true;
    const { world, address } = this.#connecting;
    world.log.warn({ err: reason, place: address.place }, "lost a connection to the store");
  }

  noteMade(): void {
    if (!this.#away) return;
    this.#away = false;
    const { world, address } = this.#connecting;
    world.log.info({ place: address.place }, "the store is reachable again");
  }
}

export class PostgresPool implements Connections<PostgresConnection> {
  readonly #connecting: Connecting;
  readonly #outage: Outage;
  readonly #max: number;
  readonly #idle: PostgresConnection[] = [];
  readonly #open = new Set<PostgresConnection>();
  readonly #waiting: Waiting[] = [];
  /** Number of connections that are open or being opened. */
  #count = 0;
  #closed = false;

  constructor(connecting: Connecting, outage: Outage, max: number) {
    this.#connecting = connecting;
    this.#outage = outage;
    this.#max = max;
  }

  async acquire(): Promise<PostgresConnection> {
    if (this.#closed) throw new Error("the store is closed");
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#count === 0) return await this.#make();
    if (this.#waiting.length >= WAITING_MAX) {
      const detail = `more than ${WAITING_MAX} wait for one of its ${this.#max} connections`;
      throw postgresProblem("busy", this.#connecting.address, detail);
    }
    return await new Promise((resolve, reject) => {
      const waiting = { resolve, reject };
      this.#waiting.push(waiting);
      if (this.#count >= this.#max) return;
      this.#connecting.world.clock.after(GROW_MS, () => {
        const at = this.#waiting.indexOf(waiting);
        if (at < 0 || this.#count >= this.#max) return;
        this.#waiting.splice(at, 1);
        this.#make().then(resolve, reject);
      });
    });
  }

  release(connection: PostgresConnection): void {
    if (!connection.usable || this.#closed) {
      this.#drop(connection);
      const next = this.#waiting.shift();
      if (next !== undefined) this.#make().then(next.resolve, next.reject);
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next.resolve(connection);
      return;
    }
    const now = this.#connecting.world.clock.monotonic();
    connection.idleSinceMs = now;
    this.#idle.push(connection);
    for (const one of [...this.#idle]) if (now - one.idleSinceMs > IDLE_MS) this.#drop(one);
  }

  /** Closes all connections. Running queries fail, and the server rolls back their transactions. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const waiting of this.#waiting.splice(0)) waiting.reject(new Error("the store is closed"));
    await Promise.all([...this.#open].map((connection) => connection.end()));
  }

  async #make(): Promise<PostgresConnection> {
    this.#count += 1;
    const connection = await this.#connect();
    this.#open.add(connection);
    this.#outage.noteMade();
    if (!this.#closed) return connection;
    this.#drop(connection);
    throw new Error("the store is closed");
  }

  async #connect(): Promise<PostgresConnection> {
    try {
      return await PostgresConnection.open(this.#connecting, (lost, reason) => {
        if (this.#closed) return;
        this.#outage.noteLost(reason);
        if (this.#idle.includes(lost)) this.#drop(lost);
      });
    } catch (error) {
      this.#count -= 1;
      if (!this.#closed) this.#outage.noteLost(error);
      if (this.#count === 0) for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
      throw error;
    }
  }

  #drop(connection: PostgresConnection): void {
    if (!this.#open.delete(connection)) return;
    this.#count -= 1;
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    void connection.end();
  }
}

/** Returns a dialect with which the query builder uses a pool of `PostgresConnection`s. */
export function postgresDialect(pool: PostgresPool): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => ({
      ...NO_TRANSACTIONS,
      acquireConnection: () => pool.acquire(),
      releaseConnection: async (connection) => pool.release(connection as PostgresConnection),
    }),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}
