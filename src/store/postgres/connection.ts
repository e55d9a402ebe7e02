// Owns one connection to a PostgreSQL server: its settings and its queries.
// PC1: statements run in the order of the calls. Statements that are issued together are sent together and
//      cost one round trip.
// PC2: after a failed statement, the server refuses all others of the transaction. They report the failure of
//      the first one, because it decides whether the transaction is retried.
// Result values are numbers, strings, booleans and null. A connection that is lost, or whose state is
// unknown, is never used again.
// The server plans a query from store/prepared.ts once per connection. It plans every other query again at
// each execution, for the actual values, because a generic plan would be slow for an agent or a word that has
// many rows.

import type { CompiledQuery, QueryResult } from "kysely";
import type { Client, ClientConfig, QueryResult as PgResult, QueryConfig } from "pg";
import type { World } from "../../world.ts";
import { statementName } from "../prepared.ts";
import { StoreConflict, StoreProblem } from "../problems.ts";
import type { TransactionConnection } from "../transaction.ts";
import type { PostgresAddress } from "./address.ts";
import { asPostgresProblem, postgresProblem } from "./problems.ts";

/**
 * Extra time after `statement_timeout`. If the server has not cancelled the query by then, the driver fails
 * the query and, in pipeline mode, drops the connection.
 */
const OVERDUE_MS = 2_000;
const KEEP_ALIVE_AFTER_MS = 10_000;
const END_TIMEOUT_MS = 1_000;

/** Time limits of a connection, in ms. 0: no limit. */
export interface Timeouts {
  readonly connectMs: number;
  /** The server cancels a statement after this time. */
  readonly statementMs: number;
  /** The server cancels a statement that has waited for a lock for this time. */
  readonly lockMs: number;
  /** The server closes a connection whose transaction has been idle for this time. */
  readonly idleInTransactionMs: number;
}

/** Parameters that all connections of a store share. */
export interface Connecting {
  readonly Client: new (config: ClientConfig) => Client;
  readonly address: PostgresAddress;
  readonly timeouts: Timeouts;
  readonly world: World;
}

/**
 * OIDs of the types that are read as numbers: int8, int2, int4, oid, float4, float8, numeric. Boolean is 16.
 */
const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 1700]);
const TYPES = {
  getTypeParser: (type: number) => {
    if (NUMBERS.has(type)) return Number;
    return type === 16 ? (text: string) => text === "t" : (text: string) => text;
  },
} as unknown as NonNullable<ClientConfig["types"]>;

/** Replaces U+0000, the only character that PostgreSQL cannot store in a text. */
function storable(value: unknown): unknown {
  if (typeof value === "string") return value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value;
  return Array.isArray(value) ? value.map(storable) : value;
}

function configOf(connecting: Connecting): ClientConfig {
  const { address, timeouts } = connecting;
  const settings = {
    search_path: address.schema,
    plan_cache_mode: "auto",
    // A plan that was made while a table was small must not read the whole table once it is large. Every
    // frequent query has an index, and a join looks each row up in it.
    enable_seqscan: "off",
    enable_hashjoin: "off",
    enable_mergejoin: "off",
    // A plan that still contains a sequential scan has a high estimated cost, so the server would JIT-compile
    // it.
    jit: "off",
    // Frequently used pages are cached in memory, so an index scan costs little more than a sequential read.
    random_page_cost: "1.1",
    default_transaction_isolation: "read\\ committed",
    statement_timeout: timeouts.statementMs,
    lock_timeout: timeouts.lockMs,
    idle_in_transaction_session_timeout: timeouts.idleInTransactionMs,
    // A connection that only listens for notifications is idle for hours.
    idle_session_timeout: 0,
    // An accepted request must be on disk (I2), so the server's default does not apply.
    synchronous_commit: "on",
  };
  return {
    ...address.login,
    application_name: "parley",
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(" "),
    ...(timeouts.statementMs === 0
      ? {}
      : { query_timeout: timeouts.statementMs + Math.min(OVERDUE_MS, timeouts.statementMs) }),
    connectionTimeoutMillis: timeouts.connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    types: TYPES,
  };
}

