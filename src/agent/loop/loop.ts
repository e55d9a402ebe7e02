// Runs one agent turn: calls the model, executes its tool calls, and repeats this until the model writes a
// final text. Does not depend on sessions or sockets.
// L1: every message is appended before the next step uses it, so a crash loses at most the current step.
// L2: the same turn over the same entries resumes where it stopped: no appended message is requested again.
// L3: the end of the turn is computed from the appended messages, live and after a crash alike.
// L4: after an abort nothing more is appended, and the turn settles at once.
// L5: messages that arrive during the turn are read between two steps: after every call is answered, before
//     the next model call.
// Errors thrown by `append`, `callTool` or `takeSteered` are not caught here: another process has taken over
// the run, or there is a bug.

import { optional } from "../../core/optional.ts";
import type { ModelBudget } from "../../core/rules/budget.ts";
import { isClientTool } from "../../core/rules/client-tools.ts";
import {
  type AssistantMessage,
  addUsage,
  type Entry,
  injectedMessage,
  isCompaction,
  type Message,
  textOf,
  toolCallsOf,
  type Usage,
  ZERO_USAGE,
} from "../../core/shapes/message.ts";
import type { ModelRetry } from "../../core/shapes/model-retry.ts";
import type { AnswerFormat, ClientTools } from "../../core/shapes/run.ts";
import type { AnswerLimits, ThinkingLevel } from "../../core/shapes/settings/settings.ts";
import type { ToolCallRequest, ToolOutcome, ToolSpec } from "../../core/shapes/tool.ts";
import type { TextDelta } from "../../core/text/text-delta.ts";
import type { World } from "../../world.ts";
import { budgetedPort, limitAnswer } from "../model/budgeted.ts";
import { fallbackPort } from "../model/fallback.ts";
import {
  type AskAside,
  type FailureCode,
  type ModelOutcome,
  type ModelPort,
  type ResolvedModel,
  usageOf,
  type WrittenMessage,
} from "../model/model.ts";
import { compact } from "./compaction.ts";
import { hasPart, omissionNote } from "./omission.ts";
import { matchResults } from "./result-matching.ts";
import { answerCalls, type ToolEvent, type ToolPort } from "./tool-calls.ts";
import { estimateTextTokens, estimateTokens, lastCounted, liveTranscript, modelView } from "./view.ts";
import { wholeAnswerPort } from "./whole-answer.ts";

export interface TurnArgs {
  readonly runId: string;
  /** Key of the provider's prompt cache. Default: the run's id. */
  readonly sessionId?: string;
  readonly system: string;
  readonly model: ResolvedModel;
  /** Models to try in this order after a model has failed permanently. Default: none. */
  readonly fallbackModels?: readonly ResolvedModel[];
  /** Called with each fallback model that is used. */
  onFallback?(model: ResolvedModel): void;
  readonly thinking: ThinkingLevel;
  /** Format of the answer. Summaries of older messages do not have it. Default: free text. */
  readonly format?: AnswerFormat;
  /** True if the turn only summarises the older messages. Default false. */
  readonly compactOnly?: boolean;
  /** The transcript. It contains this run's input and, after a crash, the run's earlier entries. */
  readonly entries: readonly Entry[];
  readonly tools: readonly ToolSpec[];
  /**
   * All tools, including those not offered now: an earlier attempt may have called them. Default: `tools`.
   */
  readonly everyTool?: readonly ToolSpec[];
  /** Tools that the client of the run executes. They are in `tools`, too. A call of one ends the turn. */
  readonly clientTools?: ClientTools;
  /** Id of the last entry of the run's input. Default: the last message of a user. */
  readonly startsAfter?: string;
  /**
   * Stores an entry before it returns. Returns the stored entry. Throws if another process has taken over the
   * run.
   */
  append(entry: Entry): Promise<Entry>;
  callTool(request: ToolCallRequest, signal: AbortSignal, askAside: AskAside): Promise<ToolOutcome>;
  /** Returns whether a call that a crash interrupted had only asked for an approval. Default: false. */
  awaitsApproval?(callId: string): Promise<boolean>;
  /** Waits while a person holds the run, see `ToolPort.pass`. Default: none does. */
  pass?: ToolPort["pass"];
  /**
   * Returns the next stored message that has arrived during the turn. Called before each model call. Default:
   * none.
   */
  takeSteered?(): Promise<Entry | undefined>;
  /** Called with the streamed text of the assistant message. */
  onText(delta: TextDelta): void;
  /** Called with the streamed thinking of the assistant message. Default: none. */
  onThinking?(delta: TextDelta): void;
  onTool(event: ToolEvent): void;
  /** Called before each retry of a model call. Default: none. */
  onRetry?(retry: ModelRetry): void;
  readonly signal: AbortSignal;
  /** Number of the attempt, counted from 1. */
  readonly attempt: number;
  readonly port: ModelPort;
  /** True for recorded answers: none is asked for again, and none is continued. Default false. */
  readonly isReplay?: boolean;
  /** True if an answer without text is a choice: the step of a conversation that follows its answer. */
  readonly maySayNothing?: boolean;
  readonly world: World;
  /** Maximum number of model calls of one run, including earlier attempts. */
  readonly maxModelCalls: number;
  readonly limits: AnswerLimits;
  /** Checked before each model call. Absent if there is no budget. */
  readonly budget?: ModelBudget | undefined;
}

