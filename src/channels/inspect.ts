// Tests accounts at their platforms, without listening or sending.

import type { ChannelReport } from "../cli/parts.ts";
import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import type { World } from "../world.ts";
import { accountName } from "./accounts.ts";
import { openChannel } from "./registry.ts";

/** Reads each account's identity from its platform. */
export async function inspectChannels(
  accounts: readonly ChannelAccount[],
  world: World,
): Promise<ChannelReport[]> {
  const nobody = (): Promise<never> => Promise.reject(new Error("no messages are accepted during the check"));
  const host = { world, receive: nobody, cursor: async () => undefined, remember: nobody, commands: [] };
  return Promise.all(
    accounts.map(async (account) => {
      const { channel: id, accountId } = account;
      const channel = await openChannel(id, [account], host);
      const found = await channel.test(accountId).finally(channel.close);
      return {
        account: accountName(id, accountId),
        usable: found.ok,
        text: found.ok ? found.value : found.error,
      };
    }),
  );
}
