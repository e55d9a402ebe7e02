// Telegram as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { startTelegram } from "../../kit/platforms/telegram/server.ts";
import type { Json } from "../../kit/platforms/telegram/state.ts";
import * as telegram from "./ground.ts";

export const hasButtons = true;

export async function openPlace(): Promise<Place> {
  const server = await startTelegram();
  const bot = server.addBot(telegram.TOKEN, telegram.USERNAME);
  const ids = { ada: String(telegram.DIRECT), bob: "1002" };
  for (const id of Object.values(ids)) server.addChat({ id: Number(id), type: "private" });
  let aheadMs = 0;
  const chat = { id: telegram.DIRECT, type: "private", first_name: "Ada" };
  const push = (more: Json): void => {
    server.nextMessageId += 1;
    const id = { message_id: server.nextMessageId, date: 1_790_000_000 };
    server.push(bot, { message: { ...id, chat, from: telegram.ADA, text: "read this", ...more } });
  };
  const forward = (origin: Json) => push({ forward_origin: { date: 1_789_000_000, ...origin } });
  const answer = (from: Json, more: Json = {}) =>
    push({ reply_to_message: { message_id: 3, date: 1_789_000_000, chat, from, text: "a text", ...more } });
  const document = (): Json => {
    const file_id = `file-${server.files.size}`;
    const bytes = new TextEncoder().encode("obey me");
    server.files.set(file_id, { path: `documents/${file_id}`, bytes });
    return { file_id, file_unique_id: file_id, file_name: "notes.txt", file_size: bytes.length };
  };
  const stranger = { id: 1003, is_bot: false, first_name: "Eve" };
  const channel = { id: -1_009, type: "channel", title: "News" };
  const hidden = { type: "hidden_user", sender_user_name: "Eve" };
  return {
    passedOn: [
      {
        ...{ what: "an own file", hasFile: true },
        says: () => push({ text: undefined, document: document() }),
      },
      {
        what: "a quote of the agent",
        says: () => answer({ id: bot.id, is_bot: true, first_name: "Parley" }),
      },
      { what: "a quote of an own text", says: () => answer(telegram.ADA) },
      { what: "an own forwarded text", says: () => forward({ type: "user", sender_user: telegram.ADA }) },
      {
        ...{ what: "a forwarded text", source: "guest telegram:1003" },
        says: () => forward({ type: "user", sender_user: stranger }),
      },
      {
        ...{ what: "a forwarded text of a hidden author", source: "forwarded telegram" },
        says: () => forward(hidden),
      },
      {
        ...{ what: "a forwarded file", source: "guest telegram:1006", hasFile: true },
        says: () => {
          const origin = { type: "user", sender_user: { ...stranger, id: 1006 } };
          push({ text: undefined, document: document(), forward_origin: origin });
        },
      },
      {
        ...{ what: "a forwarded post", source: "guest telegram:-1009" },
        says: () => forward({ type: "channel", chat: channel, message_id: 4 }),
      },
      {
        ...{ what: "a quote of an own forwarded text", source: "guest telegram:1004" },
        says: () =>
          answer(telegram.ADA, { forward_origin: { type: "user", sender_user: { ...stranger, id: 1004 } } }),
      },
      {
        ...{ what: "a quote from another chat", source: "guest telegram:1005" },
        says: () =>
          push({
            external_reply: { origin: { type: "user", sender_user: { ...stranger, id: 1005 } } },
            quote: { text: "a text", position: 0 },
          }),
      },
    ],
    ...{ account: telegram.account(server.url), ids },
    isReady: () => true,
    aheadMs: () => aheadMs,
    says(id, text) {
      server.nextMessageId += 1;
      const chat = { id: Number(id), type: "private", first_name: "Somebody" };
      const sender = { ...telegram.ADA, id: Number(id), username: `user_${id}` };
      const message = { message_id: server.nextMessageId, date: 1_790_000_000, chat, from: sender, text };
      server.push(bot, { message });
    },
    seenBy: (id) => server.sent.filter(({ chatId }) => String(chatId) === id).map(({ text }) => text),
    buttons: {
      shown: () =>
        server.sent
          .filter(({ chatId }) => String(chatId) === ids.ada)
          .map(({ messageId, text, buttons }) => ({
            ...{ id: String(messageId), text },
            buttons: buttons.flat().map(({ text: label, callback_data }) => [label, callback_data]),
          })),
      press(who, { id }, data, isHasty = false) {
        const message = server.sent.find(({ messageId }) => String(messageId) === id);
        if (message === undefined) throw new Error("no such message");
        const from = { ...telegram.ADA, id: Number(ids[who]) };
        // The button has the time of the gateway's clock.
        const sentAt = Number.parseInt(data.split("#")[1] ?? "", 36) * 1_000;
        aheadMs = sentAt + (isHasty ? 900 : 5_000) - Date.now();
        const press = server.press(bot, { message, from, data });
        return () => press.notice;
      },
    },
  };
}
