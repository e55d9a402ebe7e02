// Owns what processes tell each other through the database: short texts, heard by all the others.
// WI1: a text is a hint: it may be lost. Whoever listens learns of a gap, and looks at the rows.
// WI2: it travels on connections of its own: no transaction waits for it or carries it.
// WI3: a process does not hear itself.

import type { Client, Notification } from "pg";
import { type Connecting, connectClient, endClient } from "./postgres-connection.ts";
import type { Outage } from "./postgres-pool.ts";
import { asPostgresProblem } from "./postgres-problems.ts";
import { TRANSPORT_MESSAGE_MAX_BYTES } from "./sql.ts";

/** Texts of one statement, and those that may wait for it; what comes on top is lost. */
const BATCH_MAX = 256;
const PENDING_MAX = 10_000;
const ASK_TIMEOUT_MS = 3_000;
const RECONNECT_MIN_MS = 100;
const RECONNECT_MAX_MS = 5_000;

/** The name under which the processes of one schema hear each other. */
function channelOf(schema: string): string {
  return `parley:${schema}`;
}

/** One connection for short questions outside transactions, made when it is needed. */
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

  /** The statement's rows. `onSent` is called when it goes out: who came before has been answered. */
  ask(text: string, values: unknown[], onSent?: () => void): Promise<Record<string, unknown>[]> {
    const answer = this.#turn.then(async () => {
      try {
        const client = await this.#connected();
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

  async #connected(): Promise<Client> {
    if (this.#closed) throw new Error("the store is closed");
    if (this.#client !== undefined) return this.#client;
    const client = await connectClient(this.#connecting, { query_timeout: ASK_TIMEOUT_MS });
    this.#outage.made();
    client.on("error", (error) => {
      if (!this.#closed) this.#outage.lost(error);
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

/** Sends texts in the order in which they are given, many in one statement when they come fast. */
export class Notifier {
  readonly #side: SideConnection;
  readonly #connecting: Connecting;
  readonly #sender: string;
  #pending: string[] = [];
  #sending: Promise<void> | undefined;
  #count = 0;
  /** Texts that were lost since one was sent. */
  #lostCount = 0;
  #lostInAll = 0;
  /** Why the last ones were lost. */
  #lostFor: unknown;

  constructor(side: SideConnection, connecting: Connecting, sender: string) {
    this.#side = side;
    this.#connecting = connecting;
    this.#sender = sender;
  }

  /** Rejects when some of what was to be sent is lost: whoever sends must tell of a gap. */
  async notify(texts: readonly string[]): Promise<void> {
    const lostBefore = this.#lostInAll;
    const tooLong = texts.find((text) => Buffer.byteLength(text) > TRANSPORT_MESSAGE_MAX_BYTES);
    if (tooLong !== undefined)
      throw new Error(`a text of ${tooLong.length} characters is too long for the wire`);
    const room = PENDING_MAX - this.#pending.length;
    if (texts.length > room) this.#lost(texts.length - room, new Error("too many wait to be sent"));
    for (const text of texts.slice(0, Math.max(0, room))) {
      // Numbered, as equal texts of one statement would arrive as one.
      this.#count += 1;
      this.#pending.push(`${this.#sender}.${this.#count.toString(36)}:${text}`);
    }
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    await this.#sending;
    if (this.#lostInAll !== lostBefore) throw this.#lostFor;
  }

  async #send(): Promise<void> {
    const channel = channelOf(this.#connecting.address.schema);
    while (this.#pending.length > 0) {
      const batch = this.#pending.slice(0, BATCH_MAX);
      this.#pending = this.#pending.slice(BATCH_MAX);
      const text = "select pg_notify($1, one) from unnest($2::text[]) as one";
      try {
        await this.#side.ask(text, [channel, batch]);
        if (this.#lostCount > 0) {
          this.#connecting.world.log.info({ count: this.#lostCount }, "other processes are told again");
        }
        this.#lostCount = 0;
      } catch (error) {
        this.#lost(batch.length, error);
      }
    }
  }

  /** Said once: an outage loses many. */
  #lost(count: number, reason: unknown): void {
    if (this.#lostCount === 0) {
      this.#connecting.world.log.warn({ err: reason, count }, "other processes were not told");
    }
    this.#lostCount += count;
    this.#lostInAll += count;
    this.#lostFor = reason;
  }
}

/** A connection that listens, and comes back when it was lost. */
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
    const client = await connectClient(this.#connecting);
    const lose = (reason: unknown): void => {
      if (this.#client !== client || this.#stopped) return;
      this.#client = undefined;
      this.#outage.lost(reason);
      this.#again();
    };
    client.on("error", lose);
    client.on("end", () => lose(new Error("Connection terminated")));
    client.on("notification", (message) => this.#hear(message));
    try {
      await client.query(`listen "${channelOf(address.schema)}"`);
    } catch (error) {
      void endClient(client, this.#connecting.world);
      throw asPostgresProblem(error, address, "unreachable");
    }
    if (this.#stopped) return await endClient(client, this.#connecting.world);
    this.#client = client;
    this.#failures = 0;
    this.#outage.made();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#client !== undefined) await endClient(this.#client, this.#connecting.world);
    this.#client = undefined;
  }

  #again(): void {
    const { clock, random, log } = this.#connecting.world;
    const fullMs = Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    this.#timer = clock.at(clock.now() + fullMs * (0.5 + random() / 2), () => {
      this.connect().then(
        () => {
          if (!this.#stopped) this.#call(this.#onGap);
        },
        (error: unknown) => {
          log.debug({ err: error }, "still not listening to the other processes");
          if (!this.#stopped) this.#again();
        },
      );
    });
  }

  #hear({ payload = "" }: Notification): void {
    const colon = payload.indexOf(":");
    if (colon < 0 || payload.startsWith(`${this.#sender}.`)) return;
    this.#call(() => this.#onText(payload.slice(colon + 1)));
  }

  /** What a listener throws must not reach the connection. */
  #call(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#connecting.world.log.error({ err: error }, "a text from another process could not be handled");
    }
  }
}
