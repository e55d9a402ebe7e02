// The methods of the fake Bot API server, and the errors that they return.

import { type Answer, type FakeBot, type FakeChat, failed, type Json, type TelegramState } from "./state.ts";

const done = (result: unknown): Answer => ({ status: 200, body: { ok: true, result } });
const bad = (description: string, code = 400, parameters?: Json): Answer =>
  failed(code, description, parameters);

const ENTITY_TYPES = ["bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"];

function chatOf(state: TelegramState, params: Json): FakeChat | Answer {
  const chat = state.chats.get(Number(params.chat_id));
  if (chat === undefined) return bad("Bad Request: chat not found");
  if (chat.refusal !== undefined) return bad(chat.refusal.description, chat.refusal.code);
  if (chat.movedTo === undefined) return chat;
  const moved = { migrate_to_chat_id: chat.movedTo };
  return bad("Bad Request: group chat was upgraded to a supergroup chat", 400, moved);
}

/** Finds invalid message entities, in the same way as Telegram. */
function wrongEntities(text: string, entities: readonly Json[]): string | undefined {
  for (const { type, offset, length, url } of entities) {
    if (!ENTITY_TYPES.includes(type)) return `can't parse MessageEntity: unsupported type ${type}`;
    const isInside = Number.isInteger(offset) && Number.isInteger(length) && offset >= 0 && length > 0;
    if (!isInside || offset + length > text.length) return "can't parse entities: entity is out of the text";
    const [from, to] = [text.charCodeAt(offset), text.charCodeAt(offset + length)];
    const isHalf = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;
    if (isHalf(from) || isHalf(to)) return "can't parse entities: entity begins or ends in a character";
    if (type === "text_link" && !/^https?:\/\//.test(url)) return "can't parse entities: wrong HTTP URL";
  }
  return undefined;
}

function sendMessage(state: TelegramState, params: Json): Answer {
  const upset = state.upsets.shift();
  if (upset !== undefined && upset.after !== true) return upset.answer;
  const chat = chatOf(state, params);
  if ("status" in chat) return chat;
  const file = params.photo ?? params.document;
  const { text = params.caption ?? "", message_thread_id: threadId } = params;
  const entities = params.entities ?? params.caption_entities ?? [];
  if (text.trim() === "" && file === undefined) return bad("Bad Request: message text is empty");
  if (text.length > (file === undefined ? 4_096 : 1_024)) return bad("Bad Request: message is too long");
  if (file?.bytes.length === 0) return bad("Bad Request: file must be non-empty");
  const wrong = wrongEntities(text, entities) ?? wrongButtons(params);
  if (wrong !== undefined) return bad(`Bad Request: ${wrong}`);
  if (threadId !== undefined && !chat.topics.has(threadId))
    return bad("Bad Request: message thread not found");
  const at = threadId === undefined ? {} : { threadId };
  state.nextMessageId += 1;
  state.sent.push({
    messageId: state.nextMessageId,
    chatId: chat.id,
    ...at,
    text,
    entities,
    buttons: params.reply_markup?.inline_keyboard ?? [],
    params,
    ...(file === undefined ? {} : { file }),
  });
  if (upset !== undefined) return upset.answer;
  return done({ message_id: state.nextMessageId, date: 1_790_000_000, chat: { id: chat.id }, text });
}

/** Finds invalid buttons: the data of each has 1 to 64 bytes. */
function wrongButtons({ reply_markup }: Json): string | undefined {
  const buttons: Json[] = (reply_markup?.inline_keyboard ?? []).flat();
  const isFit = ({ text, callback_data: data = "" }: Json): boolean =>
    text !== "" && data !== "" && Buffer.byteLength(data) <= 64;
  return buttons.every(isFit) ? undefined : "BUTTON_DATA_INVALID";
}

/** Changes a message of the bot. Without buttons in the parameters it has none afterwards. */
function editMessageText(state: TelegramState, params: Json): Answer {
  const chat = chatOf(state, params);
  if ("status" in chat) return chat;
  const message = state.sent.find(
    ({ chatId, messageId }) => chatId === chat.id && messageId === params.message_id,
  );
  if (message === undefined) return bad("Bad Request: message to edit not found");
  const { text, entities = [], reply_markup } = params;
  const buttons = reply_markup?.inline_keyboard ?? [];
  if (text.length > 4_096) return bad("Bad Request: message is too long");
  const wrong = wrongEntities(text, entities) ?? wrongButtons(params);
  if (wrong !== undefined) return bad(`Bad Request: ${wrong}`);
  const looks = (one: object): string => JSON.stringify(one);
  if (looks([message.text, message.buttons]) === looks([text, buttons])) {
    const why = "specified new message content and reply markup are exactly the same";
    return bad(`Bad Request: message is not modified: ${why}`);
  }
  Object.assign(message, { text, entities, buttons, editedAt: 1_790_000_000 });
  return done({ message_id: message.messageId, date: 1_790_000_000, chat: { id: chat.id }, text });
}

/** Ends the waiting sign of a pressed button. Each press can be answered once. */
function answerCallbackQuery(state: TelegramState, { callback_query_id: id, text = "" }: Json): Answer {
  if (text.length > 200) return bad("Bad Request: MESSAGE_TOO_LONG");
  const press = state.presses.find((one) => one.id === id && one.notice === undefined);
  if (press === undefined)
    return bad("Bad Request: query is too old and response timeout expired or query ID is invalid");
  press.notice = text;
  return done(true);
}

function setMyCommands(bot: FakeBot, { commands = [] }: Json): Answer {
  for (const { command, description } of commands) {
    if (!/^[a-z0-9_]{1,32}$/.test(command)) return bad("Bad Request: BOT_COMMAND_INVALID");
    if (description.length < 1 || description.length > 256) {
      return bad("Bad Request: BOT_COMMAND_DESCRIPTION_INVALID");
    }
  }
  bot.commands = commands;
  return done(true);
}

function createForumTopic(state: TelegramState, params: Json): Answer {
  const chat = chatOf(state, params);
  if ("status" in chat) return chat;
  if (chat.isForum !== true) return bad("Bad Request: the chat is not a forum");
  if (chat.mayMakeTopics === false) return bad("Bad Request: not enough rights to create a topic");
  if (params.name.length < 1 || params.name.length > 128) return bad("Bad Request: TOPIC_TITLE_INVALID");
  state.nextMessageId += 1;
  chat.topics.add(state.nextMessageId);
  return done({ message_thread_id: state.nextMessageId, name: params.name, icon_color: 7_322_096 });
}

function getFile(state: TelegramState, { file_id }: Json): Answer {
  const file = state.files.get(file_id);
  if (file === undefined) return bad("Bad Request: wrong file_id or the file is temporarily unavailable");
  if (file.bytes.length > 20 * 1024 * 1024) return bad("Bad Request: file is too big");
  return done({ file_id, file_unique_id: "u", file_size: file.bytes.length, file_path: file.path });
}

/** Calls any method except getUpdates. */
export function callMethod(state: TelegramState, bot: FakeBot, method: string, params: Json): Answer {
  switch (method) {
    case "getMe": {
      const may = { can_join_groups: true, can_read_all_group_messages: false };
      return done({ id: bot.id, is_bot: true, first_name: "Parley", username: bot.username, ...may });
    }
    case "getWebhookInfo":
      return done({ url: bot.webhookUrl, has_custom_certificate: false, pending_update_count: 0 });
    case "deleteWebhook":
      bot.webhookUrl = "";
      if (params.drop_pending_updates === true) bot.updates.length = 0;
      return done(true);
    case "setMyCommands":
      return setMyCommands(bot, params);
    case "sendMessage":
    case "sendPhoto":
    case "sendDocument":
      return sendMessage(state, params);
    case "editMessageText":
      return editMessageText(state, params);
    case "answerCallbackQuery":
      return answerCallbackQuery(state, params);
    case "sendChatAction": {
      const chat = chatOf(state, params);
      if ("status" in chat) return chat;
      state.actions.push(params);
      return done(true);
    }
    case "getChat": {
      const chat = chatOf(state, params);
      if ("status" in chat) return chat;
      const { id, type, title, isForum } = chat;
      return done({ id, type, title, ...(isForum === true ? { is_forum: true } : {}) });
    }
    case "createForumTopic":
      return createForumTopic(state, params);
    case "getFile":
      return getFile(state, params);
    default:
      return bad("Not Found", 404);
  }
}
