// Finds or creates the session of a channel's chat.
// A chat has one session per agent, which all senders share. A bound chat uses the session to which it is
// bound. The transaction that needs a session also creates it, or reopens it if it is archived, because the
// sender expects the conversation to continue.

import { keyRulesOf } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Session } from "../../core/shapes/session.ts";
import { formatKey, mainKeyOf, parseKey } from "../../core/shapes/session-key.ts";
import { defaultAgent, findAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import { head } from "../../core/text/cut.ts";
import { cleanName } from "../../core/text/inbound-text.ts";
import type { Unit } from "../../engine/unit.ts";
import { insertNew, newSession } from "../../flows/session/lifecycle.ts";
import { holdSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import type { InboundMessage } from "../channel.ts";

const DISPLAY_CHARS_MAX = 200;

/** The chat, the sender and the agent of a message. It is stored as JSON with a waiting message. */
export interface ChatContext {
  readonly channel: string;
  readonly accountId: string;
  /**
   * The agent that was configured when the message arrived. If this agent was removed since, the default
   * agent is used.
   */
  readonly agentId: string;
  readonly chat: Pick<InboundMessage["chat"], "type" | "id" | "name" | "thread">;
  readonly peerId: string;
  readonly peerName?: string;
  readonly replyTo: Route;
}

/** Returns the agent of a chat's own session. If the agent was removed, returns the default agent. */
function agentIdOf(settings: Settings, { agentId }: ChatContext): string {
  return (findAgent(settings, agentId) ?? defaultAgent(settings)).id;
}

/** Returns the key of a chat's own session. Returns undefined if an id in it is too long. */
export function keyOfChat(settings: Settings, place: ChatContext): string | undefined {
  const rules = keyRulesOf(settings);
  const { channel, chat, peerId } = place;
  const agentId = agentIdOf(settings, place);
  const { type, thread } = chat;
  if (rules.scope === "global" || (type === "direct" && settings.session.dmScope === "main")) {
    return mainKeyOf(agentId, rules);
  }
  const key = formatKey(
    type === "direct"
      ? { form: "dm", agentId, channel, peer: peerId }
      : {
          form: type,
          agentId,
          channel,
          id: chat.id,
          ...optional({ thread: thread && { kind: thread.kind, id: thread.id } }),
        },
  );
  return parseKey(key).ok ? key : undefined;
}

/** Returns the display name for a chat's own session, if one is known. */
function displayNameOf({ chat, peerName }: ChatContext): string | undefined {
  const names = chat.type === "direct" ? [peerName] : [cleanName(chat.name), cleanName(chat.thread?.name)];
  const shown = names.filter((name) => name !== undefined && name !== "").join(" / ");
  return shown === "" ? undefined : head(shown, DISPLAY_CHARS_MAX);
}

/**
 * Returns whether a session is named after its chat. A main session is not, because several chats share it.
 */
function isNamedByPlace(session: Session): boolean {
  return session.kind !== "main";
}

/** Creates or reopens the session of a chat, and locks its row. */
export async function openSessionOf(unit: Unit, settings: Settings, place: ChatContext): Promise<Session> {
  const key = keyOfChat(settings, place);
  if (key === undefined) throw new Error(`the ids of a ${place.channel} chat are too long for a key`);
  const known = await holdSession(unit.tx, key);
  const displayName = displayNameOf(place);
  if (known === undefined) {
    const made = newSession({ settings }, unit, { key, agentId: agentIdOf(settings, place) });
    const session: Session = {
      ...made,
      ...(made.kind === "group" ? { groupChannel: place.channel } : {}),
      ...(isNamedByPlace(made) && displayName !== undefined ? { displayName } : {}),
    };
    await insertNew(unit, session);
    return session;
  }
  const isRenamed = isNamedByPlace(known) && displayName !== undefined && displayName !== known.displayName;
  if (!isRenamed && known.archivedAt === undefined) return known;
  await updateSession(unit.tx, key, {
    ...(isRenamed ? { displayName } : {}),
    ...(known.archivedAt === undefined ? {} : { archivedAt: null }),
  });
  unit.publish({ kind: "session", sessionKey: key, change: "updated" });
  const { archivedAt: _, ...open } = known;
  return isRenamed ? { ...open, displayName } : open;
}
