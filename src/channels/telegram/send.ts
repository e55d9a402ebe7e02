// Owns what leaves to Telegram: text, that somebody is writing, topics.
// TS1: an answer that was not understood, or never came, is not taken for a failure (I5): the platform can't
//      tell a second attempt from a first one.
// TS2: what the server itself refuses is told in its words, without the token.
// TS3: links are not looked up by the platform: an address could carry off what a stranger must not learn.

import { fail, ok, type Result } from "../../core/errors.ts";
import { fieldsOf } from "../../core/json.ts";
import type { Route } from "../../core/session.ts";
import type { DeliveryOutcome, OpenedThread } from "../channel.ts";
import type { Bot, Called, Refusal } from "./bot.ts";
import { idOf } from "./fields.ts";
import { anyTopicField, type Place, topicField } from "./place.ts";
import { type TelegramText, telegramText } from "./text.ts";

const TOPIC_CHARS_MAX = 128;
/** The longest pause that the platform can ask for. */
const AFTER_MAX_MS = 24 * 3_600_000;

/** Whether the bot may do nothing at all: its token is wrong, or was taken back. */
export function isTokenWrong({ code }: Refusal): boolean {
  return code === 401 || code === 404;
}

/** The same in clear words. */
export function tokenWords({ code }: Refusal): string {
  return code === 401
    ? "Telegram does not accept the bot's token: get a new one from @BotFather"
    : "there is no such bot at this Bot API server: the token or apiRoot is wrong";
}

function isMarkupRefused({ code, why }: Refusal): boolean {
  return code === 400 && /\b(?:entit(?:y|ies)|parse)\b|ENTITY_/i.test(why);
}

/** How a refusal is meant: for good, for now, or nobody knows. */
function outcomeOf(refusal: Refusal): DeliveryOutcome {
  const { code, why, afterMs } = refusal;
  const error = `Telegram refused: ${why}`;
  if (isTokenWrong(refusal)) return { kind: "retry", error: tokenWords(refusal) };
  if (code === 429) {
    return {
      kind: "retry",
      error,
      ...(afterMs === undefined ? {} : { afterMs: Math.min(afterMs, AFTER_MAX_MS) }),
    };
  }
  // Something on the way gave up waiting: what stands behind it may have sent the text all the same.
  if (code === 504) return { kind: "unknown", error };
  return code >= 500 ? { kind: "retry", error } : { kind: "refused", error };
}

function sendOnce(place: Place, { text, entities }: TelegramText): Promise<Called<unknown>> {
  return place.bot.call((methods, signal) =>
    methods.sendMessage(
      {
        ...{ chat_id: place.chatId, text, ...topicField(place) },
        ...(entities.length === 0 ? {} : { entities: [...entities] }),
        link_preview_options: { is_disabled: true },
      },
      signal,
    ),
  );
}

/** Sends one part of a text. */
export async function sendText(place: Place, markdown: string): Promise<DeliveryOutcome> {
  let at = place;
  let text = telegramText(markdown);
  let sent = await sendOnce(at, text);
  // A group that became a supergroup is called by its new id, once.
  if (sent.kind === "refused" && sent.movedTo !== undefined) {
    at = { ...at, chatId: sent.movedTo };
    sent = await sendOnce(at, text);
  }
  if (sent.kind === "refused" && text.entities.length > 0 && isMarkupRefused(sent)) {
    text = { text: text.text, entities: [] };
    sent = await sendOnce(at, text);
  }
  switch (sent.kind) {
    case "done":
      return { kind: "sent" };
    case "refused":
      return outcomeOf(sent);
    case "unreached":
      return { kind: "retry", error: `Telegram: ${sent.why}` };
    case "unknown":
      return { kind: "unknown", error: `Telegram: ${sent.why}; the text may have arrived` };
  }
}

/** Shows for five seconds that somebody is writing. */
export async function showTyping(place: Place): Promise<void> {
  await place.bot.call((methods, signal) =>
    methods.sendChatAction({ chat_id: place.chatId, action: "typing", ...anyTopicField(place) }, signal),
  );
}

/** In clear words, for a person. */
export function failureWords(called: Exclude<Called<unknown>, { kind: "done" }>): string {
  if (called.kind !== "refused") return `Telegram: ${called.why}`;
  return isTokenWrong(called) ? tokenWords(called) : `Telegram refused: ${called.why}`;
}

async function createTopic(bot: Bot, chatId: string, title: string): Promise<Result<string>> {
  const name = title.replace(/\s+/g, " ").trim().slice(0, TOPIC_CHARS_MAX).toWellFormed() || "Topic";
  const made = await bot.call((methods, signal) =>
    methods.createForumTopic({ chat_id: chatId, name }, signal),
  );
  if (made.kind !== "done") {
    const isRight = made.kind === "refused" && made.code === 400 && /rights|admin/i.test(made.why);
    const hint = "make the bot an administrator of the group who may manage topics";
    return fail("channel_failed", `no topic was made: ${failureWords(made)}`, isRight ? { hint } : {});
  }
  const id = idOf(fieldsOf(made.value).message_thread_id);
  return id === undefined ? fail("channel_failed", "Telegram made a topic and did not say which") : ok(id);
}

/** A topic of its own in a forum; elsewhere there are none, and the chat itself is taken. */
export async function openTopic(
  { bot, chatId }: Place,
  at: Route,
  title: string,
): Promise<Result<OpenedThread>> {
  const asked = await bot.call((methods, signal) => methods.getChat({ chat_id: chatId }, signal));
  if (asked.kind !== "done") return fail("channel_failed", `no topic was made: ${failureWords(asked)}`);
  const route = { channel: at.channel, to: chatId, accountId: bot.accountId };
  if (fieldsOf(asked.value).is_forum !== true || fieldsOf(asked.value).type !== "supergroup") {
    const { threadId } = at;
    return ok({ kind: "bound", route: threadId === undefined ? route : { ...route, threadId } });
  }
  const topic = await createTopic(bot, chatId, title);
  return topic.ok ? ok({ kind: "created", route: { ...route, threadId: topic.value } }) : topic;
}
