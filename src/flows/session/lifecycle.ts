// Creates, changes, resets and deletes sessions, and writes an operator's text into them. The main session of
// every configured agent exists and can't be deleted. An operator's text is queued in the lane, so that tool
// calls and their results stay adjacent.
// LC1: a reset or a deletion first ends all work that was accepted before, in the same transaction: later
//      messages are kept, and earlier ones never reach the new transcript.

import { chosenAgent, keyRulesOf, openGate } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { hasScope } from "../../core/rules/scopes.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run, RunInput } from "../../core/shapes/run.ts";
import {
  INSTRUCTIONS_CHARS_MAX,
  NOT_YET_USED,
  type SendOverride,
  type Session,
} from "../../core/shapes/session.ts";
import { formatKey, kindOf, mainKeyOf } from "../../core/shapes/session-key.ts";
import {
  defaultAgent,
  findAgent,
  outsideKind,
  type Settings,
  THINKING_LEVELS,
  thinkingNamed,
} from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { checkLabel } from "../../core/text/label.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdForAbort, holdForDeletion } from "../../store/locks.ts";
import { jobOfChild, openFlowsOf } from "../../store/queries/chains/flows.ts";
import { dropDeadline } from "../../store/queries/deadlines.ts";
import {
  busyDescendantsOf,
  deleteSessionRows,
  getSession,
  holdSession,
  insertSession,
  replaceSessionId,
  type SessionPatch,
  updateSession,
} from "../../store/queries/sessions/sessions.ts";
import { notifyIdle } from "../conversation/idle.ts";
import { expireInbox, type InboxLoss, LOSSES } from "../conversation/inbox-receipts.ts";
import { conversationTargetLost } from "../conversation/reply-back.ts";
import { unbind } from "../delivery/bindings.ts";
import { dropInboundFiles } from "../delivery/inbound-files.ts";
import { removeAttachments } from "../job/attachments.ts";
import { cancelConversation, cancelJob } from "../job/cancel.ts";
import { requestScrub } from "./scrub.ts";

export interface LifecycleContext {
  readonly engine: Engine;
  readonly settings: Settings;
  checkModel(name: string): Result<string>;
  dropTranscript(sessionId: string): Promise<void>;
}

type Facts = Pick<LifecycleContext, "engine" | "settings">;

export const VERBOSE_LEVELS = ["off", "on", "full"];
/** Number of sessions below a deleted one whose work is ended in one transaction, and of transactions. */
const DELETION_SLICE = 100;
const DELETION_SLICES_MAX = 1_000;
/** Time after which another process continues a deletion. */
const DELETION_RESUME_MS = 60_000;
/** The kind of the stored deadline at which an interrupted deletion is continued. */
export const DELETION_DEADLINE = "deletion";
const INJECTED_MAX_BYTES = 256 * 1024;

/** Creates the main session of every agent. Called at start; safe to call at any time. */
export async function ensureMainSessions(ctx: Facts): Promise<void> {
  const rules = keyRulesOf(ctx.settings);
  const agents = ctx.settings.session.scope === "global" ? [defaultAgent(ctx.settings)] : ctx.settings.agents;
  await ctx.engine.commit(async (unit) => {
    for (const agent of agents) {
      const key = mainKeyOf(agent.id, rules);
      if ((await getSession(unit.tx, key)) === undefined) {
        await insertNew(unit, newSession(ctx, unit, { key, agentId: agent.id }));
      }
    }
  });
}

/** Makes the row of a new session. All columns that are not given start empty. */
export function newSession(
  ctx: Pick<Facts, "settings">,
  unit: Pick<Unit, "newId" | "now">,
  wanted: Pick<Session, "key" | "agentId"> & Partial<Pick<Session, "label" | "external">>,
): Session {
  return {
    key: wanted.key,
    sessionId: unit.newId(),
    agentId: wanted.agentId,
    kind: kindOf(wanted.key, keyRulesOf(ctx.settings)),
    createdAt: unit.now,
    updatedAt: unit.now,
    spawnDepth: 0,
    external: wanted.external ?? false,
    ...NOT_YET_USED,
    ...optional({ label: wanted.label }),
  };
}

