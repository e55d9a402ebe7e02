// Implements the tool `subagents`: lists the sub-agents of the calling session, waits for them and cancels
// them.

import { CHILDREN_WAIT_SECONDS } from "../contract/tools/sessions.ts";
import type { ArgumentsOf, ToolResultOf } from "../contract/tools.ts";
import { optional } from "../core/optional.ts";
import { withLabels } from "../core/rules/labels/labels.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { KEY_CHARS_MAX } from "../core/shapes/session-key.ts";
import {
  cancelChild,
  jobOf,
  listChildren,
  ownChild,
  ownJob,
  unfinishedChildren,
} from "../flows/job/children.ts";
import {
  type AwaitedJob,
  type FinishedJob,
  type JobsWaited,
  unreturnedJobs,
  waitedBefore,
  waitForJobs,
} from "../flows/job/wait.ts";
import type { Flow } from "../store/queries/chains/flows.ts";
import { getRun } from "../store/queries/runs/runs.ts";
import { textLimit, waitLimit } from "./arguments.ts";
import type { SendContext } from "./sessions/send.ts";
import { type Tool, tool, type WritingContext } from "./tool.ts";

const TASK_SHOWN_CHARS = 200;
/** Maximum number of jobs in one wait. */
const WAITED_MAX = 200;
/** Maximum number of characters of all results in one answer. */
const RESULTS_CHARS_MAX = 400_000;
const STILL_AT_WORK =
  "They still run: do not start them again. Wait again, or continue; each result is announced on arrival.";

export const subagents: Tool<SendContext> = tool("subagents", {
  limits: {
    sessionKey: textLimit(KEY_CHARS_MAX),
    timeoutSeconds: waitLimit(CHILDREN_WAIT_SECONDS),
  },
  async before(ctx, args, call) {
    if (args.action !== "wait") return undefined;
    const before = await waitedBefore(ctx, waitingCall(ctx, args, call.callId));
    return before && waitResult(ctx, before);
  },
  async execute(ctx, args, call) {
    if (args.action === "cancel") return cancelChildren(ctx, args);
    if (args.action === "wait") return waitForChildren(ctx, args, call.callId);
    return ok(await list(ctx));
  },
});

type Args = ArgumentsOf<"subagents"> & { readonly timeoutSeconds: number };
type Answer = ToolResultOf<"subagents">;
type ListResult = Extract<Answer, { readonly subagents: unknown }>;
type WaitResult = Extract<Answer, { readonly results: unknown }>;

function waitingCall(ctx: SendContext, { any = false }: Args, callId: string) {
  const until = any ? ("any" as const) : ("all" as const);
  return { requester: ctx.session, callId, until, signal: ctx.signal, wait: ctx.wait };
}

/** Returns the jobs that the call names, or all jobs that have not returned a result yet. */
async function jobsToWaitFor(
  ctx: WritingContext,
  { sessionKey, sessionKeys = [] }: Args,
): Promise<Result<Flow[]>> {
  const keys = new Set(sessionKeys);
  if (sessionKey !== undefined && sessionKey !== "all") keys.add(sessionKey);
  if (keys.size === 0) {
    // A failure of the first read must not leave the others without anybody who waits for them.
    const unreturned = await unreturnedJobs(ctx, ctx.run);
    const open = (await unfinishedChildren(ctx)).map((child) => jobOf(ctx.db, child));
    const jobs = [...unreturned, ...(await Promise.all(open))];
    return ok(jobs.filter((job) => job !== undefined).slice(0, WAITED_MAX));
  }
  if (keys.size > WAITED_MAX) {
    return fail("invalid_argument", `sessionKeys has ${keys.size} keys; the maximum is ${WAITED_MAX}`);
  }
  const jobs: Flow[] = [];
  for (const key of keys) {
    const job = await ownJob(ctx, key);
    if (!job.ok) return job;
    jobs.push(job.value);
  }
  return ok(jobs);
}

