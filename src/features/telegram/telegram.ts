// Adds the channel `telegram`: bots, over the Bot API.

import type { PlatformCode } from "../../channels/platform.ts";
import { address, optionalText } from "../../config/schema/setting.ts";
import type { PlatformSettings } from "../../core/shapes/settings/channels.ts";
import { feature } from "../../feature.ts";

const KEYS = {
  botToken: optionalText("From @BotFather.", { shown: "secret", required: true }),
  apiRoot: address("URL of your own Bot API server. Default https://api.telegram.org.", {
    default: "https://api.telegram.org",
  }),
};

export type TelegramAccount = PlatformSettings<typeof KEYS>;

export const telegram = feature({
  name: "telegram",
  channel: {
    settings: KEYS,
    // Below the platform's limit of 4,096, because list bullets may be longer than their Markdown.
    textMaxChars: 4_000,
    sendsFiles: true,
    guide: {
      title: "Telegram",
      first: ["Send /newbot to @BotFather on Telegram. It asks for a name and returns a token."],
      questions: {
        botToken: {
          ask: "The bot's token",
          form: [/^\d+:[\w-]{20,}$/, "A token looks like 123456789:AAF… (from @BotFather)."],
        },
      },
      firstContact: "Send the bot a message. It answers with a code.",
    },
    load: (): Promise<PlatformCode> => import("./channel.ts"),
  },
});