/** Opens a connection to the server. Rejects with a `StoreProblem`. */
export async function connectClient(connecting: Connecting, more: ClientConfig = {}): Promise<Client> {
  const client = new connecting.Client({ ...configOf(connecting), ...more });
  // An "error" event without a listener would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    void client.end().catch(() => {});
    throw problemOfLoss(error, connecting.address);
  }
}

/** Returns the problem of a connection that is lost, whatever the server said last. */
function problemOfLoss(reason: unknown, address: PostgresAddress): unknown {
  const problem = asPostgresProblem(reason, address, "unreachable");
  if (!(problem instanceof StoreConflict)) return problem;
  return postgresProblem("unreachable", address, problem.message);
}

/** Closes the connection, even if the server does not answer. */
export async function endClient(client: Client, world: World): Promise<void> {
  const { clock } = world;
  const timer = clock.after(END_TIMEOUT_MS, () => client.connection.stream.destroy());
  await client.end().catch(() => {});
  timer.cancel();
}

export class PostgresConnection implements TransactionConnection {
  /** Time on the monotonic clock when the connection was last returned to the pool. */
  idleSinceMs = 0;
  readonly #client: Client;
  readonly #connecting: Connecting;
  readonly #onLost: (lost: PostgresConnection, reason: unknown) => void;
  #inTransaction = false;
  /** Failure of the first statement that failed in the transaction. */
  #failure: unknown;
  /** True if tables have changed since the server made the plans. */
  #stale = false;
  #lost: unknown;
  /** Set if the server has ended the connection and certainly rolled back its transaction. */
  #conflict: StoreConflict | undefined;
  /** Pending `begin` statement that the server has not confirmed yet. */
  #beginning: Promise<void> | undefined;
  #isCollecting = false;
  /** True if a write waits for `#beginning`. All later statements of the transaction then wait as well. */
  #isHeldBack = false;

  private constructor(
    client: Client,
    connecting: Connecting,
    onLost: (lost: PostgresConnection, reason: unknown) => void,
  ) {
    this.#client = client;
    this.#connecting = connecting;
    this.#onLost = onLost;
  }

