// Lets people connect a bot on Telegram on the page.

import type { Bot } from "../../setup/connect-chat.tsx";

export const TELEGRAM_BOT: Bot = {
  channel: "telegram",
  title: "Telegram",
  key: "botToken",
  step: "In Telegram, send /newbot to @BotFather. It answers with the token.",
};
