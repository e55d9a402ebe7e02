// Owns the store that several gateway processes share: one PostgreSQL database, used over several
// connections. A server, database or schema that does not meet the requirements is refused before anything is
// written.
// A transaction is committed when its promise resolves. If the commit rejects with the problem `unreachable`,
// its outcome is unknown: check whether it was committed before you repeat the transaction.
// Transactions, readers and the renewal of leases have separate connections, so none of them waits for
// another.

import { CompiledQuery, Kysely } from "kysely";
import type { World } from "../../world.ts";
import type { Tables } from "../schema/tables.ts";
import type { SharedStore, Store } from "../sql.ts";
import { transactionsOn } from "../transaction.ts";
import { postgresAddress } from "./address.ts";
import { DatabaseClock } from "./clock.ts";
import type { Connecting, Timeouts } from "./connection.ts";
import { prepareSchema } from "./migrate.ts";
import { Outage, PostgresPool, postgresDialect } from "./pool.ts";
import { type Ask, createNotify, Listener } from "./transport.ts";

export interface PostgresOptions {
  /** `postgresql://user:password@host:port/database`; `?schema=name` selects a schema other than `parley`. */
  readonly url: string;
  readonly world: World;
  /** Maximum number of concurrent transactions; further ones wait. Default 10. */
  readonly writersMax?: number;
  /** Number of connections for reading. Default 4. */
  readonly readersMax?: number;
  /** Default: 5 s to connect, 30 s per statement, 1 s per lock, 5 s idle in a transaction. */
  readonly timeouts?: Partial<Timeouts>;
  /** Do not create or convert the schema, and refuse a schema of another version. */
  readonly asItIs?: boolean;
}

const WRITERS_MAX = 10;
const READERS_MAX = 4;
export const TIMEOUTS: Timeouts = {
  connectMs: 5_000,
  statementMs: 30_000,
  lockMs: 1_000,
  idleInTransactionMs: 5_000,
};
/**
 * Timeouts of the connection that renews the lease. They are short: if this connection hangs, there is still
 * time to open another.
 */
const URGENT: Timeouts = { connectMs: 1_000, statementMs: 750, lockMs: 500, idleInTransactionMs: 1_000 };
/** Timeouts of the connection for short queries. */
const SHORT: Timeouts = { connectMs: 5_000, statementMs: 1_500, lockMs: 1_000, idleInTransactionMs: 5_000 };
/**
 * Maximum number of connections of one gateway: for transactions, for reading, and one each for the listener,
 * for short queries (`Ask`) and for the lease.
 */
export const CONNECTIONS_OF_PROCESS = WRITERS_MAX + READERS_MAX + 3;
/**
 * Number of clock measurements at the start. A single measurement could be slow, and therefore inaccurate.
 */
const FIRST_SAMPLES = 5;

/**
 * Opens the shared store. Creates or converts it if necessary. Rejects with a `StoreProblem` if a person has
 * to fix something.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { world } = options;
  const address = postgresAddress(options.url);
  // Loaded on demand, so that a gateway with an embedded store never loads the driver.
  const { default: driver } = await import("pg");
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  const connecting: Connecting = { Client: driver.Client, address, timeouts, world };
  await prepareSchema(connecting, options.asItIs === true);
  const outage = new Outage(connecting);
  const writers = new PostgresPool(connecting, outage, options.writersMax ?? WRITERS_MAX);
  const readers = new PostgresPool(connecting, outage, options.readersMax ?? READERS_MAX);
  const soon = { ...connecting, timeouts: { ...URGENT, ...options.timeouts } };
  const urgent = new PostgresPool(soon, outage, 1);
  const short = { ...connecting, timeouts: { ...SHORT, ...options.timeouts } };
  const asking = new PostgresPool(short, outage, 1);
  const { shared, close } = await openShared(connecting, outage, asking);
  return {
    kind: "postgres",
    db: new Kysely<Tables>({ dialect: postgresDialect(readers) }),
    transaction: transactionsOn(writers, postgresDialect(writers)),
    transcriptPath: () => undefined,
    writtenTranscript: () => undefined,
    shared: { ...shared, urgently: transactionsOn(urgent, postgresDialect(urgent)) },
    close: async () => {
      await Promise.all([writers.close(), readers.close(), urgent.close(), close()]);
    },
  };
}

async function openShared(
  connecting: Connecting,
  outage: Outage,
  asking: PostgresPool,
): Promise<{ shared: Omit<SharedStore, "urgently">; close(): Promise<void> }> {
  const { world } = connecting;
  const sender = world.ids.uuid();
  const ask: Ask = async (text, values, onSent) => {
    const connection = await asking.acquire();
    try {
      onSent?.();
      return (await connection.executeQuery<Record<string, unknown>>(CompiledQuery.raw(text, [...values])))
        .rows;
    } finally {
      asking.release(connection);
    }
  };
  const listeners = new Set<Listener>();
  const clock = new DatabaseClock(world.clock, async (onSent) => {
    const text = "select extract(epoch from clock_timestamp())::float8 * 1000 as now, pg_notify($1, '')";
    const rows = await ask(text, [sender], onSent);
    for (const listener of listeners) listener.echoSent();
    return Number(rows[0]?.now);
  });
  const close = async (): Promise<void> => {
    await Promise.all([asking.close(), ...[...listeners].map((listener) => listener.stop())]);
  };
  try {
    for (let sample = 0; sample < FIRST_SAMPLES; sample += 1) await clock.sync();
  } catch (error) {
    await close();
    throw error;
  }
  const shared: Omit<SharedStore, "urgently"> = {
    now: () => clock.now(),
    syncClock: () => clock.sync(),
    isDeaf: () => [...listeners].some((listener) => listener.isDeaf()),
    address: sender,
    notify: createNotify(ask, connecting, sender),
    listen: async (onText, onGap) => {
      const listener = new Listener({ connecting, outage, sender }, onText, onGap);
      await listener.connect();
      listeners.add(listener);
      return async () => {
        listeners.delete(listener);
        await listener.stop();
      };
    },
  };
  return { shared, close };
}
