// Waits for jobs of the caller's own sub-agents and returns their outcomes. A run that got a result by
// waiting does not get the same result as a message. A result that was already posted to a chat stays there,
// and the announcement is written into the transcript once. A tool call that is repeated after a crash
// continues to wait for the same jobs, with its original deadline.

import { optional } from "../../core/optional.ts";
import type { JobOutcome } from "../../core/rules/announcement.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Engine } from "../../engine/engine.ts";
import type { JobsWaitEnd, JobsWaitRequest, RunWait } from "../../engine/lanes/waits.ts";
import { holdSessions } from "../../store/locks.ts";
import { type Flow, getFlow, spawnsOfRun } from "../../store/queries/chains/flows.ts";
import { type JobWait, jobsAnsweredTo, jobWaitsOfCall } from "../../store/queries/runs/job-waits.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { statusOf, writeDownWakes } from "./end.ts";

export interface JobWaitRequest {
  readonly requester: Session;
  readonly callId: string;
  readonly jobs: readonly Flow[];
  readonly until: "all" | "any";
  /** How long to wait, counted from the call. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** The wait of the calling run. Absent if another caller acts for the session. */
  readonly wait?: RunWait | undefined;
  /** As in `SendRequest`. */
  readonly confirmsAnswers?: boolean | undefined;
}

type WaitingCall = Pick<JobWaitRequest, "requester" | "callId" | "until" | "wait">;

interface WaitParts {
  readonly engine: Engine;
}

/** A sub-agent whose job the caller waits for. `label`: the label as given, not redacted. */
export interface AwaitedJob {
  readonly childKey: string;
  readonly label?: string;
}

export interface FinishedJob extends AwaitedJob {
  /** The texts of the outcome are neither cut nor redacted. */
  readonly outcome: JobOutcome;
}

/** The end of a wait for jobs. `over`: all jobs have finished, or with `any` at least one. */
export interface JobsWaited {
  readonly kind: "over" | "timeout";
  readonly finished: readonly FinishedJob[];
  readonly unfinished: readonly AwaitedJob[];
}

/** Returns the finished jobs that this run started and whose results none of its waits has returned yet. */
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

async function awaitedJob({ engine }: WaitParts, { targetKey: childKey }: Flow): Promise<AwaitedJob> {
  return { childKey, ...optional({ label: (await getSession(engine.store.db, childKey))?.label }) };
}

async function waited(parts: WaitParts, until: "all" | "any", ended: JobsWaitEnd): Promise<JobsWaited> {
  const { db } = parts.engine.store;
  const jobsOf = async (waits: readonly JobWait[]): Promise<Flow[]> =>
    (await Promise.all(waits.map(({ flowId }) => getFlow(db, flowId)))).filter((job) => job !== undefined);
  const finished: FinishedJob[] = [];
  for (const job of await jobsOf(ended.answered)) {
    finished.push({ ...(await awaitedJob(parts, job)), outcome: await outcomeOf(parts, job) });
  }
  const unfinished: AwaitedJob[] = [];
  for (const job of await jobsOf(ended.unanswered)) unfinished.push(await awaitedJob(parts, job));
  const isOver = unfinished.length === 0 || (until === "any" && finished.length > 0);
  return { kind: isOver ? "over" : "timeout", finished, unfinished };
}

/**
 * Returns the result of a run's wait. Queued messages that would report the same outcomes become plain
 * transcript entries.
 */
async function waitedAsRun(
  parts: WaitParts,
  { requester, until, wait }: WaitingCall & { wait: RunWait },
  ended: JobsWaitEnd,
): Promise<JobsWaited> {
  await parts.engine.commit(async (unit) => {
    await holdSessions(unit.tx, [requester.key]);
    if (!(await wait.holds(unit))) return;
    const keys = ended.answered.map((row) => row.targetSessionKey);
    await writeDownWakes(unit, requester, (_, childKey) => keys.includes(childKey));
  });
  return waited(parts, until, ended);
}

/** Continues a wait that was recorded before a crash, or returns undefined if no wait was recorded. */
export async function waitedBefore(parts: WaitParts, call: WaitingCall): Promise<JobsWaited | undefined> {
  const { wait } = call;
  if (wait === undefined) return undefined;
  const rows = await jobWaitsOfCall(parts.engine.store.db, call.callId);
  if (rows.length === 0) return undefined;
  return waitedAsRun(parts, { ...call, wait }, await wait.settleJobs(call.callId, call.until));
}

/** Waits for jobs of the requester's own sub-agents. */
export async function waitForJobs(parts: WaitParts, request: JobWaitRequest): Promise<Result<JobsWaited>> {
  const { engine } = parts;
  const { jobs, requester, timeoutSeconds, until, signal, wait } = request;
  // Only a run continues its wait after a crash. Any other caller may repeat the id of its call.
  const callId = wait === undefined ? `caller:${engine.newId()}` : request.callId;
  const asked: JobsWaitRequest = {
    callId,
    jobs: jobs.map((job) => ({ flowId: job.flowId, targetSessionKey: job.targetKey })),
    deadlineAt: engine.now() + Math.round(timeoutSeconds * 1000),
  };
  const clientKey = request.confirmsAnswers === true ? requester.key : "";
  const open = () =>
    engine.commit(async (unit): Promise<Result<void>> => {
      await holdSessions(unit.tx, [requester.key]);
      if (wait === undefined) return engine.callerWaits.openJobs(unit, asked, clientKey);
      // A run that has ended needs no wait: it will read no answer (I1).
      return (await wait.holds(unit)) ? wait.openJobs(unit, asked) : ok(undefined);
    });
  if (wait === undefined) {
    const ended = await engine.callerWaits.duringJobs({ callId, until, signal }, open);
    return ended.ok ? ok(await waited(parts, until, ended.value)) : ended;
  }
  const opened = await open();
  if (!opened.ok) return opened;
  return ok(await waitedAsRun(parts, { ...request, wait }, await wait.settleJobs(callId, until)));
}
