// Owns the channel `telegram`: bots, over the Bot API.
// TG1: one process of the deployment fetches a bot's messages; every process sends.
// TG2: a route without an account is the first account's; with one that is not configured it is refused.

import type { TelegramAccount } from "../../core/channel-settings.ts";
import { fail } from "../../core/errors.ts";
import { accountName } from "../accounts.ts";
import type { Channel, ChannelHost } from "../channel.ts";
import { openBot } from "./bot.ts";
import { listen } from "./listen.ts";
import { placeOf } from "./place.ts";
import { openTopic, sendText, showTyping } from "./send.ts";
import { nameOfBot } from "./start.ts";

/** Below the platform's 4,096: a list's signs may be longer than the markup that makes it. */
const TEXT_CHARS_MAX = 4_000;

/** Opens the channel with its accounts; nothing is asked of the platform yet. */
export async function openTelegram(
  accounts: readonly TelegramAccount[],
  host: ChannelHost,
): Promise<Channel> {
  const bots = accounts.map((account) => openBot(account, host.world));
  return {
    id: "telegram",
    deduplicates: false,
    textMaxChars: TEXT_CHARS_MAX,
    async deliver({ route, text }) {
      const place = placeOf(bots, route);
      return typeof place === "string" ? { kind: "refused", error: place } : sendText(place, text);
    },
    accounts: bots.map((bot) => ({
      name: accountName("telegram", bot.accountId),
      listen: (ear) => listen(bot, host, ear),
    })),
    async typing(route) {
      const place = placeOf(bots, route);
      if (typeof place !== "string") await showTyping(place);
    },
    async openThread(at, title) {
      const place = placeOf(bots, at);
      return typeof place === "string" ? fail("invalid_argument", place) : openTopic(place, at, title);
    },
    async test(accountId) {
      const bot = bots.find((one) => one.accountId === accountId);
      const known = bots.map((one) => one.accountId).join(", ");
      if (bot === undefined)
        return fail(
          "invalid_argument",
          `telegram has no account ${JSON.stringify(accountId)}; there is: ${known}`,
        );
      return nameOfBot(bot);
    },
    async close() {
      for (const bot of bots) bot.close();
    },
  };
}
