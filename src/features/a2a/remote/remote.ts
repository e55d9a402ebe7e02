// Runs the turns of agents elsewhere, which are reached over A2A: sends the run's message, follows the task,
// and writes its answer.
// RT1: the id of a message comes from its run, and the task is remembered before its answer is read. After a
//      crash the task is followed. A message without a known task is sent again under the same id.
// RT2: a message is repeated only if it cannot have arrived, so no agent does the same work twice.
// RT3: an aborted run cancels its task. A gateway that stops, or loses the run, does not.

import { type Message, type Part, Role, type SendMessageRequest, type StreamResponse } from "@a2a-js/sdk";
import {
  A2AError,
  extractErrorMessage,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { TurnEnd } from "../../../agent/loop/loop.ts";
import { inputOf, outsidePrompt, writtenBy } from "../../../agent/loop/outside-prompt.ts";
import { HiddenStream } from "../../../agent/model/hidden-answer.ts";
import { fieldsOf } from "../../../core/json.ts";
import {
  type Entry,
  type ImageBlock,
  textOf,
  toolCallsOf,
  ZERO_USAGE,
} from "../../../core/shapes/message.ts";
import type { ModelRetry } from "../../../core/shapes/model-retry.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { AnswerLimits } from "../../../core/shapes/settings/settings.ts";
import { cut } from "../../../core/text/cut.ts";
import { splitHidden } from "../../../core/text/hidden-text.ts";
import type { LaneHandle } from "../../../engine/run/execution.ts";
import type { RemoteTask } from "../../../store/queries/remote-tasks.ts";
import { AddressRefused, connectionCause, isConnectTimeout } from "../../../world/outgoing.ts";
import { pause, timeLimit, within } from "../../../world/pause.ts";
import type { World } from "../../../world.ts";
import { BUDGET_FIELD, CHAIN_FIELD, HOP_FIELD, WAIT_FIELD } from "../fields.ts";
import type { A2aRuntime } from "../settings.ts";
import { A2A_API, RemoteAnswer, type RemoteEnd, type RemoteFile } from "./answer.ts";
import {
  AgentBusy,
  AgentRefused,
  isConnectionError,
  openRemote,
  type RemoteAgent,
  type RemoteSource,
} from "./remote-card.ts";

/** A card is read again after this time. */
const CARD_KEPT_MS = 300_000;
const CARD_WAIT_MS = 20_000;
/** A task whose stream is silent for this long is read. */
const SILENCE_MS = 30_000;
const CANCEL_WAIT_MS = 5_000;
/** Waits between attempts to reach the agent. After the last one the run fails. */
const PAUSES_MS = [250, 1_000, 3_000, 10_000, 30_000, 60_000, 120_000, 120_000];
/** Longest wait between attempts to reach a peer. */
const PEER_PAUSE_MS = 10_000;
const REASON_CHARS_MAX = 500;
const NAME_CHARS_MAX = 100;
/** Maximum number of files that are named because they are not kept. */
const NAMED_MAX = 10;
const SEND_FILE = "send_file";
/** Errors of a connection that was never made, so nothing was sent. */
const NOT_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];

/** The message to an agent of a peer. A peer accepts a message once, however often it is sent. */
export interface PeerMessage {
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Stores the labels of the answer, as the peer wrote them. Called before the answer is stored. */
  noteLabels(given: unknown): Promise<void>;
  /** Time until which a run here waits for the answer (ms since 1970). Absent: none does. */
  readonly awaitedUntil?: number;
  /** The message waits until this time (ms since 1970) for a peer that is away. */
  readonly until: number;
}

