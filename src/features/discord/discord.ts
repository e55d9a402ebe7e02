// Adds the channel `discord`: bots, each with its own connection.

import type { PlatformCode } from "../../channels/platform.ts";
import { address, optionalText } from "../../config/schema/setting.ts";
import type { PlatformSettings } from "../../core/shapes/settings/channels.ts";
import { feature } from "../../feature.ts";

const KEYS = {
  token: optionalText("Token of the bot, from the developer portal.", { shown: "secret", required: true }),
  restUrl: address("Default https://discord.com/api.", { default: "https://discord.com/api" }),
};

export type DiscordAccount = PlatformSettings<typeof KEYS>;

export const discord = feature({
  name: "discord",
  channel: {
    settings: KEYS,
    // Below the platform's limit of 2,000, because Discord lengthens some texts when it stores them.
    textMaxChars: 1_900,
    sendsFiles: true,
    guide: {
      title: "Discord",
      first: [
        "At discord.com/developers/applications: New Application, then Bot, Reset Token.",
        "On the same page switch on the Message Content Intent.",
        "Under OAuth2, URL Generator: scopes bot and applications.commands; open the address to invite it.",
      ],
      questions: { token: { ask: "The bot's token" } },
      firstContact: "Send the bot a direct message. It answers with a code.",
    },
    load: (): Promise<PlatformCode> => import("./channel.ts"),
  },
});
