// Owns the conversion of a route to a Telegram target: bot, chat and topic.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/session.ts";
import { quoted } from "../../core/text/cut.ts";
import { accountFor } from "../account-for.ts";
import type { Bot } from "./bot.ts";

/** The general topic of every forum: text without a topic goes there, and text with its id fails. */
const GENERAL_TOPIC = 1;

export interface TelegramTarget {
  readonly bot: Bot;
  /** A number, or the `@name` of a public channel or group. */
  readonly chatId: string;
  readonly topicId?: number;
}

/** Returns the topic field for sending a text. */
export function topicField({ topicId }: TelegramTarget): { message_thread_id?: number } {
  return topicId === undefined || topicId === GENERAL_TOPIC ? {} : { message_thread_id: topicId };
}

/** Returns the topic field for calls that accept the general topic's id. */
export function anyTopicField({ topicId }: TelegramTarget): { message_thread_id?: number } {
  return topicId === undefined ? {} : { message_thread_id: topicId };
}

export const TELEGRAM = "telegram";

export const botFor = (bots: readonly Bot[]) => accountFor(TELEGRAM, bots, (bot) => bot.accountId);

/** Returns the target of a route, or what is wrong with it. */
export function targetOf(bots: readonly Bot[], { to, accountId, threadId }: Route): Result<TelegramTarget> {
  const found = botFor(bots)(accountId);
  if (!found.ok) return found;
  const bot = found.value;
  if (!/^(?:-?[1-9]\d{0,15}|@[A-Za-z]\w{3,31})$/.test(to)) {
    const error = `${quoted(to, 100)} is not a Telegram chat: use a number like -1001234567890, or @name`;
    return fail("invalid_argument", error);
  }
  if (threadId === undefined) return ok({ bot, chatId: to });
  if (!/^[1-9]\d{0,15}$/.test(threadId)) {
    return fail("invalid_argument", `${quoted(threadId, 100)} is not a Telegram topic: use a number`);
  }
  return ok({ bot, chatId: to, topicId: Number(threadId) });
}
