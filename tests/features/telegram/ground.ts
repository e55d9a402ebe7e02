// Runs a fake Telegram with one bot, a person who writes to the bot, a group and a forum.

import { expect } from "vitest";
import type { Channel, ChannelHost } from "../../../src/channels/channel.ts";
import { openChannel } from "../../../src/channels/registry.ts";
import type { TelegramAccount } from "../../../src/features/telegram/telegram.ts";
import {
  type ChannelGround,
  type HostParts,
  listenAt,
  type Platform,
  recordingHost,
  type Said,
  type Trouble,
} from "../../contract/channel.ts";
import { OPEN_ACCOUNT } from "../../kit/platforms/open-account.ts";
import { startTelegram, type TelegramServer } from "../../kit/platforms/telegram/server.ts";
import { type FakeBot, failed, type Json, type Upset } from "../../kit/platforms/telegram/state.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";

export const TOKEN = "123456789:AAH-not-a-real-token-of-any-bot-0";
export const USERNAME = "parley_test_bot";
export const DIRECT = 1001;
export const GROUP = -5001;
export const FORUM = -1_005_002;
export const TOPIC = 77;
export const ADA: Json = { id: DIRECT, is_bot: false, first_name: "Ada", username: "ada_l" };
const BOB: Json = { id: 1002, is_bot: false, first_name: "Bob" };

const CHATS: Readonly<Record<Said["chat"], Json>> = {
  direct: { id: DIRECT, type: "private", first_name: "Ada", username: "ada_l" },
  group: { id: GROUP, type: "group", title: "Lunch" },
  thread: { id: FORUM, type: "supergroup", title: "Work", is_forum: true },
};

export function account(apiRoot: string, more: Partial<TelegramAccount> = {}): TelegramAccount {
  return {
    ...OPEN_ACCOUNT,
    ...{ channel: "telegram", botToken: TOKEN, apiRoot },
    ...more,
  };
}

export interface TelegramGround extends ChannelGround {
  readonly server: TelegramServer;
  readonly bot: FakeBot;
  /** Returns a message with these fields. Missing fields describe a message from Ada in her own chat. */
  message(fields: Json): Json;
  /** Delivers the message. */
  brings(fields: Json): Json;
}

const TROUBLES: Readonly<Record<Trouble["kind"], (trouble: Trouble) => Upset>> = {
  limit: (trouble) => {
    const seconds = trouble.kind === "limit" ? trouble.seconds : 0;
    const why = `Too Many Requests: retry after ${seconds}`;
    return { answer: failed(429, why, { retry_after: seconds }) };
  },
  refuse: () => ({ answer: failed(403, "Forbidden: bot was blocked by the user") }),
  serverError: () => ({ answer: failed(500, "Internal Server Error: restart") }),
  cut: () => ({ answer: { status: 200, body: "", cut: true }, after: true }),
};

function entitiesOf(text: string): Json[] {
  const offset = text.indexOf(`@${USERNAME}`);
  return offset === -1 ? [] : [{ type: "mention", offset, length: USERNAME.length + 1 }];
}

/** Adds a document to the fake server. Returns the document in the form that the platform reports. */
function addFile(server: TelegramServer, { name, mimeType, bytes }: NonNullable<Said["media"]>): Json {
  const file_id = `file-${server.files.size + 1}`;
  server.files.set(file_id, { path: `documents/${file_id}.bin`, bytes });
  return { file_id, file_unique_id: file_id, file_name: name, mime_type: mimeType, file_size: bytes.length };
}

function fieldsOf(said: Said, server: TelegramServer): Json {
  const { chat, name, text, mention = false, quote, media } = said;
  const [first_name = "Ada", ...rest] = name?.split(" ") ?? [];
  const last = rest.length === 0 ? {} : { last_name: rest.join(" ") };
  const words = mention ? `@${USERNAME} ${text}` : text;
  const written =
    media === undefined
      ? { text: words, entities: entitiesOf(words) }
      : { caption: words, caption_entities: entitiesOf(words), document: addFile(server, media) };
  const answered = { message_id: 3, date: 1_789_999_000, chat: CHATS[chat], from: BOB, text: quote };
  return {
    chat: CHATS[chat],
    from: { ...ADA, first_name, ...last },
    ...written,
    ...(quote === undefined ? {} : { reply_to_message: answered }),
    ...(chat === "thread" ? { is_topic_message: true, message_thread_id: TOPIC } : {}),
  };
}

/** Starts the channel with a new server. */
export async function openGround(
  host: ChannelHost,
  more: Partial<TelegramAccount> = {},
): Promise<TelegramGround> {
  const server = await startTelegram();
  const bot = server.addBot(TOKEN, USERNAME);
  server.addChat({ id: DIRECT, type: "private" });
  server.addChat({ id: GROUP, type: "group", title: "Lunch" });
  server.addChat({ id: FORUM, type: "supergroup", title: "Work", isForum: true }).topics.add(TOPIC);
  const channel: Channel = await openChannel("telegram", [account(server.url, more)], host);
  let newest: Json = {};
  const message = (fields: Json): Json => {
    server.nextMessageId += 1;
    const id = server.nextMessageId;
    return { message_id: id, date: 1_790_000_000 + id, chat: CHATS.direct, from: ADA, ...fields };
  };
  const brings = (fields: Json): Json => {
    newest = message(fields);
    server.push(bot, { message: newest });
    return newest;
  };
  const platform: Platform = {
    says: async (said) => void brings(fieldsOf(said, server)),
    repeats: async () => void server.push(bot, { message: newest }),
    edits: async (text) => {
      const edit_date = newest.date + 60;
      server.push(bot, { edited_message: { ...newest, edit_date, text, entities: entitiesOf(text) } });
    },
    shown: () =>
      server.sent.map(({ chatId, threadId, text }) => ({
        ...{ to: String(chatId), text },
        ...(threadId === undefined ? {} : { threadId: String(threadId) }),
      })),
    next: (trouble) => void server.upsets.push(TROUBLES[trouble.kind](trouble)),
    revoke: () => server.revoke(bot),
    goAway: () => server.close(),
    typed: () => server.actions.length,
  };
  const route = (to: number) => ({ channel: "telegram", to: String(to), accountId: "default" });
  const routes = {
    direct: route(DIRECT),
    group: route(GROUP),
    thread: { ...route(FORUM), threadId: String(TOPIC) },
  };
  return { channel, platform, routes, server, bot, message, brings };
}

interface Noting extends HostParts {
  readonly world: FakeWorld;
}

/** Returns a host that records log lines. */
export function notingHost(): Noting {
  return Object.assign(recordingHost(), { world: fakeWorld({ clock: "real" }) });
}

/** Starts the channel with a listener, and records its messages and log lines. */
export async function listeningGround(more: Partial<TelegramAccount> = {}, host: Noting = notingHost()) {
  const opened = await openGround(host, more);
  const listening = async () => {
    const accounts = await listenAt(opened.channel, host);
    const status = () => accounts.statuses()[0];
    const state = (wanted: string) => expect.poll(() => status()?.state).toBe(wanted);
    return { accounts, status, state };
  };
  const texts = () => host.received.map(({ text }) => text);
  const heard = (...wanted: string[]) => expect.poll(texts).toEqual(wanted);
  const logged = (part: string) => host.world.logged.filter(({ text }) => text.includes(part));
  return { ...opened, host, listening, texts, heard, logged };
}
