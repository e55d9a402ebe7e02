// Owns one connection to a PostgreSQL server: how it is set up, and how a query runs on it.
// PC1: statements are done in the order in which they are given; those given together travel together and
//      cost one round trip. What comes back are numbers, texts and null.
// PC2: a connection that was lost, or whose state nobody knows, is not used again.
// PC3: statements are planned with the values at hand: a plan made for any value would miss the partial
//      indexes, and be wrong for a lane or a word that has many rows.

import { createHash } from "node:crypto";
import type { CompiledQuery, QueryResult } from "kysely";
import type { Client, ClientConfig, QueryResult as PgResult } from "pg";
import type { World } from "../world.ts";
import type { PostgresAddress } from "./postgres-address.ts";
import { asPostgresProblem } from "./postgres-problems.ts";
import { StoreConflict, StoreProblem } from "./problems.ts";
import type { TransactionConnection } from "./transaction.ts";

/** Statements kept prepared on a connection; the one unused for the longest time goes first. */
const STATEMENTS_MAX = 256;
/** Texts that are known to have been run; only one that is run again is prepared. */
const TEXTS_MAX = 2_000;
/** How long the server's own limit may be overdue before the connection is given up, or as long again. */
const OVERDUE_MS = 2_000;
const KEEP_ALIVE_AFTER_MS = 10_000;
/** A goodbye that a dead server does not answer. */
const END_TIMEOUT_MS = 1_000;

/** 0: never. */
export interface Timeouts {
  /** How long the server may take to let a connection in. */
  readonly connectMs: number;
  /** After which the server ends a statement, a wait for a lock, and a session with an idle transaction. */
  readonly statementMs: number;
  readonly lockMs: number;
  readonly idleInTransactionMs: number;
}

/** What every connection of a store is made with. */
export interface Connecting {
  readonly Client: new (config: ClientConfig) => Client;
  readonly address: PostgresAddress;
  readonly timeouts: Timeouts;
  readonly world: World;
  readonly names: StatementNames;
}

/** 16, 20, 21, 23, 26, 700, 701, 1700: boolean, int8, int2, int4, oid, float4, float8, numeric. */
const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 1700]);
const TYPES = {
  getTypeParser: (type: number) => {
    if (NUMBERS.has(type)) return Number;
    return type === 16 ? (text: string) => text === "t" : (text: string) => text;
  },
} as unknown as NonNullable<ClientConfig["types"]>;

/** PostgreSQL keeps any text but one with U+0000. */
function storable(value: unknown): unknown {
  if (typeof value === "string") return value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value;
  return Array.isArray(value) ? value.map(storable) : value;
}

