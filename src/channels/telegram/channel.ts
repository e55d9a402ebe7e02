// Implements the channel `telegram`: bots, over the Bot API.
// One process of the deployment fetches a bot's messages. Every process can send.

import type { TelegramAccount } from "../../core/shapes/settings/channels.ts";
import type { Channel, ChannelHost } from "../channel.ts";
import { channelOf, type PlatformAccount } from "../platform.ts";
import { openBot } from "./bot.ts";
import { listen } from "./listen.ts";
import { openTopic, sendFile, sendText, showTyping, TELEGRAM, targetOf } from "./send.ts";
import { nameOfBot } from "./start.ts";

/**
 * Maximum length of a text. It is below the platform's limit of 4,096, because list bullets may be longer
 * than their Markdown.
 */
const TEXT_CHARS_MAX = 4_000;

/** Opens the channel with its accounts. This makes no request. */
export async function openTelegram(
  accounts: readonly TelegramAccount[],
  host: ChannelHost,
): Promise<Channel> {
  const lines = accounts.map((account): PlatformAccount => {
    const bot = openBot(account, host.world);
    return {
      accountId: bot.accountId,
      listen: (ear) => listen(bot, host, ear),
      async deliver({ route, text, file, ...controls }) {
        const place = targetOf(bot, route);
        if (!place.ok) return { kind: "refused", error: place.error };
        return file === undefined ? sendText(place.value, text, controls) : sendFile(place.value, text, file);
      },
      async typing(route) {
        const place = targetOf(bot, route);
        if (place.ok) await showTyping(place.value);
      },
      async openThread(at, title) {
        const place = targetOf(bot, at);
        return place.ok ? openTopic(place.value, at, title) : place;
      },
      test: () => nameOfBot(bot),
      close: () => bot.close(),
    };
  });
  return channelOf(TELEGRAM, lines, TEXT_CHARS_MAX);
}
