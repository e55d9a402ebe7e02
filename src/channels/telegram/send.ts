// Owns sending to Telegram: text, typing signs, topics. An unreadable or missing answer does not count as a
// failure (I5): the platform can't recognise a second attempt. Refusals are reported in the server's own
// words, without the token.
// TS3: link previews are disabled: a URL could leak data to a stranger.

import { fieldsOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/session.ts";
import { head } from "../../core/text/cut.ts";
import type { DeliveryOutcome, OpenedThread } from "../channel.ts";
import { type Bot, type Called, idOf, type Refusal } from "./bot.ts";
import { anyTopicField, type TelegramTarget, topicField } from "./target.ts";
import { type TelegramText, telegramText } from "./text.ts";

const TOPIC_CHARS_MAX = 128;
/** The longest pause that the platform can request. */
const AFTER_MAX_MS = 24 * 3_600_000;

/** Whether the bot's token is wrong or was revoked. */
export function isTokenWrong({ code }: Refusal): boolean {
  return code === 401 || code === 404;
}

/** Returns the reason as text for people. */
export function tokenWords({ code }: Refusal): string {
  return code === 401
    ? "Telegram does not accept the bot's token: get a new one from @BotFather"
    : "there is no such bot at this Bot API server: the token or apiRoot is wrong";
}

function isMarkupRefused({ code, why }: Refusal): boolean {
  return code === 400 && /\b(?:entit(?:y|ies)|parse)\b|ENTITY_/i.test(why);
}

/** Classifies a refusal: permanent, temporary or unknown. */
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
  // A proxy timed out: the server behind it may have sent the text.
  if (code === 504) return { kind: "unknown", error };
  return code >= 500 ? { kind: "retry", error } : { kind: "refused", error };
}

function sendOnce(place: TelegramTarget, { text, entities }: TelegramText): Promise<Called<unknown>> {
  return place.bot.call((methods, signal) =>
    methods.sendMessage(
      {
        chat_id: place.chatId,
        text,
        ...topicField(place),
        ...(entities.length === 0 ? {} : { entities: [...entities] }),
        link_preview_options: { is_disabled: true },
      },
      signal,
    ),
  );
}

/** Sends one part of a text. */
export async function sendText(place: TelegramTarget, markdown: string): Promise<DeliveryOutcome> {
  let at = place;
  let text = telegramText(markdown);
  let sent = await sendOnce(at, text);
  // Retries once with the new id of a group that became a supergroup.
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

/** Shows a typing sign for five seconds. */
export async function showTyping(place: TelegramTarget): Promise<void> {
  await place.bot.call((methods, signal) =>
    methods.sendChatAction({ chat_id: place.chatId, action: "typing", ...anyTopicField(place) }, signal),
  );
}

/** Describes a failed call for a person. */
export function failureWords(called: Exclude<Called<unknown>, { kind: "done" }>): string {
  if (called.kind !== "refused") return `Telegram: ${called.why}`;
  return isTokenWrong(called) ? tokenWords(called) : `Telegram refused: ${called.why}`;
}

async function createTopic(bot: Bot, chatId: string, title: string): Promise<Result<string>> {
  const name = head(title.replace(/\s+/g, " ").trim(), TOPIC_CHARS_MAX) || "Topic";
  const made = await bot.call((methods, signal) =>
    methods.createForumTopic({ chat_id: chatId, name }, signal),
  );
  if (made.kind !== "done") {
    const isRight = made.kind === "refused" && made.code === 400 && /rights|admin/i.test(made.why);
    const hint = "make the bot an administrator of the group with the right to manage topics";
    return fail(
      "channel_failed",
      `the topic could not be created: ${failureWords(made)}`,
      isRight ? { hint } : {},
    );
  }
  const id = idOf(fieldsOf(made.value).message_thread_id);
  return id === undefined
    ? fail("channel_failed", "Telegram did not return the id of the new topic")
    : ok(id);
}

/** Creates a topic in a forum; elsewhere there are none, and the chat itself is used. */
export async function openTopic(
  { bot, chatId }: TelegramTarget,
  at: Route,
  title: string,
): Promise<Result<OpenedThread>> {
  const asked = await bot.call((methods, signal) => methods.getChat({ chat_id: chatId }, signal));
  if (asked.kind !== "done")
    return fail("channel_failed", `the topic could not be created: ${failureWords(asked)}`);
  const route = { channel: at.channel, to: chatId, accountId: bot.accountId };
  if (fieldsOf(asked.value).is_forum !== true || fieldsOf(asked.value).type !== "supergroup") {
    const { threadId } = at;
    return ok({ kind: "bound", route: threadId === undefined ? route : { ...route, threadId } });
  }
  const topic = await createTopic(bot, chatId, title);
  return topic.ok ? ok({ kind: "created", route: { ...route, threadId: topic.value } }) : topic;
}
