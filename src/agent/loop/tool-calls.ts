// Answers the tool calls of one assistant message, in a live turn and after a crash.
// K1: every call gets exactly one result; each result is appended as soon as it exists. The result's id is
//     derived from the call, so that a repetition finds the stored result.
// K2: adjacent calls of `parallel` tools run in parallel; any other call waits for all before it, and blocks
//     all after it.
// K3: after a crash, a call that may have begun runs again only if its tool is idempotent; otherwise its
//     result says that the outcome is unknown. By K2, a call has not begun if a result of an earlier group is
//     missing, so it runs; so does a call that had only asked for an approval. A tool that is no longer
//     offered is called, too: only the tool knows the outcome of its call.
// K4: a call that can't be trusted (cut off, unreadable arguments, unknown tool) is answered without running;
//     the answer has the form of a tool's failure.
//     Nor has a call begun before which a person held the run.
// K5: a call of a tool of the run's client is left open: the turn ends, and a later run brings its result.

import { optional } from "../../core/optional.ts";
import { isClientTool } from "../../core/rules/client-tools.ts";
import { type Failure, fail, toolFailure } from "../../core/shapes/errors.ts";
import {
  type AssistantMessage,
  type Entry,
  isCompaction,
  resultIdOf,
  type ToolCallBlock,
  type ToolResultMessage,
  textOf,
  toolCallsOf,
} from "../../core/shapes/message.ts";
import type { ClientTools, Passage } from "../../core/shapes/run.ts";
import type { ToolCallRequest, ToolOutcome, ToolSpec } from "../../core/shapes/tool.ts";
import { head, quoted } from "../../core/text/cut.ts";
import type { World } from "../../world.ts";
import { UNREADABLE_ARGUMENTS } from "../model/model.ts";
import { ABORTED, untilAborted } from "./abort.ts";

const RAW_CHARS_SHOWN = 300;
const NAME_CHARS_SHOWN = 80;
const OUTCOME_UNKNOWN = fail(
  "outcome_unknown",
  "outcome unknown: the gateway stopped while this call was under way, so it may have taken effect or not",
  { hint: "The call was not run again; check its effects before you repeat it." },
);

const ONE_AT_A_TIME = fail(
  "invalid_argument",
  "not run: the tools of this caller take one call at a time, and another call of this message came first",
  { hint: "Call it again when you have the result of that one." },
);

const SKIPPED = fail(
  "approval_denied",
  "not run: a person held this run before the call, and decided against it",
  {
    hint: "Read their message if one follows. Otherwise say what you wanted to do, and end your turn.",
  },
);

/** An event about a tool call for live listeners. */
export interface ToolEvent {
  readonly phase: "start" | "end";
  readonly callId: string;
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly result?: string;
  readonly atMs: number;
}

export interface ToolPort {
  readonly runId: string;
  readonly attempt: number;
  readonly tools: readonly ToolSpec[];
  /** All tools, including those not offered now: an earlier attempt may have called one of them. */
  readonly everyTool: readonly ToolSpec[];
  readonly clientTools: ClientTools | undefined;
  /** Maximum size of one result in UTF-8 bytes; the rest is cut. */
  readonly maxResultBytes: number;
  readonly world: World;
  /** Returns the stored entry: the earlier result if the call already had one. */
  append(entry: Entry): Promise<Entry>;
  callTool(request: ToolCallRequest, signal: AbortSignal): Promise<ToolOutcome>;
  /** Returns whether a call that a crash interrupted had only asked for an approval. */
  awaitsApproval(callId: string): Promise<boolean>;
  /**
   * Waits before a group of calls while a person holds the run. `callId`: of the first one. `mayHaveBegun`:
   * an earlier attempt may have begun them.
   */
  pass(callId: string, mayHaveBegun: boolean): Promise<Passage>;
  onTool(event: ToolEvent): void;
}

interface PlannedCall {
  readonly index: number;
  readonly call: ToolCallBlock;
  readonly spec: ToolSpec | undefined;
}

/**
 * Answers the calls of `message` that have no result in `answered` (by the call's index). `resumed`: an
 * earlier attempt may have begun some of them. Returns false if the abort came first.
 */
export async function answerCalls(
  port: ToolPort,
  message: AssistantMessage,
  answered: ReadonlySet<number>,
  resumed: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const left = leftCalls(message, port.clientTools);
  let mayHaveBegun = resumed;
  let passage: Passage = "free";
  for (const group of groupsOf(message, port.everyTool)) {
    const open = group.filter(({ index }) => !answered.has(index) && !left.has(index));
    if (open.length === 0) continue;
    const first = callIdOf(port, message, open[0]?.index ?? 0);
    // The person decided about all calls of the message.
    if (passage !== "skipped") passage = await port.pass(first, mayHaveBegun);
    if (signal.aborted) return false;
    const how = passage === "free" ? (mayHaveBegun ? "resumed" : "new") : passage;
    await allOf(open, signal, (planned, watch) => answer(port, message, planned, how, watch));
    if (signal.aborted) return false;
    mayHaveBegun = false;
  }
  return true;
}

/** Returns the positions of the calls that the client of the run has to answer (K5). */
function leftCalls(message: AssistantMessage, tools: ClientTools | undefined): Set<number> {
  const left = new Set<number>();
  if (message.stopReason === "length") return left;
  toolCallsOf(message).forEach((call, index) => {
    const isFull = tools?.oneByOne === true && left.size > 0;
    const isReadable = call.arguments[UNREADABLE_ARGUMENTS] === undefined;
    if (isClientTool(tools, call.name) && isReadable && !isFull) left.add(index);
  });
  return left;
}

