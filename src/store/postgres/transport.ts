// Sends short messages between processes over the database. Each process receives the messages of all others,
// but not its own.
// A message is only a hint and may be lost. If a listener may have missed messages, it is told so and reads
// the rows again.
// A network can drop a connection without telling its ends. So each listener hears an echo of its own process
// about once a second, and connects again if there is none.
// Messages use connections of their own and are never part of a transaction, so no transaction waits for
// them.

import type { Client } from "pg";
import { grownPause } from "../../core/backoff.ts";
import type { SharedStore } from "../sql.ts";
import { type Connecting, connectClient, endClient } from "./connection.ts";
import type { Outage } from "./pool.ts";
import { asPostgresProblem } from "./problems.ts";

const QUERY_TIMEOUT_MS = 3_000;
const RECONNECT_MIN_MS = 100;
const RECONNECT_MAX_MS = 5_000;
/** A listener that hears no echo for this time connects again. */
const ECHO_MS = 5_000;
/** If it hears none for this time after that, its process is not ready. */
const DEAF_MS = 5_000;

/** Returns the name of the PostgreSQL notification channel for the processes of one schema. */
function channelOf(schema: string): string {
  return `parley:${schema}`;
}

/** Runs a short query outside transactions. Calls `onSent` when it is sent. */
export type Ask = (
  text: string,
  values: readonly unknown[],
  onSent?: () => void,
) => Promise<readonly Record<string, unknown>[]>;

/**
 * Returns a function that sends messages, those of one call in one statement. Logs one warning per outage,
 * because many messages may be lost during it.
 */
export function createNotify(
  ask: Ask,
  { address, world: { log } }: Connecting,
  sender: string,
): SharedStore["notify"] {
  let count = 0;
  let lost = 0;
  return async (texts, channel = channelOf(address.schema)) => {
    // Each message gets a number, because PostgreSQL merges identical messages of one statement.
    const numbered = texts.map((text) => `${sender}.${(count++).toString(36)}:${text}`);
    try {
      await ask("select pg_notify($1, one) from unnest($2::text[]) as one", [channel, numbered]);
    } catch (error) {
      if (lost === 0) log.warn({ err: error }, "messages to other processes were lost");
      lost += texts.length;
      throw error;
    }
    if (lost > 0) log.info({ count: lost }, "messages to other processes are delivered again");
    lost = 0;
  };
}

/** A connection that listens for messages and reconnects after a loss. */
export class Listener {
  readonly #connecting: Connecting;
  readonly #outage: Outage;
  readonly #sender: string;
  readonly #onText: (text: string) => void;
  readonly #onGap: () => void;
  #client: Client | undefined;
  #timer: { cancel(): void } | undefined;
  #failures = 0;
  #stopped = false;
  /** Monotonic time of the first echo that was sent and not heard yet. */
  #sentAt: number | undefined;
  /** Monotonic time at which the connection was lost. Undefined once anything is heard again. */
  #lostAt: number | undefined;

  constructor(
    parts: { connecting: Connecting; outage: Outage; sender: string },
    onText: (text: string) => void,
    onGap: () => void,
  ) {
    this.#connecting = parts.connecting;
    this.#outage = parts.outage;
    this.#sender = parts.sender;
    this.#onText = onText;
    this.#onGap = onGap;
  }

  async connect(): Promise<void> {
    const { address } = this.#connecting;
    const client = await connectClient(this.#connecting, { query_timeout: QUERY_TIMEOUT_MS });
    client.on("error", (error) => this.#lose(client, error));
    client.on("end", () => this.#lose(client, new Error("Connection terminated")));
    client.on("notification", (message) => {
      const { payload = "" } = message;
      this.#sentAt = undefined;
      this.#lostAt = undefined;
      const colon = payload.indexOf(":");
      if (colon < 0 || payload.startsWith(`${this.#sender}.`)) return;
      this.#call(() => this.#onText(payload.slice(colon + 1)));
    });
    try {
      await client.query(`listen "${this.#sender}"`);
      await client.query(`listen "${channelOf(address.schema)}"`);
    } catch (error) {
      void endClient(client, this.#connecting.world);
      throw asPostgresProblem(error, address, "unreachable");
    }
    if (this.#stopped) return await endClient(client, this.#connecting.world);
    this.#client = client;
    this.#failures = 0;
    this.#outage.noteMade();
  }

  /** Notes that an echo was sent: it must arrive within `ECHO_MS`. */
  echoSent(): void {
    const now = this.#connecting.world.clock.monotonic();
    if (this.#client === undefined) return;
    this.#sentAt ??= now;
    if (now - this.#sentAt < ECHO_MS) return;
    const { log } = this.#connecting.world;
    log.warn({ silentMs: now - this.#sentAt }, "messages of other processes do not arrive; connecting again");
    this.#lose(this.#client, new Error("no echo"));
  }

  /** Returns whether messages of other processes have not arrived for a while. */
  isDeaf(): boolean {
    return this.#lostAt !== undefined && this.#connecting.world.clock.monotonic() - this.#lostAt > DEAF_MS;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#client !== undefined) await endClient(this.#client, this.#connecting.world);
    this.#client = undefined;
  }

  #lose(client: Client, reason: unknown): void {
    if (this.#client !== client || this.#stopped) return;
    this.#client = undefined;
    this.#sentAt = undefined;
    this.#lostAt ??= this.#connecting.world.clock.monotonic();
    void endClient(client, this.#connecting.world);
    this.#outage.noteLost(reason);
    this.#again();
  }

  #again(): void {
    const { clock, random, log } = this.#connecting.world;
    const fullMs = grownPause(RECONNECT_MIN_MS, RECONNECT_MAX_MS, this.#failures);
    this.#failures += 1;
    this.#timer = clock.after(fullMs * (0.5 + random() / 2), () => {
      this.connect().then(
        () => {
          if (!this.#stopped) this.#call(this.#onGap);
        },
        (error: unknown) => {
          log.debug({ err: error }, "still cannot receive messages from other processes");
          if (!this.#stopped) this.#again();
        },
      );
    });
  }

  /** An exception in a callback must not reach the connection. */
  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#connecting.world.log.error({ err: error }, "could not handle a message from another process");
    }
  }
}
