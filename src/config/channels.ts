// Builds complete accounts from the channels in the file, or reports missing keys.

import { optional } from "../core/optional.ts";
import {
  type AccountSettings,
  CHANNEL_IDS,
  type ChannelAccount,
  type ChannelId,
  type GroupSettings,
} from "../core/shapes/settings/channels.ts";
import type { AgentSettings } from "../core/shapes/settings/settings.ts";
import type { Path } from "../core/text/value-path.ts";
import { agentProblem } from "./schema/fields.ts";
import type { ConfigFile } from "./schema/schema.ts";
import type { Problem } from "./source.ts";

/** Name of the account that is described by the channel's own keys. */
const DEFAULT_ACCOUNT = "default";
const BYTES_PER_MB = 1024 * 1024;

/** The folder in which Apple's Messages stores attachments. */
const MESSAGES_FOLDERS = ["~/Library/Messages/Attachments"];

type ChannelsInFile = ConfigFile["channels"];
type ChannelInFile<C extends ChannelId> = NonNullable<ChannelsInFile[C]>;
type AccountInFile<C extends ChannelId> = Omit<ChannelInFile<C>, "accounts">;

interface Around {
  readonly agents: readonly AgentSettings[];
  readonly problems: Problem[];
}

/** Required keys of an account. */
const NEEDED: { readonly [C in ChannelId]: readonly (keyof AccountInFile<C>)[] } = {
  telegram: ["botToken"],
  discord: ["token"],
  whatsapp: ["phoneNumberId", "accessToken", "appSecret", "verifyToken"],
  signal: ["number"],
  imessage: [],
};

/** Returns the fields that have a value; `null` counts as not set. */
function said(fields: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
}

/** Returns a channel's rules, overridden by those of an account: key by key, including nested objects. */
function layered(rules: Readonly<Record<string, unknown>>, account: object): object {
  const own = said(account);
  const both = ["inbound", "threadBindings"].map((key): [string, object] => {
    const [above, below] = [rules[key] ?? {}, own[key] ?? {}];
    return [key, { ...said(above), ...said(below) }];
  });
  return { ...rules, ...own, ...Object.fromEntries(both) };
}

function groupsOf(
  groups: AccountInFile<"telegram">["groups"],
  requireMention: boolean,
): Record<string, GroupSettings> {
  return Object.fromEntries(
    Object.entries(groups ?? {}).map(([id, group]): [string, GroupSettings] => [
      id,
      {
        enabled: group.enabled,
        requireMention: group.requireMention ?? requireMention,
        ...optional({ allowFrom: group.allowFrom }),
        ...(group.agentId === undefined ? {} : { agentId: group.agentId.trim().toLowerCase() }),
      },
    ]),
  );
}

function commonOf(file: ConfigFile, account: AccountInFile<"telegram">, accountId: string): AccountSettings {
  const { debounceMs, queue, mediaMaxMb } = account.inbound ?? {};
  const { enabled, idleHours, maxAgeHours } = account.threadBindings ?? {};
  const bindings = file.session.threadBindings;
  const requireMention = account.requireMention ?? true;
  const groups = groupsOf(account.groups, requireMention);
  return {
    accountId,
    dmPolicy: account.dmPolicy ?? "pairing",
    allowFrom: account.allowFrom ?? [],
    groupPolicy: account.groupPolicy ?? "allowlist",
    groupAllowFrom: account.groupAllowFrom ?? [],
    // The account's own settings apply to a group that has no entry here, but is allowed by groupPolicy
    // `open`, or because an owner or a sender in groupAllowFrom writes.
    groups,
    requireMention,
    inbound: {
      debounceMs: debounceMs ?? file.inbound.debounceMs,
      queue: queue ?? file.inbound.queue,
      mediaMaxBytes: Math.round((mediaMaxMb ?? file.inbound.mediaMaxMb) * BYTES_PER_MB),
    },
    threadBindings: {
      enabled: enabled ?? bindings.enabled,
      idleHours: idleHours ?? bindings.idleHours,
      maxAgeHours: maxAgeHours ?? bindings.maxAgeHours,
    },
    ...optional({ steps: account.steps }),
    ...(account.agentId === undefined ? {} : { agentId: account.agentId.trim().toLowerCase() }),
  };
}