/** The arguments of a turn, with its own ports. */
interface AskingArgs extends TurnArgs {
  /** Gives whole answers. Summaries of older messages use `port`. */
  readonly answerPort: ModelPort;
  /** Asks the model of the run, and no other one. */
  readonly ownPort: ModelPort;
}

export type TurnEnd =
  | {
      readonly kind: "ok";
      /** The last text of the run, even if the model wrote it before its last tool call. */
      readonly text: string;
      /** True if the text was cut at the output limit. Default false. */
      readonly isCut?: boolean;
      readonly usage: Usage;
      readonly contextTokens: number;
    }
  | {
      readonly kind: "error";
      /** `wait_cycle`, `chain_limit`: an agent elsewhere refused the message. */
      readonly code: "run_failed" | "wait_cycle" | "chain_limit" | FailureCode;
      readonly error: string;
      readonly text?: string;
      readonly usage: Usage;
      readonly contextTokens: number;
    }
  /** `partial`: the message as far as it was written at the abort. The caller decides whether to keep it. */
  | { readonly kind: "aborted"; readonly usage: Usage; readonly partial?: WrittenMessage };

const GO_ON = "Send another message to continue from here, or raise that setting.";
/** Share of the window at which the transcript is compacted. */
const FULL_SHARE = 0.85;
const NOTHING_OLDER = "there is nothing older to summarise";
/** Room in the window that a summary needs if it is asked for at the end of the conversation. */
const SUMMARY_ROOM_TOKENS = 12_000;

interface Progress {
  readonly entries: Entry[];
  readonly startsAfter: string | undefined;
  usage: Usage;
  /** Usage of answers that are not stored. The next message gets it. */
  unstored: Usage;
  contextTokens: number;
  steps: number;
  /** Compactions since the model's last message. */
  compactions: number;
}

/** The first compaction keeps the newest messages, the second one only the last message. */
const COMPACTIONS_MAX = 2;
/** Parts that are left out if the conversation is too long even after these compactions. */
const LAST_RESORTS = ["long texts", "pictures"] as const;

/** Runs the turn to its end, from the start or from the point where an earlier attempt stopped. */
export async function runTurn(given: TurnArgs): Promise<TurnEnd> {
  const progress = startOf(given);
  const args: AskingArgs = { ...given, ...askingPorts(given, progress) };
  const append = async (entry: Entry): Promise<Entry> => {
    const stored = await args.append(entry);
    progress.entries.push(stored);
    return stored;
  };
  if (args.compactOnly === true) return compactOnly(args, progress, append);
  const port = { ...toolPort(args, progress), append };
  let last = lastWritten(ownMessages(progress));
  let resumed = last !== undefined;
  for (;;) {
    if (last !== undefined) {
      const end = endOf(last, args.model, progress) ?? (await takeCalls(args, progress, port, last, resumed));
      if (end !== undefined) return end;
    }
    resumed = false;
    if (args.signal.aborted) return abortTurn(progress);
    if (progress.steps >= args.maxModelCalls) return failTurn(progress, tooManyCalls(args.maxModelCalls));
    const said = await args.takeSteered?.();
    if (said !== undefined) progress.entries.push(said);
    if (args.signal.aborted) return abortTurn(progress);
    const outcome = await callModel(args, progress, append);
    if (outcome.kind === "aborted") return abortTurn(progress, outcome.partial);
    if (args.signal.aborted) return abortTurn(progress);
    const message = outcome.kind === "message" ? outcome.message : outcome.partial;
    if (message === undefined) {
      const { error, code } = outcome.kind === "failed" ? outcome : { error: "" };
      return failTurn(progress, error, code);
    }
    last = takeMessage(args.world, progress, message);
    await append(last);
  }
}

