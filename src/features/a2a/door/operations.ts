// Owns the operations of the A2A door: sending a message, reading, listing, cancelling and following tasks.
// A task is a run, and a conversation (`contextId`) is a session of its own for each token.
// AO1: a message is accepted once: its `messageId` is the idempotency key of its run.
// AO2: a client finds only the tasks that its own token asked this agent for. Every other one is missing.
// AO3: a client that leaves never ends a run. The task can be read later.

import {
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
  Task,
  TaskState,
} from "@a2a-js/sdk";
import {
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import { parseDate } from "../../../core/date.ts";
import { fieldsOf, jsonOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { PermissionQuestion } from "../../../core/shapes/permission.ts";
import { isEnded, type Run, type RunState } from "../../../core/shapes/run.ts";
import { a2aKey } from "../../../core/shapes/session-key.ts";
import { sendDirect } from "../../../flows/conversation/direct.ts";
import { chainFrom, contextOwner, contextSession, ownRun } from "../../../flows/session/client-session.ts";
import { type Caller, keyOwnerOf } from "../../../gateway/auth.ts";
import type { BasicDeps, CallContext } from "../../../gateway/call.ts";
import type { Dispatcher } from "../../../gateway/dispatch.ts";
import { untilEnded } from "../../../gateway/methods/agent.ts";
import { clientRuns, findPlace, type RunPlace } from "../../../store/queries/runs/client-runs.ts";
import { getRun } from "../../../store/queries/runs/runs.ts";
import { beginOfPeer } from "../peers/message.ts";
import { callIdOf, type MessageContent, readMessage } from "./message.ts";
import { type PushAddress, readAddress, storeAddress } from "./push.ts";
import { answerTask, askedOf, questionOf } from "./questions.ts";
import { contextOf, TASK_STATES, type TaskParts, type TaskScope, taskOf } from "./task.ts";

const PAGE_DEFAULT = 50;
const PAGE_MAX = 100;
const WHOLE: TaskScope = { artifacts: true };

/** A request of an authenticated client for one agent. */
export interface A2aCall {
  readonly caller: Caller;
  readonly agentId: string;
  /** Aborted when the client has left. */
  readonly signal: AbortSignal;
}

/** A refusal that is not an error of the A2A protocol. */
export class Refused extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.error);
    this.failure = failure;
  }
}

const REUSED = fail("idempotency_conflict", "message.messageId belongs to a message with other content", {
  hint: "Send each new message with a new messageId.",
});

function resultOf<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  if (result.code === "run_not_found") throw new TaskNotFoundError("there is no task with this id");
  if (result.code === "invalid_argument") throw new RequestMalformedError(result.error);
  throw new Refused(result);
}

/** Returns the JSON of a task without fields that the request did not ask for. */
function listedJson(task: Task, withArtifacts: boolean): object {
  const { artifacts = [], ...rest } = fieldsOf(Task.toJSON(task));
  return withArtifacts ? { ...rest, artifacts } : rest;
}

function historyIn({ historyLength }: { readonly historyLength?: number | undefined }): number | undefined {
  if (historyLength === undefined) return undefined;
  if (Number.isInteger(historyLength) && historyLength >= 0) return historyLength;
  throw new RequestMalformedError("historyLength must be a whole number of 0 or more");
}

function pageSizeIn({ pageSize }: ListTasksRequest): number {
  if (pageSize === undefined || pageSize === 0) return PAGE_DEFAULT;
  if (Number.isInteger(pageSize) && pageSize >= 1 && pageSize <= PAGE_MAX) return pageSize;
  throw new RequestMalformedError(`pageSize must be 1 to ${PAGE_MAX}`);
}

function pageToken(place: RunPlace): string {
  return Buffer.from(JSON.stringify([place.changedAt, place.runId])).toString("base64url");
}

function placeIn(token: string): RunPlace | undefined {
  if (token === "") return undefined;
  const read = jsonOf(Buffer.from(token, "base64url"));
  const [changedAt, runId] = Array.isArray(read) ? (read as unknown[]) : [];
  if (typeof changedAt === "number" && typeof runId === "string") return { changedAt, runId };
  throw new RequestMalformedError("pageToken must be the nextPageToken of an earlier answer");
}

function timeIn(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  const time = parseDate(text);
  if (Number.isFinite(time)) return time;
  throw new RequestMalformedError("statusTimestampAfter must be a time like 2026-01-31T12:00:00Z");
}

function statesOf(wanted: TaskState): RunState[] | undefined {
  if (wanted === TaskState.TASK_STATE_UNSPECIFIED) return undefined;
  if (wanted === TaskState.UNRECOGNIZED) throw new RequestMalformedError("status is not a task state");
  const states = Object.entries(TASK_STATES).filter(([, state]) => state === wanted);
  return states.map(([state]) => state as RunState);
}

const ACTIVE: readonly RunState[] = ["queued", "running", "waiting"];

