// Listens for one account: looks up the bot's identity, keeps one connection open, and handles each event.
// DN1: after a short interruption Discord sends the events again that are not settled (stored). After a
//      longer one, missed messages are read before newer events are handled (I2).
// DN2: a new session is stored only after the messages that were missed before it are stored.
// DN3: Discord requests a new connection from time to time. This is a failure only if it happens often in a
//      short time.

import { accountName, type ListenPort, ListenProblem } from "../../channels/accounts.ts";
import { type ChannelHost, TOO_SOON } from "../../channels/channel.ts";
import { type Frame, Pump } from "../../channels/pump.ts";
import { type Fields, numberOf, objectOf, textOf } from "../../core/json.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { catchUp } from "./catch-up.ts";
import type { Places } from "./channel-cache.ts";
import { writeMenu } from "./commands.ts";
import { type Ending, type GatewaySession, holdConnection } from "./connection.ts";
import type { DiscordAccount } from "./discord.ts";
import { idOf } from "./ids.ts";
import { DISCORD, type DiscordAccountContext, readCommand, readMessage } from "./incoming.ts";
import { DiscordProblem, patiently, TOKEN_WORDS } from "./problem.ts";
import { Marks } from "./read-position.ts";
import type { Rest } from "./rest.ts";

/**
 * Bit flags of the events that Discord should send: guilds with their channels and threads, messages in
 * guilds and in direct chats, and the content of messages.
 */
const INTENTS = (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15);

/** Maximum number of reconnects within RECONNECTS_WITHIN_MS. If there are more, listening has failed. */
const RECONNECTS_MAX = 3;
const RECONNECTS_WITHIN_MS = 60_000;

/** One account, with its REST client and its cached channels. */
export interface DiscordClient {
  readonly account: DiscordAccount;
  readonly host: ChannelHost;
  readonly rest: Rest;
  readonly places: Places;
}

/**
 * Close codes for which retries cannot help: somebody must change the settings, or the bot in Discord's
 * portal.
 */
const LASTING: Readonly<Record<number, string>> = {
  4004: TOKEN_WORDS,
  4010: "Discord rejects the shard number of this connection",
  4011: "the bot is in too many servers for one connection, and Parley opens one per bot",
  4012: "Discord no longer supports this protocol version: update Parley",
  4013: "Discord does not know the intents that the bot requests: update Parley",
  4014:
    "Discord does not let the bot read messages: switch on Message Content Intent in the developer portal, " +
    "under Bot, Privileged Gateway Intents",
};
/** Close codes after which the session cannot be resumed. */
const SESSION_LOST = [1000, 1001, 4003, 4007, 4009];

function listenProblem(error: unknown): unknown {
  if (!(error instanceof DiscordProblem)) return error;
  return new ListenProblem(error.message, error.kind === "token" || error.kind === "refused");
}

export async function whoAmI(
  { rest }: Pick<DiscordClient, "rest">,
  signal?: AbortSignal,
): Promise<{ id: string; name: string }> {
  const user = await rest.ask((api, inner) => api.users.getCurrent({ signal: inner }), signal);
  const id = idOf((user as { id?: unknown }).id);
  if (id === undefined) throw new DiscordProblem("refused", "the server at restUrl is not Discord");
  return { id, name: safeLine(textOf(user.username) ?? id) };
}

/**
 * Returns whether the token may be sent to this URL. The URL must be encrypted, unless `restUrl` is
 * unencrypted, too.
 */
function isSafe(url: string, restUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol } = new URL(url);
  return protocol === "wss:" || (protocol === "ws:" && restUrl.startsWith("http:"));
}

/** Returns the URL for a new session. Fails if Discord allows the bot no more sessions today. */
async function gatewayUrl({ rest, account }: DiscordClient, signal: AbortSignal): Promise<string> {
  const answer = await rest.ask((api, inner) => api.gateway.getBot({ signal: inner }), signal);
  const { url, session_start_limit: limit } = answer as unknown as Fields;
  const address = textOf(url) ?? "";
  if (!isSafe(address, account.restUrl)) {
    throw new ListenProblem("Discord returned no usable gateway URL");
  }
  if (numberOf(objectOf(limit)?.remaining) === 0) {
    const minutes = Math.ceil((numberOf(objectOf(limit)?.reset_after) ?? 0) / 60_000);
    throw new ListenProblem(`the bot has connected too often today; retry in ${minutes} min`, true);
  }
  return address;
}

