// Lists the channels, and loads them.
// A channel that is not configured is not loaded, so it costs no start time and no memory. If the library of
// a channel is not installed, the channel's status says this, and the other channels work.

import type { ChannelAccount, ChannelId } from "../core/shapes/settings/channels.ts";
import { ListenProblem } from "./accounts.ts";
import type { Channel, ChannelHost } from "./channel.ts";
import { channelOf } from "./platform.ts";

type AccountOf<C extends ChannelId> = Extract<ChannelAccount, { channel: C }>;

/** For each channel, the function that opens it for at least one account. */
type Openers = {
  readonly [C in ChannelId]: (accounts: readonly AccountOf<C>[], host: ChannelHost) => Promise<Channel>;
};

const OPENERS: Openers = {
  telegram: async (accounts, host) => (await import("./telegram/channel.ts")).openTelegram(accounts, host),
  discord: async (accounts, host) => (await import("./discord/channel.ts")).openDiscord(accounts, host),
  imessage: async (accounts, host) => (await import("./imessage/channel.ts")).openIMessage(accounts, host),
  signal: async (accounts, host) => (await import("./signal/channel.ts")).openSignal(accounts, host),
  whatsapp: async (accounts, host) => (await import("./whatsapp/channel.ts")).openWhatsApp(accounts, host),
};

/** Creates the replacement for a channel that cannot be loaded. It rejects every text with the reason. */
function makeUnloaded(id: ChannelId, accounts: readonly ChannelAccount[], why: string): Channel {
  const failed = () => Promise.reject(new ListenProblem(why, true));
  const deliver: Channel["deliver"] = () => Promise.resolve({ kind: "retry", error: why });
  return channelOf(
    id,
    accounts.map(({ accountId }) => ({ accountId, listen: failed, test: failed, deliver })),
  );
}

/** Describes for an operator why a channel cannot be loaded. */
function whyUnloaded(id: ChannelId, error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  const missing = /Cannot find package '([^']+)'/.exec(error instanceof Error ? error.message : "")?.[1];
  if (code !== "ERR_MODULE_NOT_FOUND" || missing === undefined)
    return `the channel ${id} could not be loaded`;
  return `the channel ${id} needs the package ${missing}, which is not installed: npm install ${missing}`;
}

/** Opens a channel for at least one of its accounts. `host`: the services that the gateway offers to it. */
export async function openChannel<C extends ChannelId>(
  id: C,
  accounts: readonly ChannelAccount[],
  host: ChannelHost,
): Promise<Channel> {
  const own = accounts.filter((account): account is AccountOf<C> => account.channel === id);
  try {
    return await OPENERS[id](own, host);
  } catch (error) {
    host.world.log.error({ err: error, channel: id }, "a channel could not be loaded");
    return makeUnloaded(id, own, whyUnloaded(id, error));
  }
}
