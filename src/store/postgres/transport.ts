// Sends short messages between processes over the database. Each process receives the messages of all others,
// but not its own.
// A message is only a hint and may be lost. If a listener may have missed messages, it is told so and reads
// the rows again.
// A network can drop a connection without telling its ends. So each listener hears an echo of its own process
// about once a second, and connects again if there is none.
// Messages use connections of their own and are never part of a transaction, so no transaction waits for
// them.

import type { Client, Notification } from "pg";
import { grownPause } from "../../core/backoff.ts";
import { TRANSPORT_MESSAGE_MAX_BYTES } from "../sql.ts";
import { type Connecting, connectClient, endClient } from "./connection.ts";
import type { Outage } from "./pool.ts";
import { asPostgresProblem } from "./problems.ts";

/** Maximum number of messages per statement. */
const BATCH_MAX = 256;
/** Maximum number of messages that wait to be sent. Further messages are dropped. */
const PENDING_MAX = 10_000;
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

/** A connection for short queries outside transactions. It is opened on first use. */
export class SideConnection {
  readonly #connecting: Connecting;
  readonly #outage: Outage;
  #client: Client | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(connecting: Connecting, outage: Outage) {
    this.#connecting = connecting;
    this.#outage = outage;
  }

  /**
   * Runs a statement and returns its rows. Calls `onSent` when the statement is sent, which is after all
   * earlier statements were answered.
   */
  query(text: string, values: unknown[], onSent?: () => void): Promise<Record<string, unknown>[]> {
    const answer = this.#turn.then(async () => {
      try {
        const client = await this.#getClient();
        onSent?.();
        return (await client.query({ text, values })).rows as Record<string, unknown>[];
      } catch (error) {
        this.#drop();
        throw asPostgresProblem(error, this.#connecting.address);
      }
    });
    this.#turn = answer.catch(() => {});
    return answer;
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#client !== undefined) await endClient(this.#client, this.#connecting.world);
  }

  async #getClient(): Promise<Client> {
    if (this.#closed) throw new Error("the store is closed");
    if (this.#client !== undefined) return this.#client;
    const client = await connectClient(this.#connecting, { query_timeout: QUERY_TIMEOUT_MS });
    this.#outage.noteMade();
    client.on("error", (error) => {
      if (!this.#closed) this.#outage.noteLost(error);
      if (this.#client === client) this.#drop();
    });
    this.#client = client;
    return client;
  }

  #drop(): void {
    if (this.#client !== undefined) void endClient(this.#client, this.#connecting.world);
    this.#client = undefined;
  }
}

/** Sends messages in order. Messages that arrive in quick succession share a statement. */
export class Notifier {
  readonly #side: SideConnection;
  readonly #connecting: Connecting;
  readonly #sender: string;
  /** Pairs of a channel and a message. */
  #pending: (readonly [string, string])[] = [];
  #sending: Promise<void> | undefined;
  #count = 0;
  /** Number of messages lost since messages were last sent successfully. */
  #lostCount = 0;
  #lostInAll = 0;
  /** Error that caused the latest loss of messages. */
  #lostFor: unknown;

  constructor(side: SideConnection, connecting: Connecting, sender: string) {
    this.#side = side;
    this.#connecting = connecting;
    this.#sender = sender;
  }

  /**
   * Sends messages. Rejects if any of them is lost. The caller must then make the other processes read the
   * rows again.
   */
  async notify(
    texts: readonly string[],
    channel = channelOf(this.#connecting.address.schema),
  ): Promise<void> {
    const lostBefore = this.#lostInAll;
    const tooLong = texts.find((text) => Buffer.byteLength(text) > TRANSPORT_MESSAGE_MAX_BYTES);
    if (tooLong !== undefined)
      throw new Error(`a text of ${tooLong.length} characters is too long for one message between processes`);
    const room = PENDING_MAX - this.#pending.length;
    if (texts.length > room) this.#noteLost(texts.length - room, new Error("too many messages are waiting"));
    for (const text of texts.slice(0, Math.max(0, room))) {
      // Each message gets a number, because PostgreSQL merges identical messages of one statement.
      this.#count += 1;
      this.#pending.push([channel, `${this.#sender}.${this.#count.toString(36)}:${text}`]);
    }
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    await this.#sending;
    if (this.#lostInAll !== lostBefore) throw this.#lostFor;
  }

  async #send(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.slice(0, BATCH_MAX);
      this.#pending = this.#pending.slice(BATCH_MAX);
      const text =
        "select pg_notify(channel, one) from unnest($1::text[], $2::text[]) as pair (channel, one)";
      try {
        await this.#side.query(
          text,
          [0, 1].map((at) => batch.map((pair) => pair[at])),
        );
        if (this.#lostCount > 0) {
          this.#connecting.world.log.info(
            { count: this.#lostCount },
            "messages to other processes are delivered again",
          );
        }
        this.#lostCount = 0;
      } catch (error) {
        this.#noteLost(batch.length, error);
      }
    }
  }

  /** Logs one warning per outage, because many messages may be lost during an outage. */
  #noteLost(count: number, reason: unknown): void {
    if (this.#lostCount === 0) {
      this.#connecting.world.log.warn({ err: reason, count }, "messages to other processes were lost");
    }
    this.#lostCount += count;
    this.#lostInAll += count;
    this.#lostFor = reason;
  }
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
    client.on("notification", (message) => this.#hear(message));
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

  #hear({ payload = "" }: Notification): void {
    this.#sentAt = undefined;
    this.#lostAt = undefined;
    const colon = payload.indexOf(":");
    if (colon < 0 || payload.startsWith(`${this.#sender}.`)) return;
    this.#call(() => this.#onText(payload.slice(colon + 1)));
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
