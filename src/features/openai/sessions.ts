// Owns the sessions of OpenAI clients: one for each of their users, and a temporary one for each request
// without a user. One transaction creates a temporary session, its earlier messages and its run.

import { optional } from "../../core/optional.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Message, resultIdOf, ZERO_USAGE } from "../../core/shapes/message.ts";
import type { ClientResult } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { isTemporaryKey, openAiKey } from "../../core/shapes/session-key.ts";
import { checkLabel } from "../../core/text/label.ts";
import type { Unit } from "../../engine/unit.ts";
import {
  admit,
  type ClientSessionContext,
  freshSession,
  hashOf,
  namedSession,
} from "../../flows/session/client-session.ts";
import { insertNew } from "../../flows/session/lifecycle.ts";
import type { Opening } from "../../flows/session/open.ts";
import { getRun, getRunOfCall, listRuns } from "../../store/queries/runs/runs.ts";
import { getSession, holdSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import { appendEntry } from "../../store/queries/transcripts/append.ts";
import type { RepeatedCall, Turn } from "./content.ts";

export const NO_RESPONSE = "this response was deleted, or requested with store: false";

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

/** A message of the earlier conversation, as the client reports it, for the beginning of a new session. */
export type SeedMessage = Omit<Turn, "where" | "reference"> & { readonly id: string };

/** A call in the messages of a request, with its place in the transcript. */
interface PlacedRepeat {
  readonly messageId: string;
  readonly index: number;
  readonly call: RepeatedCall;
}

/** Returns the calls of these messages by their ids. Of two with one id it has the later message's first. */
export function placesIn(seed: readonly SeedMessage[]): Map<string, PlacedRepeat> {
  const places = new Map<string, PlacedRepeat>();
  for (const { id: messageId, calls = [] } of seed) {
    for (const [index, call] of calls.entries()) {
      if (places.get(call.id)?.messageId !== messageId) places.set(call.id, { messageId, index, call });
    }
  }
  return places;
}

/** Returns the result of a call as its transcript has it. */
export function resultOf(
  placed: PlacedRepeat,
  { text, images }: Pick<Turn, "text" | "images">,
): ClientResult {
  const { id: toolCallId, name: toolName } = placed.call;
  const content = [{ type: "text" as const, text: text.toWellFormed() }, ...images];
  return { id: resultIdOf(placed), role: "toolResult", toolCallId, toolName, content, isError: false };
}

function seedEntry(unit: Unit, message: SeedMessage, places: Map<string, PlacedRepeat>): Message | undefined {
  const { id, role, images, calls = [], name, callId = "" } = message;
  const base = { id, timestamp: unit.now };
  if (role === "tool") {
    const placed = places.get(callId);
    return placed && { ...base, ...resultOf(placed, message) };
  }
  const said =
    message.text.trim() === "" ? [] : [{ type: "text" as const, text: message.text.toWellFormed() }];
  if (role === "user") {
    const from = optional({ senderName: name });
    return { ...base, role, content: [...said, ...images], ...from };
  }
  // Marks the message as not written by a model of this gateway.
  const author = { api: "parley", provider: "parley", model: "parley", usage: ZERO_USAGE };
  const content = [...said, ...calls.map((call) => ({ type: "toolCall" as const, ...call }))];
  return { ...base, role: "assistant", content, ...author, stopReason: "injected" };
}

/** Appends messages to a transcript in which no run is active. Returns the new entries. */
export async function appendSeed(
  unit: Unit,
  { key: sessionKey, sessionId }: Session,
  seed: readonly SeedMessage[],
): Promise<Message[]> {
  // These messages need no run: without an active one, they cannot separate a tool call from its result.
  const places = new Map<string, PlacedRepeat>();
  const entries: Message[] = [];
  for (const said of seed) {
    for (const [callId, place] of placesIn([said])) places.set(callId, place);
    const entry = seedEntry(unit, said, places);
    if (entry === undefined) continue;
    await appendEntry(unit.tx, { sessionKey, sessionId, entry }, unit.redactor);
    entries.push(entry);
  }
  return entries;
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
      await appendSeed(unit, session, seed);
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
 * Returns the session of a run, to continue it after that run. `callId`: of the next run, if that one begins
 * with results of the run's calls.
 */
export async function continuedSession(
  ctx: ClientSessionContext,
  viewer: Viewer,
  runId: string,
  callId?: string,
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
  // The calls of a forgotten run may still be answered.
  if (run.forgottenAt !== undefined && callId === undefined)
    return fail("run_not_found", NO_RESPONSE, { details: { param: "previous_response_id" } });
  return ok({
    session,
    async before(unit) {
      const held = await holdSession(unit.tx, session.key);
      if (callId !== undefined && (await getRunOfCall(unit.tx, callId)) !== undefined) return ok(undefined);
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
