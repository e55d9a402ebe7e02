// Waits for jobs of the caller's own sub-agents and returns their outcomes. A run that got a result by
// waiting does not get the same result as a message. A result that was already posted to a chat stays there,
// and the announcement is written into the transcript once. A tool call that is repeated after a crash
// continues to wait for the same jobs, with its original deadline.

import { optional } from "../../core/optional.ts";
import type { JobOutcome } from "../../core/rules/announcement.ts";
import { joinLabels } from "../../core/rules/labels/labels.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Engine } from "../../engine/engine.ts";
import type { RunWait, WaitRequest, Wanted } from "../../engine/lanes/waits.ts";
import { holdSessions } from "../../store/locks.ts";
import { type Flow, getFlow, spawnsOfRun } from "../../store/queries/chains/flows.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { isAnswered, jobWaitsOfRuns, type Wait, waitsOfCall } from "../../store/queries/runs/waits.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { statusOf, writeDownWakes } from "./end.ts";

export interface JobWaitRequest {
  readonly requester: Session;
  readonly callId: string;
  readonly jobs: readonly Flow[];
  readonly until: Wanted;
  /** How long to wait, counted from the call. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** The wait of the calling run. Absent if another caller acts for the session. */
  readonly wait?: RunWait | undefined;
  readonly confirmsAnswers?: boolean | undefined;
}

type WaitingCall = Pick<JobWaitRequest, "requester" | "callId" | "until" | "signal" | "wait">;

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
  /** Labels of the chains of the jobs. */
  readonly labels: Labels | undefined;
}

/** Returns the finished jobs that this run started and whose results none of its waits has returned yet. */
export async function unreturnedJobs({ engine }: WaitParts, run: Run | undefined): Promise<Flow[]> {
  if (run === undefined) return [];
  const { db } = engine.store;
  const waits = (await jobWaitsOfRuns(db, [run.runId])).filter(isAnswered);
  const returned = new Set(waits.map(({ targetId }) => targetId));
  return (await spawnsOfRun(db, run.runId)).filter((job) => !job.open && !returned.has(job.flowId));
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

/**
 * Waits for the recorded jobs. Of a run, queued messages that would report the same outcomes become plain
 * transcript entries.
 */
async function settleJobs(parts: WaitParts, call: WaitingCall, waits: readonly Wait[]): Promise<JobsWaited> {
  const { engine } = parts;
  const { requester, until, wait } = call;
  const ended = await engine.callerWaits.of(call).settle(waits, until);
  if (wait !== undefined)
    await engine.commit(async (unit) => {
      await holdSessions(unit.tx, [requester.key]);
      if (!(await wait.holds(unit))) return;
      const keys = ended.filter(isAnswered).map((row) => row.targetSessionKey);
      await writeDownWakes(unit, requester, keys);
    });
  const { db } = parts.engine.store;
  const finished: FinishedJob[] = [];
  const unfinished: AwaitedJob[] = [];
  for (const row of ended) {
    const job = await getFlow(db, row.targetId);
    if (job === undefined) continue;
    const { targetKey: childKey } = job;
    const awaited = { childKey, ...optional({ label: (await getSession(db, childKey))?.label }) };
    if (isAnswered(row)) finished.push({ ...awaited, outcome: await outcomeOf(parts, job) });
    else unfinished.push(awaited);
  }
  const isOver = unfinished.length === 0 || (until === "any" && finished.length > 0);
  const labels = ended.reduce<Labels | undefined>((all, row) => joinLabels(all, row.labels), undefined);
  return { kind: isOver ? "over" : "timeout", finished, unfinished, labels };
}

/** Continues a wait that was recorded before a crash, or returns undefined if no wait was recorded. */
export async function waitedBefore(parts: WaitParts, call: WaitingCall): Promise<JobsWaited | undefined> {
  const waits = call.wait && (await waitsOfCall(parts.engine.store.db, call.callId));
  return waits?.[0] && settleJobs(parts, call, waits);
}

/** Waits for jobs of the requester's own sub-agents. */
export async function waitForJobs(parts: WaitParts, request: JobWaitRequest): Promise<Result<JobsWaited>> {
  const { engine } = parts;
  const { jobs, requester, timeoutSeconds, wait } = request;
  // Only a run continues its wait after a crash. Any other caller may repeat the id of its call.
  const callId = wait === undefined ? `caller:${engine.newId()}` : request.callId;
  const asked: WaitRequest = {
    callId,
    kind: "job",
    targets: jobs.map((job) => ({ id: job.flowId, sessionKey: job.targetKey })),
    deadlineAt: engine.now() + Math.round(timeoutSeconds * 1000),
  };
  const call = { ...request, callId };
  const waiter = engine.callerWaits.of(call, request.confirmsAnswers === true ? requester.key : "");
  return waiter.during(async (): Promise<Result<JobsWaited>> => {
    const opened = await engine.commit(async (unit) => {
      await holdSessions(unit.tx, [requester.key]);
      // A run that has ended needs no wait: it will read no answer (I1).
      if (wait !== undefined && !(await wait.holds(unit))) return ok([]);
      // If the answer to the first commit was lost, a repeated one finds the wait.
      const known = await waitsOfCall(unit.tx, callId);
      return known.length > 0 ? ok(known) : waiter.open(unit, asked);
    });
    return opened.ok ? ok(await settleJobs(parts, call, opened.value)) : opened;
  });
}
