// The complete settings of each account of a chat channel.

import type { Route } from "../route.ts";

/**
 * Channels for chat platforms. `webchat` is not one of them: it uses the gateway's own socket and has no
 * accounts.
 */
export const CHANNEL_IDS = ["telegram", "discord", "whatsapp", "signal", "imessage"] as const;
export type ChannelId = (typeof CHANNEL_IDS)[number];

/**
 * Policies for direct messages: whose messages an agent accepts. `pairing` accepts people whom an operator
 * has approved.
 */
export const DM_POLICIES = ["pairing", "allowlist", "open", "disabled"] as const;
export type DmPolicy = (typeof DM_POLICIES)[number];

/**
 * Policies for groups: which groups get answers. `allowlist` accepts groups in `groups` and senders in
 * `groupAllowFrom`.
 */
export const GROUP_POLICIES = ["allowlist", "open", "disabled"] as const;
export type GroupPolicy = (typeof GROUP_POLICIES)[number];

/**
 * Modes for a message that arrives during a run. `followup`: it becomes the next run. `steer`: the run reads
 * it between two steps. `interrupt`: it cancels the run. `steer` and `interrupt` apply only if the run
 * answers the same chat.
 */
export const QUEUE_MODES = ["followup", "steer", "interrupt"] as const;
export type QueueMode = (typeof QUEUE_MODES)[number];

/**
 * Texts of a run that its chat gets. `all`: also those between tool calls, each as a message of its own.
 * `last`: only the last one.
 */
export const STEP_MODES = ["all", "last"] as const;
export type StepMode = (typeof STEP_MODES)[number];

export interface InboundSettings {
  /** Messages of one sender within this time are joined. 0: messages are not joined. */
  readonly debounceMs: number;
  readonly queue: QueueMode;
  /** Maximum size of a picture, voice message or file. */
  readonly mediaMaxBytes: number;
}

export interface ThreadBindingSettings {
  readonly enabled: boolean;
  /** Time without a message after which a binding ends. 0: never. */
  readonly idleHours: number;
  /** Maximum age of a binding. 0: unlimited. */
  readonly maxAgeHours: number;
}

/** Settings of one group, room or guild. */
export interface GroupSettings {
  readonly enabled: boolean;
  /** True if only messages that mention the agent or reply to it are answered. */
  readonly requireMention: boolean;
  /** Senders that get answers in this group. Absent: all senders. */
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
  /**
   * Sender ids in the platform's format. `*` means everybody. These senders are also allowed under `pairing`.
   */
  readonly allowFrom: readonly string[];
  readonly groupPolicy: GroupPolicy;
  readonly groupAllowFrom: readonly string[];
  /** Used for groups without an entry in `groups`. */
  readonly requireMention: boolean;
  /** Settings by group id. `*` applies to groups without an entry. */
  readonly groups: Readonly<Record<string, GroupSettings>>;
  readonly inbound: InboundSettings;
  readonly threadBindings: ThreadBindingSettings;
  /** Absent: `all` in direct chats, `last` in groups. */
  readonly steps?: StepMode;
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
  /** Secret with which signatures of incoming web hooks are verified. */
  readonly appSecret: string;
  /** Token that the platform sends once, when the web hook is set up. */
  readonly verifyToken: string;
  readonly graphUrl: string;
}

export interface SignalAccount extends AccountSettings {
  readonly channel: "signal";
  /** Phone number that is registered with signal-cli. */
  readonly number: string;
  /** URL of the signal-cli daemon. */
  readonly url: string;
}

export interface IMessageAccount extends AccountSettings {
  readonly channel: "imessage";
  /** Program and arguments; never empty. */
  readonly command: readonly string[];
  /** Names by which a message in a group mentions the agent, because Apple's Messages has no mentions. */
  readonly names: readonly string[];
  /** Folders from which attachments may be read. `~` is the home of the user who runs the gateway. */
  readonly attachmentFolders: readonly string[];
}

export type ChannelAccount =
  | TelegramAccount
  | DiscordAccount
  | WhatsAppAccount
  | SignalAccount
  | IMessageAccount;

type AccountName = Pick<ChannelAccount, "channel" | "accountId">;

/** Returns the account of a route. If the route names no account, returns the first one of its channel. */
export function accountOf<Account extends AccountName>(
  accounts: readonly Account[],
  { channel, accountId }: Pick<Route, "channel" | "accountId">,
): Account | undefined {
  return accounts.find(
    (one) => one.channel === channel && (accountId === undefined || one.accountId === accountId),
  );
}

/** Returns the route with its account filled in, if the channel has one. */
export function withAccount(accounts: readonly AccountName[], route: Route): Route {
  const { accountId = accountOf(accounts, route)?.accountId } = route;
  return accountId === undefined ? route : { ...route, accountId };
}
