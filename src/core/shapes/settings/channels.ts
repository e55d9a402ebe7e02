// The complete settings of each account of a chat channel.

import type { accountKeys } from "../../../config/schema/channels.ts";
import type { ConfigFile } from "../../../config/schema/schema.ts";
import type { Values } from "../../../config/schema/setting.ts";
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

export type QueueMode = ConfigFile["inbound"]["queue"];

type AccountInFile<C extends ChannelId> = Values<(typeof accountKeys)[C]>;
type Own<C extends ChannelId> = Omit<
  AccountInFile<C>,
  keyof AccountInFile<"telegram"> & keyof AccountInFile<"discord">
>;

/** Settings of one group, room or guild. Absent `allowFrom`: all senders. */
export type GroupSettings = AccountInFile<"telegram">["groups"][string] & {
  readonly requireMention: boolean;
};

export type ThreadBindingSettings = ConfigFile["session"]["threadBindings"];

/** Settings that every account of every channel has. */
export interface AccountSettings
  extends Omit<
    AccountInFile<"telegram">,
    keyof Own<"telegram"> | "enabled" | "groups" | "inbound" | "threadBindings"
  > {
  readonly accountId: string;
  /** Settings by group id. `*` applies to groups without an entry. */
  readonly groups: Readonly<Record<string, GroupSettings>>;
  readonly inbound: Omit<ConfigFile["inbound"], "mediaMaxMb"> & {
    /** Maximum size of a picture, voice message or file. */
    readonly mediaMaxBytes: number;
  };
  readonly threadBindings: ThreadBindingSettings;
}

export interface TelegramAccount extends AccountSettings, Own<"telegram"> {
  readonly channel: "telegram";
}

export interface DiscordAccount extends AccountSettings, Own<"discord"> {
  readonly channel: "discord";
}

export interface WhatsAppAccount extends AccountSettings, Own<"whatsapp"> {
  readonly channel: "whatsapp";
}

export interface SignalAccount extends AccountSettings, Own<"signal"> {
  readonly channel: "signal";
}

export interface IMessageAccount extends AccountSettings, Own<"imessage"> {
  readonly channel: "imessage";
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