/** Answers the calls of a message. Returns the end of the turn if it ends with them. */
async function takeCalls(
  args: TurnArgs,
  progress: Progress,
  port: ToolPort,
  last: AssistantMessage,
  resumed: boolean,
): Promise<TurnEnd | undefined> {
  const answered = answeredPlaces(progress.entries, last);
  if (!(await answerCalls(port, last, answered, resumed, args.signal))) return abortTurn(progress);
  return leavesCalls(args, progress, last) ? endWith(progress, textOf(last)) : undefined;
}

/** Makes the model's message an entry, which also carries the usage of answers that are not stored. */
function takeMessage(world: World, progress: Progress, message: WrittenMessage): AssistantMessage {
  const { unstored } = progress;
  const taken = adopt(world, unstored === ZERO_USAGE ? message : { ...message, earlierUsage: unstored });
  progress.unstored = ZERO_USAGE;
  count(progress, taken);
  return taken;
}

/** Wraps the port of the model for a turn: budget, mending, fallback and whole answers. */
function askingPorts(
  given: TurnArgs,
  progress: Progress,
): Pick<AskingArgs, "port" | "answerPort" | "ownPort"> {
  const { budget } = given;
  const mendable: ModelPort = {
    async call(request, ...how) {
      const outcome = await given.port.call(request, ...how);
      if (outcome.kind !== "refused") return outcome;
      const { messages } = liveTranscript(request.entries);
      if (hasPart(messages, outcome.part, request.thinking)) return outcome;
      return { kind: "failed", error: outcome.error };
    },
  };
  const own = budget === undefined ? mendable : budgetedPort(mendable, budget, () => spentBy(progress));
  const discard = (usage: Usage): void => {
    progress.unstored = addUsage(progress.unstored, usage);
  };
  const withFallback = (port: ModelPort): ModelPort =>
    fallbackPort(port, given.fallbackModels ?? [], (model, before = ZERO_USAGE) => {
      discard(before);
      given.onFallback?.(model);
    });
  const hasText = (): boolean => given.maySayNothing === true || hasAnswered(progress);
  const whole = given.isReplay === true ? own : wholeAnswerPort(own, { discard, hasText });
  return { port: withFallback(own), answerPort: withFallback(whole), ownPort: own };
}

/** Compacts the transcript and says so. An earlier attempt may have done one of the two, or both. */
async function compactOnly(
  args: TurnArgs,
  progress: Progress,
  append: (entry: Entry) => Promise<Entry>,
): Promise<TurnEnd> {
  const { model, world, signal } = args;
  const said = ownMessages(progress).findLast(({ role }) => role === "assistant");
  const used = estimate(args, progress.entries);
  const end = (text: string, contextTokens = used): TurnEnd => {
    return { kind: "ok", text, usage: spentBy(progress), contextTokens };
  };
  if (said !== undefined) return end(textOf(said));
  const fits = used + SUMMARY_ROOM_TOKENS <= model.settings.contextWindow;
  const made = compactedSinceInput(progress.entries)
    ? "done"
    : await makeRoom(args, progress, append, { fits, isNeeded: false });
  if (made === "aborted" || signal.aborted) return abortTurn(progress);
  if (made !== "done" && made !== NOTHING_OLDER) return failTurn(progress, made);
  const left = made === "done" ? estimate(args, progress.entries) : used;
  const text =
    made === "done"
      ? `The older messages are summarised: the model reads about ${left} tokens now.`
      : "There is nothing older to summarise.";
  await append(injectedMessage(world.ids.orderedUuid(), text, world.clock.now()));
  return end(text, left);
}