export interface RemoteTurnArgs {
  readonly handle: Pick<LaneHandle, "signal" | "append" | "confirm" | "text"> & {
    readonly run: Pick<Run, "runId" | "hop" | "chainId" | "input">;
  };
  readonly agentId: string;
  /** Tokens that the chain and the agent may still use. Absent: any number. */
  readonly tokensLeft?: number;
  readonly runtime: RemoteSource;
  /** Set for an agent of a peer, which has the earlier messages itself. */
  readonly toPeer?: PeerMessage;
  readonly limits: Pick<AnswerLimits, "maxAnswerBytes">;
  readonly context?: string;
  readonly entries: readonly Entry[];
  readonly contextTokens: number;
  readonly world: World;
  /** State of this session, or undefined if it has none. */
  read(): Promise<RemoteTask | undefined>;
  /** Returns false, and stores nothing, if another process has the run. */
  write(state: RemoteTask): Promise<boolean>;
  /** Returns whether the run has ended, so that its task must not continue. */
  hasEnded(): Promise<boolean>;
  /**
   * Sends a file of the agent to the people of the session, once for each `callId`. Returns the result as the
   * transcript has it.
   */
  keep(callId: string, file: Required<RemoteFile>): Promise<Readonly<Record<string, unknown>>>;
  /** Called before the wait for another attempt to reach the agent. */
  onRetry(retry: ModelRetry): void;
}

type OpenArgs = Pick<RemoteTurnArgs, "runtime" | "world">;
type ErrorCode = Extract<TurnEnd, { kind: "error" }>["code"];

/** The turn cannot continue. The message is for people. */
class Broken extends Error {
  readonly code: ErrorCode;

  constructor(message: string, code: ErrorCode = "run_failed") {
    super(message);
    this.code = code;
  }
}

/** Another process has the run, which must not continue here. */
class Lost extends Error {}

/** Refusals of another Parley whose codes this gateway keeps. */
const REASONS: ReadonlyMap<unknown, ErrorCode> = new Map([
  ["WAIT_CYCLE", "wait_cycle"],
  ["CHAIN_LIMIT", "chain_limit"],
]);

function codeOf(error: unknown): ErrorCode {
  const { data } = (error ?? {}) as { data?: unknown };
  const reasons = Array.isArray(data) ? data.map((one) => REASONS.get(fieldsOf(one).reason)) : [];
  return reasons.find((code) => code !== undefined) ?? "run_failed";
}

function isNotSent(error: unknown): boolean {
  if (error instanceof AgentBusy) return true;
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (isConnectTimeout(error) || NOT_SENT.includes(String(code))) return true;
  return cause !== undefined && cause !== error && isNotSent(cause);
}

/** Returns an error in words. Errors of the agent are cut, because anybody may have written them. */
function wordsOf(error: unknown): string {
  if ([AgentRefused, AgentBusy, AddressRefused].some((one) => error instanceof one))
    return (error as Error).message;
  const cause = connectionCause(error);
  const why = cause === undefined ? "" : ` (${cause})`;
  if (isNotSent(error)) return `it cannot be reached${why}`;
  if (why !== "") return `the connection to it failed${why}`;
  return cut(extractErrorMessage(error), REASON_CHARS_MAX);
}

/** Reads and checks an agent's card, without asking the agent anything. */
export async function inspectRemote(
  runtime: A2aRuntime,
  world: Pick<World, "clock">,
): Promise<{ readonly usable: boolean; readonly text: string }> {
  try {
    using limit = timeLimit(world.clock, CARD_WAIT_MS);
    const { card, key } = await openRemote(runtime, limit.signal);
    const signed = key === undefined ? "its card is not signed" : `its card is signed by the key ${key}`;
    return { usable: true, text: `${cut(card.name, NAME_CHARS_MAX)}: ${signed}` };
  } catch (error) {
    return { usable: false, text: wordsOf(error) };
  }
}

function blocksOf(
  { entries, context, toPeer }: RemoteTurnArgs,
  state: RemoteTask | undefined,
): ReturnType<typeof outsidePrompt> {
  if (toPeer !== undefined) return [{ type: "text", text: toPeer.text }, ...toPeer.images];
  return outsidePrompt({
    entries,
    mayHaveBegun: false,
    takesImages: true,
    ...(context === undefined ? {} : { context }),
    ...(state === undefined ? {} : { knownUpTo: state.knownUpTo ?? "" }),
  });
}

