// Waits for jobs of the caller's own sub-agents and returns their results. A run that got a result by waiting
// is not woken with it again; a posted result stays posted, and the announcement is written into the
// transcript once. The same tool call, repeated after a crash, continues to wait with its first deadline, for
// the same jobs.

import type { JobOutcome } from "../../core/rules/announcement.ts";
import { ok, type Result, toolFailure } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Engine } from "../../engine/engine.ts";
import type { JobsWaitEnd, RunWait } from "../../engine/lanes/waits.ts";
import { holdSessions } from "../../store/locks.ts";
import { endedFlowsAmong, type Flow, getFlow, spawnsOfRun } from "../../store/queries/chains/flows.ts";
import { jobsAnsweredTo, jobWaitsOfCall } from "../../store/queries/runs/job-waits.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { writeDownWakes } from "./end.ts";
import { statusOf } from "./outcome.ts";

export interface JobWaitRequest {
  readonly requester: Session;
  readonly callId: string;
  readonly jobs: readonly Flow[];
  readonly until: "all" | "any";
  /** Counted from the call. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** How the calling run waits; absent when another caller acts for the session. */
  readonly wait?: RunWait | undefined;
}

type WaitingCall = Omit<JobWaitRequest, "jobs" | "timeoutSeconds">;

interface WaitParts {
  readonly engine: Engine;
}

type WaitResult = Record<string, unknown>;

/** Maximum number of characters of all results in one answer. */
const RESULTS_CHARS_MAX = 400_000;
const STILL_AT_WORK =
  "They go on: do not start them again. Wait again, or go on; each result is announced when it is there.";

/** Returns finished jobs of this run whose results no wait of it has returned yet. */
export async function unreturnedJobs({ engine }: WaitParts, run: Run | undefined): Promise<Flow[]> {
  if (run === undefined) return [];
  const { db } = engine.store;
  const returned = await jobsAnsweredTo(db, run.runId);
  return (await spawnsOfRun(db, run.runId)).filter((job) => !job.open && !returned.includes(job.flowId));
}

/**
 * Returns the outcome of a job. For a job that ended before outcomes were stored: the reply of its first run.
 */
async function outcomeOf({ engine }: WaitParts, job: Flow): Promise<JobOutcome> {
  if (job.outcome !== undefined) return job.outcome;
  const child = await getSession(engine.store.db, job.targetKey);
  const run = child?.spawn === undefined ? undefined : await getRun(engine.store.db, child.spawn.runId);
  return { status: statusOf(run), result: run?.reply ?? "" };
}

function cut(redactor: Redactor, text: string, charsMax: number, key: string): string {
  const { text: kept, whole } = redactor.beginning(text, charsMax);
  if (whole) return kept;
  return `${kept}\n(${text.length - kept.length} more characters are in sessions_history of ${key}.)`;
}

async function labelOf({ engine }: WaitParts, job: Flow): Promise<{ label?: string }> {
  const label = (await getSession(engine.store.db, job.targetKey))?.label;
  return label === undefined ? {} : { label: engine.redactor.mask(label) };
}

async function rowOf(parts: WaitParts, job: Flow, charsMax: number): Promise<WaitResult> {
  const { status, result, notes } = await outcomeOf(parts, job);
  const { redactor } = parts.engine;
  return {
    sessionKey: job.targetKey,
    ...(await labelOf(parts, job)),
    status,
    result: cut(redactor, result, charsMax, job.targetKey),
    ...(notes === undefined ? {} : { notes: cut(redactor, notes, charsMax, job.targetKey) }),
  };
}

interface Ended {
  readonly answered: readonly string[];
  readonly unanswered: readonly string[];
}

