// The complete settings of each account of a chat channel.

import type { accountKeys } from "../../../config/schema/channels.ts";
import type { ConfigFile } from "../../../config/schema/schema.ts";
import type { Fields, Values } from "../../../config/schema/setting.ts";
import type { Route } from "../route.ts";

/**
 * Policies for direct messages: whose messages an agent accepts. `pairing` accepts people whom an operator
 * has approved.
 */
export const DM_POLICIES = ["pairing", "allowlist", "open", "disabled"] as const;

export type QueueMode = ConfigFile["inbound"]["queue"];

type AccountInFile = Values<typeof accountKeys>;

/** Settings of one group, room or guild. Absent `allowFrom`: all senders. */
export type GroupSettings = AccountInFile["groups"][string] & {
  readonly requireMention: boolean;
};

export type ThreadBindingSettings = ConfigFile["session"]["threadBindings"];

/** Settings that every account of every channel has. */
export interface AccountSettings
  extends Omit<AccountInFile, "enabled" | "groups" | "inbound" | "threadBindings"> {
  readonly accountId: string;
  /** Settings by group id. `*` applies to groups without an entry. */
  readonly groups: Readonly<Record<string, GroupSettings>>;
  readonly inbound: Omit<ConfigFile["inbound"], "mediaMaxMb"> & {
    /** Maximum size of a picture, voice message or file. */
    readonly mediaMaxBytes: number;
  };
  readonly threadBindings: ThreadBindingSettings;
}

/** An account of a chat platform. `webchat` has none: it uses the gateway's own socket. */
export interface ChannelAccount extends AccountSettings {
  readonly channel: string;
}

/** An account of a platform that has these keys of its own. */
export type PlatformSettings<Keys extends Fields> = ChannelAccount & Values<Keys>;

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
