// The complete settings of each account of a chat channel.

import type { Route } from "../route.ts";

/** Channels to chat platforms. `webchat` uses our own socket and has no accounts. */
export const CHANNEL_IDS = ["telegram", "discord", "whatsapp", "signal", "imessage"] as const;
export type ChannelId = (typeof CHANNEL_IDS)[number];

/** Senders of direct messages that an agent accepts. `pairing`: people whom an operator has approved. */
export const DM_POLICIES = ["pairing", "allowlist", "open", "disabled"] as const;
export type DmPolicy = (typeof DM_POLICIES)[number];

/** Groups that get answers. `allowlist`: those in `groups`, and senders in `groupAllowFrom`. */
export const GROUP_POLICIES = ["allowlist", "open", "disabled"] as const;
export type GroupPolicy = (typeof GROUP_POLICIES)[number];

/**
 * Handling of a message that arrives during a run. `followup`: it becomes the next run. `steer`: the run
 * reads it between two steps. `interrupt`: it cancels the run. The last two apply only if the run answers the
 * same chat.
 */
export const QUEUE_MODES = ["followup", "steer", "interrupt"] as const;
export type QueueMode = (typeof QUEUE_MODES)[number];

export interface InboundSettings {
  /** Messages of one sender that arrive within this time are joined. 0: they are not joined. */
  readonly debounceMs: number;
  readonly queue: QueueMode;
  /** Limit of one picture, voice message or file. */
  readonly mediaMaxBytes: number;
}

export interface ThreadBindingSettings {
  readonly enabled: boolean;
  /** A binding expires after this time without a message. 0: never. */
  readonly idleHours: number;
  /** A binding expires at this age. 0: never. */
  readonly maxAgeHours: number;
}

/** Settings of one group, room or guild. */
export interface GroupSettings {
  readonly enabled: boolean;
  /** Answer only messages that mention the agent or reply to it. */
  readonly requireMention: boolean;
  /** Senders that get answers in this group. Absent: all. */
  readonly allowFrom?: readonly string[];
  /** Absent: the agent of the account. */
  readonly agentId?: string;
}

/** Settings that every account of every channel has. */
export interface AccountSettings {
  readonly accountId: string;
  /** Agent that receives messages. Absent: the default agent. */
  readonly agentId?: string;
  readonly dmPolicy: DmPolicy;
  /** Sender ids in the platform's format; `*`: everybody. They are also allowed under `pairing`. */
  readonly allowFrom: readonly string[];
  readonly groupPolicy: GroupPolicy;
  readonly groupAllowFrom: readonly string[];
  /** Applies to groups without an entry. */
  readonly requireMention: boolean;
  /** By group id; `*` applies to groups without an entry. */
  readonly groups: Readonly<Record<string, GroupSettings>>;
  readonly inbound: InboundSettings;
  readonly threadBindings: ThreadBindingSettings;
}

export interface TelegramAccount extends AccountSettings {
  readonly channel: "telegram";
  readonly botToken: string;
  readonly apiRoot: string;
}

export interface DiscordAccount extends AccountSettings {
  readonly channel: "discord";
  readonly token: string;
  readonly restUrl: string;
}

export interface WhatsAppAccount extends AccountSettings {
  readonly channel: "whatsapp";
  readonly phoneNumberId: string;
  readonly accessToken: string;
  /** Verifies the signature of incoming web hooks. */
  readonly appSecret: string;
  /** The platform sends it once, when the web hook is set up. */
  readonly verifyToken: string;
  readonly graphUrl: string;
}

export interface SignalAccount extends AccountSettings {
  readonly channel: "signal";
  /** The phone number that is registered with signal-cli. */
  readonly number: string;
  /** URL of the signal-cli daemon. */
  readonly url: string;
}

export interface IMessageAccount extends AccountSettings {
  readonly channel: "imessage";
  /** The program and its arguments; never empty. */
  readonly command: readonly string[];
  /** A message in a group mentions the agent by one of these names, because Messages has no mentions. */
  readonly names: readonly string[];
  /** Attachments are read only from these folders. `~`: home of the user who runs the gateway. */
  readonly attachmentFolders: readonly string[];
}

export type ChannelAccount =
  | TelegramAccount
  | DiscordAccount
  | WhatsAppAccount
  | SignalAccount
  | IMessageAccount;

type AccountName = Pick<ChannelAccount, "channel" | "accountId">;

/** Returns the account of a route; if the route names none, the first account of its channel. */
export function accountOf<Account extends AccountName>(
  accounts: readonly Account[],
  { channel, accountId }: Pick<Route, "channel" | "accountId">,
): Account | undefined {
  return accounts.find(
    (one) => one.channel === channel && (accountId === undefined || one.accountId === accountId),
  );
}

/** Returns the route with its account filled in, if there is one. */
export function withAccount(accounts: readonly AccountName[], route: Route): Route {
  const { accountId = accountOf(accounts, route)?.accountId } = route;
  return accountId === undefined ? route : { ...route, accountId };
}