function compactedSinceInput(entries: readonly Entry[]): boolean {
  const input = entries.findLast((entry) => !isCompaction(entry) && entry.role === "user");
  return entries.some((entry) => isCompaction(entry) && entry.timestamp >= (input?.timestamp ?? 0));
}

function toolPort(args: AskingArgs, progress: Progress) {
  const { runId, attempt, tools, clientTools, world, model, limits } = args;
  const askAside: AskAside = async ({ system, entries, maxOutputTokens }, signal) => {
    const request = { model, system, entries, tools: [], thinking: "off" as const, sessionId: runId, limits };
    const outcome = await args.ownPort.call(
      limitAnswer(request, maxOutputTokens),
      () => {},
      signal,
      world.log,
    );
    progress.unstored = addUsage(progress.unstored, usageOf(outcome) ?? ZERO_USAGE);
    return outcome;
  };
  return {
    runId,
    clientTools,
    attempt,
    tools,
    everyTool: args.everyTool ?? tools,
    maxResultBytes: args.limits.maxToolResultBytes,
    world,
    callTool: (request: ToolCallRequest, signal: AbortSignal) => args.callTool(request, signal, askAside),
    awaitsApproval: async (callId: string) => (await args.awaitsApproval?.(callId)) ?? false,
    pass: async (...call: Parameters<ToolPort["pass"]>) => (await args.pass?.(...call)) ?? "free",
    onTool: (event: ToolEvent) => args.onTool(event),
  };
}

function startOf(args: TurnArgs): Progress {
  const progress: Progress = {
    entries: [...args.entries],
    startsAfter: args.startsAfter,
    usage: ZERO_USAGE,
    unstored: ZERO_USAGE,
    contextTokens: 0,
    steps: 0,
    compactions: 0,
  };
  const messages = progress.entries.filter((entry): entry is Message => !isCompaction(entry));
  const before = messages.findLast((message) => message.role === "assistant" && contextOf(message) > 0);
  progress.contextTokens = before === undefined ? 0 : contextOf(before);
  for (const message of ownMessages(progress)) {
    if (isWritten(message)) count(progress, message);
  }
  return progress;
}

function count(progress: Progress, message: AssistantMessage): void {
  progress.steps += 1;
  progress.usage = addUsage(addUsage(progress.usage, message.usage), message.earlierUsage ?? ZERO_USAGE);
  if (contextOf(message) > 0) progress.contextTokens = contextOf(message);
  if (message.stopReason !== "error") progress.compactions = 0;
}

function spentBy({ usage, unstored }: Progress): Usage {
  return addUsage(usage, unstored);
}

function contextOf(message: Message): number {
  return message.role === "assistant" ? message.usage.totalTokens : 0;
}

/**
 * Returns the messages of this run, and those that arrived during it. They follow the run's input, because no
 * other run appends while this one is active.
 */
function ownMessages({ entries, startsAfter }: Pick<Progress, "entries" | "startsAfter">): Message[] {
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  const isInput = (message: Message): boolean =>
    (message.role === "user" && message.steered !== true) || message.id === startsAfter;
  return messages.slice(messages.findLastIndex(isInput) + 1);
}

function isWritten(message: Message): message is AssistantMessage {
  return message.role === "assistant" && message.stopReason !== "injected";
}

/** Returns the model's last message. An aborted message doesn't count: it is requested again. */
function lastWritten(own: readonly Message[]): AssistantMessage | undefined {
  const last = own.findLast(isWritten);
  return last?.stopReason === "aborted" ? undefined : last;
}

/** Returns the last text of the messages, or undefined if they have none. */
function lastText(messages: readonly Message[]): string | undefined {
  return messages
    .filter(isWritten)
    .map(textOf)
    .findLast((text) => text.trim() !== "");
}

/** Returns whether the run has a text since its last input. */
function hasAnswered(progress: Progress): boolean {
  const own = ownMessages(progress);
  return lastText(own.slice(own.findLastIndex(({ role }) => role === "user") + 1)) !== undefined;
}

function answeredPlaces(entries: readonly Entry[], message: AssistantMessage): Set<number> {
  // Results follow their call, so nothing before the message is of interest.
  const since = entries.slice(entries.lastIndexOf(message));
  const messages = since.filter((entry): entry is Message => !isCompaction(entry));
  return new Set(matchResults(messages).get(message)?.keys() ?? []);
}