export async function insertNew(unit: Unit, session: Session): Promise<void> {
  await insertSession(unit.tx, session);
  unit.publish({ kind: "session", sessionKey: session.key, change: "created" });
}

/** Called in the same transaction as the work, for example to store the answer under an idempotency key. */
type Also<T> = (unit: Unit, done: T) => Promise<void>;

interface CreateRequest {
  /** Default: the default agent. */
  readonly agentId?: string;
  readonly label?: string;
  /**
   * Kind of client that opens the session. `acp`: the key is `agent:<agentId>:acp:<uuid>`. Default: a chat.
   */
  readonly client?: "acp";
  readonly also?: Also<Session>;
}

/** Creates a conversation with an agent: `agent:<agentId>:chat:<uuid>`. */
export async function createSession(
  ctx: Facts,
  viewer: Viewer,
  request: CreateRequest,
): Promise<Result<Session>> {
  const chosen = chosenAgent(ctx.settings, request.agentId);
  if (!chosen.ok) return chosen;
  const agentId = chosen.value;
  const label = request.label === undefined ? ok(undefined) : checkLabel(request.label);
  if (!label.ok) return label;
  return ctx.engine.commit(async (unit): Promise<Result<Session>> => {
    const id = unit.newId();
    const { client } = request;
    const key = formatKey(
      client === undefined ? { form: "chat", agentId, id } : { form: "external", client, agentId, id },
    );
    const named = label.value === undefined ? {} : { label: label.value };
    const session = newSession(ctx, unit, { key, agentId, ...named });
    const gate = openGate({ db: unit.tx, settings: ctx.settings }, viewer);
    const verdict = await gate.decide("send", session);
    if (!verdict.allowed) return fail(verdict.code, verdict.error);
    await insertNew(unit, session);
    await request.also?.(unit, session);
    return ok(session);
  });
}

/** The fields that a caller may change. An absent field stays; `null` clears it. */
export interface PatchRequest {
  readonly label?: string | null;
  readonly thinkingLevel?: string | null;
  readonly verboseLevel?: string | null;
  readonly model?: string | null;
  readonly sendPolicy?: string | null;
  /** Instructions for the model. A blank text clears them. */
  readonly instructions?: string | null;
  /** False restores an archived session. `archiveSession` archives one. */
  readonly archived?: boolean;
  readonly also?: Also<Session>;
}

/**
 * Changes all of the settings or none. The caller has checked visibility; `sendPolicy` needs operator.admin.
 */
export async function patchSession(
  ctx: Pick<LifecycleContext, "engine" | "settings" | "checkModel">,
  viewer: Viewer,
  session: Session,
  request: PatchRequest,
): Promise<Result<Session>> {
  const mayAdmin = viewer.kind === "operator" && hasScope(viewer.scopes, "operator.admin");
  if (request.sendPolicy !== undefined && !mayAdmin) {
    return fail("missing_scope", "changing sendPolicy needs the scope operator.admin");
  }
  return ctx.engine.commit((unit) => patchIn(ctx, unit, session, request));
}

/**
 * Changes the settings in a given transaction, for a caller that has already checked the rights. If it fails,
 * nothing is changed.
 */
export async function patchIn(
  ctx: Pick<LifecycleContext, "settings" | "checkModel">,
  unit: Unit,
  session: Session,
  request: PatchRequest,
): Promise<Result<Session>> {
  const checked = checkPatch(ctx, request);
  if (!checked.ok) return checked;
  const { runtime } = findAgent(ctx.settings, session.agentId) ?? {};
  if (request.model != null && runtime !== undefined) {
    const who = `agent "${session.agentId}" is ${outsideKind(runtime)}`;
    return fail("invalid_model", `${who} and chooses its own model`, {
      hint: "Set the model in the program's own configuration.",
    });
  }
  const before = await holdSession(unit.tx, session.key);
  if (before === undefined) return refuseGone(session);
  if (checked.value.instructions != null && (before.external || runtime !== undefined)) {
    const error = `the agent of ${session.key} is an outside program; it gets no instructions`;
    return fail("invalid_argument", error, {
      hint: "Write them in the program's own configuration, or send them as a message.",
    });
  }
  if (before.archivedAt !== undefined && request.archived !== false) {
    return fail("session_archived", `session ${session.key} is archived and read-only`, {
      hint: "Restore it first by setting archived to false.",
    });
  }
  await updateSession(unit.tx, session.key, { ...checked.value, updatedAt: unit.now });
  unit.publish({ kind: "session", sessionKey: session.key, change: "updated" });
  return applyPatch(unit, session, request.also);
}

