// Decides whether text may be sent into a session or out of it.
// SP1: a session's own setting takes precedence over the rules.
// SP2: a matching rule that denies wins, then a matching rule that allows, then the default.

import type { SendOverride, Session } from "../shapes/session.ts";
import { channelOf, chatTypeOf } from "../shapes/session-key.ts";
import type { ChatType, SendPolicySettings, SendRule, Settings } from "../shapes/settings/settings.ts";
import { matchesPattern } from "../text/pattern.ts";

/** `error` names the setting that decided. */
export type SendVerdict = { readonly allowed: true } | { readonly allowed: false; readonly error: string };

export interface SendQuestion {
  /** The session's own `sendPolicy`. If absent, the rules apply. */
  readonly override?: SendOverride | undefined;
  readonly channel: string;
  /** All chat types of the session. A thread has `thread` and the type of its parent. */
  readonly chatTypes: readonly ChatType[];
  /** Keys of the sessions that receive the text, or whose people read it. May be empty. */
  readonly keys: readonly string[];
}

function ruleMatches(rule: SendRule, question: SendQuestion): boolean {
  const { channel, chatType, keyPrefix } = rule.match;
  if (channel !== undefined && !matchesPattern(channel.toLowerCase(), question.channel.toLowerCase())) {
    return false;
  }
  if (chatType !== undefined && !question.chatTypes.includes(chatType)) return false;
  const prefix = keyPrefix?.toLowerCase();
  return prefix === undefined || question.keys.some((key) => key.toLowerCase().startsWith(prefix));
}

function denySend(because: string): SendVerdict {
  return { allowed: false, error: `send blocked by session policy: ${because}` };
}

function describeMatch({ match }: SendRule): string {
  const named = Object.entries(match).filter(([, value]) => value !== undefined);
  return named.length === 0 ? "every session" : named.map(([name, value]) => `${name} "${value}"`).join(", ");
}

/** Decides whether text may be sent. Called before a run is accepted, and before a channel sends a reply. */
export function decideSend(question: SendQuestion, policy: SendPolicySettings): SendVerdict {
  if (question.override === "allow") return { allowed: true };
  if (question.override === "deny") {
    return denySend('the session\'s own sendPolicy is "deny"; an operator can clear it with sessions.patch');
  }
  const matching = policy.rules.filter((rule) => ruleMatches(rule, question));
  const deny = matching.find((rule) => rule.action === "deny");
  if (deny !== undefined) {
    const at = policy.rules.indexOf(deny);
    return denySend(`session.sendPolicy.rules[${at}] denies ${describeMatch(deny)}`);
  }
  if (matching.length > 0 || policy.default === "allow") return { allowed: true };
  return denySend(
    'session.sendPolicy.default is "deny" and no rule in session.sendPolicy.rules allows this session',
  );
}

/**
 * Returns the chat types of a session. A sub-agent with its own thread has the chat types of its requester.
 */
export function chatTypesOf({ key, spawn }: Session): ReturnType<typeof chatTypeOf> {
  return spawn?.thread === undefined ? chatTypeOf(key) : ["thread", ...chatTypeOf(spawn.requesterKey)];
}

/** Decides whether the send policy allows text into this session or out of it. */
export function sendVerdict(settings: Settings, session: Session): SendVerdict {
  const question = {
    channel: channelOf(session),
    chatTypes: chatTypesOf(session),
    keys: [session.key],
    override: session.sendPolicy,
  };
  return decideSend(question, settings.session.sendPolicy);
}
