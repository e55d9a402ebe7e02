// Owns sends of MCP clients that take long: progress while they wait, and tasks for clients that declare
// MCP's extension for tasks, or that ask for a task in revision 2025-11-25. A task is the run that a send
// started, under the call's id. No other state is kept, so any process can return its state, also after a
// restart.
// A task is returned once its run is on disk and belongs to the sending session.
// Cancelling ends the wait, never the run.

import { fail, toolFailure } from "../../core/shapes/errors.ts";
import { isEnded, type Run } from "../../core/shapes/run.ts";
import { type SentSoFar, sentSoFar, stopWaiting } from "../../flows/conversation/send.ts";
import { sendResult } from "../../tools/sessions/send.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { pause } from "../../world/pause.ts";
import { callAs, type McpDeps, type ToolCall } from "./calls.ts";
import type { McpClient } from "./client.ts";
import { INBOX_TOOL } from "./inbox.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** A send whose reply comes within this time needs no task. */
const TASK_AFTER_MS = 3_000;
/** The same for a client that asks for a task: it gets one also if the reply has come. */
const OLDER_TASK_AFTER_MS = 250;
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
  | { readonly status: "completed"; readonly result: { readonly resultType: "complete" } }
);

/** The state of a task in revision 2025-11-25. Its result is read separately. */
export interface OlderTask {
  readonly taskId: string;
  readonly status: "working" | "completed" | "cancelled";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** Milliseconds. */
  readonly ttl: number;
  /** Milliseconds. */
  readonly pollInterval: number;
}

/** Converts a tool's result to the protocol's form. */
type Tell = (result: ToolResult) => Record<string, unknown>;

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function taskOf({ deps, client, tell }: TaskParts, taskId: string, sent: SentSoFar): Task {
  const { run, outcome, givenUp } = sent;
  const { acceptedAt, startedAt, endedAt } = run;
  return {
    taskId,
    createdAt: iso(acceptedAt),
    lastUpdatedAt: iso(endedAt ?? startedAt ?? acceptedAt),
    ttlMs: TASK_TTL_MS,
    pollIntervalMs: POLL_EVERY_MS,
    ...(outcome === undefined || givenUp === true
      ? stateOf(run, givenUp)
      : {
          status: "completed",
          result: { resultType: "complete", ...tell(sendResult(deps.settings, client.session, outcome)) },
        }),
  };
}

/** Returns the state of a task without a result. A cancelled task has none, even if its run ends later. */
function stateOf(run: Run, givenUp: boolean | undefined) {
  return givenUp === true
    ? ({ status: "cancelled", statusMessage: "the answer goes to the inbox" } as const)
    : ({ status: "working", statusMessage: stateText(run) } as const);
}

function stateText(run: Run): string {
  if (isEnded(run.state)) return `${run.sessionKey}: waiting for the answer`;
  return `${run.sessionKey}: ${run.state === "queued" ? "queued" : "running"}`;
}

export interface TaskParts {
  readonly deps: McpDeps;
  readonly client: McpClient;
  readonly tell: Tell;
}

/** Returns the task with the id `taskId`, if this session sent it. */
export async function readTask(parts: TaskParts, taskId: string): Promise<Task | undefined> {
  const sent = await sentSoFar(parts.deps, parts.client, taskId);
  return sent && taskOf(parts, taskId, sent);
}

/** Returns the task in the form of revision 2025-11-25, if this session sent it. */
export async function readOlderTask(parts: TaskParts, taskId: string): Promise<OlderTask | undefined> {
  const sent = await sentSoFar(parts.deps, parts.client, taskId);
  if (sent === undefined) return undefined;
  const task = taskOf(parts, taskId, sent);
  const { createdAt, lastUpdatedAt, ttlMs: ttl, pollIntervalMs: pollInterval, status } = task;
  const facts = { taskId, createdAt, lastUpdatedAt, ttl, pollInterval, status };
  return "statusMessage" in task ? { ...facts, statusMessage: task.statusMessage } : facts;
}

/**
 * Waits until a task has ended, and returns its result. A cancelled task has none. Returns undefined if there
 * is no such task.
 */
export async function taskResult(
  { deps, client, tell }: TaskParts,
  taskId: string,
  signal: AbortSignal,
): Promise<Record<string, unknown> | "cancelled" | undefined> {
  const { clock } = deps.world;
  for (;;) {
    const sent = await sentSoFar(deps, client, taskId);
    if (sent === undefined) return undefined;
    const { run, outcome, givenUp } = sent;
    if (givenUp === true) return "cancelled";
    if (outcome !== undefined) return tell(sendResult(deps.settings, client.session, outcome));
    signal.throwIfAborted();
    if (isEnded(run.state)) await pause(clock, POLL_EVERY_MS, signal);
    else await deps.engine.waitForRun(run.runId, deps.engine.now() + POLL_EVERY_MS, signal);
  }
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
  afterMs = TASK_AFTER_MS,
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
  const first = await Promise.race([early, pause(deps.world.clock, afterMs, decided.signal)]);
  decided.abort();
  const task = first === "ended" ? undefined : await readTask(parts, call.callId);
  // The send was not accepted yet, so there is no task to return.
  if (task === undefined) return { result: await work };
  // The client polls the task from here on: the end of this request must not abort it.
  signals.request.removeEventListener("abort", giveUp);
  work.catch(() => {});
  return { task };
}

/**
 * Handles a send that its client asked for as a task of revision 2025-11-25. Returns its result only if
 * nothing was sent.
 */
export async function sendAsOlderTask(
  parts: TaskParts,
  call: ToolCall,
  signals: { readonly request: AbortSignal; readonly stop: AbortSignal },
): Promise<{ readonly result: ToolResult } | { readonly task: OlderTask }> {
  const sent = await sendAsTask(parts, call, signals, OLDER_TASK_AFTER_MS);
  const task = await readOlderTask(parts, call.callId);
  if (task !== undefined) return { task };
  return "result" in sent ? sent : { result: toolFailure(fail("run_not_found", "the task was deleted")) };
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
  { deps, client }: Pick<TaskParts, "deps" | "client">,
  call: ToolCall,
  tell: (progress: Progress) => Promise<void>,
  work: Promise<T>,
): Promise<T> {
  const { clock } = deps.world;
  const seconds = call.arguments.timeoutSeconds ?? call.arguments.waitSeconds;
  const total = typeof seconds === "number" && seconds > 0 ? { total: seconds } : {};
  const over = new AbortController();
  const startedAt = clock.monotonic();
  const told = async (): Promise<void> => {
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
  told().catch((error: unknown) => deps.world.log.debug({ err: error }, "could not send progress"));
  try {
    return await work;
  } finally {
    over.abort();
  }
}
