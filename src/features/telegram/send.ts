// Sends to Telegram: finds the target of a route, formats text, shows typing indicators, creates topics. If
// the answer is missing or cannot be read, the outcome is unknown, not failed (I5), because the platform
// cannot detect a second attempt. A refusal is reported in the server's own words, without the token.
// TS3: link previews are disabled, because a URL could leak data to a stranger.
// Markdown becomes text and entities (ranges with a format), so there is no markup that could be invalid.
// TX1: each entity is within the text, and none is inside code.
// TX2: if a text would be too long or empty after formatting, the original Markdown is sent.

import { InlineKeyboard, InputFile } from "grammy";
import type { DeliveryOutcome, OpenedThread, OutgoingFile, OutgoingMessage } from "../../channels/channel.ts";
import { type Mark, readMarkdown, spelledOut } from "../../channels/markdown.ts";
import { type Fields, fieldsOf, integerOf, jsonOf, listOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { Choice } from "../../core/rules/command.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/session.ts";
import { head, quoted } from "../../core/text/cut.ts";
import { type Bot, type Called, idOf, type Refusal, UPLOAD_MS } from "./bot.ts";

/**
 * Id of the General topic, which every forum has. A text for it must name no topic, because Telegram rejects
 * this id.
 */
const GENERAL_TOPIC = 1;

interface TelegramTarget {
  readonly bot: Bot;
  /** Id of the chat: a number, or the `@name` of a public channel or group. */
  readonly chatId: string;
  readonly topicId?: number;
}

/** Returns the field that names the topic when a text is sent. */
function topicField({ topicId }: TelegramTarget): { message_thread_id?: number } {
  return topicId === undefined || topicId === GENERAL_TOPIC ? {} : { message_thread_id: topicId };
}

export const TELEGRAM = "telegram";

/** Returns the target of a route, or a failure for an invalid route. */
export function targetOf(bot: Bot, { to, threadId }: Route): Result<TelegramTarget> {
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

/** The platform's limit for the text of one message, in UTF-16 units. */
const TEXT_CHARS_MAX = 4_096;
/** Maximum number of entities. The platform ignores further ones. */
const ENTITIES_MAX = 100;

type Simple = "bold" | "italic" | "strikethrough" | "code" | "blockquote";

/** Formatting for a part of the text. */
type Entity = { readonly offset: number; readonly length: number } & (
  | { readonly type: Simple }
  | { readonly type: "pre"; readonly language?: string }
  | { readonly type: "text_link"; readonly url: string }
);

interface TelegramText {
  readonly text: string;
  readonly entities: readonly Entity[];
}

const SIMPLE: Readonly<Record<Exclude<Mark["kind"], "pre" | "link">, Simple>> = {
  bold: "bold",
  italic: "italic",
  strike: "strikethrough",
  code: "code",
  quote: "blockquote",
};

function entityOf({ kind, from, to, href = "", language }: Mark): Entity {
  const place = { offset: from, length: to - from };
  if (kind === "link") return { ...place, type: "text_link", url: href };
  if (kind === "pre") return { ...place, type: "pre", ...optional({ language }) };
  return { ...place, type: SIMPLE[kind] };
}

export function telegramText(markdown: string): TelegramText {
  // Only web URLs can be links. Others are written out.
  const { text, marks } = spelledOut(
    readMarkdown(markdown),
    ({ kind, href = "" }) => kind === "link" && !/^https?:/i.test(href),
  );
  if (text.length > TEXT_CHARS_MAX || text.trim() === "")
    return { text: markdown.toWellFormed(), entities: [] };
  const code = marks.filter(({ kind }) => kind === "code" || kind === "pre");
  const shown = marks.filter(
    (mark) => !code.some((one) => one !== mark && one.from <= mark.from && mark.to <= one.to),
  );
  return { text, entities: shown.slice(0, ENTITIES_MAX).map(entityOf) };
}

const TOPIC_CHARS_MAX = 128;
/** Maximum pause that the platform can request. */
const AFTER_MAX_MS = 24 * 3_600_000;

/** Returns whether the bot's token is wrong or was revoked. */
export function isTokenWrong({ code }: Refusal): boolean {
  return code === 401 || code === 404;
}

/** Describes for people why the token was refused. */
export function tokenWords({ code }: Refusal): string {
  return code === 401
    ? "Telegram does not accept the bot's token: get a new one from @BotFather"
    : "there is no such bot at this Bot API server: the token or apiRoot is wrong";
}

/** Classifies a refusal: permanent, temporary or unknown. */
function outcomeOf(refusal: Refusal): DeliveryOutcome {
  const { code, why, afterMs } = refusal;
  const error = `Telegram refused: ${why}`;
  if (isTokenWrong(refusal)) return { kind: "retry", error: tokenWords(refusal) };
  if (code === 429) {
    return { kind: "retry", error, ...optional({ afterMs: afterMs && Math.min(afterMs, AFTER_MAX_MS) }) };
  }
  // A proxy timed out, but the server behind it may have sent the text.
  if (code === 504) return { kind: "unknown", error };
  return code >= 500 ? { kind: "retry", error } : { kind: "refused", error };
}

type SendOnce = (place: TelegramTarget, text: TelegramText) => Promise<Called<unknown>>;

/** Returns the fields of a text message that are the same for a new and for an edited one. */
const textFields = ({ chatId }: TelegramTarget, { text, entities }: TelegramText) => ({
  chat_id: chatId,
  text,
  ...(entities.length === 0 ? {} : { entities: [...entities] }),
  link_preview_options: { is_disabled: true },
});

const textOnce =
  (choices: readonly Choice[]): SendOnce =>
  (place, text) =>
    place.bot.call((methods, signal) => {
      const keyboard = choices.length === 0 ? {} : { reply_markup: keyboardOf(choices, place.bot) };
      return methods.sendMessage({ ...textFields(place, text), ...topicField(place), ...keyboard }, signal);
    });

/** Number of buttons in one row. */
const ROW = 2;

/**
 * Returns the buttons. The data of a button is its command and the time at which it is sent: Telegram does
 * not say when a button was pressed, so its times and ours can't be compared.
 */
function keyboardOf(choices: readonly Choice[], { clock }: Bot): InlineKeyboard {
  const keyboard = new InlineKeyboard();
  const seconds = Math.floor(clock.now() / 1_000).toString(36);
  choices.forEach(({ label, command }, at) => {
    if (at > 0 && at % ROW === 0) keyboard.row();
    keyboard.text(label, `${command}#${seconds}`);
  });
  return keyboard;
}

/** Adds a text to the message of a press. Undefined if that would be too long. */
function addedTo(pressed: Fields, { text, entities }: TelegramText): TelegramText | undefined {
  const before = `${textOf(pressed.text) ?? ""}\n\n`;
  const moved = entities.map((entity) => ({ ...entity, offset: entity.offset + before.length }));
  const whole = `${before}${text}`;
  if (whole.length > TEXT_CHARS_MAX) return undefined;
  // Telegram sent these entities itself.
  const kept = listOf(pressed.entities) as Entity[];
  return { text: whole, entities: [...kept, ...moved].slice(0, ENTITIES_MAX) };
}

/** Changes the message of a press. Undefined if that is impossible, for example because it was deleted. */
async function edit(
  place: TelegramTarget,
  answers: string,
  added: TelegramText,
  choices: readonly Choice[],
): Promise<DeliveryOutcome | undefined> {
  const pressed = fieldsOf(jsonOf(answers));
  const text = addedTo(pressed, added);
  const message_id = integerOf(pressed.id);
  if (text === undefined || message_id === undefined) return undefined;
  const { bot } = place;
  const fields = { ...textFields(place, text), message_id, reply_markup: keyboardOf(choices, bot) };
  const edited = await bot.call((methods, signal) => methods.editMessageText(fields, signal));
  if (edited.kind === "done") return { kind: "sent" };
  if (edited.kind !== "refused") return { kind: "retry", error: `Telegram: ${edited.why}` };
  // An earlier attempt has changed it.
  if (/message is not modified/i.test(edited.why)) return { kind: "sent" };
  const outcome = outcomeOf(edited);
  return outcome.kind === "retry" ? outcome : undefined;
}

/** Types that Telegram shows as photos. It keeps the quality and the name of other files. */
const PHOTO_TYPES = ["image/png", "image/jpeg", "image/webp"];

/** Sends a file with its caption. A picture that is no photo for Telegram is sent as a document. */
const fileOnce =
  ({ name, mimeType, data }: OutgoingFile): SendOnce =>
  async (place, { text, entities }) => {
    const fields = {
      chat_id: place.chatId,
      ...topicField(place),
      ...(text === "" ? {} : { caption: text }),
      ...(entities.length === 0 ? {} : { caption_entities: [...entities] }),
    };
    const limit = { timeoutMs: UPLOAD_MS };
    const photo = PHOTO_TYPES.includes(mimeType)
      ? await place.bot.call(
          (methods, signal) => methods.sendPhoto({ ...fields, photo: new InputFile(data, name) }, signal),
          limit,
        )
      : undefined;
    // Telegram refuses a file as a photo, for example because it is too wide.
    const isRefused = photo?.kind === "refused" && photo.code === 400 && /photo|image/i.test(photo.why);
    if (photo !== undefined && !isRefused) return photo;
    return place.bot.call(
      (methods, signal) => methods.sendDocument({ ...fields, document: new InputFile(data, name) }, signal),
      limit,
    );
  };

/** Sends one part of a text, or adds it to the message of a press. */
export async function sendText(
  place: TelegramTarget,
  markdown: string,
  { choices = [], answers }: Pick<OutgoingMessage, "choices" | "answers"> = {},
): Promise<DeliveryOutcome> {
  const text = telegramText(markdown);
  const edited = answers === undefined ? undefined : await edit(place, answers, text, choices);
  return edited ?? send(place, text, textOnce(choices));
}

export function sendFile(
  place: TelegramTarget,
  caption: string,
  file: OutgoingFile,
): Promise<DeliveryOutcome> {
  const text = caption === "" ? { text: "", entities: [] } : telegramText(caption);
  return send(place, text, fileOnce(file));
}

async function send(
  place: TelegramTarget,
  whole: TelegramText,
  sendOnce: SendOnce,
): Promise<DeliveryOutcome> {
  let at = place;
  let text = whole;
  let sent = await sendOnce(at, text);
  // If the group became a supergroup, retry once with the group's new id.
  if (sent.kind === "refused" && sent.movedTo !== undefined) {
    at = { ...at, chatId: sent.movedTo };
    sent = await sendOnce(at, text);
  }
  const isMarkupRefused =
    sent.kind === "refused" && sent.code === 400 && /\b(?:entit(?:y|ies)|parse)\b|ENTITY_/i.test(sent.why);
  if (text.entities.length > 0 && isMarkupRefused) {
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

/** Shows a typing indicator for five seconds. */
export async function showTyping({ bot, chatId, topicId }: TelegramTarget): Promise<void> {
  // This call also accepts the id of the General topic.
  const topic = optional({ message_thread_id: topicId });
  await bot.call((methods, signal) =>
    methods.sendChatAction({ chat_id: chatId, action: "typing", ...topic }, signal),
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

/** Creates a topic in a forum. In a chat without topics, returns the chat itself. */
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