/** Returns the session with the changes applied. */
async function applyPatch(
  unit: Unit,
  session: Session,
  also: Also<Session> | undefined,
): Promise<Result<Session>> {
  const after = await getSession(unit.tx, session.key);
  if (after === undefined) return refuseGone(session);
  await also?.(unit, after);
  return ok(after);
}

function refuseGone(session: Session): Failure {
  return fail("session_not_found", `session ${session.key} no longer exists`);
}

function checkPatch(
  ctx: Pick<LifecycleContext, "checkModel">,
  request: PatchRequest,
): Result<Omit<SessionPatch, "updatedAt">> {
  const { label, verboseLevel, sendPolicy, archived } = request;
  const instructions = request.instructions?.trim() === "" ? null : request.instructions?.trim();
  const thinking = request.thinkingLevel == null ? undefined : thinkingNamed(request.thinkingLevel);
  const thinkingLevel = thinking ?? request.thinkingLevel;
  const named = request.model == null ? ok(request.model) : ctx.checkModel(request.model);
  const model = named.ok ? named.value : undefined;
  const checks: Result<unknown>[] = [
    label == null ? ok(label) : checkLabel(label),
    oneOf("thinkingLevel", thinkingLevel, THINKING_LEVELS),
    oneOf("verboseLevel", verboseLevel, VERBOSE_LEVELS),
    named,
    oneOf("sendPolicy", sendPolicy, ["allow", "deny"]),
    instructions != null && instructions.length > INSTRUCTIONS_CHARS_MAX
      ? fail(
          "too_large",
          `instructions may have at most ${INSTRUCTIONS_CHARS_MAX.toLocaleString("en")} characters`,
        )
      : ok(undefined),
    archived === true
      ? fail("invalid_argument", "archived may only be false here: it restores a session")
      : ok(undefined),
  ];
  const wrong = checks.find((check) => !check.ok);
  if (wrong !== undefined && !wrong.ok) return wrong;
  return ok({
    ...optional({ label: label?.trim() ?? label, thinkingLevel, verboseLevel, model }),
    ...(sendPolicy === undefined ? {} : { sendPolicy: sendPolicy as SendOverride | null }),
    ...(request.instructions === undefined ? {} : { instructions: instructions ?? null }),
    ...(archived === undefined ? {} : { archivedAt: null }),
  });
}

function oneOf(name: string, value: string | null | undefined, valid: readonly string[]): Result<unknown> {
  if (value == null || valid.includes(value)) return ok(value);
  const code = name === "thinkingLevel" ? "invalid_thinking" : "invalid_argument";
  const shown = quoted(value, 40);
  return fail(code, `${name} ${shown} is not valid; valid: ${valid.join(", ")}; null clears it`);
}

/** Hides a session from agents, and makes it read-only. */
export async function archiveIn(unit: Unit, key: string): Promise<void> {
  await updateSession(unit.tx, key, { archivedAt: unit.now });
  unit.publish({ kind: "session", sessionKey: key, change: "updated", archived: true });
}

/**
 * Ends the conversations of a session that loses its transcript, and their turns that still wait in a lane.
 */
async function endFlows(
  ctx: Facts,
  unit: Unit,
  key: string,
  reason: InboxLoss,
  how: string = LOSSES[reason],
): Promise<void> {
  for (const flow of await openFlowsOf(unit.tx, key)) {
    // A sub-agent's job ends, and is announced, when its runs end. A reset of the requester does not cancel
    // the job.
    if (flow.kind !== "send") continue;
    if (flow.targetKey === key) {
      const ending = { ...ctx, acceptor: ctx.engine, unit };
      await notifyIdle(ending, flow, reason, `that session was ${how}`);
      await conversationTargetLost({ ...ending, flow }, reason);
    }
    await cancelConversation(ctx.engine, unit, flow, reason);
  }
}

/**
 * Starts a new transcript under a new session id, with zero counters. Settings, label, route and children
 * stay.
 */
