// Owns how a route is a place at Telegram: which account's bot, which chat, which topic.

import { fail, ok, type Result } from "../../core/errors.ts";
import type { Route } from "../../core/session.ts";
import { accountFor } from "../account-for.ts";
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

export const TELEGRAM = "telegram";

export const botFor = (bots: readonly Bot[]) => accountFor(TELEGRAM, bots, (bot) => bot.accountId);

/** The place that a route names, or what is wrong with it. */
export function placeOf(bots: readonly Bot[], { to, accountId, threadId }: Route): Result<Place> {
  const found = botFor(bots)(accountId);
  if (!found.ok) return found;
  const bot = found.value;
  if (!/^(?:-?[1-9]\d{0,15}|@[A-Za-z]\w{3,31})$/.test(to)) {
    const error = `${shown(to)} is no chat of Telegram: a chat is a number like -1001234567890, or @name`;
    return fail("invalid_argument", error);
  }
  if (threadId === undefined) return ok({ bot, chatId: to });
  if (!/^[1-9]\d{0,15}$/.test(threadId)) {
    return fail("invalid_argument", `${shown(threadId)} is no topic of Telegram: a topic is a number`);
  }
  return ok({ bot, chatId: to, topicId: Number(threadId) });
}
