// Loads the channels of the features.
// A channel that is not configured is not loaded, so it costs no start time and no memory. If the library of
// a channel is not installed, the channel's status says this, and the other channels work.

import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import { PLATFORMS } from "../features.ts";
import { ListenProblem } from "./accounts.ts";
import type { Channel, ChannelHost } from "./channel.ts";
import { channelOf, type PlatformChannel } from "./platform.ts";

/** Describes for an operator why a channel cannot be loaded. */
function whyUnloaded(id: string, error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  const missing = /Cannot find package '([^']+)'/.exec(error instanceof Error ? error.message : "")?.[1];
  if (code !== "ERR_MODULE_NOT_FOUND" || missing === undefined)
    return `the channel ${id} could not be loaded`;
  return `the channel ${id} needs the package ${missing}, which is not installed: npm install ${missing}`;
}

/** Opens a channel for at least one of its accounts. `host`: the services that the gateway offers to it. */
export async function openChannel(
  id: string,
  accounts: readonly ChannelAccount[],
  host: ChannelHost,
): Promise<PlatformChannel> {
  const own = accounts.filter(({ channel }) => channel === id);
  try {
    const platform = PLATFORMS[id];
    if (platform === undefined) throw new Error(`no feature adds the channel ${id}`);
    const { openAccounts } = await platform.load();
    return channelOf(id, await openAccounts(own as never, host), platform.textMaxChars);
  } catch (error) {
    host.world.log.error({ err: error, channel: id }, "a channel could not be loaded");
    // Stands in for a channel that cannot be loaded.
    const why = whyUnloaded(id, error);
    const rejectWork = () => Promise.reject(new ListenProblem(why, true));
    const deliver: Channel["deliver"] = () => Promise.resolve({ kind: "retry", error: why });
    return channelOf(
      id,
      own.map(({ accountId }) => ({ accountId, listen: rejectWork, test: rejectWork, deliver })),
    );
  }
}