function configOf(connecting: Connecting): ClientConfig {
  const { address, timeouts } = connecting;
  const settings = {
    search_path: address.schema,
    plan_cache_mode: "force_custom_plan",
    // What is asked for often is in memory: reading it through an index costs hardly more than in a row.
    random_page_cost: "1.1",
    default_transaction_isolation: "read\\ committed",
    statement_timeout: timeouts.statementMs,
    lock_timeout: timeouts.lockMs,
    idle_in_transaction_session_timeout: timeouts.idleInTransactionMs,
    // Who listens is idle for hours.
    idle_session_timeout: 0,
    // What was accepted is on disk, whatever the server's other programs can do without (I2).
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

/** The names under which statements are prepared: a text gets one when it is run the second time. */
export class StatementNames {
  readonly #known = new Map<string, string>();

  nameOf(text: string): string | undefined {
    const name = this.#known.get(text);
    const [oldest] = this.#known.keys();
    if (name === undefined && this.#known.size >= TEXTS_MAX && oldest !== undefined) {
      this.#known.delete(oldest);
    }
    this.#known.delete(text);
    this.#known.set(text, name ?? "");
    if (name === undefined) return undefined;
    if (name !== "") return name;
    const made = createHash("sha256").update(text).digest("hex").slice(0, 16);
    this.#known.set(text, made);
    return made;
  }
}

/** A new client that is connected. Rejects with a `StoreProblem`. */
export async function connectClient(connecting: Connecting, more: ClientConfig = {}): Promise<Client> {
  const client = new connecting.Client({ ...configOf(connecting), ...more });
  // A client without a listener would end the process with its connection.
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    void client.end().catch(() => {});
    throw asPostgresProblem(error, connecting.address, "unreachable");
  }
}

/** Says goodbye, and hangs up if nobody answers. */
export async function endClient(client: Client, world: World): Promise<void> {
  const { clock } = world;
  const timer = clock.at(clock.now() + END_TIMEOUT_MS, () => client.connection.stream.destroy());
  await client.end().catch(() => {});
  timer.cancel();
}

export class PostgresConnection implements TransactionConnection {
  /** When it was last given back to the pool, by the monotonic clock. */
  idleSinceMs = 0;
  readonly #client: Client;
  readonly #connecting: Connecting;
  readonly #onLost: (lost: PostgresConnection, reason: unknown) => void;
  readonly #prepared = new Set<string>();
  #inTransaction = false;
  /** Plans were made for tables that have changed since. */
  #stale = false;
  #lost: unknown;
  /** The begin of a transaction that the server has not confirmed. */
  #beginning: Promise<void> | undefined;
  /** A change waits for that, and so does whatever comes after it. */
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

  /** `onLost` is called once, with the reason, when the connection is lost, be it in use or not. */
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
    if (beginning !== undefined && (this.#isHeldBack || !isRead(query.sql))) {
      // Without its transaction a change would stay.
      this.#isHeldBack = true;
      await beginning;
    }
    const [result] = await Promise.all([this.#run(query.sql, query.parameters), beginning]);
    const changes = /^(INSERT|UPDATE|DELETE|MERGE)$/.test(result.command);
    const rows = result.rows as R[];
    return changes ? { rows, numAffectedRows: BigInt(result.rowCount ?? 0) } : { rows };
  }

  // biome-ignore lint/correctness/useYield: streaming is not offered; whoever asks learns it at once.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("queries of the store are not streamed: read pages");
  }

  /** Travels with the reading that comes first: whoever asks next learns if it failed. */
  async begin(): Promise<void> {
    const beginning = this.#send("begin").then(() => {
      this.#beginning = undefined;
    });
    beginning.catch(() => {});
    this.#beginning = beginning;
    this.#isHeldBack = false;
    this.#inTransaction = true;
  }

  async commit(): Promise<void> {
    await this.#beginning;
    const { command } = await this.#send("commit");
    this.#inTransaction = false;
    if (command !== "COMMIT") {
      throw new Error("the store gave up this transaction after an earlier error in it");
    }
  }

  /** Never fails: a connection on which it could not be done is not used again, and the server undoes it. */
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

  async #run(text: string, parameters: readonly unknown[]): Promise<PgResult> {
    const values = parameters.map(storable);
    try {
      return await this.#query(text, values);
    } catch (error) {
      if (!isStalePlan(error)) throw this.#problemOf(error);
      this.#stale = true;
      if (this.#inTransaction) {
        throw new StoreConflict("0A000", "a table was changed while this transaction ran");
      }
      await this.#forgetPlans();
      return await this.#query(text, values).catch((again: unknown) => {
        throw this.#problemOf(again);
      });
    }
  }

  async #query(text: string, values: unknown[]): Promise<PgResult> {
    if (this.#lost !== undefined) throw this.#lost;
    const name = this.#connecting.names.nameOf(text);
    if (name === undefined) return await this.#client.query({ text, values });
    this.#prepared.delete(name);
    this.#prepared.add(name);
    const [oldest] = this.#prepared;
    if (this.#prepared.size > STATEMENTS_MAX && oldest !== undefined) {
      // Goes out with the statement that follows: no round trip of its own.
      this.#client.connection.close({ type: "S", name: oldest }, true);
      this.#forget(oldest);
    }
    return await this.#client.query({ name, text, values });
  }

  async #send(text: string): Promise<PgResult> {
    if (this.#lost !== undefined) throw this.#problemOf(this.#lost);
    try {
      return await this.#client.query(text);
    } catch (error) {
      throw this.#problemOf(error);
    }
  }

  async #forgetPlans(): Promise<void> {
    await this.#send("deallocate all");
    for (const name of [...this.#prepared]) this.#forget(name);
    this.#stale = false;
  }

  #forget(name: string): void {
    this.#prepared.delete(name);
    // The driver's own note of what the server knows.
    const { parsedStatements } = this.#client.connection as unknown as {
      parsedStatements: Record<string, string>;
    };
    delete parsedStatements[name];
  }

  #problemOf(error: unknown): unknown {
    const said = this.#lost ?? error;
    const problem = asPostgresProblem(said, this.#connecting.address);
    // Whatever else is meant, the next connection may find a better server.
    if (problem instanceof StoreProblem && problem.problem === "unreachable" && codeOf(said) !== TOO_SLOW) {
      this.#lose(problem);
    }
    return problem;
  }

  #lose(reason: unknown): void {
    if (this.#lost !== undefined) return;
    this.#lost = asPostgresProblem(reason, this.#connecting.address, "unreachable");
    this.#onLost(this, this.#lost);
  }
}

/** Whether a statement changes no row: one that locks rows is harmless without a transaction. */
function isRead(text: string): boolean {
  return /^\s*(select|with recursive)\s/i.test(text);
}

/** A statement that the server ended: the connection is as good as before. */
const TOO_SLOW = "57014";

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined;
}

function isStalePlan(error: unknown): boolean {
  const code = codeOf(error);
  const { routine } = error as { routine?: unknown };
  return (code === "0A000" && routine === "RevalidateCachedQuery") || code === "26000";
}
