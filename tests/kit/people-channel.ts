// A channel whose people are a list: what reaches them is kept, and who is gone is refused as a platform would.

import type { Channel, DeliveryOutcome, OutgoingMessage } from "../../src/channels/channel.ts";
import type { TelegramAccount } from "../../src/core/shapes/settings/channels.ts";
import { openAccount } from "./fake-channel.ts";

/** An account of the channel `telegram` that answers whom an operator has let in; nobody listens at it. */
export function telegramAccount(accountId = "default", more: Partial<TelegramAccount> = {}): TelegramAccount {
  return openAccount({ accountId, dmPolicy: "pairing", groupPolicy: "allowlist", ...more });
}

export interface PeopleChannel extends Channel {
  readonly sent: OutgoingMessage[];
  /** Chats that the platform knows no more. */
  readonly gone: Set<string>;
}

/** Answers as the platform does: a chat that is gone, and an account that is not ours, are refused for good. */
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