function endProblem(ending: Ending): ListenProblem {
  if (ending.kind !== "closed") return new ListenProblem("Discord's gateway did not answer in time");
  const lasting = LASTING[ending.code];
  if (lasting !== undefined) return new ListenProblem(lasting, true);
  const words = safeLine(head(ending.words ?? "", 120));
  return new ListenProblem(
    `Discord's gateway closed the connection (${ending.code}${words === "" ? "" : `, ${words}`})`,
  );
}

/** Listens until the signal is aborted. Throws a `ListenProblem` if it fails. */
export async function listenToDiscord(line: DiscordClient, ear: ListenPort): Promise<void> {
  try {
    const me = await whoAmI(line, ear.signal);
    const marks = await Marks.read(line.host, line.account.accountId);
    await new Listening(line, ear, marks, me.id).run();
  } catch (error) {
    throw listenProblem(error);
  }
}

/** A button that appeared less than this time ago can't be pressed: another one may have been meant. */
const PRESS_AFTER_MS = 1_000;

class Listening {
  readonly #line: DiscordClient;
  readonly #ear: ListenPort;
  readonly #marks: Marks;
  readonly #botId: string;
  readonly #pump: Pump;
  readonly #reader: DiscordAccountContext;
  #menu: Promise<void> | undefined;
  /**
   * A new session. It is kept here, and not stored, until the messages that were missed before it are read.
   */
  #beginning: GatewaySession | undefined;

  constructor(line: DiscordClient, ear: ListenPort, marks: Marks, botId: string) {
    this.#line = line;
    this.#ear = ear;
    this.#marks = marks;
    this.#botId = botId;
    const { account, places, host } = line;
    const { accountId, restUrl } = account;
    this.#pump = new Pump(host, accountName(DISCORD, accountId), ear.signal);
    const { signal } = ear;
    this.#reader = { accountId, botId, restUrl, places, signal, clock: host.world.clock };
  }

