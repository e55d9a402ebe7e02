// Owns how far an account has read: the session of the gateway that it can take up again, and the newest
// message of each channel, for when it can't.
// DK1: what is written down is never ahead of what is stored: after a crash messages come twice, not never
//      (I2).
// DK2: for a message that is settled at most a few rows are written, and for most of them none.

import { jsonOf } from "../../core/json.ts";
import type { ChannelHost } from "../channel.ts";
import { type Fields, objectOf, textOf } from "../fields.ts";
import type { GatewaySession } from "./connection.ts";
import { idOf, isNewer, numberOf } from "./fields.ts";

/** Channels whose messages are looked for after a longer absence: those that last had some. */
const CHANNELS_MAX = 100;
/** After so many settled events it is written down how far that was. */
const EVENTS_BETWEEN = 20;

const SESSION = "session";
const CHANNELS = "channels";
const lastOf = (channelId: string): string => `last:${channelId}`;

/** A session of the gateway, and the last of its events that is settled. */
export interface Resumption extends GatewaySession {
  readonly sequence: number;
  /** Whose session it is, and at which address. */
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
  /** The newest message of each channel, the one that was last active at the end. Absent: as it is stored. */
  readonly #last: Map<string, string | undefined>;
  readonly #changed = new Set<string>();
  #session: Resumption | undefined;
  #unwritten = 0;

  private constructor(host: ChannelHost, accountId: string, channels: readonly string[]) {
    this.#host = host;
    this.#accountId = accountId;
    this.#last = new Map(channels.map((id) => [id, undefined]));
  }

  /** As they were last written down. */
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

  /** A session has begun, or the last one is no more. */
  async begin(session: Resumption | undefined): Promise<void> {
    this.#session = session;
    await this.write();
  }

  /** An event is settled: what it brought is stored. */
  async settled(sequence: number): Promise<void> {
    if (this.#session !== undefined && sequence > this.#session.sequence) {
      this.#session = { ...this.#session, sequence };
    }
    this.#unwritten += 1;
    if (this.#unwritten >= EVENTS_BETWEEN) await this.write();
  }

  /** A message of this channel is settled. */
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

  /** Channels that had messages, and the newest of each that is settled. */
  async channels(): Promise<[channelId: string, lastId: string][]> {
    const read: [string, string][] = [];
    for (const [channelId, lastId] of this.#last) {
      const last = lastId ?? idOf(await this.#host.cursor(this.#accountId, lastOf(channelId)));
      if (last !== undefined) read.push([channelId, last]);
    }
    return read;
  }

  /** Writes down how far it is. */
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
