// Owns how a route is a place at Telegram: which account's bot, which chat, which topic.

import type { Route } from "../../core/session.ts";
import type { Bot } from "./bot.ts";

/** The topic that every forum has: text without a topic goes there, and text with its id nowhere. */
const GENERAL_TOPIC = 1;

export interface Place {
  readonly bot: Bot;
  /** A number, or the `@name` of a public channel or group. */
  readonly chatId: string;
  readonly topicId?: number;
}

/** The topic as a field of what is sent there. */
export function topicField({ topicId }: Place): { message_thread_id?: number } {
  return topicId === undefined || topicId === GENERAL_TOPIC ? {} : { message_thread_id: topicId };
}

/** The same where the platform takes the general topic for one like others. */
export function anyTopicField({ topicId }: Place): { message_thread_id?: number } {
  return topicId === undefined ? {} : { message_thread_id: topicId };
}

const shown = (value: string): string => JSON.stringify(value.slice(0, 100));

/** The place that a route names, or what is wrong with it. `bots`: the first is the default. */
export function placeOf(bots: readonly Bot[], { to, accountId, threadId }: Route): Place | string {
  const bot = accountId === undefined ? bots[0] : bots.find((one) => one.accountId === accountId);
  if (bot === undefined) return `no account ${shown(accountId ?? "")} of telegram is configured`;
  if (!/^(?:-?[1-9]\d{0,15}|@[A-Za-z]\w{3,31})$/.test(to)) {
    return `${shown(to)} is no chat of Telegram: a chat is a number like -1001234567890, or @name`;
  }
  if (threadId === undefined) return { bot, chatId: to };
  if (!/^[1-9]\d{0,15}$/.test(threadId)) {
    return `${shown(threadId)} is no topic of Telegram: a topic is a number`;
  }
  return { bot, chatId: to, topicId: Number(threadId) };
}
