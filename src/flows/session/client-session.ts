// Owns the sessions of HTTP clients that use another protocol, such as OpenAI's: one for each of their users,
// one for each A2A conversation, and a temporary one for each OpenAI request without a user. One transaction
// creates a temporary session, its earlier messages and its run. The session is archived when its work is
// done; the date is stored, so it survives a crash. Visibility is checked on every access. For a response
// that the viewer can't see, the answer is the same as for a missing one.

import { createHash } from "node:crypto";
import { openGate } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type ImageBlock, type Message, ZERO_USAGE } from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { a2aKey, isTemporaryKey, openAiKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { checkLabel } from "../../core/text/label.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { openFlowsOf } from "../../store/queries/chains/flows.ts";
import { activeRuns, getRun, listRuns } from "../../store/queries/runs/runs.ts";
import { getSession, holdSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import { appendEntry } from "../../store/queries/transcripts/append.ts";
import { archiveIn, insertNew, newSession } from "./lifecycle.ts";
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

/** A message of the earlier conversation, as the client reports it, for the beginning of a new session. */
export interface SeedMessage {
  readonly role: "user" | "assistant";
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly senderName?: string;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_CHARS);
}

/** Returns the chain here of a chain elsewhere. No program can name a chain of another one. */
export function chainFrom(program: string, chainId: string): string {
  return hashOf(JSON.stringify([program, chainId]));
}

function freshSession(
  { engine, settings }: ClientSessionContext,
  wanted: { key: string; agentId: string; label?: string },
): Session {
  return newSession({ settings }, { newId: () => engine.newId(), now: engine.now() }, wanted);
}

async function admit(
  { engine, settings }: ClientSessionContext,
  viewer: Viewer,
  session: Session,
  access: "read" | "send" = "send",
): Promise<Result<void>> {
  const verdict = await openGate({ db: engine.store.db, settings }, viewer).decide(access, session);
  return verdict.allowed ? ok(undefined) : fail(verdict.code, verdict.error);
}

/** Returns the session with a key that a client's names determine. The first message creates it. */
async function namedSession(
  ctx: ClientSessionContext,
  viewer: Viewer,
  wanted: { key: string; agentId: string; label?: string },
): Promise<Result<Opening>> {
  const known = await getSession(ctx.engine.store.db, wanted.key);
  const session = known ?? freshSession(ctx, wanted);
  const admitted = await admit(ctx, viewer, session);
  return admitted.ok ? ok(openingOf(session, known !== undefined)) : admitted;
}

/** Returns the session of a client's user with an agent. A valid name of the user is its label. */
export function userSession(
  ctx: ClientSessionContext,
  viewer: Viewer,
  { agentId, user }: { agentId: string; user: string },
): Promise<Result<Opening>> {
  const key = openAiKey(agentId, hashOf(`user:${user}`), "user");
  const label = checkLabel(user);
  return namedSession(ctx, viewer, { key, agentId, ...(label.ok ? { label: label.value } : {}) });
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

function seedEntry(unit: Unit, { role, text, images, senderName }: SeedMessage): Message {
  const base = { id: unit.newOrderedId(), timestamp: unit.now };
  const said = { type: "text" as const, text };
  if (role === "user") {
    const from = optional({ senderName });
    return { ...base, role, content: [said, ...images], ...from };
  }
  // Marks the message as not written by a model of this gateway.
  const author = { api: "parley", provider: "parley", model: "parley", usage: ZERO_USAGE };
  return { ...base, role, content: [said], ...author, stopReason: "injected" };
}

/** Creates a session for one request, with the earlier messages that its client sent. */
export async function temporarySession(
  ctx: ClientSessionContext,
  viewer: Viewer,
  wanted: { agentId: string; seed: readonly SeedMessage[] },
): Promise<Result<Opening>> {
  const { agentId, seed } = wanted;
  const key = openAiKey(agentId, hashOf(`request:${ctx.engine.newId()}`), "request");
  const session = freshSession(ctx, { key, agentId });
  const admitted = await admit(ctx, viewer, session);
  if (!admitted.ok) return admitted;
  return ok({
    session,
    async before(unit) {
      await insertNew(unit, session);
      const { sessionId } = session;
      // These messages need no run: the session is new, so they cannot separate a tool call from its result.
      for (const said of seed) {
        await appendEntry(
          unit.tx,
          { sessionKey: key, sessionId, entry: seedEntry(unit, said) },
          unit.redactor,
        );
      }
      return ok(undefined);
    },
  });
}

function movedOn(key: string): Failure {
  return fail(
    "invalid_argument",
    `previous_response_id is no longer the last response of its session ${key}`,
    {
      hint: "A session continues only at its end. Name its last response, or send the messages as input.",
      details: { param: "previous_response_id" },
    },
  );
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

/** Returns the session of a run, to continue it after that run. */
export async function continuedSession(
  ctx: ClientSessionContext,
  viewer: Viewer,
  runId: string,
): Promise<Result<Opening>> {
  const { db } = ctx.engine.store;
  const run = await getRun(db, runId);
  const session = run === undefined ? undefined : await getSession(db, run.sessionKey);
  const admitted = session === undefined ? undefined : await admit(ctx, viewer, session);
  if (run === undefined || session === undefined || admitted?.ok !== true) {
    return fail("run_not_found", "there is no response with the id given as previous_response_id", {
      hint: "Leave it out, and send the messages as input.",
      details: { param: "previous_response_id" },
    });
  }
  return ok({
    session,
    async before(unit) {
      const held = await holdSession(unit.tx, session.key);
      const [last] = await listRuns(unit.tx, { sessionKey: session.key, limit: 1 });
      if (held?.sessionId !== run.sessionId || last?.runId !== runId) return movedOn(session.key);
      // The session was archived when its last request ended, and is restored for the next request.
      if (held.archivedAt !== undefined && isTemporaryKey(held.key)) {
        await updateSession(unit.tx, held.key, { archivedAt: null, updatedAt: unit.now });
        unit.publish({ kind: "session", sessionKey: held.key, change: "updated" });
      }
      return ok(undefined);
    },
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
