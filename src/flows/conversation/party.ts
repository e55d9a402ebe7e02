// Describes a session that takes part in a flow: its name for others, the destination of its announcements,
// and the provenance of its messages.

import { keyRulesOf } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import type { Party } from "../../core/rules/turn-rules.ts";
import type { Provenance } from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import { channelOf, displayKey, routeOfKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";

/** Returns the description of a session for the agent of `reader`. */
export function partyOf(settings: Settings, session: Session, reader: Session): Party {
  return {
    key: displayKey(session.key, reader.agentId, keyRulesOf(settings)),
    channel: channelOf(session),
    ...optional({ label: session.label }),
  };
}

/**
 * Returns the route of a session's announcements: the route that was used last, else the route in the
 * session's key.
 */
export function announceRoute(session: Session): Route | undefined {
  return session.external ? undefined : (session.lastRoute ?? routeOfKey(session.key));
}

/**
 * Returns the chat of the people behind a run: the chat of the run's message, else the session's current
 * chat, which may be a different one.
 */
export function placeOfRun(session: Session, run: Run | undefined): Route | undefined {
  const kind = run?.input.provenance?.kind;
  const asked = kind === undefined || kind === "inter_session" || kind === "cron" ? run?.route : undefined;
  return asked ?? announceRoute(session);
}

/** Returns the provenance of a message from one session to another (I11). */
export function provenanceFrom(
  source: Session,
  chain: { chainId: string; hop: number },
  sourceTool: "sessions_send" | "sessions_spawn" = "sessions_send",
): Provenance {
  const { chainId, hop } = chain;
  const sender = { sourceSessionKey: source.key, sourceChannel: channelOf(source) };
  return { kind: "inter_session", ...sender, sourceTool, chainId, hop };
}