function partsOf(args: RemoteTurnArgs, state: RemoteTask | undefined): Part[] {
  const blocks = blocksOf(args, state);
  const facts = { metadata: undefined, filename: "" };
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const text: Part = { ...facts, content: { $case: "text", value: texts.join("") }, mediaType: "text/plain" };
  const images = blocks.flatMap((block): Part[] =>
    block.type === "image"
      ? [
          {
            ...facts,
            content: { $case: "raw", value: Buffer.from(block.data, "base64") },
            mediaType: block.mimeType,
          },
        ]
      : [],
  );
  return [text, ...images];
}

function messageOf(
  args: RemoteTurnArgs,
  state: RemoteTask | undefined,
  taskId: string | undefined,
): SendMessageRequest {
  const { run } = args.handle;
  // The time for which a run here still waits for the answer of a peer.
  const waitMs = (args.toPeer?.awaitedUntil ?? 0) - args.world.clock.now();
  const message: Message = {
    messageId: `parley-${run.runId}`,
    contextId: args.toPeer === undefined ? (state?.contextId ?? "") : "",
    taskId: taskId ?? "",
    role: Role.ROLE_USER,
    parts: partsOf(args, state),
    metadata: {
      ...args.toPeer?.metadata,
      ...(waitMs > 0 ? { [WAIT_FIELD]: Math.ceil(waitMs) } : {}),
      // The other side counts this message. `run.hop` includes the send that led here, if another session
      // sent the message: that is the same message, so it is not counted.
      [HOP_FIELD]: Math.max(0, run.hop - (run.input.provenance?.kind === "inter_session" ? 1 : 0)),
      [CHAIN_FIELD]: run.chainId,
      ...(args.tokensLeft === undefined ? {} : { [BUDGET_FIELD]: args.tokensLeft }),
    },
    extensions: [],
    referenceTaskIds: [],
  };
  return { tenant: "", message, configuration: undefined, metadata: undefined };
}

/** Returns the end of a turn that an earlier attempt finished. */
function endBefore({ entries, contextTokens }: RemoteTurnArgs): TurnEnd | undefined {
  const last = writtenBy(entries).at(-1);
  if (last?.role !== "assistant" || last.api !== A2A_API || last.stopReason !== "stop") return undefined;
  return { kind: "ok", text: textOf(last), usage: last.usage, contextTokens };
}

interface KeptCard {
  readonly remote: RemoteAgent;
  readonly readAt: number;
}

export class RemoteAgents {
  readonly #cards = new Map<string, KeptCard>();

  async turn(args: RemoteTurnArgs): Promise<TurnEnd> {
    const done = endBefore(args);
    if (done !== undefined) return done;
    try {
      const end = await new RemoteTurn(args, this).run();
      return end ?? { kind: "aborted", usage: ZERO_USAGE };
    } catch (error) {
      if (args.handle.signal.aborted || error instanceof Lost) return { kind: "aborted", usage: ZERO_USAGE };
      if (!(error instanceof Broken)) throw error;
      return failTurn(args, error.message, error.code);
    }
  }

  /** Cancels the task of an aborted run. Logs a failure: an agent that is away may continue. */
  async cancel(
    { runtime, agentId, world }: OpenArgs & Pick<RemoteTurnArgs, "agentId">,
    taskId: string,
  ): Promise<void> {
    try {
      using limit = timeLimit(world.clock, CANCEL_WAIT_MS);
      const { client } = await this.open({ runtime, world }, limit.signal);
      await client.cancelTask({ tenant: "", id: taskId, metadata: undefined }, { signal: limit.signal });
    } catch (error) {
      world.log.debug({ agentId, err: error }, "could not cancel the task of an aborted run");
    }
  }

