// Owns sends of MCP clients that take long: progress while they wait, and tasks for clients that declare
// MCP's extension for tasks. A task is the run that a send started, under the call's id. No other state is
// kept, so any process can return its state, also after a restart.
// A task is returned once its run is on disk and belongs to the sending session.
// Cancelling ends the wait, never the run.

import { optional } from "../../core/optional.ts";
import { isEnded, type Run } from "../../core/shapes/run.ts";
import { sentSoFar, stopWaiting } from "../../flows/conversation/send.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { pause } from "../../world/pause.ts";
import { callAs, type McpDeps, replyWith, resultLater, type ToolCall } from "./calls.ts";
import type { Askable, McpClient } from "./client.ts";
import { INBOX_TOOL } from "./inbox.ts";
import { questionsOf, takeAnswer } from "./questions.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** A send whose reply comes within this time needs no task. */
const TASK_AFTER_MS = 3_000;
const PROGRESS_EVERY_MS = 10_000;
const POLL_EVERY_MS = 2_000;
/** Lifetime of a task, during which its run is kept (`agent.wait`). */
const TASK_TTL_MS = 86_400_000;

/** The state of a task, as MCP's tasks extension defines it. */
export type Task = {
  readonly taskId: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
} & (
  | { readonly status: "working" | "cancelled"; readonly statusMessage: string }
  | {
      readonly status: "input_required";
      readonly statusMessage: string;
      readonly inputRequests: Readonly<Record<string, object>>;
    }
  | { readonly status: "completed"; readonly result: { readonly resultType: "complete" } }
  | { readonly status: "failed"; readonly statusMessage: string; readonly error: object }
);

export interface TaskParts {
  readonly deps: McpDeps;
  readonly client: McpClient;
}

function stateText(run: Run): string {
  if (isEnded(run.state)) return `${run.sessionKey}: waiting for the answer`;
  return `${run.sessionKey}: ${run.state === "queued" ? "queued" : "running"}`;
}

/**
 * Returns the task with the id `taskId`, if this session sent it. `askable`: the questions of its work that
 * the task shows. Default: none.
 */
export async function readTask(
  { deps, client }: TaskParts,
  taskId: string,
  askable?: Askable,
): Promise<Task | undefined> {
  const sent = await sentSoFar(deps, client, taskId);
  if (sent === undefined) return undefined;
  const { run, outcome, givenUp } = sent;
  const task = {
    taskId,
    createdAt: new Date(run.acceptedAt).toISOString(),
    lastUpdatedAt: new Date(run.endedAt ?? run.startedAt ?? run.acceptedAt).toISOString(),
    ttlMs: TASK_TTL_MS,
    pollIntervalMs: POLL_EVERY_MS,
  };
  // A cancelled task has no result, even if its run ends later.
  if (givenUp === true)
    return { ...task, status: "cancelled", statusMessage: "the answer goes to the inbox" };
  if (outcome === undefined) {
    const inputRequests = askable ? await questionsOf({ deps, client, callId: taskId, askable }) : {};
    const statusMessage = stateText(run);
    return Object.keys(inputRequests).length > 0
      ? { ...task, status: "input_required", statusMessage, inputRequests }
      : { ...task, status: "working", statusMessage };
  }
  const reply = replyWith(await resultLater(deps, client, taskId, outcome));
  if ("error" in reply) return { ...task, status: "failed", statusMessage: reply.error.message, ...reply };
  return { ...task, status: "completed", result: { resultType: "complete", ...reply.result } };
}

/**
 * Takes the answers to questions of a task. Others are ignored. Returns the problem of an answer that does
 * not fit, or undefined if there is no such task.
 */
export async function updateTask(
  parts: TaskParts,
  taskId: string,
  answers: object,
): Promise<{ readonly problem?: string } | undefined> {
  const { deps, client } = parts;
  if ((await sentSoFar(deps, client, taskId)) === undefined) return undefined;
  const askable = { forms: true, samples: true };
  const asked = await questionsOf({ deps, client, callId: taskId, askable });
  const problems: (string | undefined)[] = [];
  for (const [id, result] of Object.entries(answers))
    if (Object.hasOwn(asked, id)) problems.push(await takeAnswer(deps, client.caller, { id, result }));
  return optional({ problem: problems.find((problem) => problem !== undefined) });
}

/** Ends the wait for a task. Returns false if this session has no such task. */
export async function cancelTask(parts: TaskParts, taskId: string): Promise<boolean> {
  if ((await sentSoFar(parts.deps, parts.client, taskId)) === undefined) return false;
  await stopWaiting(parts.deps, taskId);
  return true;
}

/**
 * Handles a send of a client that supports tasks. Returns its result if that is available soon, else a task.
 */
export async function sendAsTask(
  parts: TaskParts,
  call: ToolCall,
  signals: { readonly request: AbortSignal; readonly stop: AbortSignal },
): Promise<{ readonly result: ToolResult } | { readonly task: Task }> {
  const { deps, client } = parts;
  const waiting = new AbortController();
  const giveUp = (): void => waiting.abort();
  signals.stop.addEventListener("abort", giveUp, { once: true });
  signals.request.addEventListener("abort", giveUp, { once: true });
  const work = callAs(deps, client, call, waiting.signal).finally(() => {
    signals.stop.removeEventListener("abort", giveUp);
    signals.request.removeEventListener("abort", giveUp);
  });
  const decided = new AbortController();
  const early = work.then(() => "ended" as const);
  const first = await Promise.race([early, pause(deps.world.clock, TASK_AFTER_MS, decided.signal)]);
  decided.abort();
  const task = first === "ended" ? undefined : await readTask(parts, call.callId);
  // The send was not accepted yet, so there is no task to return.
  if (task === undefined) return { result: await work };
  // The client polls the task from here on: the end of this request must not abort it.
  signals.request.removeEventListener("abort", giveUp);
  work.catch(() => {});
  return { task };
}

export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message: string;
}

function unsentText({ name }: ToolCall): string {
  if (name === INBOX_TOOL.name) return "nothing new yet";
  return name === "sessions_send" ? "not accepted yet" : "waiting for sub-agents";
}

/** Reports the progress of a waiting call at intervals, while `work` is pending. */
export async function withProgress<T>(
  { deps, client }: TaskParts,
  call: ToolCall,
  tell: (progress: Progress) => Promise<void>,
  work: Promise<T>,
): Promise<T> {
  const { clock } = deps.world;
  const seconds = call.arguments.timeoutSeconds ?? call.arguments.waitSeconds;
  const total = typeof seconds === "number" && seconds > 0 ? { total: seconds } : {};
  const over = new AbortController();
  const startedAt = clock.monotonic();
  const reportProgress = async (): Promise<void> => {
    await pause(deps.world.clock, PROGRESS_EVERY_MS, over.signal);
    while (!over.signal.aborted) {
      const sent = await sentSoFar(deps, client, call.callId);
      const message = sent === undefined ? unsentText(call) : stateText(sent.run);
      const progress = Math.round(clock.monotonic() - startedAt) / 1000;
      if (!over.signal.aborted && sent?.outcome === undefined) await tell({ progress, message, ...total });
      await pause(deps.world.clock, PROGRESS_EVERY_MS, over.signal);
    }
  };
  // Ignore failures: a client that has stopped reading progress still gets the result, unless it has
  // disconnected.
  reportProgress().catch((error: unknown) => deps.world.log.debug({ err: error }, "could not send progress"));
  try {
    return await work;
  } finally {
    over.abort();
  }
}
