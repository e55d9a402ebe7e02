// Implements the channel `discord`: each account is a bot with its own connection. The library for Discord is
// loaded when the first account is opened.

import { fail, ok } from "../../core/shapes/errors.ts";
import type { DiscordAccount } from "../../core/shapes/settings/channels.ts";
import { accountFor } from "../account-for.ts";
import { accountName } from "../accounts.ts";
import type { Channel, ChannelHost } from "../channel.ts";
import { Places } from "./channel-cache.ts";
import { DISCORD } from "./incoming.ts";
import { type DiscordClient, listenToDiscord, whoAmI } from "./listen.ts";
import { DiscordProblem } from "./problem.ts";
import { openRest } from "./rest.ts";
import { createSender, type Sender } from "./send.ts";

/**
 * Maximum length of a text. Discord's limit is 2,000, but Discord lengthens some texts when it stores them.
 */
const TEXT_CHARS_MAX = 1_900;

interface Open extends DiscordClient {
  readonly sender: Sender;
}

async function openAccount(account: DiscordAccount, host: ChannelHost): Promise<Open> {
  const rest = await openRest(account, host.world);
  const places = new Places(rest);
  return { account, host, rest, places, sender: createSender(rest, places) };
}

/** Opens the channel for at least one account. */
export async function openDiscord(accounts: readonly DiscordAccount[], host: ChannelHost): Promise<Channel> {
  const lines = await Promise.all(accounts.map((account) => openAccount(account, host)));
  const lineFor = accountFor(DISCORD, lines, ({ account }) => account.accountId);
  return {
    id: DISCORD,
    deduplicates: false,
    textMaxChars: TEXT_CHARS_MAX,
    async deliver(message) {
      const line = lineFor(message.route.accountId);
      return line.ok ? line.value.sender.deliver(message) : { kind: "absent", error: line.error };
    },
    accounts: lines.map((line) => ({
      name: accountName(DISCORD, line.account.accountId),
      listen: (ear) => listenToDiscord(line, ear),
    })),
    async typing(route) {
      const line = lineFor(route.accountId);
      if (line.ok) await line.value.sender.typing(route);
    },
    async openThread(at, title) {
      const line = lineFor(at.accountId);
      return line.ok ? line.value.sender.openThread(at, title) : line;
    },
    async test(accountId) {
      const line = lineFor(accountId);
      if (!line.ok) return line;
      try {
        const { id, name } = await whoAmI(line.value);
        return ok(`${name} (${id})`);
      } catch (error) {
        if (!(error instanceof DiscordProblem)) throw error;
        return fail("channel_failed", error.message);
      }
    },
    async close() {
      for (const { rest } of lines) rest.close();
    },
  };
}
