// Owns which session a message from a channel belongs to (SPEC 2), and that the session is there.
// PL1: a place has one session for each agent, whoever writes there; a place that is bound to a session has
//      that one.
// PL2: the session is made by the transaction that needs it. One that was archived is taken up again: whoever
//      writes means the conversation, not its row.

import { cleanName } from "../../core/inbound-text.ts";
import type { Route } from "../../core/route.ts";
import type { Session } from "../../core/session.ts";
import { formatKey, mainKeyOf, parseKey } from "../../core/session-key.ts";
import { defaultAgent, findAgent, type Settings } from "../../core/settings.ts";
import type { Unit } from "../../engine/unit.ts";
import { keyRulesOf } from "../../flows/access.ts";
import { insertNew, newSession } from "../../flows/lifecycle.ts";
import { holdSession, updateSession } from "../../store/sessions.ts";
import type { InboundMessage } from "../channel.ts";

const DISPLAY_CHARS_MAX = 200;

/** Where something was said, and for whom. JSON: it is kept with a message that waits. */
export interface Place {
  readonly channel: string;
  readonly accountId: string;
  /** As settings say at the time; one that is gone later is the default agent. */
  readonly agentId: string;
  readonly chat: Pick<InboundMessage["chat"], "type" | "id" | "name" | "thread">;
  readonly peerId: string;
  readonly peerName?: string;
  readonly replyTo: Route;
}

/** Whose session a place's own is: the default agent's, where its agent is gone. */
function agentIdOf(settings: Settings, { agentId }: Place): string {
  return (findAgent(settings, agentId) ?? defaultAgent(settings)).id;
}

/** The key of a place's own session; undefined: an id in it is too long for one. */
export function keyOfPlace(settings: Settings, place: Place): string | undefined {
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
          ...{ form: type, agentId, channel, id: chat.id },
          ...(thread === undefined ? {} : { thread: { kind: thread.kind, id: thread.id } }),
        },
  );
  return parseKey(key).ok ? key : undefined;
}

/** What a place's own session is called; undefined: nothing says. */
function displayNameOf({ chat, peerName }: Place): string | undefined {
  const names = chat.type === "direct" ? [peerName] : [cleanName(chat.name), cleanName(chat.thread?.name)];
  const shown = names.filter((name) => name !== undefined && name !== "").join(" / ");
  return shown === "" ? undefined : shown.slice(0, DISPLAY_CHARS_MAX).toWellFormed();
}

/** Whether the name of a session is that of a place. A main session is everybody's. */
function isNamedByPlace(session: Session): boolean {
  return session.kind !== "main";
}

/** The session of a place, which is there afterwards, and held. */
export async function openSessionOf(unit: Unit, settings: Settings, place: Place): Promise<Session> {
  const key = keyOfPlace(settings, place);
  if (key === undefined) throw new Error(`no session can be named after this place of ${place.channel}`);
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