  async run(): Promise<void> {
    try {
      await this.#connections();
    } catch (error) {
      this.#pump.fail(error);
    }
    await this.#pump.end().finally(async () => {
      await this.#menu;
      // If this fails, no harm is done: Discord sends the events again that are not recorded as settled.
      await this.#marks.write().catch((error: unknown) => {
        this.#line.host.world.log.warn({ err: error }, "the read position of Discord could not be stored");
      });
    });
  }

  async #connections(): Promise<void> {
    const { clock } = this.#line.host.world;
    const { signal } = this.#pump;
    let endings: number[] = [];
    while (!signal.aborted) {
      const url = await gatewayUrl(this.#line, signal);
      const session = await this.#session();
      let wasReady = false;
      const ending = await this.#connect(url, session, () => {
        wasReady = true;
      });
      await this.#pump.idle();
      if (ending.kind === "stopped" || signal.aborted) return;
      const isLost = ending.kind === "closed" && SESSION_LOST.includes(ending.code);
      // Do not try again to resume a session that could not be resumed.
      if (isLost || (session !== undefined && !wasReady)) await this.#marks.begin(undefined);
      if (ending.kind === "closed" && LASTING[ending.code] !== undefined) throw endProblem(ending);
      const now = clock.monotonic();
      endings = [...endings.filter((at) => now - at < RECONNECTS_WITHIN_MS), now];
      if (endings.length > RECONNECTS_MAX || (!wasReady && session === undefined)) throw endProblem(ending);
    }
  }

  /**
   * Returns the session to resume. If it belongs to another bot or address, forgets it and returns undefined.
   */
  async #session(): Promise<GatewaySession | undefined> {
    const { session } = this.#marks;
    const { restUrl } = this.#line.account;
    if (session === undefined) return undefined;
    if (session.botId === this.#botId && session.restUrl === restUrl && isSafe(session.url, restUrl)) {
      return session;
    }
    await this.#marks.begin(undefined);
    return undefined;
  }

  #connect(url: string, session: GatewaySession | undefined, wasReady: () => void): Promise<Ending> {
    const { account, host } = this.#line;
    const parts = {
      world: host.world,
      token: account.token,
      intents: INTENTS,
      url,
      session,
      settled: () => this.#marks.session?.sequence ?? 0,
      begun: (begun: GatewaySession | undefined) => {
        this.#beginning = begun;
        if (begun === undefined) this.#pump.push({ take: () => this.#marks.begin(undefined) });
      },
      ready: (how: "anew" | "resumed") => {
        wasReady();
        this.#ear.ready();
        this.#menu ??= writeMenu(this.#line.rest, host, this.#pump.signal);
        if (how === "anew") this.#pump.push({ take: () => this.#begin() });
      },
      event: (type: string, data: Fields, sequence: number) => {
        this.#pump.push(this.#frameOf(type, data, sequence));
      },
    };
    return holdConnection(parts, this.#pump.signal);
  }

  /** Reads missed messages. Only then stores the session, so that it can be resumed. */
  async #begin(): Promise<void> {
    const { rest, places, host, account } = this.#line;
    const { signal } = this.#pump;
    const around = { world: host.world, rest, places, marks: this.#marks, signal };
    await catchUp(around, async (message) => {
      const messageId = await this.#take(message, false);
      await this.#movePosition(message, messageId);
    });
    const begun = this.#beginning;
    if (begun === undefined) return;
    const { restUrl } = account;
    await this.#marks.begin({ ...begun, sequence: 0, botId: this.#botId, restUrl });
  }

  /** Moves the read position of a channel behind a stored message. */
  async #movePosition(data: Fields, messageId: string | undefined): Promise<void> {
    const channelId = idOf(data.channel_id);
    if (channelId !== undefined && messageId !== undefined) await this.#marks.passed(channelId, messageId);
  }

  #frameOf(type: string, data: Fields, sequence: number): Frame {
    const { author, user, member } = data;
    const person = idOf((objectOf(author) ?? objectOf(user) ?? objectOf(objectOf(member)?.user))?.id);
    const lane = `${idOf(data.channel_id)} ${person}`;
    let messageId: string | undefined;
    const acknowledge = async (): Promise<void> => {
      await this.#movePosition(data, messageId);
      await this.#marks.settled(sequence);
    };
    switch (type) {
      case "MESSAGE_CREATE":
        return { lane, take: async () => (messageId = await this.#take(data, false)), acknowledge };
      case "MESSAGE_UPDATE":
        return { lane, take: () => this.#take(data, true), acknowledge };
      case "INTERACTION_CREATE":
        return { lane, take: () => this.#takeCommand(data), acknowledge };
      // The library reports it after events that follow it, so it must not replace their acknowledgement.
      case "READY":
        return { take: async () => {}, acknowledge };
      default:
        this.#line.places.learn(type, data);
        return { acknowledge };
    }
  }

  /** Calls `read`. Skips an event that cannot be read, but rethrows the failure of a request to Discord. */
  async #read<T>(read: () => Promise<T | undefined>): Promise<T | undefined> {
    const { world } = this.#line.host;
    try {
      return await patiently(world, this.#pump.signal, read);
    } catch (error) {
      if (error instanceof DiscordProblem || this.#pump.signal.aborted) throw error;
      world.log.warn(
        { err: error, channel: "discord" },
        "an event from Discord could not be read; it is skipped",
      );
      return undefined;
    }
  }

  /** Stores a message, and returns its id. */
  async #take(data: Fields, isUpdate: boolean): Promise<string | undefined> {
    const message = await this.#read(() => readMessage(data, this.#reader, isUpdate));
    if (message !== undefined) await this.#pump.store(message);
    return message?.messageId;
  }

  async #takeCommand(data: Fields): Promise<void> {
    const { rest } = this.#line;
    const called = await this.#read(() => readCommand(data, this.#reader));
    if (called === undefined) return;
    const { id, token, message, pressed } = called;
    let words = message === undefined ? "I can't answer here." : "Taken.";
    let isDone = message !== undefined && pressed !== undefined;
    const refuse = (why: string): void => {
      words = why;
      isDone = false;
    };
    if (message !== undefined && pressed === undefined) await this.#pump.store(message);
    else if (message !== undefined && pressed !== undefined) {
      // Both times are Discord's.
      if (message.sentAt - pressed.shownAt < PRESS_AFTER_MS) refuse(TOO_SOON);
      else await this.#pump.store({ ...message, pressed: { message: pressed.message, refuse } });
    }
    // This flag shows the answer only to the sender. Failures are ignored, because an old command can no
    // longer be answered.
    const body = { content: words, flags: 1 << 6 };
    rest
      .ask((api, signal) =>
        isDone
          ? api.interactions.deferMessageUpdate(id, token, {}, { signal })
          : api.interactions.reply(id, token, body, { signal }),
      )
      .catch(() => {});
  }
}
