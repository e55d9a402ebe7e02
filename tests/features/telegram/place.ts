// Telegram as a place where an agent asks its owner.

import type { Place } from "../../channels/approvals-kit.ts";
import { startTelegram } from "../../kit/platforms/telegram/server.ts";
import * as telegram from "./ground.ts";

export const hasButtons = true;

export async function openPlace(): Promise<Place> {
  const server = await startTelegram();
  const bot = server.addBot(telegram.TOKEN, telegram.USERNAME);
  const ids = { ada: String(telegram.DIRECT), bob: "1002" };
  for (const id of Object.values(ids)) server.addChat({ id: Number(id), type: "private" });
  let aheadMs = 0;
  return {
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
