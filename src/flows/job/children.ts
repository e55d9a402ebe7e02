// Finds the sub-agents that a session has spawned, and their jobs, so that they can be listed, awaited or
// cancelled. For a sub-agent of another session the answer is the same as for a missing one.

import { type AccessContext, mayAccess } from "../../access/access.ts";
import { forkOrigin } from "../../core/fork-key.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Engine } from "../../engine/engine.ts";
import type { RunWait } from "../../engine/lanes/waits.ts";
import { holdForAbort } from "../../store/locks.ts";
import { type Flow, getFlow, jobOfChild, openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import type { Db } from "../../store/sql.ts";
import { listVisible, type SessionPage } from "../session/list.ts";
import { cancelJob } from "./cancel.ts";

const LISTED_MAX = 100;

/** A session that manages its own sub-agents. */
export interface Parent extends AccessContext {
  readonly viewer: Viewer;
  readonly session: Session;
  /** The calling run. Absent if an operator acts as the session. */
  readonly run?: Run;
}

/** Returns the visible sub-agents of the session, newest first, without forks of them: these have no job. */
export async function listChildren(parent: Parent): Promise<SessionPage> {
  const page = await listVisible(parent, parent.viewer, { spawnedBy: parent.session.key, limit: LISTED_MAX });
  return { ...page, rows: page.rows.filter(({ session }) => forkOrigin(session.key) === undefined) };
}

/** Returns the job of a sub-agent. */
export async function jobOf(db: Db, { spawn }: Session): Promise<Flow | undefined> {
  return spawn === undefined ? undefined : getFlow(db, spawn.flowId);
}

/** Returns all unfinished sub-agents of the session, without the limit of a list. */
export async function unfinishedChildren(parent: Parent): Promise<Session[]> {
  const jobs = await openSpawnsOf(parent.db, { sessionKey: parent.session.key });
  const found = await Promise.all(jobs.map((job) => childOf(parent, job.targetKey)));
  return found.filter((child) => child !== undefined);
}

async function childOf(parent: Parent, key: string): Promise<Session | undefined> {
  const child = await getSession(parent.db, key);
  if (child?.spawnedBy !== parent.session.key) return undefined;
  return (await mayAccess(parent, parent.viewer, "spawn", child)) ? child : undefined;
}

/** Returns the session's own sub-agent with this key. */
export async function ownChild(parent: Parent, key: string): Promise<Result<Session>> {
  const child = await childOf(parent, key);
  return child === undefined ? notOwn(parent, key) : ok(child);
}

/**
 * Returns the job of one of the session's sub-agents. A run also finds the job of a sub-agent that was
 * deleted after the job's end.
 */
export async function ownJob(parent: Parent, key: string): Promise<Result<Flow>> {
  const { db, run, session } = parent;
  const child = await childOf(parent, key);
  const isDeleted = child === undefined && run !== undefined && (await getSession(db, key)) === undefined;
  const job = child === undefined ? isDeleted && (await jobOfChild(db, key)) : await jobOf(db, child);
  return !job || job.requesterKey !== session.key ? notOwn(parent, key) : ok(job);
}

async function notOwn(parent: Parent, key: string): Promise<Failure> {
  const keys = (await listChildren(parent)).rows.map(({ session }) => session.key);
  const hint = keys.length === 0 ? "You have no sub-agents." : `Yours are: ${keys.join(", ")}.`;
  const error = `${quoted(key, KEY_CHARS_MAX)} is not one of your sub-agents`;
  return fail("not_visible", error, { hint });
}

/**
 * Cancels a sub-agent for a run, or for an operator if `wait` is undefined. Returns the aborted runs, or
 * undefined if its job was already finished.
 */
export async function cancelChild(
  engine: Engine,
  child: Session,
  wait: RunWait | undefined,
): Promise<Result<readonly string[] | undefined>> {
  return engine.commit(async (unit) => {
    await holdForAbort(unit.tx, child.key);
    if (wait !== undefined && !(await wait.holds(unit)))
      return fail("run_aborted", "the calling run has ended; nothing was cancelled");
    const job = await jobOf(unit.tx, child);
    return ok(job?.open === true ? await cancelJob(engine, unit, job) : undefined);
  });
}
