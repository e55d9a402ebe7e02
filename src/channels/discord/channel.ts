// Owns the channel Discord as a whole: its accounts, each a bot with a connection of its own.
// DD1: its library is loaded with the first account, and not before.

import type { DiscordAccount } from "../../core/channel-settings.ts";
import { fail, ok } from "../../core/errors.ts";
import type { Route } from "../../core/route.ts";
import type { Channel, ChannelHost } from "../channel.ts";
import { DISCORD } from "./incoming.ts";
import { type Line, listenToDiscord, whoAmI } from "./listen.ts";
import { Places } from "./places.ts";
import { DiscordProblem } from "./problem.ts";
import { openRest } from "./rest.ts";
import { createSender, type Sender } from "./send.ts";

/** Discord takes 2,000; the rest is for what is lengthened when it is stored there. */
const TEXT_CHARS_MAX = 1_900;

interface Open extends Line {
  readonly sender: Sender;
}

async function openAccount(account: DiscordAccount, host: ChannelHost): Promise<Open> {
  const rest = await openRest(account, host.world);
  const places = new Places(rest);
  return { account, host, rest, places, sender: createSender(rest, places) };
}

/** Opens the channel with its accounts, of which there is at least one. */
export async function openDiscord(accounts: readonly DiscordAccount[], host: ChannelHost): Promise<Channel> {
  const lines = await Promise.all(accounts.map((account) => openAccount(account, host)));
  const named = (accountId: string | undefined): Open | undefined =>
    accountId === undefined ? lines[0] : lines.find((line) => line.account.accountId === accountId);
  const unknown = (accountId: string | undefined): string =>
    `no account ${JSON.stringify((accountId ?? "").slice(0, 60))} of Discord is configured; there is ` +
    lines.map(({ account }) => account.accountId).join(", ");
  const senderOf = ({ accountId }: Route): Sender | undefined => named(accountId)?.sender;
  return {
    id: DISCORD,
    deduplicates: false,
    textMaxChars: TEXT_CHARS_MAX,
    deliver: async (message) =>
      (await senderOf(message.route)?.deliver(message)) ?? {
        kind: "refused",
        error: unknown(message.route.accountId),
      },
    accounts: lines.map((line) => ({
      name: `${DISCORD}:${line.account.accountId}`,
      listen: (ear) => listenToDiscord(line, ear),
    })),
    typing: async (route) => senderOf(route)?.typing(route),
    openThread: async (at, title) =>
      (await senderOf(at)?.openThread(at, title)) ?? fail("channel_unknown", unknown(at.accountId)),
    async test(accountId) {
      const line = named(accountId);
      if (line === undefined) return fail("channel_unknown", unknown(accountId));
      try {
        const { id, name } = await whoAmI(line);
        return ok(`${name} (${id})`);
      } catch (error) {
        if (!(error instanceof DiscordProblem)) throw error;
        const code = error.kind === "token" || error.kind === "refused" ? "unauthorized" : "run_failed";
        return fail(code, error.message);
      }
    },
    async close() {
      for (const { rest } of lines) rest.close();
    },
  };
}
