// Archives a session for a person. Archives a sub-agent after its job, or deletes it with its transcript:
// work in the session postpones that date, which is stored and survives a restart. Archiving and deletion
// also end the binding of the session's thread, and notify the people in bound chats.
// AR1: a child is archived or deleted only after its announcement is settled: sent, skipped, failed or
//      dismissed.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { findAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdForDeletion } from "../../store/locks.ts";
import { getFlow, openFlowsOf, openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { hasPendingDelivery } from "../../store/queries/channels/deliveries.ts";
import { bindingsOfSession } from "../../store/queries/channels/thread-bindings.ts";
import { hurryDeadline } from "../../store/queries/deadlines.ts";
import { activeRuns, getRun, runsOfFlow } from "../../store/queries/runs/runs.ts";
import { deleteSessionRows, getSession, holdSession } from "../../store/queries/sessions/sessions.ts";
import type { Db } from "../../store/sql.ts";
import { type BindingParts, unbind } from "../delivery/bindings.ts";
import { hasInboundFiles, isInboundFolder } from "../delivery/inbound-files.ts";
import { archiveIn, type LifecycleContext } from "../session/lifecycle.ts";
import { requestScrub } from "../session/scrub.ts";
import { attachmentDirs, attachmentOwner } from "./attachments.ts";
import { CHILD_DEADLINE } from "./end.ts";

/** Delay before a clean-up is tried again if the child has work. The end of a job plans it anew. */
const AT_WORK_MS = 60_000;
/** Longest delay of a clean-up while a result is undelivered: `hurryCleanup` ends it. */
const UNDELIVERED_MS = 3_600_000;

/**
 * Age at which files without an accepted job count as abandoned. It is much longer than accepting a job
 * takes.
 */
const ACCEPTING_MS = 600_000;

export interface ArchiveParts extends BindingParts {
  /** Removes the files of the job. Called after the commit. */
  removeAttachments(workspace: string, dir: string): void;
  dropTranscript(sessionId: string): void;
}

/**
 * Returns the longest time for which the child is still held: it has work, an unfinished job, or a result
 * that is not delivered yet. Returns 0 if nothing holds it.
 */
async function heldForMs(db: Db, child: Session): Promise<number> {
  if ((await activeRuns(db, child.key)).length > 0) return AT_WORK_MS;
  if ((await openSpawnsOf(db, { sessionKey: child.key })).length > 0) return AT_WORK_MS;
  const flowId = child.spawn?.flowId;
  const job = flowId === undefined ? undefined : await getFlow(db, flowId);
  if (job === undefined) return 0;
  if (job.open) return AT_WORK_MS;
  const runIds = (await runsOfFlow(db, job.flowId)).map((run) => run.runId);
  return (await hasPendingDelivery(db, runIds)) ? UNDELIVERED_MS : 0;
}

/** Makes the clean-up of a child due when a result of its job was delivered or has failed. */
export async function hurryCleanup(unit: Unit, { runId }: { readonly runId?: string }): Promise<void> {
  const flowId = runId === undefined ? undefined : (await getRun(unit.tx, runId))?.flow?.flowId;
  const job = flowId === undefined ? undefined : await getFlow(unit.tx, flowId);
  if (job?.kind !== "spawn") return;
  await hurryDeadline(unit.tx, { kind: CHILD_DEADLINE, key: job.targetKey, dueAt: unit.now });
  unit.lookAtDates();
}

function dropAttachments(parts: ArchiveParts, unit: Unit, child: Session): void {
  const dir = child.spawn?.attachments?.dir;
  const workspace = findAgent(parts.settings, child.agentId)?.workspace;
  if (dir !== undefined && workspace !== undefined) unit.after(() => parts.removeAttachments(workspace, dir));
}

/**
 * Returns when a child is archived; this may be now. Returns undefined if the child is not archived by date,
 * or still has a bound thread.
 */
async function archivingAt(unit: Unit, child: Session): Promise<number | undefined> {
  const { mode, archiveAfterMinutes } = child.spawn ?? { mode: "run", archiveAfterMinutes: 0 };
  if (mode === "session") {
    return (await bindingsOfSession(unit.tx, child.key)).length > 0 ? undefined : unit.now;
  }
  return archiveAfterMinutes === 0 ? undefined : child.updatedAt + archiveAfterMinutes * 60_000;
}

/** Handles the deadline of a child's clean-up. */
export function createChildCleanup(parts: ArchiveParts): DeadlineHandler {
  return async (unit, key) => {
    const isDeleted = (await getSession(unit.tx, key))?.spawn?.cleanup === "delete";
    if (isDeleted) await holdForDeletion(unit.tx, key, []);
    const child = await holdSession(unit.tx, key);
    if (child?.spawn === undefined || child.archivedAt !== undefined) return "done";
    const heldMs = await heldForMs(unit.tx, child);
    if (heldMs > 0) return unit.now + heldMs;
    const { cleanup, retainAttachments, attachments } = child.spawn;
    const release = (why: "archived" | "deleted") =>
      unbind(parts, unit, { what: { sessionKey: key }, why, tell: true });
    if (cleanup === "delete") {
      await release("deleted");
      dropAttachments(parts, unit, child);
      const sessionIds = await deleteSessionRows(unit.tx, key, { transcripts: true });
      for (const sessionId of sessionIds) unit.after(() => parts.dropTranscript(sessionId));
      await requestScrub(unit);
      unit.publish({ kind: "session", sessionKey: key, change: "deleted" });
      return "done";
    }
    if (attachments !== undefined && retainAttachments !== true) dropAttachments(parts, unit, child);
    const dueAt = await archivingAt(unit, child);
    if (dueAt === undefined) return "done";
    if (dueAt > unit.now) return dueAt;
    await release("archived");
    await archiveIn(unit, key);
    return "done";
  };
}

/**
 * Archives a session for a person. The session must be idle, because nobody would see its work. `also` is
 * called in the same transaction.
 */
export async function archiveSession(
  ctx: Pick<LifecycleContext, "engine" | "settings">,
  { key, kind }: Session,
  also: (unit: Unit, archived: Session) => Promise<void>,
): Promise<Result<Session>> {
  if (kind === "main") return fail("protected_session", `${key} is a main session and can't be archived`);
  return ctx.engine.commit(async (unit): Promise<Result<Session>> => {
    const session = await holdSession(unit.tx, key);
    if (session === undefined) return fail("session_not_found", `session ${key} no longer exists`);
    if (session.archivedAt === undefined) {
      if ((await heldForMs(unit.tx, session)) > 0 || (await openFlowsOf(unit.tx, key)).length > 0)
        return fail("session_busy", `session ${key} has unfinished work`, { hint: "Stop it first." });
      await unbind(ctx, unit, { what: { sessionKey: key }, why: "archived", tell: true });
      await archiveIn(unit, key);
    }
    const archived = { ...session, archivedAt: session.archivedAt ?? unit.now };
    await also(unit, archived);
    return ok(archived);
  });
}

/** Returns whether no session needs the attachments of this run any longer. */
async function isLost(db: Db, runId: string): Promise<boolean> {
  const run = await getRun(db, runId);
  const child = run === undefined ? undefined : await getSession(db, run.sessionKey);
  if (child === undefined) return true;
  return child.spawn?.retainAttachments !== true && (await heldForMs(db, child)) === 0;
}

/**
 * Returns attachments that a crash left behind, with their workspaces: the job was never accepted, or the
 * removal was interrupted. If other gateways share the store, attachments that may belong to a job that is
 * being accepted are left out.
 */
export async function lostAttachments(
  db: Db,
  settings: Settings,
  now: number,
): Promise<{ workspace: string; dir: string }[]> {
  const beforeMs = settings.store.postgresUrl === undefined ? Number.POSITIVE_INFINITY : now - ACCEPTING_MS;
  const lost: { workspace: string; dir: string }[] = [];
  for (const { workspace } of settings.agents) {
    const dirs = await attachmentDirs(workspace, attachmentOwner(settings.store), beforeMs);
    for (const dir of dirs.ok ? dirs.value : []) {
      const id = dir.slice(dir.lastIndexOf("/") + 1);
      // A folder holds files that people sent, or has the id of the run that it belongs to.
      const isKept = isInboundFolder(id) ? await hasInboundFiles(db, id) : !(await isLost(db, id));
      if (!isKept) lost.push({ workspace, dir });
    }
  }
  return lost;
}
