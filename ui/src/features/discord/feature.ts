// Lets people connect a bot on Discord on the page.

import type { Bot } from "../../setup/connect-chat.tsx";

export const DISCORD_BOT: Bot = {
  channel: "discord",
  title: "Discord",
  key: "token",
  step:
    "Create an application at discord.com/developers, allow its bot the Message Content Intent, " +
    "invite it.",
};