  /**
   * Opens a connection. `onLost` is called once, with the reason, when the connection is lost, even while it
   * is idle.
   */
  static async open(
    connecting: Connecting,
    onLost: (lost: PostgresConnection, reason: unknown) => void,
  ): Promise<PostgresConnection> {
    const client = await connectClient(connecting, { pipeline: true });
    const made = new PostgresConnection(client, connecting, onLost);
    client.on("error", (error) => made.#lose(error));
    client.on("end", () => made.#lose(new Error("Connection terminated")));
    return made;
  }

  get usable(): boolean {
    return this.#lost === undefined;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const beginning = this.#beginning;
    // Row locks count as reading, because outside a transaction they have no effect.
    const isRead = /^\s*(select|with recursive)\s/i.test(query.sql);
    if (beginning !== undefined && (this.#isHeldBack || !isRead)) {
      // If `begin` failed, a write would run outside a transaction and could not be rolled back.
      this.#isHeldBack = true;
      await beginning;
    }
    const [result] = await Promise.all([this.#run(query), beginning]);
    const changes = /^(INSERT|UPDATE|DELETE|MERGE)$/.test(result.command);
    const rows = result.rows as R[];
    return changes ? { rows, numAffectedRows: BigInt(result.rowCount ?? 0) } : { rows };
  }

  // biome-ignore lint/correctness/useYield: streaming is not supported; the first call throws.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("the store cannot stream queries: read page by page");
  }

  /**
   * Sends `begin` without waiting for the answer. If `begin` fails, the next statement reports the failure.
   */
  async begin(): Promise<void> {
    const beginning = this.#send("begin").then(() => {
      this.#beginning = undefined;
    });
    beginning.catch(() => {});
    this.#beginning = beginning;
    this.#isHeldBack = false;
    this.#failure = undefined;
    this.#inTransaction = true;
  }

  async commit(): Promise<void> {
    await this.#beginning;
    const { command } = await this.#send("commit");
    this.#inTransaction = false;
    if (command !== "COMMIT") {
      throw new Error("the store rolled back this transaction after an earlier error in it");
    }
  }

  /**
   * Never rejects. If the rollback fails, the connection is dropped, and the server then rolls back the
   * transaction.
   */
  async rollback(): Promise<void> {
    try {
      await this.#send("rollback");
      if (this.#stale) await this.#forgetPlans();
      this.#inTransaction = false;
      this.#beginning = undefined;
    } catch (error) {
      this.#lose(error);
    }
  }

  async end(): Promise<void> {
    this.#lost ??= new Error("the store is closed");
    await endClient(this.#client, this.#connecting.world);
  }

  async #run(query: CompiledQuery): Promise<PgResult> {
    const { sql: text, parameters } = query;
    const values = parameters.map(storable);
    const name = statementName(query);
    const wanted = name === undefined ? { text, values } : { name, text, values };
    try {
      return await this.#query(wanted);
    } catch (error) {
      if (this.#inTransaction) throw this.#failureInTransaction(error);
      if (!isStalePlan(error)) throw this.#problemOf(error);
      await this.#forgetPlans();
      return await this.#query(wanted).catch((again: unknown) => {
        throw this.#problemOf(again);
      });
    }
  }

  /** Returns what a failed statement of a transaction reports (PC2). */
  #failureInTransaction(error: unknown): unknown {
    if (codeOf(error) === ABORTED && this.#failure !== undefined) return this.#failure;
    const isStale = isStalePlan(error);
    this.#stale ||= isStale;
    const failure = isStale
      ? new StoreConflict("0A000", "a table was changed while this transaction ran")
      : this.#problemOf(error);
    this.#failure ??= failure;
    return failure;
  }

  async #query(wanted: QueryConfig): Promise<PgResult> {
    if (this.#lost !== undefined) throw this.#lost;
    this.#collect();
    return await this.#client.query(wanted);
  }

  /** Sends the statements of one turn of the event loop with one write, because a write is a system call. */
  #collect(): void {
    if (this.#isCollecting) return;
    this.#isCollecting = true;
    const { stream } = this.#client.connection;
    stream.cork();
    process.nextTick(() => {
      this.#isCollecting = false;
      stream.uncork();
    });
  }

  async #send(text: string): Promise<PgResult> {
    if (this.#lost !== undefined) throw this.#problemOf(this.#lost);
    try {
      this.#collect();
      return await this.#client.query(text);
    } catch (error) {
      throw this.#problemOf(error);
    }
  }

  async #forgetPlans(): Promise<void> {
    await this.#send("deallocate all");
    // The driver would otherwise execute statements that the server has just deallocated.
    Object.assign(this.#client.connection, { parsedStatements: {} });
    this.#stale = false;
  }

  #problemOf(error: unknown): unknown {
    if (this.#conflict !== undefined) return this.#conflict;
    const said = this.#lost ?? error;
    const problem = asPostgresProblem(said, this.#connecting.address);
    if (problem instanceof StoreConflict && problem.code === IDLE_TOO_LONG) {
      this.#lose(problem);
      return this.#conflict ?? this.#lost;
    }
    // The server may be failing over. A new connection may reach a healthy server.
    if (problem instanceof StoreProblem && problem.problem === "unreachable" && codeOf(said) !== TOO_SLOW) {
      this.#lose(problem);
    }
    return problem;
  }

  #lose(reason: unknown): void {
    if (this.#lost !== undefined) return;
    const { address } = this.#connecting;
    const said = asPostgresProblem(reason, address);
    if (this.#inTransaction && said instanceof StoreConflict) this.#conflict = said;
    this.#lost = problemOfLoss(said, address);
    this.#onLost(this, this.#lost);
  }
}

/** SQLSTATE of a statement that was refused because an earlier one of its transaction had failed. */
const ABORTED = "25P02";
/** SQLSTATE of a connection that the server ended because its transaction was idle for too long. */
const IDLE_TOO_LONG = "25P03";
/** SQLSTATE of a statement that the server cancelled because it was slow. The connection is still usable. */
const TOO_SLOW = "57014";

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined;
}

function isStalePlan(error: unknown): boolean {
  const code = codeOf(error);
  const { routine } = error as { routine?: unknown };
  return (code === "0A000" && routine === "RevalidateCachedQuery") || code === "26000";
}