export async function resetSession(
  ctx: Facts,
  session: Session,
  also?: Also<Session>,
): Promise<Result<Session>> {
  return ctx.engine.commit((unit) => resetIn(ctx, unit, session, also));
}

/** Resets a session in a given transaction. If it fails, nothing is changed. */
export async function resetIn(
  ctx: Facts,
  unit: Unit,
  session: Session,
  also?: Also<Session>,
): Promise<Result<Session>> {
  const { key } = session;
  await holdForAbort(unit.tx, key);
  const before = await getSession(unit.tx, key);
  if (before === undefined) return refuseGone(session);
  if (before.archivedAt !== undefined) {
    return fail("session_archived", `session ${key} is archived and read-only`, {
      hint: "Restore it first by setting archived to false.",
    });
  }
  await endFlows(ctx, unit, key, "session_reset");
  if (before.external) await expireInbox({ ...ctx, acceptor: ctx.engine }, unit, key, "session_reset");
  await ctx.engine.abortIn(unit, { sessionKey: key, reason: "session_reset", keepChildren: true });
  await replaceSessionId(unit.tx, key, unit.newId(), unit.now);
  unit.publish({ kind: "session", sessionKey: key, change: "reset" });
  return applyPatch(unit, session, also);
}

interface DeleteRequest {
  /** Whether the transcript is deleted, too. Default true. */
  readonly deleteTranscript?: boolean;
  readonly also?: Also<string>;
}

type DeletionContext = Pick<LifecycleContext, "engine" | "settings" | "dropTranscript">;

/** Ends the work of a session that is being deleted, and of these sessions below it, topmost first. */
async function endWork(
  ctx: DeletionContext,
  unit: Unit,
  { key, external }: Session,
  { below, isLast }: { readonly below: readonly string[]; readonly isLast: boolean },
): Promise<void> {
  const reason = "session_deleted";
  await endFlows(ctx, unit, key, reason);
  if (external) await expireInbox({ ...ctx, acceptor: ctx.engine }, unit, key, reason);
  // Starts with the topmost session, so that no job below announces to a session that is being deleted.
  await ctx.engine.abortIn(unit, { sessionKey: key, reason, keepChildren: true });
  for (const sessionKey of below) {
    await endFlows(ctx, unit, sessionKey, reason, "stopped, because a session above it was deleted");
    const job = await jobOfChild(unit.tx, sessionKey);
    if (job !== undefined) await cancelJob(ctx.engine, unit, job, { reason, keepChildren: true });
    await ctx.engine.abortIn(unit, { sessionKey, reason, keepChildren: true });
    await unbind(ctx, unit, { what: { sessionKey }, why: "requester", tell: true });
  }
  // The end of work may have queued a notice for a session whose work had ended before.
  for (const sessionKey of below) await ctx.engine.abortIn(unit, { sessionKey, reason, keepChildren: true });
  // Ends the session's own job, too.
  await ctx.engine.abortIn(unit, { sessionKey: key, reason, keepChildren: !isLast });
}

/**
 * Deletes a session, and ends its work and the work of all sessions below it. Usage and bookkeeping without
 * texts are kept. If there is much work, it is ended in several transactions before the session is deleted.
 * The first of them stores that the session is to be deleted, so that this happens even after a crash.
 */
