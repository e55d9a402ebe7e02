// Maps the channels whose bots need only a token, with their accounts and allow lists.
// CH1: nobody gets an answer here who would get none there. In the source a group admits the place, and a
//      list of senders the person; here an entry of a group without a list admits everybody in it, so each
//      entry gets the list.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf, isObject } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { textIn } from "../fields.ts";
import { secretIn } from "./models.ts";
import { putBack, take, takeTree } from "./tree.ts";

const TOKENS = { telegram: "botToken", discord: "token" } as const;
const DM_POLICIES = ["pairing", "allowlist", "open", "disabled"];
const ENTRIES_MAX = 2_000;

/** The strictest values of the settings that admit people. */
export const NOBODY = {
  dmPolicy: "pairing",
  allowFrom: [],
  groupPolicy: "allowlist",
  groupAllowFrom: [],
  groups: {},
};

/** Returns the ids in an allow list. Undefined if there is no list. */
function idsIn(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const ids = value.slice(0, ENTRIES_MAX).map((id) => textIn(typeof id === "number" ? String(id) : id, 200));
  const known = ids.flatMap((id) => (id === undefined ? [] : [id.replace(/^tg:/i, "telegram:")]));
  // The members of such a group are in another part of the source.
  return known.filter((id) => !/^accessgroup:/i.test(id));
}

function mapGroup(value: unknown, senders: readonly string[] | undefined): Tree {
  const { enabled, requireMention, allowFrom } = fieldsOf(value);
  return {
    enabled: enabled === false ? false : undefined,
    requireMention: typeof requireMention === "boolean" ? requireMention : undefined,
    allowFrom: idsIn(allowFrom) ?? senders,
  };
}

/** Maps the rules for groups. `inherited`: values of the channel for keys that the account does not set. */
function mapGroups(own: Tree, inherited: Tree): Tree {
  const readSetting = (name: string): unknown => own[name] ?? inherited[name];
  const policy = readSetting("groupPolicy");
  if (policy === "disabled") return { groupPolicy: policy };
  const senders = idsIn(readSetting("groupAllowFrom")) ?? idsIn(readSetting("allowFrom")) ?? [];
  // An empty list of the only account counts as absent, like in the source.
  const entries = Object.entries(fieldsOf(own.groups));
  const isOneOfMany = Object.keys(fieldsOf(inherited.accounts)).length > 1;
  const isOwn = entries.length > 0 || (own.groups !== undefined && isOneOfMany);
  const groups = (isOwn ? entries : Object.entries(fieldsOf(inherited.groups))).slice(0, ENTRIES_MAX);
  if (groups.length > 0) {
    const admitted = policy === "open" ? undefined : senders;
    return { groups: Object.fromEntries(groups.map(([id, group]) => [id, mapGroup(group, admitted)])) };
  }
  if (policy === "open") return { groupPolicy: policy };
  return { groupAllowFrom: senders.length === 0 ? undefined : senders };
}

const USED = ["dmPolicy", "allowFrom", "groupPolicy", "groupAllowFrom", "groups", "enabled", "name"];

/** Maps one account. Returns undefined if it is disabled or has no token. */
function mapAccount(
  channel: keyof typeof TOKENS,
  own: Tree,
  inherited: Tree,
  where: string,
  notes: string[],
): Tree | undefined {
  const name = TOKENS[channel];
  const { [name]: token, dm, ...rest } = own;
  const secret = secretIn(token);
  if (own.enabled === false) {
    notes.push(`${where} is disabled in the source and skipped`);
    return undefined;
  }
  const left = Object.keys(rest).filter((key) => !USED.includes(key) && key !== "accounts");
  if (left.length > 0) {
    const keys = left.slice(0, 12).join(", ").slice(0, 200);
    notes.push(`${where}: these settings are not imported: ${keys}`);
  }
  if (secret === undefined) return undefined;
  // Older versions have the rules for direct messages of Discord in a section of their own.
  const { policy, allowFrom } = fieldsOf(dm);
  const direct = String(own.dmPolicy ?? policy ?? inherited.dmPolicy);
  return {
    [name]: secret,
    dmPolicy: DM_POLICIES.includes(direct) ? direct : undefined,
    allowFrom: idsIn(own.allowFrom) ?? idsIn(allowFrom) ?? idsIn(inherited.allowFrom),
    ...(channel === "telegram" ? mapGroups(own, inherited) : {}),
  };
}

function mapChannel(channel: keyof typeof TOKENS, section: Tree, notes: string[]): Tree | undefined {
  const where = `channels.${channel}`;
  const mapped = mapAccount(channel, section, {}, where, notes);
  if (section.enabled === false) return undefined;
  const accounts = Object.entries(fieldsOf(section.accounts)).flatMap(([id, account]) => {
    if (!isObject(account)) return [];
    const one = mapAccount(channel, account, section, `${where}.accounts.${id}`, notes);
    // Sets what the account would otherwise inherit from its channel here.
    return one === undefined ? [] : [[id, { ...NOBODY, ...optional(one) }] as const];
  });
  if (mapped === undefined && accounts.length === 0) return undefined;
  return { ...mapped, accounts: accounts.length === 0 ? undefined : Object.fromEntries(accounts) };
}

/** Maps the section `channels`. */
export function mapChannels(tree: Tree, notes: string[]): Tree {
  const channels = takeTree(tree, "channels");
  const section = (name: keyof typeof TOKENS): Tree | undefined => {
    const channel = takeTree(channels, name);
    // Older versions have no section for channels.
    const found = Object.keys(channel).length === 0 ? takeTree(tree, name) : channel;
    return Object.keys(found).length === 0 ? undefined : mapChannel(name, found, notes);
  };
  const mapped = { telegram: section("telegram"), discord: section("discord") };
  take(channels, "defaults");
  putBack(tree, "channels", channels);
  return mapped;
}
