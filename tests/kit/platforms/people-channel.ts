// A channel whose people are a list: received texts are kept, and texts to removed people are refused like a
// platform does.

import type { Channel, DeliveryOutcome, OutgoingMessage } from "../../../src/channels/channel.ts";
import type { TelegramAccount } from "../../../src/core/shapes/settings/channels.ts";
import { openAccount } from "./fake-channel.ts";

/** An account of the channel `telegram` that answers admitted people; nothing listens at it. */
export function telegramAccount(accountId = "default", more: Partial<TelegramAccount> = {}): TelegramAccount {
  return openAccount({ accountId, dmPolicy: "pairing", groupPolicy: "allowlist", ...more });
}

export interface PeopleChannel extends Channel {
  readonly sent: OutgoingMessage[];
  /** Chats that no longer exist on the platform. */
  readonly gone: Set<string>;
}

/** Answers like the platform: texts to removed chats or from unknown accounts are refused permanently. */
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
