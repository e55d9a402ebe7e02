// Implements the channel `telegram`: bots, over the Bot API.
// One process of the deployment fetches a bot's messages. Every process can send.

import type { TelegramAccount } from "../../core/shapes/settings/channels.ts";
import { accountName } from "../accounts.ts";
import type { Channel, ChannelHost } from "../channel.ts";
import { openBot } from "./bot.ts";
import { listen } from "./listen.ts";
import { botFor, openTopic, sendFile, sendText, showTyping, TELEGRAM, targetOf } from "./send.ts";
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
  const bots = accounts.map((account) => openBot(account, host.world));
  return {
    id: TELEGRAM,
    deduplicates: false,
    textMaxChars: TEXT_CHARS_MAX,
    async deliver({ route, text, file, ...controls }) {
      const place = targetOf(bots, route);
      if (!place.ok) {
        const kind = place.code === "channel_unknown" ? "absent" : "refused";
        return { kind, error: place.error };
      }
      return file === undefined ? sendText(place.value, text, controls) : sendFile(place.value, text, file);
    },
    accounts: bots.map((bot) => ({
      name: accountName(TELEGRAM, bot.accountId),
      listen: (ear) => listen(bot, host, ear),
    })),
    async typing(route) {
      const place = targetOf(bots, route);
      if (place.ok) await showTyping(place.value);
    },
    async openThread(at, title) {
      const place = targetOf(bots, at);
      return place.ok ? openTopic(place.value, at, title) : place;
    },
    async test(accountId) {
      const bot = botFor(bots)(accountId);
      return bot.ok ? nameOfBot(bot.value) : bot;
    },
    async close() {
      for (const bot of bots) bot.close();
    },
  };
}
