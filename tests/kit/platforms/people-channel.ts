// A channel with a list of known people. It records texts, and refuses texts to removed people in the same
// way as a platform.

import type { Channel, DeliveryOutcome, OutgoingMessage } from "../../../src/channels/channel.ts";
import { openAccount } from "./fake-channel.ts";

/**
 * Returns the settings of a `telegram` account that answers admitted people. No connection reads its
 * messages.
 */
export function telegramAccount(accountId = "default", more: Parameters<typeof openAccount>[0] = {}) {
  return openAccount({ accountId, dmPolicy: "pairing", groupPolicy: "allowlist", ...more });
}

export interface PeopleChannel extends Channel {
  readonly sent: OutgoingMessage[];
  /** Chats that the platform has deleted. */
  readonly gone: Set<string>;
}

/**
 * Makes a channel that answers like a platform: it permanently refuses texts to deleted chats and from
 * unknown accounts.
 */
export function peopleChannel(accounts: readonly string[] = ["default"]): PeopleChannel {
  const sent: OutgoingMessage[] = [];
  const gone = new Set<string>();
  return {
    id: "telegram",
    deduplicates: false,
    sent,
    gone,
    async deliver(message): Promise<DeliveryOutcome> {
      const { accountId = accounts[0] ?? "", to } = message.route;
      if (!accounts.includes(accountId)) return { kind: "refused", error: `no account ${accountId}` };
      if (gone.has(to)) return { kind: "refused", error: "chat not found" };
      sent.push(message);
      return { kind: "sent" };
    },
  };
}
