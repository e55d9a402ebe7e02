// Owns who is answered at a channel: the decision on one message, from settings and from what is known of its
// sender.
// IP1: what is not allowed is refused: an id that is not named, a group that is not named, a group message
//      that does not speak to the agent.
// IP2: an owner is who has the id that the settings name, never who has a name: names can be taken.
//      For the same reason a numeric entry of an allow list is an id and matches no user name.
// IP3: somebody who was blocked is answered nowhere, unless it is an owner.

import type { AccountSettings, GroupSettings } from "./channel-settings.ts";

/** What is known of somebody who writes directly. */
export type PeerState = "pending" | "approved" | "blocked";

/** A message, as far as it decides whether it is answered. */
export interface InboundQuestion {
  readonly channel: string;
  readonly chat: {
    readonly type: "direct" | "group" | "channel";
    readonly id: string;
    readonly alsoKnownAs?: readonly string[];
  };
  readonly sender: { readonly id: string; readonly alsoKnownAs?: readonly string[] };
  /** It names the agent's account, or replies to it. */
  readonly mentioned: boolean;
  /** `native`: chosen from the platform's own menu, which names the account. */
  readonly command?: "native" | "written" | undefined;
  /** Absent: a stranger, or nobody has looked. */
  readonly peer?: PeerState | undefined;
}

/** `ask`: a stranger who may be let in by an operator. `why`: in words for the log. */
export type InboundVerdict =
  | { readonly kind: "admit"; readonly isOwner: boolean; readonly agentId?: string }
  | { readonly kind: "ask" }
  | { readonly kind: "ignore"; readonly why: string };

const EVERYBODY = "*";

/** An id as platforms and people write it: phone numbers with a `+` or without. */
export function plainId(id: string): string {
  return /^\+\d+$/.test(id) ? id.slice(1) : id;
}

/** A setting's id without the channel that may stand before it. */
export function idIn(entry: string, channel: string): string {
  const prefix = `${channel}:`;
  const text = entry.trim();
  return text.toLowerCase().startsWith(prefix.toLowerCase()) ? text.slice(prefix.length) : text;
}

/** A user name without its sign, in lower case: names are the same in any case. */
function plainName(name: string): string {
  return name.trim().replace(/^@/, "").toLowerCase();
}

/** Somebody, or a group, as settings may name it. */
interface Named {
  readonly id: string;
  /** User names begin with `@`; anything else is one more id. */
  readonly alsoKnownAs?: readonly string[] | undefined;
}

/** Whether an entry can only be an id: a user name of digits must not match an allowed id. */
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

/** Whether the owners, like `telegram:123`, name this sender. User names are no ids, and never do. */
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

/** What is set for a group: its own entry, by any of its ids, else the one for all. */
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
  return { kind: "admit", isOwner: owner, ...(agentId === undefined ? {} : { agentId }) };
}

/** Whether a message is answered. Without `peer` the verdict holds for a stranger. */
export function decideInbound(
  account: AccountSettings,
  owners: readonly string[],
  question: InboundQuestion,
): InboundVerdict {
  const owner = isOwner(owners, question.channel, question.sender);
  const decide = question.chat.type === "direct" ? decideDirect : decideGroup;
  return decide(account, question, owner);
}
