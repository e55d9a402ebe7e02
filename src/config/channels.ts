// Builds complete accounts from the channels in the file, or reports missing keys.

import { isObject } from "../core/json.ts";
import {
  type AccountSettings,
  CHANNEL_IDS,
  type ChannelAccount,
  type ChannelId,
} from "../core/shapes/settings/channels.ts";
import type { AgentSettings } from "../core/shapes/settings/settings.ts";
import { agentProblem } from "../core/shapes/settings/settings.ts";
import type { Path } from "../core/text/value-path.ts";
import { accountKeys } from "./schema/channels.ts";
import type { ConfigFile } from "./schema/schema.ts";
import { defaultsOf, FACTS, type Fields } from "./schema/setting.ts";
import type { Problem, Tree } from "./source.ts";

/** Name of the account that is described by the channel's own keys. */
const DEFAULT_ACCOUNT = "default";
const BYTES_PER_MB = 1024 * 1024;
/** Keys of addresses to which paths are added. */
const BASES = ["apiRoot", "restUrl", "graphUrl", "url"];

type AccountInFile = Omit<
  NonNullable<ConfigFile["channels"]["telegram"]>,
  "accounts" | "botToken" | "apiRoot"
>;

interface Around {
  readonly agents: readonly AgentSettings[];
  readonly problems: Problem[];
}

/** Returns the names of the keys that define an account. */
function neededKeys(channel: ChannelId): string[] {
  const keys: Fields = accountKeys[channel];
  return Object.keys(keys).filter((name) => keys[name]?.[FACTS]?.required);
}

/** Returns a channel's rules, overridden by those of an account: key by key, including nested objects. */
function layered(rules: Tree, account: Tree): Tree {
  const both = Object.keys(account).filter((key) => key !== "groups" && isObject(rules[key]));
  const inner = both.map((key) => [key, { ...(rules[key] as Tree), ...(account[key] as Tree) }]);
  return { ...rules, ...account, ...Object.fromEntries(inner) };
}

function wholeAccount(channel: ChannelId, file: ConfigFile, given: AccountInFile, accountId: string) {
  const { enabled: _, ...account } = { ...defaultsOf(accountKeys[channel]), ...given };
  const { requireMention, inbound, threadBindings, agentId } = account;
  const { mediaMaxMb, ...bursts } = { ...file.inbound, ...inbound };
  // The account's own settings apply to a group that has no entry here, but is allowed by groupPolicy `open`,
  // or because an owner or a sender in groupAllowFrom writes.
  const groups = Object.entries(account.groups).map(([id, group]) => [
    id,
    { requireMention, ...group, ...idOf(group.agentId) },
  ]);
  const bases = Object.entries(account).filter(([key]) => BASES.includes(key));
  return {
    ...account,
    ...Object.fromEntries(bases.map(([key, address]) => [key, String(address).replace(/\/+$/, "")])),
    ...idOf(agentId),
    channel,
    accountId,
    groups: Object.fromEntries(groups),
    inbound: { ...bursts, mediaMaxBytes: Math.round(mediaMaxMb * BYTES_PER_MB) },
    threadBindings: { ...file.session.threadBindings, ...threadBindings },
  } as ChannelAccount;
}

const idOf = (agentId: string | undefined): { agentId?: string } =>
  agentId === undefined ? {} : { agentId: agentId.trim().toLowerCase() };

/** Reports each agent that an account names and that does not exist. */
function checkAgents(account: AccountSettings, path: Path, { agents, problems }: Around): void {
  const ids = agents.map(({ id }) => id);
  const named: [string | undefined, Path][] = [
    [account.agentId, [...path, "agentId"]],
    ...Object.entries(account.groups).map(([id, group]): [string | undefined, Path] => [
      group.agentId,
      [...path, "groups", id, "agentId"],
    ]),
  ];
  for (const [id, at] of named) {
    const text = id === undefined ? undefined : agentProblem(id, ids);
    if (text !== undefined) problems.push({ path: at, text });
  }
}

/** Returns whether any of the keys that define an account is present. */
function isDescribed(channel: ChannelId, account: Tree): boolean {
  const keys = channel === "imessage" ? ["command", "enabled"] : neededKeys(channel);
  return keys.some((key) => Boolean(account[key]));
}

function accountsOf(channel: ChannelId, file: ConfigFile, around: Around): ChannelAccount[] {
  const section = file.channels[channel];
  if (section === undefined || section.enabled === false) return [];
  const { accounts = {}, ...own } = section as Tree & { readonly accounts?: Readonly<Record<string, Tree>> };
  const needed = neededKeys(channel);
  // An empty key comes from an unset variable and is no error. A key that is absent was probably forgotten.
  const isForgotten =
    channel === "imessage" ? !isDescribed(channel, own) : needed.every((key) => !(key in own));
  if (isForgotten && Object.keys(own).length > 0 && Object.keys(accounts).length === 0) {
    const what = channel === "imessage" ? "must be true" : "is needed";
    const text = `${what}: without it the channel has no account`;
    around.problems.push({ path: ["channels", channel, needed[0] ?? "enabled"], text });
  }
  // Accounts in `accounts` inherit the channel's rules, but not the keys that define its own account.
  const rules = Object.fromEntries(Object.entries(own).filter(([key]) => !needed.includes(key)));
  const inFile = Object.entries(accounts).map(([name, account]): [string, Tree, Path] => [
    name,
    layered(rules, account),
    ["channels", channel, "accounts", name],
  ]);
  if (isDescribed(channel, own) && !(DEFAULT_ACCOUNT in accounts)) {
    inFile.unshift([DEFAULT_ACCOUNT, own, ["channels", channel]]);
  }
  return inFile.flatMap(([accountId, account, path]) => {
    if (account.enabled === false) return [];
    for (const key of needed.filter((one) => !account[one])) {
      around.problems.push({ path: [...path, key], text: "is needed for an account of this channel" });
    }
    const whole = wholeAccount(channel, file, account as AccountInFile, accountId);
    checkAgents(whole, path, around);
    return [whole];
  });
}

/**
 * Returns the enabled accounts. An account whose keys are all empty, for example because of unset variables,
 * is skipped.
 */
export function channelsOf(file: ConfigFile, around: Around): ChannelAccount[] {
  return CHANNEL_IDS.flatMap((channel) => accountsOf(channel, file, around));
}