export async function deleteSession(
  ctx: DeletionContext,
  session: Session,
  request: DeleteRequest = {},
): Promise<Result<{ key: string }>> {
  const { key } = session;
  if (session.kind === "main") {
    return fail("protected_session", `${key} is a main session and can't be deleted`, {
      hint: "sessions.reset starts a new transcript.",
    });
  }
  const { deleteTranscript: transcripts = true } = request;
  for (let slice = 1; ; slice += 1) {
    const deleted = await ctx.engine.commit(async (unit): Promise<Result<string[] | undefined>> => {
      const busy = await busyDescendantsOf(unit.tx, key, DELETION_SLICE + 1);
      const below = busy.slice(0, DELETION_SLICE);
      await holdForDeletion(unit.tx, key, below);
      if ((await getSession(unit.tx, key)) === undefined) return refuseGone(session);
      const isLast = busy.length === below.length || slice === DELETION_SLICES_MAX;
      await endWork(ctx, unit, session, { below, isLast });
      if (!isLast) {
        const dueAt = unit.now + DELETION_RESUME_MS;
        await unit.setDeadline({ kind: DELETION_DEADLINE, key: resumeKey(key, transcripts), dueAt });
        return ok(undefined);
      }
      await dropInboundFiles(unit, key);
      await unbind(ctx, unit, { what: { sessionKey: key }, why: "deleted", tell: true });
      for (const either of [true, false]) {
        await dropDeadline(unit.tx, DELETION_DEADLINE, resumeKey(key, either));
      }
      const sessionIds = await deleteSessionRows(unit.tx, key, { transcripts });
      await requestScrub(unit);
      unit.publish({ kind: "session", sessionKey: key, change: "deleted" });
      await request.also?.(unit, key);
      return ok(sessionIds);
    });
    if (!deleted.ok) return deleted;
    if (deleted.value === undefined) continue;
    for (const sessionId of deleted.value) await ctx.dropTranscript(sessionId);
    const workspace = findAgent(ctx.settings, session.agentId)?.workspace;
    const dir = session.spawn?.attachments?.dir;
    // Files that can't be removed now are removed at the next start.
    if (dir !== undefined && workspace !== undefined) await removeAttachments(workspace, dir);
    return ok({ key });
  }
}

function resumeKey(key: string, transcripts: boolean): string {
  return `${transcripts ? "all" : "row"} ${key}`;
}

/** Handles the deadline of an interrupted deletion. `ctx` is a function, as the engine is created later. */
export function createDeletionResume(ctx: () => DeletionContext): DeadlineHandler {
  return async (unit, name) => {
    const session = await getSession(unit.tx, name.slice(4));
    if (session === undefined) return "done";
    unit.after(() => {
      const { engine } = ctx();
      deleteSession(ctx(), session, { deleteTranscript: name.startsWith("all") }).catch((error: unknown) =>
        engine.log.warn({ err: error, sessionKey: session.key }, "a deletion could not be continued"),
      );
    });
    return unit.now + DELETION_RESUME_MS;
  };
}

interface InjectRequest {
  readonly message: string;
  /** A label before the message, in brackets. */
  readonly label?: string;
  /** The run id. A repeated id does not append the message again. */
  readonly runId?: string;
  /** The owner of the run id, which serves as an idempotency key. */
  readonly askedBy?: string;
  /** Called in the transaction, unless the run id was accepted before. */
  readonly also?: Also<Run>;
}

/** Accepts an assistant message that no model wrote, which is appended between two runs. */
export async function injectMessage(
  ctx: Pick<Facts, "engine">,
  session: Session,
  request: InjectRequest,
): Promise<Result<{ run: Run; fresh: boolean }>> {
  const label = request.label === undefined ? ok(undefined) : checkLabel(request.label);
  if (!label.ok) return label;
  if (request.message.trim() === "") return fail("invalid_argument", "message must not be empty");
  const text = label.value === undefined ? request.message : `[${label.value}]\n\n${request.message}`;
  const bytes = Buffer.byteLength(text);
  if (bytes > INJECTED_MAX_BYTES) {
    return fail("too_large", `message has ${bytes} bytes; the maximum is ${INJECTED_MAX_BYTES}`);
  }
  const open = ctx.engine.accepting();
  if (!open.ok) return open;
  return ctx.engine.commit(async (unit) => {
    const accepted = await ctx.engine.acceptIn(unit, {
      sessionKey: session.key,
      kind: "append",
      input: { text, injected: true },
      ...optional({ runId: request.runId, askedBy: request.askedBy }),
    });
    if (accepted.ok && accepted.value.fresh) await request.also?.(unit, accepted.value.run);
    return accepted;
  });
}

/** The input of a run that only summarises the conversation. Its text is in the transcript. */
export const COMPACT_INPUT = { text: "/compact", compact: true } as const satisfies RunInput;

/** Fails for an agent that is a program or is elsewhere, because the gateway does not call its model. */
export function mayCompact(settings: Settings, { agentId }: Session): Result<void> {
  if (findAgent(settings, agentId)?.runtime === undefined) return ok(undefined);
  return fail("invalid_argument", `agent "${agentId}" manages the context of its model itself`);
}
