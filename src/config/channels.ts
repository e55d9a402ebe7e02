// Builds complete accounts from the channels in the file, or reports missing keys.

import type { Platform } from "../channels/platform.ts";
import { isObject } from "../core/json.ts";
import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import { type AgentSettings, agentProblem } from "../core/shapes/settings/settings.ts";
import type { Path } from "../core/text/value-path.ts";
import { PLATFORMS } from "../features.ts";
import { accountKeys } from "./schema/channels.ts";
import type { ConfigFile } from "./schema/schema.ts";
import { defaultsOf, FACTS, type Values } from "./schema/setting.ts";
import type { Problem, Tree } from "./source.ts";

/** Name of the account that is described by the channel's own keys. */
const DEFAULT_ACCOUNT = "default";
const BYTES_PER_MB = 1024 * 1024;

interface Around {
  readonly agents: readonly AgentSettings[];
  readonly problems: Problem[];
}

/** Returns a channel's rules, overridden by those of an account: key by key, including nested objects. */
function overrideRules(rules: Tree, account: Tree): Tree {
  const both = Object.keys(account).filter((key) => key !== "groups" && isObject(rules[key]));
  const inner = both.map((key) => [key, { ...(rules[key] as Tree), ...(account[key] as Tree) }]);
  return { ...rules, ...account, ...Object.fromEntries(inner) };
}

function wholeAccount(
  [channel, { settings }]: [string, Platform],
  file: ConfigFile,
  given: Tree,
  accountId: string,
) {
  const keys = { ...accountKeys, ...settings };
  const { enabled: _, ...account } = { ...defaultsOf(keys), ...given } as Values<typeof accountKeys>;
  const { requireMention, inbound, threadBindings, agentId } = account;
  const { mediaMaxMb, ...bursts } = { ...file.inbound, ...inbound };
  // The account's own settings apply to a group that has no entry here, but is allowed by groupPolicy `open`,
  // or because an owner or a sender in groupAllowFrom writes.
  const groups = Object.entries(account.groups).map(([id, group]) => [
    id,
    { requireMention, ...group, ...idOf(group.agentId) },
  ]);
  // Paths are added to addresses.
  const bases = Object.entries(account).filter(([key]) => settings[key]?.format === "uri");
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

function accountsOf(platform: [string, Platform], file: ConfigFile, around: Around): ChannelAccount[] {
  const [channel, { settings, definedBy }] = platform;
  const sections: Readonly<Record<string, Tree | undefined>> = file.channels;
  const section = sections[channel];
  if (section === undefined || section.enabled === false) return [];
  const { accounts = {}, ...own } = section as Tree & { readonly accounts?: Readonly<Record<string, Tree>> };
  const needed = Object.keys(settings).filter((key) => settings[key]?.[FACTS]?.required);
  const defining = definedBy ?? needed;
  // An empty key comes from an unset variable and is no error. A key that is absent was probably forgotten.
  const isForgotten = defining.every((key) => !(key in own));
  if (isForgotten && Object.keys(own).length > 0 && Object.keys(accounts).length === 0) {
    const [key = "enabled"] = needed;
    const text = `${key === "enabled" ? "must be true" : "is needed"}: without it the channel has no account`;
    around.problems.push({ path: ["channels", channel, key], text });
  }
  // Accounts in `accounts` inherit the channel's rules, but not the keys that define its own account.
  const rules = Object.fromEntries(Object.entries(own).filter(([key]) => !needed.includes(key)));
  const inFile = Object.entries(accounts).map(([name, account]): [string, Tree, Path] => [
    name,
    overrideRules(rules, account),
    ["channels", channel, "accounts", name],
  ]);
  if (defining.some((key) => Boolean(own[key])) && !(DEFAULT_ACCOUNT in accounts)) {
    inFile.unshift([DEFAULT_ACCOUNT, own, ["channels", channel]]);
  }
  return inFile.flatMap(([accountId, account, path]) => {
    if (account.enabled === false) return [];
    for (const key of needed.filter((one) => !account[one])) {
      around.problems.push({ path: [...path, key], text: "is needed for an account of this channel" });
    }
    const whole = wholeAccount(platform, file, account, accountId);
    const ids = around.agents.map(({ id }) => id);
    const named: [string | undefined, Path][] = [
      [whole.agentId, [...path, "agentId"]],
      ...Object.entries(whole.groups).map(([id, group]): [string | undefined, Path] => [
        group.agentId,
        [...path, "groups", id, "agentId"],
      ]),
    ];
    for (const [id, at] of named) {
      const text = id === undefined ? undefined : agentProblem(id, ids);
      if (text !== undefined) around.problems.push({ path: at, text });
    }
    return [whole];
  });
}

/**
 * Returns the enabled accounts. An account whose keys are all empty, for example because of unset variables,
 * is skipped.
 */
export function channelsOf(file: ConfigFile, around: Around): ChannelAccount[] {
  return Object.entries(PLATFORMS).flatMap((platform) => accountsOf(platform, file, around));
}