/**
 * Does `work` for adjacent calls in parallel. If one throws, the others are stopped and awaited before this
 * function throws: a resumed turn must not meet a result that is still being stored.
 */
async function allOf(
  calls: readonly PlannedCall[],
  signal: AbortSignal,
  work: (planned: PlannedCall, watch: AbortSignal) => Promise<void>,
): Promise<void> {
  const [first] = calls;
  if (first !== undefined && calls.length === 1) return work(first, signal);
  const failing = new AbortController();
  const watch = AbortSignal.any([signal, failing.signal]);
  let failure: { readonly error: unknown } | undefined;
  const stop = (error: unknown): void => {
    failure ??= { error };
    failing.abort();
  };
  await Promise.all(calls.map((planned) => work(planned, watch).catch(stop)));
  if (failure !== undefined) throw failure.error;
}

function groupsOf(message: AssistantMessage, tools: readonly ToolSpec[]): PlannedCall[][] {
  const groups: PlannedCall[][] = [];
  toolCallsOf(message).forEach((call, index) => {
    const spec = tools.find((tool) => tool.name === call.name);
    const last = groups.at(-1);
    const joins = spec?.parallel === true && last?.every((planned) => planned.spec?.parallel === true);
    if (joins && last !== undefined) last.push({ index, call, spec });
    else groups.push([{ index, call, spec }]);
  });
  return groups;
}

function callIdOf({ runId }: ToolPort, { id }: AssistantMessage, index: number): string {
  return `${runId}:${id}:${index}`;
}

/** `resumed`: an earlier attempt may have begun the call. */
async function answer(
  port: ToolPort,
  message: AssistantMessage,
  planned: PlannedCall,
  how: Exclude<Passage, "free"> | "new" | "resumed",
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const { call, index, spec } = planned;
  const callId = callIdOf(port, message, index);
  const mayHaveBegun = how === "resumed";
  const now = (): number => port.world.clock.now();
  port.onTool({ phase: "start", callId, name: call.name, arguments: call.arguments, atMs: now() });
  const isOpen = mayHaveBegun && spec?.idempotent === false && (await port.awaitsApproval(callId));
  const refusal = how === "skipped" ? SKIPPED : refusalOf(port, message, planned, mayHaveBegun && !isOpen);
  const request: ToolCallRequest = {
    callId,
    attempt: port.attempt,
    name: call.name,
    arguments: call.arguments,
  };
  const outcome =
    refusal !== undefined || spec === undefined
      ? { text: JSON.stringify(refusal === undefined ? {} : toolFailure(refusal)), isError: true }
      : await untilAborted(port.callTool(request, signal), signal);
  if (outcome === ABORTED || signal.aborted) return;
  const id = resultIdOf({ messageId: message.id, index });
  const stored = await port.append(
    resultMessage(port.world, id, call, boundOutcome(outcome, port.maxResultBytes)),
  );
  if (isCompaction(stored) || stored.role !== "toolResult") return;
  const { isError } = stored;
  port.onTool({ phase: "end", callId, name: call.name, isError, result: textOf(stored), atMs: now() });
}

/** Returns why a call is answered without running, or undefined if it runs. */
function refusalOf(
  { tools, clientTools }: ToolPort,
  message: AssistantMessage,
  planned: PlannedCall,
  mayHaveBegun: boolean,
): Failure | undefined {
  const { call, spec } = planned;
  const unreadable = call.arguments[UNREADABLE_ARGUMENTS];
  const isOffered = tools.some((tool) => tool.name === call.name);
  if (message.stopReason === "length") {
    const error = "not run: your message reached the output limit, so this call may be cut off";
    return fail("invalid_argument", error, { hint: "Try again with shorter arguments." });
  }
  if (spec === undefined || (!isOffered && !mayHaveBegun)) {
    const names = tools.map((tool) => tool.name).join(", ");
    const error = `not run: there is no tool ${quoted(call.name, NAME_CHARS_SHOWN)}`;
    return fail("unknown_tool", error, { hint: names === "" ? "You have no tools." : `You have: ${names}.` });
  }
  if (unreadable !== undefined) {
    const raw = head(String(unreadable), RAW_CHARS_SHOWN);
    const error = `not run: the arguments must be one JSON object, and these can't be read as one: ${raw}`;
    return fail("invalid_argument", error);
  }
  if (isClientTool(clientTools, call.name)) return ONE_AT_A_TIME;
  return mayHaveBegun && !spec.idempotent ? OUTCOME_UNKNOWN : undefined;
}

/** Cuts a result to its limit, with a note. */
function boundOutcome(outcome: ToolOutcome, maxBytes: number): ToolOutcome {
  const { text, details } = outcome;
  const bytes = Buffer.byteLength(text);
  const detailBytes = details === undefined ? 0 : Buffer.byteLength(JSON.stringify(details) ?? "");
  const cutDetails = detailBytes > maxBytes ? { details: { cut: `${detailBytes} bytes are left out` } } : {};
  if (bytes <= maxBytes) return { ...outcome, ...cutDetails };
  const kept = Buffer.from(text.slice(0, maxBytes))
    .subarray(0, maxBytes)
    .toString()
    .replace(/\ufffd+$/, "");
  const note = `[cut: the result has ${bytes} bytes; agents.defaults.maxToolResultBytes is ${maxBytes}]`;
  return { ...outcome, ...cutDetails, text: `${kept}\n${note}` };
}

function resultMessage(
  world: World,
  id: string,
  call: ToolCallBlock,
  outcome: ToolOutcome,
): ToolResultMessage {
  return {
    id,
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: [{ type: "text", text: outcome.text }, ...(outcome.images ?? [])],
    isError: outcome.isError,
    ...optional({ details: outcome.details }),
    timestamp: world.clock.now(),
  };
}