/** Returns the end of the turn with this message, or undefined if the turn continues. */
function endOf(message: AssistantMessage, model: ResolvedModel, progress: Progress): TurnEnd | undefined {
  if (message.stopReason === "error") {
    const error = message.errorMessage ?? `${model.ref} failed without saying why`;
    return failTurn(progress, error, message.errorCode);
  }
  if (toolCallsOf(message).length > 0) return undefined;
  const isCut = message.stopReason === "length";
  if (isCut && textOf(message).trim() === "") {
    const limit = model.settings.maxOutputTokens;
    return failTurn(
      progress,
      `${model.ref} used up its output limit (${limit} tokens, or what a budget left) before it answered`,
    );
  }
  return endWith(progress, lastText(ownMessages(progress)) ?? "", isCut);
}

function endWith({ usage, contextTokens }: Progress, text: string, isCut = false): TurnEnd {
  return { kind: "ok", text, isCut, usage, contextTokens };
}

/** Returns whether a message has calls that the client of the run has to answer. */
function leavesCalls({ clientTools }: TurnArgs, { entries }: Progress, message: AssistantMessage): boolean {
  const answered = answeredPlaces(entries, message);
  return toolCallsOf(message).some(({ name }, at) => isClientTool(clientTools, name) && !answered.has(at));
}

function tooManyCalls(maxModelCalls: number): string {
  const setting = `agents.defaults.maxModelCalls, or the agent's own, is ${maxModelCalls}`;
  return `stopped after ${maxModelCalls} model calls without a final answer (${setting}). ${GO_ON}`;
}

function failTurn(
  progress: Progress,
  error: string,
  code: FailureCode | "run_failed" = "run_failed",
): TurnEnd {
  const text = lastText(ownMessages(progress));
  return {
    kind: "error",
    code,
    error,
    ...optional({ text }),
    usage: spentBy(progress),
    contextTokens: progress.contextTokens,
  };
}

function abortTurn(progress: Progress, partial?: WrittenMessage): TurnEnd {
  return { kind: "aborted", usage: spentBy(progress), ...optional({ partial }) };
}

/** Gives the message an id, and every tool call an id that is unique in the message. */
function adopt(world: World, message: WrittenMessage): AssistantMessage {
  const used = new Set<string>();
  let place = 0;
  const content = message.content.map((block) => {
    if (block.type !== "toolCall") return block;
    const wanted = block.id === "" ? `call_${place}` : block.id;
    const id = used.has(wanted) ? `${wanted}_${place}` : wanted;
    used.add(id);
    place += 1;
    return { ...block, id };
  });
  return { ...message, id: world.ids.orderedUuid(), content };
}

/**
 * Calls the model. Compacts the transcript before the call if the window is nearly full. Repeats the call
 * without a part of the history that the provider has refused, and with a shorter one if it was too long.
 */
async function callModel(
  args: AskingArgs,
  progress: Progress,
  append: (entry: Entry) => Promise<Entry>,
): Promise<Exclude<ModelOutcome, { kind: "overflow" | "refused" }>> {
  const { model, world } = args;
  const { contextWindow } = model.settings;
  const used = progress.compactions > 0 ? 0 : estimate(args, progress.entries);
  if (used > contextWindow * FULL_SHARE) {
    const fits = used + SUMMARY_ROOM_TOKENS <= contextWindow;
    const made = await makeRoom(args, progress, append, { fits, isNeeded: false });
    if (made === "aborted") return { kind: "aborted" };
    // If the early compaction fails, the call is still made: the provider might accept the request.
    if (made !== "done")
      world.log.warn({ model: model.ref, why: made }, "older messages could not be summarised");
  }
  const omitted = new Set<string>();
  for (;;) {
    const outcome = await ask(args, progress);
    if (outcome.kind !== "overflow" && outcome.kind !== "refused") return outcome;
    if (args.signal.aborted) return { kind: "aborted" };
    if (outcome.kind === "refused") {
      const { part, error: why } = outcome;
      if (omitted.has(part)) return { kind: "failed", error: why };
      omitted.add(part);
      world.log.warn({ model: model.ref, part, why }, "the call is repeated without a refused part");
      await append(omissionNote(world, part));
      continue;
    }
    const made = await shorten(args, progress, append);
    if (made === "aborted") return { kind: "aborted" };
    if (made !== "done") return { kind: "failed", error: tooLong(model, made, outcome.error) };
  }
}

