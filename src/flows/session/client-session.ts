// Owns the sessions of HTTP clients that use another protocol, such as OpenAI's: such as one for each
// A2A conversation. A temporary session is archived when its work is done; the date is stored, so it survives
// a crash. Visibility is checked on every access. For a response that the viewer can't see, the answer is the
// same as for a missing one.

import { createHash } from "node:crypto";
import { openGate } from "../../access/access.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { a2aKey, isTemporaryKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { openFlowsOf } from "../../store/queries/chains/flows.ts";
import { activeRuns, getRun } from "../../store/queries/runs/runs.ts";
import { getSession, holdSession } from "../../store/queries/sessions/sessions.ts";
import { archiveIn, newSession } from "./lifecycle.ts";
import { type Opening, openingOf } from "./open.ts";

/** The kind of the stored deadline at which a temporary session is archived. */
export const TEMPORARY_DEADLINE = "temporary-session";

/** Number of characters of a hash in a key, enough to avoid collisions. */
const HASH_CHARS = 32;
/** Number of characters of a hash that only separates the tokens of one gateway. */
const OWNER_CHARS = 16;
/** Delay before the next check of a session that a job or a conversation still uses. */
const AGAIN_MS = 2_000;

export interface ClientSessionContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

/** Returns the hash by which a key names a client. */
export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_CHARS);
}

/** Returns the chain here of a chain elsewhere. No program can name a chain of another one. */
export function chainFrom(program: string, chainId: string): string {
  return hashOf(JSON.stringify([program, chainId]));
}

/** Returns a session that is not stored yet. */
export function freshSession(
  { engine, settings }: ClientSessionContext,
  wanted: { key: string; agentId: string; label?: string },
): Session {
  return newSession({ settings }, { newId: () => engine.newId(), now: engine.now() }, wanted);
}

/** Checks that a viewer may use a session. */
export async function admit(
  { engine, settings }: ClientSessionContext,
  viewer: Viewer,
  session: Session,
  access: "read" | "send" = "send",
): Promise<Result<void>> {
  const verdict = await openGate({ db: engine.store.db, settings }, viewer).decide(access, session);
  return verdict.allowed ? ok(undefined) : fail(verdict.code, verdict.error);
}

/** Returns the session with a key that a client's names determine. The first message creates it. */
export async function namedSession(
  ctx: ClientSessionContext,
  viewer: Viewer,
  wanted: { key: string; agentId: string; label?: string },
): Promise<Result<Opening>> {
  const known = await getSession(ctx.engine.store.db, wanted.key);
  const session = known ?? freshSession(ctx, wanted);
  const admitted = await admit(ctx, viewer, session);
  return admitted.ok ? ok(openingOf(session, known !== undefined)) : admitted;
}

/** Returns the part of a session key that stands for the owner of A2A conversations. */
export function contextOwner(askedBy: string): string {
  return hashOf(`a2a:${askedBy}`).slice(0, OWNER_CHARS);
}

/**
 * Returns the session of an A2A conversation with an agent. The key contains a hash of the owner, so two
 * tokens that choose the same `contextId` have two sessions.
 */
export function contextSession(
  ctx: ClientSessionContext,
  viewer: Viewer,
  { agentId, askedBy, contextId }: { agentId: string; askedBy: string; contextId: string },
): Promise<Result<Opening>> {
  return namedSession(ctx, viewer, { key: a2aKey(agentId, contextOwner(askedBy), contextId), agentId });
}

/**
 * Returns a run that the owner itself requested, if the viewer may read its session. Every other run gives
 * the same error as a missing one.
 */
export async function ownRun(
  ctx: ClientSessionContext,
  viewer: Viewer,
  { runId, askedBy }: { readonly runId: string; readonly askedBy: string },
): Promise<Result<Run>> {
  const { db } = ctx.engine.store;
  const run = await getRun(db, runId);
  const session = run?.askedBy === askedBy ? await getSession(db, run.sessionKey) : undefined;
  const admitted = session === undefined ? undefined : await admit(ctx, viewer, session, "read");
  if (run !== undefined && admitted?.ok === true) return ok(run);
  return fail("run_not_found", "there is no response with this id that your token requested", {
    details: { param: "response_id" },
  });
}

/** Sets the archiving date when a run in a temporary session ends. */
export async function planArchiving(unit: Unit, { sessionKey }: Run): Promise<void> {
  if (!isTemporaryKey(sessionKey)) return;
  await unit.setDeadline({ kind: TEMPORARY_DEADLINE, key: sessionKey, dueAt: unit.now });
}

/** Handles the archiving date of a temporary session. */
export const archiveTemporary: DeadlineHandler = async (unit, key) => {
  const session = await holdSession(unit.tx, key);
  if (session === undefined || session.archivedAt !== undefined) return "done";
  // The end of these runs stores a new date.
  if ((await activeRuns(unit.tx, key)).length > 0) return "done";
  // A sub-agent or a conversation has yet to answer.
  if ((await openFlowsOf(unit.tx, key)).length > 0) return unit.now + AGAIN_MS;
  await archiveIn(unit, key);
  return "done";
};
