// Owns the shape of what may be set for a channel where people talk: each of its accounts, complete.

import type { Route } from "./route.ts";

/** Channels that reach people elsewhere. `webchat`, on our own socket, has no accounts. */
export const CHANNEL_IDS = ["telegram", "discord", "whatsapp", "signal", "imessage"] as const;
export type ChannelId = (typeof CHANNEL_IDS)[number];

/** Who may write to an agent directly. `pairing`: whoever an operator has let in. */
export const DM_POLICIES = ["pairing", "allowlist", "open", "disabled"] as const;
export type DmPolicy = (typeof DM_POLICIES)[number];

/** Which groups are answered. `allowlist`: those of `groups`, and senders of `groupAllowFrom`. */
export const GROUP_POLICIES = ["allowlist", "open", "disabled"] as const;
export type GroupPolicy = (typeof GROUP_POLICIES)[number];

/**
 * What becomes of a message that comes during a run. `followup`: it is the next run. `steer`: the run reads
 * it between two steps. `interrupt`: the run is ended for it. The last two only where the run answers the
 * same place.
 */
export const QUEUE_MODES = ["followup", "steer", "interrupt"] as const;
export type QueueMode = (typeof QUEUE_MODES)[number];

export interface InboundSettings {
  /** Messages of one sender that come within this time of each other are one. 0: each is its own. */
  readonly debounceMs: number;
  readonly queue: QueueMode;
  /** Of one picture, voice message or file. */
  readonly mediaMaxBytes: number;
}

export interface ThreadBindingSettings {
  readonly enabled: boolean;
  /** A binding ends after this time without a message; 0: never. */
  readonly idleHours: number;
  /** A binding ends at this age; 0: never. */
  readonly maxAgeHours: number;
}

/** What is set for one group, room or guild. */
export interface GroupSettings {
  readonly enabled: boolean;
  /** Only messages that name the agent, or reply to it, are answered. */
  readonly requireMention: boolean;
  /** Senders that are answered there. Absent: all. */
  readonly allowFrom?: readonly string[];
  /** Absent: the account's. */
  readonly agentId?: string;
}

/** What every account of every channel has. */
export interface AccountSettings {
  readonly accountId: string;
  /** Gets what comes in. Absent: the default agent. */
  readonly agentId?: string;
  readonly dmPolicy: DmPolicy;
  /** Sender ids, as the platform writes them; `*`: everybody. They are let in under `pairing` as well. */
  readonly allowFrom: readonly string[];
  readonly groupPolicy: GroupPolicy;
  readonly groupAllowFrom: readonly string[];
  /** In groups that have no entry. */
  readonly requireMention: boolean;
  /** By the group's id; `*` holds for those that have no entry. */
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
  /** Signs the web hooks that come in. */
  readonly appSecret: string;
  /** Said once by the platform when the web hook is set up. */
  readonly verifyToken: string;
  readonly graphUrl: string;
}

export interface SignalAccount extends AccountSettings {
  readonly channel: "signal";
  /** The number that signal-cli is registered with. */
  readonly number: string;
  /** Of the signal-cli daemon. */
  readonly url: string;
}

export interface IMessageAccount extends AccountSettings {
  readonly channel: "imessage";
  /** The program and its arguments; never empty. */
  readonly command: readonly string[];
  /** By these names a message in a group names the agent: Messages itself marks nobody. */
  readonly names: readonly string[];
  /** Files that come with messages are read below these only; `~` is the home of whoever runs the gateway. */
  readonly attachmentFolders: readonly string[];
}

export type ChannelAccount =
  | TelegramAccount
  | DiscordAccount
  | WhatsAppAccount
  | SignalAccount
  | IMessageAccount;

type AccountName = Pick<ChannelAccount, "channel" | "accountId">;

/** The account of a place; of one that names none, the first of its channel. */
export function accountOf<Account extends AccountName>(
  accounts: readonly Account[],
  { channel, accountId }: Pick<Route, "channel" | "accountId">,
): Account | undefined {
  return accounts.find(
    (one) => one.channel === channel && (accountId === undefined || one.accountId === accountId),
  );
}

/** The route with its account named, if there is one. */
export function withAccount(accounts: readonly AccountName[], route: Route): Route {
  const { accountId = accountOf(accounts, route)?.accountId } = route;
  return accountId === undefined ? route : { ...route, accountId };
}
