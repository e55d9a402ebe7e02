// Implements the channel `telegram`: bots, over the Bot API.
// One process of the deployment fetches a bot's messages. Every process can send.

import type { ChannelHost } from "../../channels/channel.ts";
import type { PlatformAccount } from "../../channels/platform.ts";
import { openBot } from "./bot.ts";
import { listen } from "./listen.ts";
import { openTopic, sendFile, sendText, showTyping, targetOf } from "./send.ts";
import { nameOfBot } from "./start.ts";
import type { TelegramAccount } from "./telegram.ts";

/** Opens the accounts. This makes no request. */
export function openAccounts(accounts: readonly TelegramAccount[], host: ChannelHost): PlatformAccount[] {
  return accounts.map((account) => {
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
}
