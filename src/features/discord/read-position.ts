// Stores the read position of an account: the gateway session to resume, and, if it can no longer be resumed,
// the newest message of each channel.
// DK1: the stored position is never ahead of the stored messages: after a crash, some messages arrive twice,
//      but none is lost (I2).
// Settling a message writes at most a few rows; for most messages it writes none.

import type { ChannelHost } from "../../channels/channel.ts";
import { type Fields, jsonOf, numberOf, objectOf, textOf } from "../../core/json.ts";
import type { GatewaySession } from "./connection.ts";
import { idOf, isNewer } from "./ids.ts";

/**
 * Maximum number of channels whose missed messages are read. Channels with the latest messages are preferred.
 */
const CHANNELS_MAX = 100;
/** Number of events that are settled between two writes of the position. */
const EVENTS_BETWEEN = 20;

const SESSION = "session";
const CHANNELS = "channels";
const lastOf = (channelId: string): string => `last:${channelId}`;

/** A gateway session that can be resumed, with its last settled event. */
export interface Resumption extends GatewaySession {
  readonly sequence: number;
  /** The bot and the API URL to which the session belongs. */
  readonly botId: string;
  readonly restUrl: string;
}

function resumptionIn(value: Fields | undefined): Resumption | undefined {
  const [id, url, sequence] = [textOf(value?.id), textOf(value?.url), numberOf(value?.sequence)];
  const [botId, restUrl] = [idOf(value?.botId), textOf(value?.restUrl)];
  if (id === undefined || url === undefined || sequence === undefined) return undefined;
  return botId === undefined || restUrl === undefined ? undefined : { id, url, sequence, botId, restUrl };
}

export class Marks {
  readonly #host: ChannelHost;
  readonly #accountId: string;
  /**
   * For each channel, the newest message that was settled since this process started, or undefined if there
   * is none. The channel with the latest message is last.
   */
  readonly #last: Map<string, string | undefined>;
  readonly #changed = new Set<string>();
  #session: Resumption | undefined;
  #unwritten = 0;

  private constructor(host: ChannelHost, accountId: string, channels: readonly string[]) {
    this.#host = host;
    this.#accountId = accountId;
    this.#last = new Map(channels.map((id) => [id, undefined]));
  }

  static async read(host: ChannelHost, accountId: string): Promise<Marks> {
    const list = jsonOf((await host.cursor(accountId, CHANNELS)) ?? "");
    const channels = Array.isArray(list) ? list.flatMap((id) => idOf(id) ?? []) : [];
    const marks = new Marks(host, accountId, channels.slice(-CHANNELS_MAX));
    marks.#session = resumptionIn(objectOf(jsonOf((await host.cursor(accountId, SESSION)) ?? "")));
    return marks;
  }

  get session(): Resumption | undefined {
    return this.#session;
  }

  /** Stores that a session began, or, with undefined, that the last session is lost. */
  async begin(session: Resumption | undefined): Promise<void> {
    this.#session = session;
    await this.write();
  }

  /** Notes that an event is settled, which means that its messages are stored. */
  async settled(sequence: number): Promise<void> {
    if (this.#session !== undefined && sequence > this.#session.sequence) {
      this.#session = { ...this.#session, sequence };
    }
    this.#unwritten += 1;
    if (this.#unwritten >= EVENTS_BETWEEN) await this.write();
  }

  /** Notes that a message of this channel is settled. */
  async passed(channelId: string, messageId: string): Promise<void> {
    const isNew = !this.#last.has(channelId);
    const before = this.#last.get(channelId);
    if (before !== undefined && !isNewer(messageId, before)) return;
    this.#last.delete(channelId);
    this.#last.set(channelId, messageId);
    this.#changed.add(channelId);
    const [oldest] = this.#last.keys();
    if (this.#last.size > CHANNELS_MAX && oldest !== undefined) {
      this.#last.delete(oldest);
      this.#changed.delete(oldest);
    }
    if (isNew) await this.write();
  }

  /** Returns the channels in which messages were settled, each with the newest of these messages. */
  async channels(): Promise<[channelId: string, lastId: string][]> {
    const read: [string, string][] = [];
    for (const [channelId, lastId] of this.#last) {
      const last = lastId ?? idOf(await this.#host.cursor(this.#accountId, lastOf(channelId)));
      if (last !== undefined) read.push([channelId, last]);
    }
    return read;
  }

  async write(): Promise<void> {
    const note = (name: string, value: string) => this.#host.remember(this.#accountId, name, value);
    this.#unwritten = 0;
    for (const channelId of [...this.#changed]) {
      await note(lastOf(channelId), this.#last.get(channelId) ?? "");
      this.#changed.delete(channelId);
    }
    await note(CHANNELS, JSON.stringify([...this.#last.keys()]));
    await note(SESSION, JSON.stringify(this.#session ?? null));
  }
}
