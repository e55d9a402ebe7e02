// Creates a conversation when an operator or a client names one that does not exist. No other code creates a
// session because of a name. A caller that acts as a session, such as an agent's tool, never creates one, so
// a model's typo has no effect. The transaction that accepts the first message creates the session, so a
// refused message leaves nothing behind.

import { isPerson, keyOfAgent, keyRulesOf, openGate, operatorKey } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { optional } from "../../core/optional.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { agentIdInKey, opensOnUse } from "../../core/shapes/session-key.ts";
import { findAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import { checkLabel } from "../../core/text/label.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { insertNew, newSession } from "./lifecycle.ts";

interface OpenContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** A session to write to, and the work to do first in the transaction that accepts the message. */
export interface Opening {
  readonly session: Session;
  before(unit: Unit): Promise<Result<void>>;
}

/**
 * Returns an opening for a session. If the session is not there yet, `before` creates it, unless another
 * request has created it in the meantime.
 */
export function openingOf(session: Session, isThere: boolean): Opening {
  return {
    session,
    async before(unit) {
      if (!isThere && (await getSession(unit.tx, session.key)) === undefined) await insertNew(unit, session);
      return ok(undefined);
    },
  };
}

/**
 * Returns the name in this text for a new conversation, or undefined if the text is not a name or its agent
 * does not exist.
 */
export function freeName(
  settings: Settings,
  viewer: Viewer,
  text: string,
): { key: string; agentId: string } | undefined {
  const rules = keyRulesOf(settings);
  const key = isPerson(viewer) ? operatorKey(settings, text) : undefined;
  if (!key?.ok || !opensOnUse(key.value, rules)) return undefined;
  const agentId = agentIdInKey(key.value);
  if (agentId === undefined || findAgent(settings, agentId) === undefined) return undefined;
  // A text that is only an agent's name probably means that agent, not a conversation with another agent.
  if (findAgent(settings, text.trim().toLowerCase()) !== undefined) return undefined;
  return { key: key.value, agentId };
}

interface NamedRequest {
  readonly key: string;
  /** The agent of the session. Default: the one in the key. */
  readonly agentId?: string;
  /** The label of a session that is created now. */
  readonly label?: string;
  readonly also: (unit: Unit, session: Session) => Promise<void>;
}

/** Returns the conversation with this name, and creates it if it is missing. */
export async function createNamed(
  ctx: OpenContext,
  viewer: Viewer,
  { key, agentId, label, also }: NamedRequest,
): Promise<Result<Session>> {
  const checked = label === undefined ? ok(undefined) : checkLabel(label);
  if (!checked.ok) return checked;
  const whole = agentId === undefined ? key : keyOfAgent(ctx.settings, key, agentId);
  const opening = await openSession(ctx, viewer, whole, checked.value);
  if (!opening.ok) return opening;
  const { session, before } = opening.value;
  if (agentId !== undefined && session.agentId !== agentId.trim().toLowerCase()) {
    const text = `session ${session.key} belongs to agent "${session.agentId}", not to the agentId given`;
    return fail("invalid_argument", text);
  }
  return ctx.engine.commit(async (unit): Promise<Result<Session>> => {
    const ready = await before(unit);
    if (!ready.ok) return ready;
    const made = (await getSession(unit.tx, session.key)) ?? session;
    await also(unit, made);
    return ok(made);
  });
}

/** Returns the session for a message: an existing one, or a new conversation with the given name. */
export async function openSession(
  ctx: OpenContext,
  viewer: Viewer,
  text: string,
  label?: string,
): Promise<Result<Opening>> {
  const access = { db: ctx.engine.store.db, settings: ctx.settings };
  const found = await resolveSession(access, viewer, "send", { sessionKey: text });
  if (found.ok) return ok(openingOf(found.value, true));
  const free = found.code === "session_not_found" ? freeName(ctx.settings, viewer, text) : undefined;
  if (free === undefined) return found;
  const ids = { newId: () => ctx.engine.newId(), now: ctx.engine.now() };
  const session = newSession(ctx, ids, { ...free, ...optional({ label }) });
  const verdict = await openGate(access, viewer).decide("send", session);
  return verdict.allowed ? ok(openingOf(session, false)) : fail(verdict.code, verdict.error);
}
