// Implements the channel `discord`: each account is a bot with its own connection. The library for Discord is
// loaded when the first account is opened.

import type { ChannelHost } from "../../channels/channel.ts";
import type { PlatformAccount } from "../../channels/platform.ts";
import { Places } from "./channel-cache.ts";
import type { DiscordAccount } from "./discord.ts";
import { listenToDiscord, whoAmI } from "./listen.ts";
import { openRest } from "./rest.ts";
import { createSender } from "./send.ts";

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

export function openAccounts(
  accounts: readonly DiscordAccount[],
  host: ChannelHost,
): Promise<PlatformAccount[]> {
  return Promise.all(accounts.map((account) => openAccount(account, host)));
}
