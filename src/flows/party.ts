// Owns what a flow has to know of a session that takes part: how it is shown, whether it converses, where
// it announces.
// P1: one answer to each question; send, reply-back and announce ask here.

import type { Provenance } from "../core/message.ts";
import type { Run } from "../core/run.ts";
import { decideSend, type SendVerdict } from "../core/send-policy.ts";
import type { Route, Session } from "../core/session.ts";
import { channelOf, chatTypeOf, displayKey, isTemporaryKey, routeOfKey } from "../core/session-key.ts";
import type { Settings } from "../core/settings.ts";
import type { Party } from "../core/turn-rules.ts";
import { keyRulesOf } from "./access.ts";

/** How `reader`'s agent is shown a session. */
export function partyOf(settings: Settings, session: Session, reader: Session): Party {
  return {
    key: displayKey(session.key, reader.agentId, keyRulesOf(settings)),
    channel: channelOf(session),
    ...(session.label === undefined ? {} : { label: session.label }),
  };
}

/** Whether a requester takes reply turns: one that nobody attends, or that reports, does not (SPEC 4). */
export function converses(session: Session): boolean {
  const { kind, key } = session;
  const unattended = kind === "cron" || kind === "hook" || isTemporaryKey(key);
  return !unattended && !session.external && session.spawnedBy === undefined;
}

/** Where a session's announcements go: the route last used, else what its key names. */
export function announceRoute(session: Session): Route | undefined {
  return session.external ? undefined : (session.lastRoute ?? routeOfKey(session.key));
}

/**
 * Where the people behind a run read: where its message came from, else the session's own place. Messages of
 * others may have moved that one meanwhile.
 */
export function placeOfRun(session: Session, run: Run | undefined): Route | undefined {
  const kind = run?.input.provenance?.kind;
  const asked = kind === undefined || kind === "inter_session" ? run?.route : undefined;
  return asked ?? announceRoute(session);
}

/** A sub-agent with a thread of its own is in a chat of the kind that its requester is in. */
function chatTypesOf({ key, spawn }: Session): ReturnType<typeof chatTypeOf> {
  return spawn?.thread === undefined ? chatTypeOf(key) : ["thread", ...chatTypeOf(spawn.requesterKey)];
}

/** May text be sent into this session, or leave it? */
export function sendVerdict(settings: Settings, session: Session): SendVerdict {
  const question = {
    channel: channelOf(session),
    chatTypes: chatTypesOf(session),
    keys: [session.key],
    override: session.sendPolicy,
  };
  return decideSend(question, settings.session.sendPolicy);
}

/** Typed provenance of what one session says to another (I11). */
export function provenanceFrom(
  source: Session,
  chain: { chainId: string; hop: number },
  sourceTool: "sessions_send" | "sessions_spawn" = "sessions_send",
): Provenance {
  return {
    kind: "inter_session",
    sourceSessionKey: source.key,
    sourceChannel: channelOf(source),
    sourceTool,
    chainId: chain.chainId,
    hop: chain.hop,
  };
}