async function answer(parts: WaitParts, until: "all" | "any", ended: Ended): Promise<WaitResult> {
  const { db } = parts.engine.store;
  const jobsOf = async (flowIds: readonly string[]): Promise<Flow[]> =>
    (await Promise.all(flowIds.map((flowId) => getFlow(db, flowId)))).filter((job) => job !== undefined);
  const done = await jobsOf(ended.answered);
  const open = await jobsOf(ended.unanswered);
  const charsMax = Math.floor(RESULTS_CHARS_MAX / Math.max(1, done.length));
  const results: WaitResult[] = [];
  for (const job of done) results.push(await rowOf(parts, job, charsMax));
  const unfinished: WaitResult[] = [];
  for (const job of open) unfinished.push({ sessionKey: job.targetKey, ...(await labelOf(parts, job)) });
  const isOver = open.length === 0 || (until === "any" && done.length > 0);
  return {
    status: isOver ? "ok" : "timeout",
    ...(isOver
      ? {}
      : { error: `waiting ended before ${open.length} of them had finished. ${STILL_AT_WORK}` }),
    results,
    unfinished,
  };
}

/** Builds the result of a run's wait. Wakes that carry these results become plain entries. */
async function answerRun(
  parts: WaitParts,
  { requester, until, wait }: WaitingCall & { wait: RunWait },
  { answered, unanswered }: JobsWaitEnd,
): Promise<WaitResult> {
  await parts.engine.commit(async (unit) => {
    await holdSessions(unit.tx, [requester.key]);
    if (!(await wait.holds(unit))) return;
    const keys = answered.map((row) => row.targetSessionKey);
    await writeDownWakes(unit, requester, keys);
  });
  return answer(parts, until, {
    answered: answered.map((row) => row.flowId),
    unanswered: unanswered.map((row) => row.flowId),
  });
}

/** Waits for a caller that is not a run. No row is stored, and the wait ends with its process. */
async function waitAsCaller(
  parts: WaitParts,
  { jobs, until, signal }: JobWaitRequest,
  deadlineAt: number,
): Promise<WaitResult> {
  const { engine } = parts;
  const all = jobs.map((job) => job.flowId);
  let answered: string[] = [];
  const open = (): string[] => all.filter((flowId) => !answered.includes(flowId));
  // Each round ends with a job that has ended, or is the last one.
  for (let rounds = all.length + 1; rounds > 0; rounds -= 1) {
    const before = answered.length;
    answered = await endedFlowsAmong(engine.store.db, all);
    const isOver = open().length === 0 || (until === "any" && answered.length > 0);
    if (isOver || engine.now() >= deadlineAt || (rounds <= all.length && answered.length === before)) break;
    await engine.waitForJob(open(), deadlineAt, signal);
    signal.throwIfAborted();
  }
  return answer(parts, until, {
    answered: all.filter((flowId) => answered.includes(flowId)),
    unanswered: open(),
  });
}

/** Continues a wait that was recorded before a crash; undefined: none was recorded. */
export async function waitedBefore(parts: WaitParts, call: WaitingCall): Promise<WaitResult | undefined> {
  const { wait } = call;
  if (wait === undefined) return undefined;
  const rows = await jobWaitsOfCall(parts.engine.store.db, call.callId);
  if (rows.length === 0) return undefined;
  return answerRun(parts, { ...call, wait }, await wait.settleJobs(call.callId, call.until));
}

/** Waits for jobs of the requester's own sub-agents. Failures are results. */
export async function waitForJobs(parts: WaitParts, request: JobWaitRequest): Promise<WaitResult> {
  const { engine } = parts;
  const { callId, jobs, requester, timeoutSeconds, until, wait } = request;
  const deadlineAt = engine.now() + Math.round(timeoutSeconds * 1000);
  if (jobs.length === 0) {
    return { status: "ok", results: [], unfinished: [], note: "You have no unfinished sub-agents." };
  }
  if (wait === undefined) return waitAsCaller(parts, request, deadlineAt);
  const opened = await engine.commit(async (unit): Promise<Result<void>> => {
    await holdSessions(unit.tx, [requester.key]);
    // A run that has ended reads no answer (I1), and its wait adds no edge.
    if (!(await wait.holds(unit))) return ok(undefined);
    return wait.openJobs(unit, {
      callId,
      jobs: jobs.map((job) => ({ flowId: job.flowId, targetSessionKey: job.targetKey })),
      deadlineAt,
    });
  });
  if (!opened.ok) return toolFailure(opened);
  return answerRun(parts, { ...request, wait }, await wait.settleJobs(callId, until));
}
