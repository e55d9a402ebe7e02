// Owns how a conversation begins by being used: an operator or a client names it, and it is there.
// ON1: this is the only place that makes a session because somebody named it. Whoever speaks for a session,
//      such as an agent's tool, never opens one: a typo of a model makes nothing (SPEC 2).
// ON2: the session is made in the unit that accepts its first message: a refused one leaves nothing behind.

import { fail, ok, type Result } from "../core/errors.ts";
import type { Session } from "../core/session.ts";
import { agentIdInKey, opensOnUse } from "../core/session-key.ts";
import { findAgent, type Settings } from "../core/settings.ts";
import type { Viewer } from "../core/visibility.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import { getSession } from "../store/sessions.ts";
import { isPerson, keyOfAgent, keyRulesOf, openGate, operatorKey, resolveSession } from "./access.ts";
import { checkLabel, insertNew, newSession } from "./lifecycle.ts";

interface OpenContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** A session to write to, and what has to be done first, in the unit that accepts the message. */
export interface Opening {
  readonly session: Session;
  before(unit: Unit): Promise<Result<void>>;
}

/** An opening that makes the session, unless another request has made it meanwhile. */
export function openingOf(session: Session, isThere: boolean): Opening {
  return {
    session,
    async before(unit) {
      if (!isThere && (await getSession(unit.tx, session.key)) === undefined) await insertNew(unit, session);
      return ok(undefined);
    },
  };
}

/** The free name that a person or a client means by this text; undefined: it is none, or of no agent. */
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
  // The name of an agent alone is more likely meant as that agent than as a conversation with another.
  if (findAgent(settings, text.trim().toLowerCase()) !== undefined) return undefined;
  return { key: key.value, agentId };
}

interface NamedRequest {
  readonly key: string;
  /** The agent of the session. Default: the one in the key. */
  readonly agentId?: string;
  /** Given to a session that is made now. */
  readonly label?: string;
  readonly also: (unit: Unit, session: Session) => Promise<void>;
}

/** The conversation of this name, made if it is not there. */
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

/** The session that a message goes to: one that is there, or a conversation whose name is free. */
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
  const session = newSession(ctx, ids, { ...free, ...(label === undefined ? {} : { label }) });
  const verdict = await openGate(access, viewer).decide("send", session);
  return verdict.allowed ? ok(openingOf(session, false)) : fail(verdict.code, verdict.error);
}
