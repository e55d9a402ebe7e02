// Implements the channel `discord`: each account is a bot with its own connection. The library for Discord is
// loaded when the first account is opened.

import type { DiscordAccount } from "../../core/shapes/settings/channels.ts";
import type { Channel, ChannelHost } from "../channel.ts";
import { channelOf, type PlatformAccount } from "../platform.ts";
import { Places } from "./channel-cache.ts";
import { DISCORD } from "./incoming.ts";
import { listenToDiscord, whoAmI } from "./listen.ts";
import { openRest } from "./rest.ts";
import { createSender } from "./send.ts";

/**
 * Maximum length of a text. Discord's limit is 2,000, but Discord lengthens some texts when it stores them.
 */
const TEXT_CHARS_MAX = 1_900;

async function openAccount(account: DiscordAccount, host: ChannelHost): Promise<PlatformAccount> {
  const rest = await openRest(account, host.world);
  const places = new Places(rest);
  const client = { account, host, rest, places };
  return {
    ...createSender(rest, places),
    accountId: account.accountId,
    listen: (ear) => listenToDiscord(client, ear),
    async test() {
      const { id, name } = await whoAmI(client);
      return `${name} (${id})`;
    },
    close: () => rest.close(),
  };
}

/** Opens the channel for at least one account. */
export async function openDiscord(accounts: readonly DiscordAccount[], host: ChannelHost): Promise<Channel> {
  const lines = await Promise.all(accounts.map((account) => openAccount(account, host)));
  return channelOf(DISCORD, lines, TEXT_CHARS_MAX);
}
