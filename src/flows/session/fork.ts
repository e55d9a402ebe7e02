// Forks a session: makes a session that continues a conversation after one of its messages.
// FO1: a fork never has more rights than its origin. It has the origin's agent, requester, spawn depth,
//      sandbox and settings, and its key contains the origin's key: a token that covers the fork also covers
//      the origin.
// FO2: a fork is one transaction. It stores the link to the shared messages, not copies of them.
// A fork starts at a stored message. Runs, jobs and waits of the origin stay with the origin. A fork has no
// route, so its answers never reach a chat of the origin.

import { openGate } from "../../access/access.ts";
import { FORKS_MAX, forkKey, forkOrigins } from "../../core/fork-key.ts";
import { optional } from "../../core/optional.ts";
import { labelsKnownTo } from "../../core/rules/labels/labels.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { UserMessage } from "../../core/shapes/message.ts";
import { NOT_YET_USED, type Session } from "../../core/shapes/session.ts";
import { channelOf, parseKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { SpawnFacts } from "../../core/shapes/spawn.ts";
import { quoted } from "../../core/text/cut.ts";
import { checkLabel } from "../../core/text/label.ts";
import { TITLE_MAX_CHARS } from "../../core/text/title.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { activeRuns } from "../../store/queries/runs/runs.ts";
import { openEdges } from "../../store/queries/runs/waits.ts";
import { holdSession } from "../../store/queries/sessions/sessions.ts";
import { appendEntry } from "../../store/queries/transcripts/append.ts";
import { findFirstWords } from "../../store/queries/transcripts/first-texts.ts";
import {
  type ForkPoint,
  forkMarkerId,
  forkPointAt,
  linkFork,
} from "../../store/queries/transcripts/forks.ts";
import { insertNew } from "./lifecycle.ts";

/** Unfinished work of the origin that the fork does not have. */
export interface LeftBehind {
  readonly runs: number;
  readonly jobs: number;
  readonly waits: number;
}

export interface Forked {
  readonly session: Session;
  readonly point: ForkPoint;
  readonly leftBehind: LeftBehind;
}

interface ForkRequest {
  /** Id of the message after which the fork continues. */
  readonly at: string;
  readonly label?: string;
  /** Returns whether the caller may see work that involves this session. */
  sees(key: string): boolean;
  also?(unit: Unit, forked: Forked): Promise<void>;
}

interface ForkContext {
  readonly engine: Engine;
  readonly settings: Settings;
}

function checkOrigin(origin: Session): Result<void> {
  const { key } = origin;
  if (origin.archivedAt !== undefined) {
    return fail("session_archived", `session ${key} is archived and read-only`, {
      hint: "Restore it first by setting archived to false.",
    });
  }
  if (origin.external)
    return fail("invalid_argument", `session ${key} is the inbox of a program: it has no model`);
  if (key === "global")
    return fail("invalid_argument", "the session global can't be forked: all agents share it");
  return ok(undefined);
}

/** Returns the key of a new fork. Fails if it would be too long, or if too many forks follow each other. */
function newKey(unit: Unit, origin: string): Result<string> {
  if (forkOrigins(origin).length >= FORKS_MAX) {
    return fail(
      "invalid_argument",
      `session ${origin} is the ${FORKS_MAX}th fork in a row, which is the maximum`,
      {
        hint: "Fork one of the sessions from which it was made.",
      },
    );
  }
  const key = forkKey(origin, unit.newId());
  const parsed = parseKey(key);
  return parsed.ok ? ok(key) : parsed;
}

/** Returns the facts that limit a sub-agent's rights. The job and its files stay with the origin. */
function limitsOf(spawn: SpawnFacts | undefined, unit: Unit): SpawnFacts | undefined {
  if (spawn === undefined) return undefined;
  const { thread: _, attachments: __, retainAttachments: ___, route: ____, ...rest } = spawn;
  return {
    ...rest,
    flowId: unit.newId(),
    runId: unit.newId(),
    mode: "run",
    cleanup: "keep",
    archiveAfterMinutes: 0,
  };
}

function forkOf(
  settings: Settings,
  origin: Session,
  { key, label }: { key: string; label: string | undefined },
  unit: Unit,
): Session {
  const { agentId, spawnedBy, spawnDepth, model, thinkingLevel, verboseLevel, sendPolicy } = origin;
  const { instructions } = origin;
  const channel = channelOf(origin);
  return {
    ...NOT_YET_USED,
    key,
    sessionId: unit.newId(),
    agentId,
    kind: "other",
    createdAt: unit.now,
    updatedAt: unit.now,
    spawnDepth,
    external: false,
    ...optional({
      label,
      spawnedBy,
      model,
      thinkingLevel,
      verboseLevel,
      sendPolicy,
      instructions,
      labels: labelsKnownTo(settings, origin),
    }),
    // The send policy of a fork is that of the origin's channel.
    ...(channel === "unknown" ? {} : { groupChannel: channel }),
    ...optional({ spawn: limitsOf(origin.spawn, unit) }),
  };
}

/** Makes the notice with which the fork's own part begins. The page makes a link of the origin's key. */
function markerOf(fork: Session, origin: Session, unit: Unit): UserMessage {
  const { label, displayName, firstWords = "" } = origin;
  const title = unit.redactor.line(label || displayName || firstWords, TITLE_MAX_CHARS);
  const from = title === "" ? "another conversation" : `the conversation ${quoted(title, TITLE_MAX_CHARS)}`;
  const later = "Later work there is not part of this conversation.";
  const text = `Forked from ${from}, after the message above. ${later}`;
  return {
    id: forkMarkerId(fork.sessionId),
    role: "user",
    content: [{ type: "text", text }],
    timestamp: unit.now,
    provenance: { kind: "notice", sourceSessionKey: origin.key },
  };
}

/** Makes a fork of a session. The caller has checked that the viewer may read it and write to it. */
export async function forkSession(
  ctx: ForkContext,
  viewer: Viewer,
  { key }: Session,
  request: ForkRequest,
): Promise<Result<Forked>> {
  if (viewer.kind !== "operator" || viewer.as !== undefined) {
    return fail("missing_scope", "only an operator can fork a session, not a session itself");
  }
  return ctx.engine.commit((unit) => forkIn(ctx, unit, viewer, { ...request, key }));
}

/**
 * Makes a fork in a given transaction. If it fails, nothing is changed. `viewer`: undefined for an owner, who
 * may use every session.
 */
export async function forkIn(
  { settings }: Pick<ForkContext, "settings">,
  unit: Unit,
  viewer: Viewer | undefined,
  request: ForkRequest & { readonly key: string },
): Promise<Result<Forked>> {
  const label = request.label === undefined ? ok(undefined) : checkLabel(request.label);
  if (!label.ok) return label;
  const origin = await holdSession(unit.tx, request.key);
  if (origin === undefined) return fail("session_not_found", `session ${request.key} no longer exists`);
  const checked = checkOrigin(origin);
  if (!checked.ok) return checked;
  const key = newKey(unit, origin.key);
  if (!key.ok) return key;
  const point = await forkPointAt(unit.tx, origin, request.at);
  if (point === "missing" || point === "nothing") return noPoint(request.at, point);
  const session = forkOf(settings, origin, { key: key.value, label: label.value }, unit);
  const verdict = viewer && (await openGate({ db: unit.tx, settings }, viewer).decide("send", session));
  if (verdict?.allowed === false) return fail(verdict.code, verdict.error);
  await insertNew(unit, session);
  await linkFork(unit.tx, session.sessionId, { from: point.sessionId, at: point.messageId });
  await findFirstWords(unit.tx, [session.sessionId], unit.redactor);
  const place = { sessionKey: session.key, sessionId: session.sessionId };
  await appendEntry(unit.tx, { ...place, entry: markerOf(session, origin, unit) }, unit.redactor);
  const jobs = await openSpawnsOf(unit.tx, { sessionKey: origin.key });
  const waits = await openEdges(unit.tx, [origin.key], unit.now);
  const leftBehind = {
    runs: (await activeRuns(unit.tx, origin.key)).length,
    jobs: jobs.filter(({ targetKey }) => request.sees(targetKey)).length,
    waits: waits.filter(({ targetSessionKey }) => request.sees(targetSessionKey)).length,
  };
  const forked = { session, point, leftBehind };
  await request.also?.(unit, forked);
  return ok(forked);
}

function noPoint(at: string, why: "missing" | "nothing"): Result<never> {
  if (why === "missing") {
    return fail("message_not_found", `No message ${quoted(at, 64)} in this session`, {
      hint: "Use a message id from the session's history.",
    });
  }
  return fail("invalid_argument", `The tool calls of message ${quoted(at, 64)} have no results yet`, {
    hint: "No message precedes it. Fork at a later message.",
  });
}
