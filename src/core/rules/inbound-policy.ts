// Decides whether a channel message gets an answer, from the settings and the status of its sender.
// IP1: the default is to refuse. A message needs a listed sender, and in a group also a listed group and a
//      mention of the agent.
// IP2: an owner is identified by id and never by user name, because somebody else can take over a user name.
//      For the same reason, a numeric entry of an allow list is an id and never matches a user name.
// IP3: a blocked person gets no answer anywhere, unless the person is an owner.

import { optional } from "../optional.ts";
import type { AccountSettings } from "../shapes/settings/channels.ts";

/** Pairing status of a person who writes directly. */
export type PeerState = "pending" | "approved" | "blocked";

/** Facts that decide whether a message gets an answer. */
export interface InboundQuestion {
  readonly channel: string;
  readonly chat: {
    readonly type: "direct" | "group" | "channel";
    readonly id: string;
    readonly alsoKnownAs?: readonly string[];
  };
  readonly sender: { readonly id: string; readonly alsoKnownAs?: readonly string[] };
  /** True if the message mentions the agent's account or replies to it. */
  readonly mentioned: boolean;
  /** `native`: the person chose the command in the platform's menu, so it is for this account. */
  readonly command?: "native" | "written" | undefined;
  /** Absent if the person is unknown or was not looked up. */
  readonly peer?: PeerState | undefined;
}

/** `ask`: the person is unknown, and an operator may approve them. `why` is a text for the log. */
export type InboundVerdict =
  | { readonly kind: "admit"; readonly isOwner: boolean; readonly agentId?: string }
  | { readonly kind: "ask" }
  | { readonly kind: "ignore"; readonly why: string };

const EVERYBODY = "*";

/**
 * Normalises an id that platforms and people write in different ways, for example phone numbers with or
 * without `+`.
 */
export function plainId(id: string): string {
  return /^\+\d+$/.test(id) ? id.slice(1) : id;
}

/** Returns the id in a setting, without the prefix of the channel. */
export function idIn(entry: string, channel: string): string {
  const prefix = `${channel}:`;
  const text = entry.trim();
  return text.toLowerCase().startsWith(prefix.toLowerCase()) ? text.slice(prefix.length) : text;
}

/** Normalises a user name: without `@`, in lower case. */
function plainName(name: string): string {
  return name.trim().replace(/^@/, "").toLowerCase();
}

/** A person or a group, with all ids and names by which settings may refer to it. */
interface Named {
  readonly id: string;
  /** Further ids. Those that begin with `@` are user names. */
  readonly alsoKnownAs?: readonly string[] | undefined;
}

function isNamed(entries: readonly string[], channel: string, { id, alsoKnownAs = [] }: Named): boolean {
  const isName = (known: string): boolean => known.startsWith("@");
  const names = alsoKnownAs.filter(isName).map(plainName);
  const otherIds = alsoKnownAs.filter((known) => !isName(known)).map((known) => plainId(known.toLowerCase()));
  return entries.some((entry) => {
    const wanted = idIn(entry, channel);
    if (wanted === EVERYBODY || plainId(wanted) === plainId(id)) return true;
    if (otherIds.includes(plainId(wanted.toLowerCase()))) return true;
    // Digits are an id, which must not match a user name.
    const name = /^[+-]?\d+$/.test(wanted) ? "" : plainName(wanted);
    return name !== "" && names.includes(name);
  });
}

/**
 * Returns whether this sender is one of the owners, which are written like `telegram:123`. User names never
 * match.
 */
export function isOwner(
  owners: readonly string[],
  channel: string,
  sender: { readonly id: string },
): boolean {
  return owners.some((owner) => {
    const at = owner.indexOf(":");
    if (at < 0 || owner.slice(0, at).trim().toLowerCase() !== channel.toLowerCase()) return false;
    return plainId(owner.slice(at + 1).trim()) === plainId(sender.id);
  });
}

function ignore(why: string): InboundVerdict {
  return { kind: "ignore", why };
}

function decideDirect(account: AccountSettings, question: InboundQuestion, owner: boolean): InboundVerdict {
  const admit: InboundVerdict = { kind: "admit", isOwner: owner };
  if (account.dmPolicy === "disabled") return ignore("dmPolicy is disabled");
  if (owner) return admit;
  if (question.peer === "blocked") return ignore("the sender is blocked");
  if (account.dmPolicy === "open" || isNamed(account.allowFrom, question.channel, question.sender))
    return admit;
  if (account.dmPolicy === "allowlist") return ignore("the sender is not in allowFrom");
  return question.peer === "approved" ? admit : { kind: "ask" };
}

function decideGroup(account: AccountSettings, question: InboundQuestion, owner: boolean): InboundVerdict {
  const { channel, chat, sender, command } = question;
  if (account.groupPolicy === "disabled") return ignore("groupPolicy is disabled");
  // The settings for one of the group's ids, or else those for all groups.
  const entries = Object.entries(account.groups);
  const isForAll = (entry: string): boolean => idIn(entry, channel) === EVERYBODY;
  const ownEntry = entries.find(([entry]) => !isForAll(entry) && isNamed([entry], channel, chat));
  const group = (ownEntry ?? entries.find(([entry]) => isForAll(entry)))?.[1];
  if (group?.enabled === false) return ignore("the group is not enabled");
  const anywhere = owner || isNamed(account.groupAllowFrom, channel, sender);
  if (group === undefined && account.groupPolicy === "allowlist" && !anywhere) {
    return ignore("groups does not list the group, and groupAllowFrom does not list the sender");
  }
  if (!owner && question.peer === "blocked") return ignore("the sender is blocked");
  if (group?.allowFrom !== undefined && !anywhere && !isNamed(group.allowFrom, channel, sender)) {
    return ignore("the sender is not in the group's allowFrom");
  }
  const speaksToUs = question.mentioned || command === "native" || (command === "written" && owner);
  if (!speaksToUs && (group?.requireMention ?? account.requireMention)) {
    return ignore("the agent is not mentioned");
  }
  const agentId = group?.agentId;
  return { kind: "admit", isOwner: owner, ...optional({ agentId }) };
}

/** Decides whether a message gets an answer. If `peer` is absent, the sender counts as unknown. */
export function decideInbound(
  account: AccountSettings,
  owners: readonly string[],
  question: InboundQuestion,
): InboundVerdict {
  const owner = isOwner(owners, question.channel, question.sender);
  const decide = question.chat.type === "direct" ? decideDirect : decideGroup;
  return decide(account, question, owner);
}