async function waitForChildren(ctx: SendContext, args: Args, callId: string): Promise<Result<WaitResult>> {
  const jobs = await jobsToWaitFor(ctx, args);
  if (!jobs.ok) return jobs;
  if (jobs.value.length === 0) {
    return ok({ status: "ok", results: [], unfinished: [], note: "You have no unfinished sub-agents." });
  }
  const waited = await waitForJobs(ctx, {
    ...waitingCall(ctx, args, callId),
    jobs: jobs.value,
    timeoutSeconds: args.timeoutSeconds,
    confirmsAnswers: ctx.confirmsAnswers,
  });
  return waited.ok ? ok(waitResult(ctx, waited.value)) : waited;
}

type AwaitedRow = WaitResult["unfinished"][number];
type FinishedRow = WaitResult["results"][number];

/** Converts the end of a wait to the result for its caller. */
function waitResult(ctx: WritingContext, waited: JobsWaited): WaitResult {
  const { kind, finished, unfinished: open, labels } = waited;
  const charsMax = Math.floor(RESULTS_CHARS_MAX / Math.max(1, finished.length));
  const results = finished.map((job) => finishedRow(ctx, job, charsMax));
  const unfinished = open.map((job) => awaitedRow(ctx, job));
  switch (kind) {
    case "over":
      return withLabels({ status: "ok", results, unfinished }, labels);
    case "timeout": {
      const error = `waiting ended before ${open.length} of them had finished. ${STILL_AT_WORK}`;
      return withLabels({ status: "timeout", error, results, unfinished }, labels);
    }
  }
}

function awaitedRow({ engine }: WritingContext, { childKey: sessionKey, label }: AwaitedJob): AwaitedRow {
  return { sessionKey, ...optional({ label: label && engine.redactor.mask(label) }) };
}

function finishedRow(ctx: WritingContext, job: FinishedJob, charsMax: number): FinishedRow {
  const { status, result, notes } = job.outcome;
  const cut = (text: string): string => {
    const { text: kept, whole } = ctx.engine.redactor.beginning(text, charsMax);
    if (whole) return kept;
    const more = text.length - kept.length;
    return `${kept}\n(${more} more characters are in sessions_history of ${job.childKey}.)`;
  };
  return {
    ...awaitedRow(ctx, job),
    status,
    result: cut(result),
    ...optional({ notes: notes === undefined ? undefined : cut(notes) }),
  };
}

type ChildRow = ListResult["subagents"][number];

async function list(ctx: WritingContext): Promise<ListResult> {
  const page = await listChildren(ctx);
  const rows: ChildRow[] = [];
  for (const { session, state } of page.rows) {
    const job = await jobOf(ctx.db, session);
    const run = session.spawn === undefined ? undefined : await getRun(ctx.db, session.spawn.runId);
    rows.push({
      sessionKey: session.key,
      ...optional({ label: session.label && ctx.engine.redactor.mask(session.label) }),
      agentId: session.agentId,
      state,
      finished: job?.open !== true,
      ...optional({ ended: job?.endReason }),
      task: ctx.engine.redactor.beginning(job?.requestText ?? "", TASK_SHOWN_CHARS).text,
      ...optional({ runId: run?.runId, runState: run?.state, acceptedAt: run?.acceptedAt }),
      totalTokens: session.totalTokens,
    });
  }
  return { count: rows.length, subagents: rows, more: page.nextCursor !== undefined };
}

async function cancelChildren(ctx: WritingContext, { sessionKey }: Args): Promise<Result<Answer>> {
  if (sessionKey === undefined) {
    return fail("invalid_argument", 'cancel needs sessionKey: a childSessionKey, or "all"');
  }
  const named = sessionKey === "all" ? undefined : await ownChild(ctx, sessionKey);
  if (named?.ok === false) return named;
  const cancelled: string[] = [];
  const runIds: string[] = [];
  for (const child of named === undefined ? await unfinishedChildren(ctx) : [named.value]) {
    const ended = await cancelChild(ctx.engine, child, ctx.wait);
    if (!ended.ok) return ended;
    if (ended.value === undefined) continue;
    cancelled.push(child.key);
    runIds.push(...ended.value);
  }
  return ok({ status: "ok", cancelled, runIds });
}