  /** Returns the agent's client. Reads its card if it was not read for some time. */
  async open({ runtime, world }: OpenArgs, signal: AbortSignal): Promise<RemoteAgent> {
    const id = JSON.stringify(runtime);
    const known = this.#cards.get(id);
    const now = world.clock.monotonic();
    if (known !== undefined && now - known.readAt < CARD_KEPT_MS) return known.remote;
    using limit = timeLimit(world.clock, CARD_WAIT_MS, { signal });
    const remote = await openRemote(runtime, limit.signal);
    this.#cards.set(id, { remote, readAt: now });
    return remote;
  }
}

function failTurn({ agentId, contextTokens }: RemoteTurnArgs, why: string, code?: ErrorCode): TurnEnd {
  const error = `agent "${agentId}": ${why}`;
  return { kind: "error", code: code ?? "run_failed", error, usage: ZERO_USAGE, contextTokens };
}

class RemoteTurn {
  readonly #args: RemoteTurnArgs;
  readonly #agents: RemoteAgents;
  readonly #answer = new RemoteAnswer();
  readonly #hidden = new HiddenStream();
  #contextId = "";
  #knownUpTo: string | undefined;
  /** The earlier task that waits for this message. */
  #askingId: string | undefined;
  #isRemembered = false;
  #failures = 0;

  constructor(args: RemoteTurnArgs, agents: RemoteAgents) {
    this.#args = args;
    this.#agents = agents;
  }

  /** Returns the end, or undefined if the run was aborted. */
  async run(): Promise<TurnEnd | undefined> {
    const { handle, runtime } = this.#args;
    const { signal, run } = handle;
    const known = await this.#args.read();
    const state = known?.remote === runtime.card ? known : undefined;
    this.#contextId = state?.contextId ?? "";
    this.#knownUpTo = state?.knownUpTo;
    this.#askingId = state?.isAsking === true ? state.taskId : undefined;
    if (state?.runId === run.runId && state.taskId !== undefined && !state.isAsking) {
      this.#answer.taskId = state.taskId;
      this.#isRemembered = true;
    }
    try {
      while (!signal.aborted) {
        const end = await this.#attempt(state);
        if (end !== undefined) return await this.#finish(end);
      }
    } finally {
      if (signal.aborted) await this.#cancel();
    }
    return undefined;
  }

  /** Sends the message, or follows the task if it is known. Returns its end if it was seen. */
  async #attempt(state: RemoteTask | undefined): Promise<RemoteEnd | undefined> {
    const remote = await this.#openAgent();
    if (remote === undefined) return undefined;
    await this.#args.handle.confirm();
    const leaving = new AbortController();
    const options = { signal: AbortSignal.any([this.#args.handle.signal, leaving.signal]) };
    let sent = false;
    try {
      const { client } = remote;
      const { taskId } = this.#answer;
      if (taskId !== undefined) {
        await this.#take({
          payload: { $case: "task", value: await client.getTask({ tenant: "", id: taskId }, options) },
        });
        this.#failures = 0;
        const end = this.#answer.end();
        if (end !== undefined) return end;
      }
      sent = true;
      const events =
        taskId === undefined
          ? client.sendMessageStream(messageOf(this.#args, state, this.#askingId), options)
          : client.resubscribeTask({ tenant: "", id: taskId }, options);
      return await this.#read(events);
    } catch (error) {
      await this.#failedOnce(error, sent);
      return undefined;
    } finally {
      leaving.abort();
    }
  }

  /** Reads the agent's card if needed. Returns undefined if that failed and may be tried again. */
  async #openAgent(): Promise<RemoteAgent | undefined> {
    try {
      return await this.#agents.open(this.#args, this.#args.handle.signal);
    } catch (error) {
      await this.#failedOnce(error, false);
      return undefined;
    }
  }

  async #read(events: AsyncIterable<StreamResponse>): Promise<RemoteEnd | undefined> {
    const reader = events[Symbol.asyncIterator]();
    for (;;) {
      const got = await this.#next(reader);
      // After a silence the task is read, and its stream is opened again.
      if (got === undefined) return undefined;
      if (got.done === true) return this.#answer.end() ?? this.#takeBrokenStream();
      this.#failures = 0;
      await this.#take(got.value);
      const end = this.#answer.end();
      if (end !== undefined) return end;
    }
  }