function wholeAccount(channel: ChannelId, common: AccountSettings, account: object): ChannelAccount {
  const { botToken, apiRoot = "https://api.telegram.org" } = account as AccountInFile<"telegram">;
  const { token, restUrl = "https://discord.com/api" } = account as AccountInFile<"discord">;
  const { number, url = "http://127.0.0.1:8080" } = account as AccountInFile<"signal">;
  const {
    command = ["imsg", "rpc"],
    names = ["Parley"],
    attachmentFolders = MESSAGES_FOLDERS,
  } = account as AccountInFile<"imessage">;
  const { phoneNumberId, accessToken, appSecret, verifyToken, graphUrl } =
    account as AccountInFile<"whatsapp">;
  const address = (value: string): string => value.replace(/\/+$/, "");
  switch (channel) {
    case "telegram":
      return { ...common, channel, botToken: botToken ?? "", apiRoot: address(apiRoot) };
    case "discord":
      return { ...common, channel, token: token ?? "", restUrl: address(restUrl) };
    case "signal":
      return { ...common, channel, number: number ?? "", url: address(url) };
    case "imessage":
      return { ...common, channel, command, names, attachmentFolders };
    case "whatsapp":
      return {
        ...common,
        channel,
        phoneNumberId: phoneNumberId ?? "",
        accessToken: accessToken ?? "",
        appSecret: appSecret ?? "",
        verifyToken: verifyToken ?? "",
        graphUrl: address(graphUrl ?? "https://graph.facebook.com/v23.0"),
      };
  }
}

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
function isDescribed(channel: ChannelId, account: object): boolean {
  const keys = channel === "imessage" ? ["command", "enabled"] : NEEDED[channel];
  return keys.some((key) => Boolean((account as Record<string, unknown>)[key]));
}

function accountsOf(channel: ChannelId, file: ConfigFile, around: Around): ChannelAccount[] {
  const section = file.channels[channel];
  if (section === undefined || section.enabled === false) return [];
  const { accounts = {}, ...own } = section;
  const needed = NEEDED[channel] as readonly string[];
  const first = needed[0] ?? "enabled";
  // An empty key comes from an unset variable and is no error. A key that is absent was probably forgotten.
  const isForgotten =
    channel === "imessage" ? !isDescribed(channel, own) : needed.every((key) => !(key in own));
  if (isForgotten && Object.keys(own).length > 0 && Object.keys(accounts).length === 0) {
    const what = channel === "imessage" ? "must be true" : "is needed";
    const text = `${what}: without it the channel has no account`;
    around.problems.push({ path: ["channels", channel, first], text });
  }
  const inFile: [string, object, Path][] = Object.entries(accounts).map(([name, account]) => {
    // Accounts in `accounts` inherit the channel's rules, but not the keys that define its own account.
    const rules = Object.fromEntries(Object.entries(own).filter(([key]) => !needed.includes(key)));
    return [name, layered(rules, account), ["channels", channel, "accounts", name]];
  });
  if (isDescribed(channel, own) && !(DEFAULT_ACCOUNT in accounts)) {
    inFile.unshift([DEFAULT_ACCOUNT, own, ["channels", channel]]);
  }
  return inFile.flatMap(([accountId, account, path]) => {
    if ((account as { enabled?: boolean }).enabled === false) return [];
    const missing = needed.filter((key) => !(account as Record<string, unknown>)[key]);
    for (const key of missing) {
      around.problems.push({ path: [...path, key], text: "is needed for an account of this channel" });
    }
    const whole = wholeAccount(
      channel,
      commonOf(file, account as AccountInFile<"telegram">, accountId),
      account,
    );
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