/** Shortens a conversation that was too long. Returns "done", "aborted", or why nothing more can be done. */
async function shorten(
  args: TurnArgs,
  progress: Progress,
  append: (entry: Entry) => Promise<Entry>,
): Promise<string> {
  const made =
    progress.compactions < COMPACTIONS_MAX
      ? await makeRoom(args, progress, append, { fits: false, isNeeded: true })
      : "older messages were summarised, and it is still too long";
  if (made === "done" || made === "aborted") return made;
  const { messages } = liveTranscript(progress.entries);
  const part = LAST_RESORTS.find((one) => hasPart(messages, one, "off"));
  if (part === undefined) return made;
  await append(omissionNote(args.world, part));
  return "done";
}

function commonParts(args: TurnArgs, progress: Progress) {
  const { model, system, tools, runId, limits } = args;
  const own = ownMessages(progress);
  const omittedAt = own.findLastIndex((one) => one.role === "assistant" && one.omits === "thinking");
  // With thinking, providers want that of the whole turn, and a part of it was left out. The turn of a run
  // that begins with results began in an earlier run.
  const isBroken =
    omittedAt >= 0 && (args.startsAfter !== undefined || own.slice(0, omittedAt).some(isWritten));
  const thinking = isBroken ? "off" : args.thinking;
  return { model, system, tools, thinking, sessionId: args.sessionId ?? runId, limits };
}

function ask(args: AskingArgs, progress: Progress): Promise<ModelOutcome> {
  const onThinking = (delta: TextDelta): void => {
    if (!args.signal.aborted) args.onThinking?.(delta);
  };
  const { format, onRetry } = args;
  const mustCall = args.clientTools?.must;
  return args.answerPort.call(
    {
      ...commonParts(args, progress),
      // Providers refuse to think before a call that they must make.
      ...(mustCall === undefined ? {} : { mustCall, thinking: "off" as const }),
      ...optional({ format }),
      entries: progress.entries,
      onRetry,
      onThinking,
    },
    (delta) => {
      if (!args.signal.aborted) args.onText(delta);
    },
    args.signal,
    args.world.log,
  );
}

function tooLong(model: ResolvedModel, why: string, error: string): string {
  const window = `the context window of ${model.ref} (${model.settings.contextWindow} tokens)`;
  return `the conversation no longer fits ${window}: ${why}. ${error}`;
}

/**
 * Compacts the transcript. Returns "done", "aborted", or the reason of a failure. `fits`: whether the model
 * probably accepts the whole transcript again. `isNeeded`: whether the turn cannot continue without it.
 */
async function makeRoom(
  args: TurnArgs,
  progress: Progress,
  append: (entry: Entry) => Promise<Entry>,
  how: { readonly fits: boolean; readonly isNeeded: boolean },
): Promise<string> {
  const { port, world, signal } = args;
  const request = { ...commonParts(args, progress), entries: progress.entries, port, world, signal, ...how };
  const made = await compact({ ...request, keepsLastOnly: progress.compactions > 0 });
  if (signal.aborted || made.kind === "aborted") return "aborted";
  if (made.kind === "nothing_older") return NOTHING_OLDER;
  progress.usage = addUsage(progress.usage, made.usage);
  if (made.kind === "failed") return `summarising older messages failed (${made.error})`;
  progress.compactions += 1;
  await append(made.entry);
  return "done";
}

/**
 * Estimates the tokens of the next request: the provider's last count, plus an estimate for newer entries.
 */
function estimate(args: TurnArgs, entries: readonly Entry[]): number {
  const { messages } = liveTranscript(entries);
  const counted = lastCounted(entries, messages);
  const since = messages.slice(counted + 1).reduce((sum, message) => sum + estimateTokens(message), 0);
  const before = messages[counted];
  if (before !== undefined) return contextOf(before) + since;
  const fixed = estimateTextTokens(args.system + JSON.stringify(args.tools));
  return fixed + modelView(entries, args.model).reduce((sum, message) => sum + estimateTokens(message), 0);
}
