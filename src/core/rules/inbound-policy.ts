// Decides whether a channel message gets an answer, from the settings and the status of its sender.
// IP1: by default a message is refused: from an id that is not listed, from a group that is not listed, or in
// a group without a mention of the agent.
// IP2: an owner is identified by id, never by user name, because names can be taken over.
// For the same reason a numeric entry of an allow list is an id and matches no user name.
// IP3: a blocked person gets no answer anywhere, unless it is an owner.

import { optional } from "../optional.ts";
import type { AccountSettings, GroupSettings } from "../shapes/settings/channels.ts";

/** Pairing status of a person who writes directly. */
export type PeerState = "pending" | "approved" | "blocked";

/** The facts about a message that decide whether it gets an answer. */
export interface InboundQuestion {
  readonly channel: string;
  readonly chat: {
    readonly type: "direct" | "group" | "channel";
    readonly id: string;
    readonly alsoKnownAs?: readonly string[];
  };
  readonly sender: { readonly id: string; readonly alsoKnownAs?: readonly string[] };
  /** The message mentions the agent's account, or replies to it. */
  readonly mentioned: boolean;
  /** `native`: chosen in the platform's menu, so it is for this account. */
  readonly command?: "native" | "written" | undefined;
  /** Absent: unknown person, or not looked up. */
  readonly peer?: PeerState | undefined;
}

/** `ask`: an operator may approve this unknown person. `why`: text for the log. */
export type InboundVerdict =
  | { readonly kind: "admit"; readonly isOwner: boolean; readonly agentId?: string }
  | { readonly kind: "ask" }
  | { readonly kind: "ignore"; readonly why: string };

const EVERYBODY = "*";

/** Normalises an id that platforms and people write differently: phone numbers with or without `+`. */
export function plainId(id: string): string {
  return /^\+\d+$/.test(id) ? id.slice(1) : id;
}

/** Returns the id of a setting without its channel prefix. */
export function idIn(entry: string, channel: string): string {
  const prefix = `${channel}:`;
  const text = entry.trim();
  return text.toLowerCase().startsWith(prefix.toLowerCase()) ? text.slice(prefix.length) : text;
}

/** Normalises a user name: without `@`, in lower case. */
function plainName(name: string): string {
  return name.trim().replace(/^@/, "").toLowerCase();
}

/** A person or a group, with all ids that settings may use for it. */
interface Named {
  readonly id: string;
  /** User names begin with `@`; anything else is another id. */
  readonly alsoKnownAs?: readonly string[] | undefined;
}

/** Returns whether an entry can only be an id: a user name of digits must not match an allowed id. */
const isNumeric = (entry: string): boolean => /^[+-]?\d+$/.test(entry);

function isNamed(entries: readonly string[], channel: string, { id, alsoKnownAs = [] }: Named): boolean {
  const isName = (known: string): boolean => known.startsWith("@");
  const names = alsoKnownAs.filter(isName).map(plainName);
  const otherIds = alsoKnownAs.filter((known) => !isName(known)).map((known) => plainId(known.toLowerCase()));
  return entries.some((entry) => {
    const wanted = idIn(entry, channel);
    if (wanted === EVERYBODY || plainId(wanted) === plainId(id)) return true;
    if (otherIds.includes(plainId(wanted.toLowerCase()))) return true;
    const name = isNumeric(wanted) ? "" : plainName(wanted);
    return name !== "" && names.includes(name);
  });
}

/** Returns whether the owners, written like `telegram:123`, include this sender. User names never match. */
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

/** Returns the settings of a group: the entry for any of its ids, else the entry for all groups. */
function groupOf(account: AccountSettings, channel: string, chat: Named): GroupSettings | undefined {
  const entries = Object.entries(account.groups);
  const isForAll = (entry: string): boolean => idIn(entry, channel) === EVERYBODY;
  const own = entries.find(([entry]) => !isForAll(entry) && isNamed([entry], channel, chat));
  return (own ?? entries.find(([entry]) => isForAll(entry)))?.[1];
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
  const group = groupOf(account, channel, chat);
  if (group?.enabled === false) return ignore("the group is not enabled");
  const anywhere = owner || isNamed(account.groupAllowFrom, channel, sender);
  if (group === undefined && account.groupPolicy === "allowlist" && !anywhere) {
    return ignore("the group is not in groups, nor the sender in groupAllowFrom");
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

/** Decides whether a message gets an answer. Without `peer` the sender counts as unknown. */
export function decideInbound(
  account: AccountSettings,
  owners: readonly string[],
  question: InboundQuestion,
): InboundVerdict {
  const owner = isOwner(owners, question.channel, question.sender);
  const decide = question.chat.type === "direct" ? decideDirect : decideGroup;
  return decide(account, question, owner);
}