/** Returns whether the tasks of a filter may be under way, and perhaps ask something. */
function isActive(wanted: TaskState): boolean {
  return ACTIVE.some((state) => TASK_STATES[state] === wanted);
}

export interface FollowedTask {
  readonly task: Task;
  readonly run: Run;
}

export class A2aOperations {
  readonly #deps: BasicDeps;
  readonly #dispatcher: Dispatcher;

  constructor({ deps, dispatcher }: { readonly deps: BasicDeps; readonly dispatcher: Dispatcher }) {
    this.#deps = deps;
    this.#dispatcher = dispatcher;
  }

  #partsFor({ caller }: A2aCall): TaskParts {
    const { engine, world } = this.#deps;
    const owner = contextOwner(keyOwnerOf(caller));
    const question = (run: Run) => this.#questionOf(caller, run);
    return {
      db: engine.store.db,
      redactor: world.redactor,
      owner,
      question,
      ...optional({ peer: caller.peer?.name }),
    };
  }

  async #questionOf(caller: Caller, run: Run): Promise<PermissionQuestion | undefined> {
    return questionOf(await askedOf(this.#deps, caller), run);
  }

  taskOf(call: A2aCall, run: Run, scope: TaskScope = WHOLE): Promise<Task> {
    return taskOf(run, this.#partsFor(call), scope);
  }

  /** Returns a run that this client asked this agent for. */
  async ownRun(call: A2aCall, runId: string): Promise<Run> {
    const { caller, agentId, signal } = call;
    if (runId === "") throw new RequestMalformedError("the id of the task is missing");
    const handle = ({ deps, viewer }: CallContext) =>
      ownRun(deps, viewer, { runId, askedBy: keyOwnerOf(caller) });
    const request = { name: "a2a.GetTask", params: { runId }, handle };
    const run = resultOf(await this.#dispatcher.perform(caller, request, signal));
    const isOther = caller.peer === undefined && contextOf(run, this.#partsFor(call).owner) === "";
    if (run.agentId !== agentId || isOther) throw new TaskNotFoundError("there is no task with this id");
    return run;
  }

  /** Returns the task that a message answers. Refuses one for a task that asks this client for nothing. */
  async #answeredTask(call: A2aCall, { taskId, contextId }: MessageContent): Promise<Run | undefined> {
    if (taskId === undefined) return undefined;
    const run = await this.ownRun(call, taskId);
    const known = contextOf(run, this.#partsFor(call).owner);
    if (contextId !== undefined && contextId !== known)
      throw new RequestMalformedError("message.contextId is not the conversation of message.taskId");
    if (!isEnded(run.state) && (await this.#questionOf(call.caller, run)) !== undefined) return run;
    const why = isEnded(run.state) ? "has ended" : "is under way and asks for nothing";
    throw new UnsupportedOperationError(`the task ${why}; send contextId ${known} without taskId`);
  }

  /** Accepts a message, and returns its run. */
  async accept(call: A2aCall, params: unknown): Promise<{ run: Run; request: SendMessageRequest }> {
    const request = SendMessageRequest.fromJSON(fieldsOf(params));
    const wanted = request.configuration?.taskPushNotificationConfig;
    const address = wanted === undefined ? undefined : readAddress(wanted, this.#deps.settings);
    const said = readMessage(request.message);
    // The rests of a wait and of a budget differ when a message is sent again, and its labels may have grown.
    const { messageId, waitMs: _, tokensLeft: _left, labels: _labels, ...content } = said;
    const { caller, agentId } = call;
    const accepted = await this.#dispatcher.perform(
      caller,
      {
        name: "a2a.SendMessage",
        params: { agentId, ...content },
        idempotencyKey: `a2a:${agentId}:${messageId}`,
        // A repeated answer returns its task, which asks for nothing any more.
        handle: async (ctx) => {
          const answers = await this.#answeredTask(call, said);
          if (answers === undefined) return this.#begin(ctx, agentId, said, address);
          return answerTask(ctx, answers, said.text);
        },
      },
      call.signal,
    );
    const isOther = !accepted.ok && accepted.code === "idempotency_conflict";
    const runId = resultOf(isOther ? REUSED : accepted);
    return { run: await this.#readRun(runId), request };
  }

  async #begin(
    ctx: CallContext,
    agentId: string,
    said: MessageContent,
    address: PushAddress | undefined,
  ): Promise<Result<string>> {
    const { engine } = ctx.deps;
    const askedBy = keyOwnerOf(ctx.caller);
    if (ctx.caller.peer !== undefined) return beginOfPeer(ctx, ctx.caller.peer.name, agentId, said);
    const { messageId, text, images, hop, tokensLeft, chainId: given, contextId = engine.newId() } = said;
    const chainId = given === undefined ? undefined : chainFrom(askedBy, given);
    const opening = await contextSession(ctx.deps, ctx.viewer, { agentId, askedBy, contextId });
    if (!opening.ok) return opening;
    const { session, before } = opening.value;
    const accepted = await sendDirect(ctx.deps, {
      ...{ session, text, images, askedBy, before, guest: true },
      callId: callIdOf(askedBy, agentId, messageId),
      ...optional({ hop, chainId, tokensLeft }),
      async remember(unit, { run }) {
        if (address !== undefined) await storeAddress(unit, run.runId, address);
        await ctx.remember(unit, run.runId);
      },
    });
    return accepted.ok ? ok(accepted.value.run.runId) : accepted;
  }

  async #readRun(runId: string): Promise<Run> {
    const run = await getRun(this.#deps.engine.store.db, runId);
    return resultOf(run === undefined ? fail("run_not_found", `run ${runId} no longer exists`) : ok(run));
  }

  /**
   * Waits until a run has ended, or asks its client something other than `known`. Returns the run as it is if
   * the gateway stops first: its client can read it later.
   */
  async settled(call: A2aCall, task: Run, known?: string): Promise<Run> {
    const { runId } = task;
    const { engine, world } = this.#deps;
    const asked = new AbortController();
    const look = async (): Promise<void> => {
      const question = await this.#questionOf(call.caller, task);
      if (question !== undefined && question.id !== known) asked.abort();
    };
    const lookSafely = (): void => {
      look().catch((err: unknown) => world.log.warn({ err }, "could not read what a task asks"));
    };
    const leave = engine.bus.subscribe(({ kind }) => kind === "permission" && lookSafely());
    lookSafely();
    try {
      const signal = AbortSignal.any([call.signal, this.#dispatcher.stopped, asked.signal]);
      const run = await untilEnded(engine, runId, signal);
      return run === undefined ? await this.#readRun(runId) : resultOf(run);
    } finally {
      leave();
    }
  }

  async sendMessage(call: A2aCall, params: unknown): Promise<unknown> {
    const { run, request } = await this.accept(call, params);
    const { configuration } = request;
    const history = historyIn(configuration ?? {});
    const last = configuration?.returnImmediately === true ? run : await this.settled(call, run);
    return { task: Task.toJSON(await this.taskOf(call, last, { ...WHOLE, history })) };
  }

  async getTask(call: A2aCall, params: unknown): Promise<unknown> {
    const request = GetTaskRequest.fromJSON(fieldsOf(params));
    const history = historyIn(request);
    const run = await this.ownRun(call, request.id);
    return Task.toJSON(await this.taskOf(call, run, { ...WHOLE, history }));
  }

  async listTasks(call: A2aCall, params: unknown): Promise<unknown> {
    const request = ListTasksRequest.fromJSON(fieldsOf(params));
    const { contextId, includeArtifacts: artifacts = false } = request;
    const parts = this.#partsFor(call);
    const { owner, db } = parts;
    const history = historyIn(request) ?? 0;
    const limit = pageSizeIn(request);
    const isAsking = request.status === TaskState.TASK_STATE_INPUT_REQUIRED;
    const asked = await askedOf(this.#deps, call.caller);
    const { runs, total } = await clientRuns(db, {
      askedBy: keyOwnerOf(call.caller),
      keyPrefix: a2aKey(call.agentId, owner, ""),
      patterns: call.caller.patterns,
      sessionKey: contextId === "" ? undefined : a2aKey(call.agentId, owner, contextId),
      states: isAsking ? ACTIVE : statesOf(request.status),
      // A task that asks is neither submitted nor working.
      ...optional({ isAsking: isAsking || (isActive(request.status) ? false : undefined) }),
      askingChainIds: asked.map(({ chainId }) => chainId),
      changedAfter: timeIn(request.statusTimestampAfter),
      after: placeIn(request.pageToken),
      limit: limit + 1,
    });
    const page = runs.slice(0, limit);
    const known: TaskParts = { ...parts, question: async (run) => questionOf(asked, run) };
    const tasks: object[] = [];
    for (const run of page)
      tasks.push(listedJson(await taskOf(run, known, { artifacts, history }), artifacts));
    const last = runs.length > limit ? page.at(-1) : undefined;
    const nextPageToken = last === undefined ? "" : pageToken(findPlace(last));
    return { tasks, nextPageToken, pageSize: limit, totalSize: total };
  }

  async cancelTask(call: A2aCall, params: unknown): Promise<unknown> {
    const run = await this.ownRun(call, CancelTaskRequest.fromJSON(fieldsOf(params)).id);
    const { runId, sessionKey } = run;
    const { aborted } = await this.#deps.engine.abort({ sessionKey, runId });
    if (!aborted) throw new TaskNotCancelableError("the task has already ended");
    return Task.toJSON(await this.taskOf(call, await this.#readRun(runId)));
  }

  /** Returns the running task that a client wants to follow. */
  async followed(call: A2aCall, params: unknown): Promise<FollowedTask> {
    const run = await this.ownRun(call, SubscribeToTaskRequest.fromJSON(fieldsOf(params)).id);
    if (isEnded(run.state)) throw new UnsupportedOperationError("the task has ended; read it with GetTask");
    return { run, task: await this.taskOf(call, run) };
  }
}