  /** Returns the next event, or undefined after a silence. */
  async #next(
    reader: AsyncIterator<StreamResponse>,
  ): Promise<IteratorResult<StreamResponse, unknown> | undefined> {
    const { world, handle, toPeer } = this.#args;
    const next = reader.next();
    // While its task is unknown, an agent may just be slow. Only a peer can be asked again (RT2).
    if (this.#answer.taskId === undefined && toPeer === undefined) return next;
    next.catch(() => {});
    return within(world.clock, SILENCE_MS, next, { signal: handle.signal });
  }

  /** Handles a stream that ended before its task. */
  async #takeBrokenStream(): Promise<undefined> {
    if (this.#answer.taskId === undefined) throw new Broken("it closed the connection without an answer");
    await this.#failedOnce(new Error("it closed the stream"), false);
    return undefined;
  }

  async #take(event: StreamResponse): Promise<void> {
    const delta = this.#answer.take(event);
    if (this.#answer.bytes > this.#args.limits.maxAnswerBytes)
      throw new Broken("its answer is longer than agents.defaults.maxAnswerBytes");
    if (!this.#isRemembered && this.#answer.taskId !== undefined) {
      await this.#remember(false);
      this.#isRemembered = true;
    }
    const shown = delta === undefined ? undefined : this.#hidden.next(delta);
    if (shown !== undefined) this.#args.handle.text(shown);
  }

  /** Waits before the next attempt. Throws if the message may have arrived, or after too many failures. */
  async #failedOnce(error: unknown, sent: boolean): Promise<void> {
    if (this.#args.handle.signal.aborted) return;
    if (error instanceof Broken || error instanceof Lost) throw error;
    const isKnown = this.#answer.taskId !== undefined;
    const isOurs = [A2AError, AgentRefused, AddressRefused].some((one) => error instanceof one);
    // A task that ended before its stream was opened cannot be followed. It is read in the next attempt.
    const isUnfollowed = isKnown && error instanceof UnsupportedOperationError;
    // The earlier task no longer waits: it was answered elsewhere, or has ended. Nothing was accepted.
    const isNotAsking = [UnsupportedOperationError, TaskNotFoundError].some((one) => error instanceof one);
    if (sent && !isKnown && this.#askingId !== undefined && isNotAsking) {
      this.#askingId = undefined;
      return this.#remember(false);
    }
    if (isOurs && !isUnfollowed) throw new Broken(wordsOf(error), codeOf(error));
    if (this.#args.toPeer !== undefined) return this.#peerAway(this.#args.toPeer, error);
    if (sent && !isKnown && !isNotSent(error))
      throw new Broken(
        `outcome unknown: the message may have arrived, but no answer came (${wordsOf(error)})`,
      );
    if (!isKnown && !isNotSent(error) && !isConnectionError(error)) throw new Broken(wordsOf(error));
    const wait = PAUSES_MS[this.#failures];
    this.#failures += 1;
    if (wait === undefined) throw new Broken(wordsOf(error));
    const attempts = { attempt: this.#failures + 1, of: PAUSES_MS.length + 1 };
    this.#args.onRetry({ ...attempts, delayMs: wait, error: wordsOf(error) });
    await pause(this.#args.world.clock, wait, this.#args.handle.signal);
  }

  /** Waits for a peer that is away. The message stays queued until its time is over. */
  async #peerAway({ until }: PeerMessage, error: unknown): Promise<void> {
    const { world, agentId, handle } = this.#args;
    const left = until - world.clock.now();
    if (left <= 0) throw new Broken(`it was away for too long: ${wordsOf(error)}`);
    const pauseMs = Math.min(PAUSES_MS[this.#failures] ?? PEER_PAUSE_MS, PEER_PAUSE_MS, left);
    this.#failures += 1;
    world.log.debug({ agentId, err: error, retryInMs: pauseMs }, "a peer is away");
    await pause(world.clock, pauseMs, handle.signal);
  }

  async #remember(isAsking: boolean, knownUpTo = this.#knownUpTo): Promise<void> {
    const { runtime, handle, write } = this.#args;
    const { taskId, contextId = this.#contextId } = this.#answer;
    const isWritten = await write({
      remote: runtime.card,
      contextId,
      runId: handle.run.runId,
      isAsking,
      ...(taskId === undefined ? {} : { taskId }),
      ...(knownUpTo === undefined ? {} : { knownUpTo }),
    });
    if (!isWritten) throw new Lost();
  }

  async #finish(end: RemoteEnd): Promise<TurnEnd> {
    const { world, agentId, entries, contextTokens, handle, toPeer } = this.#args;
    const input = inputOf(entries)?.id;
    await toPeer?.noteLabels(this.#answer.labels);
    // The tokens of a peer count where the model runs.
    const usage = toPeer === undefined ? this.#answer.usage : ZERO_USAGE;
    if (end.kind === "failed") {
      await this.#remember(false, input);
      return { ...failTurn(this.#args, cut(end.why, REASON_CHARS_MAX)), usage };
    }
    const left = await this.#keep(end.files);
    const more = left.length > NAMED_MAX ? ` and ${left.length - NAMED_MAX} more` : "";
    const named = left.slice(0, NAMED_MAX).join(", ") + more;
    const note = left.length === 0 ? "" : `\n\n[It also sent ${named}, not kept here.]`;
    const text = `${splitHidden(end.text).visible.trim()}${note}`.trim();
    const about = { api: A2A_API, provider: A2A_API, model: agentId, usage };
    const content = [{ type: "text" as const, text }];
    const facts = { id: world.ids.orderedUuid(), timestamp: world.clock.now(), stopReason: "stop" };
    await handle.append({ ...facts, role: "assistant", content, ...about });
    await this.#remember(end.isAsking, input);
    return { kind: "ok", text, usage, contextTokens };
  }

  /**
   * Sends the agent's files to the people of the session. The transcript has them as calls of `send_file`.
   * Returns the names of those that are not kept.
   */
  async #keep(files: readonly RemoteFile[]): Promise<string[]> {
    const { world, agentId, handle, entries, keep } = this.#args;
    const written = writtenBy(entries);
    const results = new Map(
      written.flatMap((one) => (one.role === "toolResult" ? [[one.toolCallId, one.isError]] : [])),
    );
    const calls = written.flatMap((one) => toolCallsOf(one).map(({ id }) => id));
    const left: string[] = [];
    for (const [index, { name, content }] of files.entries()) {
      const shown = cut(name, NAME_CHARS_MAX);
      const id = `${handle.run.runId}:a2a:${index}`;
      if (content === undefined || results.get(id) === true) left.push(JSON.stringify(shown));
      if (content === undefined || results.has(id)) continue;
      const facts = () => ({ id: world.ids.orderedUuid(), timestamp: world.clock.now() });
      const call = { type: "toolCall" as const, id, name: SEND_FILE, arguments: { path: shown } };
      const about = { api: A2A_API, provider: A2A_API, model: agentId, usage: ZERO_USAGE };
      if (!calls.includes(id))
        await handle.append({
          ...facts(),
          role: "assistant",
          content: [call],
          stopReason: "toolUse",
          ...about,
        });
      const result = await keep(id, { name: shown, content });
      const text = JSON.stringify(result);
      const isError = result.status !== "accepted";
      const told = {
        toolCallId: id,
        toolName: SEND_FILE,
        content: [{ type: "text" as const, text }],
        isError,
      };
      await handle.append({ ...facts(), role: "toolResult", ...told });
      if (isError) left.push(JSON.stringify(shown));
    }
    return left;
  }

  /** Cancels the task of an aborted run (RT3). */
  async #cancel(): Promise<void> {
    const { taskId } = this.#answer;
    if (taskId === undefined || !(await this.#args.hasEnded())) return;
    await this.#agents.cancel(this.#args, taskId);
  }
}
