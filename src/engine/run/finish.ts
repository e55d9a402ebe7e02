// Ends runs; no other code ends a run's row. One transaction writes the end, the answer to waiting callers,
// the usage, and all successors (`Successors`) (I4).
// F2: an ended run leaves a valid transcript: every tool call has exactly one result, unless the client of a
//     run that succeeded has to answer it.

import { optional } from "../../core/optional.ts";
import { clientCalls } from "../../core/rules/client-tools.ts";
import { hasMark, isSessionMessage, receiptOf, sourceOf } from "../../core/rules/receipt.ts";
import { isQuietStep, spokenText } from "../../core/rules/turn-rules.ts";
import type { Code } from "../../core/shapes/errors.ts";
import type { LiveEvent } from "../../core/shapes/event.ts";
import {
  addUsage,
  type Entry,
  injectedMessage,
  isCompaction,
  type Message,
  openCalls,
  resultIdOf,
  textOf,
  type Usage,
  ZERO_USAGE,
} from "../../core/shapes/message.ts";
import type { WorkingRevision } from "../../core/shapes/record/revision.ts";
import {
  type EndedRunState,
  isEnded,
  type ReceiptState,
  type Run,
  type RunEnd,
} from "../../core/shapes/run.ts";
import { splitRef } from "../../core/text/model-ref.ts";
import { holdForEnd } from "../../store/locks.ts";
import { addChainUsage, claimBudgetNotice } from "../../store/queries/chains/chains.ts";
import { holdRun, queuedIn, readyNext } from "../../store/queries/runs/claims.ts";
import { receiptsOf } from "../../store/queries/runs/inbox-marks.ts";
import { addUsageRow } from "../../store/queries/runs/ledger.ts";
import { keepRevisions } from "../../store/queries/runs/revisions.ts";
import { endRun } from "../../store/queries/runs/runs.ts";
import { releaseSlot } from "../../store/queries/runs/slots.ts";
import { answerWaits, giveUpWaitsOf } from "../../store/queries/runs/waits.ts";
import { addSessionUsage } from "../../store/queries/sessions/sessions.ts";
import { appendEntry } from "../../store/queries/transcripts/append.ts";
import { readRun } from "../../store/queries/transcripts/transcripts.ts";
import { together } from "../../store/transaction.ts";
import type { AbortRequest, Engine, EngineCore } from "../engine.ts";
import type { Unit } from "../unit.ts";
import type { Execution } from "./execution.ts";

export type AbortReason = Extract<Code, "run_aborted" | "session_reset" | "session_deleted">;

/** The part of the engine that successors need, in the transaction that ends their predecessor. */
export type Acceptor = Pick<Engine, "acceptIn" | "abortIn">;

/**
 * Creates what follows from the end of a run. The flows implement it, because only they know the purpose of a
 * run.
 */
export interface Successors {
  /** Called in the transaction that ends `run`. `answered`: a caller waited for it and got the outcome. */
  runEnded(acceptor: Acceptor, unit: Unit, run: Run, answered: boolean): Promise<void>;
  /**
   * Called when a waiting client has disconnected and the run has ended, so the client did not get the
   * outcome.
   */
  answerLost(acceptor: Acceptor, unit: Unit, run: Run): Promise<void>;
  /**
   * Called in the transaction that aborts all work of a session, or one run. Cancels the jobs that this work
   * started, and returns the runs that it ended.
   */
  cancelBelow(acceptor: Acceptor, unit: Unit, aborted: AbortRequest): Promise<readonly string[]>;
  /** Called once per chain, in the transaction in which its budget first keeps a run from starting. */
  budgetUsedUp(
    acceptor: Acceptor,
    unit: Unit,
    refused: Pick<Run, "sessionKey" | "chainId" | "hop">,
    error: string,
  ): Promise<void>;
}

export interface EndFacts {
  readonly state: EndedRunState;
  readonly reply?: string;
  readonly code?: Code;
  readonly error?: string;
  /** Default: the sum over the run's messages. */
  readonly usage?: Usage;
  /** Tokens in the model's context at the last call. Absent if unchanged. */
  readonly contextTokens?: number;
  /** `<provider>/<model>`. Default: the model of the run's last message. */
  readonly model?: string;
  /** Returns the text of an unfinished message to keep. Called while the transaction holds the run. */
  readonly unfinishedText?: () => string;
  /**
   * Like `unfinishedText`, but received from the process that executes the run, which may have stored it
   * since.
   */
  readonly heardText?: string;
  readonly revision?: WorkingRevision | undefined;
}

/** Thrown into an execution whose lane was taken over, or whose row has ended. */
export class LostLane extends Error {}

/** Publishes a state of the message that this run delivered, if it delivered one. */
export function publishReceipt(
  unit: Unit,
  run: Pick<Run, "runId" | "sessionKey" | "flow" | "input">,
  state: ReceiptState,
  code?: string,
): void {
  const from = sourceOf(run.input);
  if (!isSessionMessage(run) || from === undefined) return;
  const { runId, sessionKey } = run;
  unit.publish({ kind: "receipt", runId, sessionKey, from, state, atMs: unit.now, ...optional({ code }) });
}

/** Publishes that an entry was added to the transcript of this run. */
export function publishMessage(unit: Unit, run: Run, message: Entry): void {
  if (isCompaction(message)) return;
  const { sessionKey, sessionId, runId, route } = run;
  unit.publish({ kind: "message", runId, sessionKey, sessionId, ...optional({ route }), message });
}

/**
 * Returns whether this text is already stored as a message, because a commit succeeded but its answer was
 * lost.
 */
function isKept(messages: readonly Message[], hasOpenCalls: boolean, text: string): boolean {
  const last = messages.findLast((message) => message.role === "assistant");
  if (last === undefined || (!hasOpenCalls && last !== messages.at(-1))) return false;
  return textOf(last).startsWith(text);
}

/**
 * Returns the unfinished text to keep. Text from another process is left out if any message already contains
 * it.
 */
function unfinishedOf({ unfinishedText, heardText = "" }: EndFacts, messages: readonly Message[]): string {
  if (unfinishedText !== undefined) return spokenText(unfinishedText());
  const heard = spokenText(heardText);
  const isWritten = messages.some((one) => one.role === "assistant" && textOf(one).startsWith(heard));
  return isWritten ? "" : heard;
}

/**
 * Answers open tool calls, so that the next model call finds a valid transcript (F2), and appends the
 * unfinished text.
 */
async function closeTranscript(
  unit: Unit,
  run: Run,
  facts: EndFacts,
  messages: readonly Message[],
  text: string,
): Promise<void> {
  if (run.kind !== "turn" || run.startedAt === undefined) return;
  const { sessionKey, sessionId, runId } = run;
  const left = clientCalls({ ...run, state: facts.state }, messages).map(resultIdOf);
  const open = openCalls(messages).filter((placed) => !left.includes(resultIdOf(placed)));
  for (const { call, ...place } of open) {
    const entry = {
      id: resultIdOf(place),
      role: "toolResult" as const,
      toolCallId: call.id,
      toolName: call.name,
      content: [
        { type: "text" as const, text: `The run ended (${facts.state}) before this call was answered.` },
      ],
      isError: true,
      timestamp: unit.now,
    };
    await appendEntry(unit.tx, { sessionKey, sessionId, runId, entry }, unit.redactor);
    publishMessage(unit, run, entry);
  }
  if (text === "" || isKept(messages, open.length > 0, text) || isQuietStep(run.flow?.step)) return;
  const stopReason = facts.state === "error" ? "error" : "aborted";
  const entry = injectedMessage(unit.newOrderedId(), text, unit.now, stopReason);
  await appendEntry(unit.tx, { sessionKey, sessionId, runId, entry }, unit.redactor);
  publishMessage(unit, run, entry);
}

/**
 * Ends the runs whose messages this run has read between two steps (`takeSteering`), in a transaction that
 * holds the session.
 */
export async function endTaken(unit: Unit, reader: Run, facts: EndFacts, parts: EngineCore): Promise<void> {
  for (const taken of await queuedIn(unit.tx, reader.sessionKey)) {
    if (taken.input.takenBy === reader.runId) await endInUnit(unit, taken, facts, parts);
  }
}

function usageOf(messages: readonly Message[]): { usage: Usage; model?: string } {
  let usage = ZERO_USAGE;
  let model: string | undefined;
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    usage = addUsage(addUsage(usage, message.usage), message.earlierUsage ?? ZERO_USAGE);
    model = `${message.provider}/${message.model}`;
  }
  return model === undefined ? { usage } : { usage, model };
}

async function countUsage(unit: Unit, run: Run, facts: EndFacts, usage: Usage): Promise<void> {
  const hasFailed = facts.state === "error" || facts.state === "timeout";
  await addSessionUsage(unit.tx, run, {
    at: unit.now,
    aborted: facts.state === "aborted",
    // The session shows the failure until its next turn ends.
    failedRun: run.kind === "turn" ? (hasFailed ? run.runId : "") : undefined,
    systemSent: run.kind === "turn" && run.startedAt !== undefined,
    input: usage.input + usage.cacheRead + usage.cacheWrite,
    output: usage.output,
    total: usage.totalTokens,
    contextUsed: facts.contextTokens,
    cost: usage.cost.total,
  });
}

function endEvent(run: Run): Extract<LiveEvent, { kind: "run_ended" }> {
  return {
    kind: "run_ended",
    runId: run.runId,
    sessionKey: run.sessionKey,
    sessionId: run.sessionId,
    chainId: run.chainId,
    state: isEnded(run.state) ? run.state : "error",
    text: spokenText(run.reply ?? ""),
    usage: run.usage,
    endedAt: run.endedAt ?? run.acceptedAt,
    ...optional({ code: run.code, error: run.error, startedAt: run.startedAt }),
    ...(run.flow === undefined ? {} : { flowStep: run.flow.step }),
    ...optional({ takenBy: run.input.takenBy }),
  };
}

/** Publishes an end that is stored, unless this process has published it before. */
export function publishEnd(
  run: Run,
  { bus, watch }: Pick<EngineCore, "bus" | "watch">,
  publish = bus.publish,
): void {
  if (!isEnded(run.state)) return;
  watch.noteEnd(run.runId, run);
  if (bus.hasEnded(run.runId)) return;
  publish(endEvent(run));
  publish({ kind: "session", sessionKey: run.sessionKey, change: "state" });
}

/** Writes the changes that the end of a run makes in other rows. Returns whether a wait was answered. */
async function settleRows(
  unit: Unit,
  run: Run,
  facts: EndFacts,
  { usage, model }: { readonly usage: Usage; readonly model?: string },
): Promise<boolean> {
  const { runId, sessionKey, agentId } = run;
  // The store may not have the inputs of the run yet.
  const fresh = facts.revision?.rows.length === 0 ? undefined : facts.revision;
  if (fresh !== undefined) unit.after(() => fresh.noteStored());
  // A run that only wrote a message into an inbox is not an answer to that message.
  const isOutcome = run.kind === "turn" || facts.state !== "ok";
  const [answered = false] = await together(
    isOutcome ? answerWaits(unit.tx, runId, unit.now) : undefined,
    giveUpWaitsOf(unit.tx, runId),
    countUsage(unit, run, facts, usage),
    model === undefined || usage.totalTokens === 0
      ? undefined
      : addUsageRow(unit.tx, { runId, sessionKey, agentId, ...splitRef(model), usage, at: unit.now }),
    addChainUsage(unit.tx, run.chainId, usage, unit.now),
    fresh && keepRevisions(unit.tx, fresh.rows, unit.now),
    run.startedAt === undefined ? undefined : releaseSlot(unit.tx, runId),
    readyNext(unit.tx, run.sessionKey, unit.now),
  );
  return answered;
}

/** Returns the texts that an agent wrote in these messages, without silent ones and notes of the runtime. */
export function spokenTexts(messages: readonly Message[]): string[] {
  return messages
    .filter((message) => message.role === "assistant" && message.stopReason !== "injected")
    .map((message) => spokenText(textOf(message)))
    .filter((text) => text !== "");
}

/** Returns the reply of a run. If the run failed, this is the text that the model had written last. */
function replyOf(
  { state, reply }: EndFacts,
  messages: readonly Message[],
  unfinished: string,
): string | undefined {
  if (reply !== undefined) return spokenText(reply) || reply;
  if (state !== "error" && state !== "timeout") return undefined;
  return spokenText(unfinished) || spokenTexts(messages).at(-1);
}

/**
 * Returns the changes of an ended run's row, and the usage that is added to other rows (session, ledger,
 * chain).
 */
function endOf(unit: Unit, facts: EndFacts, messages: readonly Message[], unfinished = "") {
  const end: RunEnd = {
    state: facts.state,
    endedAt: unit.now,
    ...optional({
      reply: replyOf(facts, messages, unfinished),
      code: facts.code,
      error: facts.error,
    }),
  };
  const told = usageOf(messages);
  const more = { model: facts.model ?? told.model, revision: facts.revision?.hash };
  return { end, usage: facts.usage ?? told.usage, ...optional(more) };
}

/** Reports once, to the root session of a chain, that the chain's budget has ended a run. */
async function publishBudgetRefusal(
  unit: Unit,
  run: Run,
  { code, error = "" }: EndFacts,
  { successors, acceptor }: EngineCore,
): Promise<void> {
  // A message whose reader was refused has not begun.
  if (code !== "chain_limit" || run.startedAt === undefined) return;
  if (await claimBudgetNotice(unit.tx, run.chainId))
    await successors.budgetUsedUp(acceptor, unit, run, error);
}

/**
 * Writes the end of a run. With `execution`, the end is fenced: throws `LostLane` if the execution does not
 * hold the run. Without it, the transaction holds the run's sessions (`holdForEnd`) and its row (`holdRun`).
 * Does nothing if the transaction has ended the run before.
 */
export async function endInUnit(
  unit: Unit,
  run: Run,
  facts: EndFacts,
  parts: EngineCore,
  execution?: Execution,
): Promise<void> {
  const { tx, ended } = unit;
  if (ended.has(run.runId)) return;
  ended.add(run.runId);
  const holding = execution && holdForEnd(tx, run);
  // The end of a run whose usage and model are known reads nothing, so all its statements are sent together.
  const isKnown = facts.usage !== undefined && facts.model !== undefined && facts.state === "ok";
  const isWhole = facts.unfinishedText === undefined && facts.heardText === undefined;
  const isPlain = execution?.hasFinal() === true && isKnown && isWhole;
  let messages: readonly Message[] = [];
  if (!isPlain) {
    await together(holding, execution && holdRun(tx, run.runId));
    await execution?.writeFinal(unit);
    if (run.startedAt !== undefined) messages = await readRun(tx, run.runId);
  }
  const unfinished = unfinishedOf(facts, messages);
  const row = endOf(unit, facts, messages, unfinished);
  const [isStored, , answered] = await together(
    endRun(tx, run.runId, row, execution?.fence),
    isPlain ? execution.writeFinal(unit) : closeTranscript(unit, run, facts, messages, unfinished),
    settleRows(unit, run, facts, row),
    holding,
  );
  if (!isStored) throw new LostLane(`run ${run.runId} has ended, or another process holds it`);
  if (messages.some((one) => one.role === "user" && one.steered === true)) {
    const state = facts.state === "ok" ? "error" : facts.state;
    const error = "the run that had read this message ended before its model answered it";
    await endTaken(unit, run, { state, code: facts.code ?? "run_failed", error }, parts);
  }
  const { end, ...more } = row;
  const after: Run = { ...run, ...end, ...more };
  await parts.successors.runEnded(parts.acceptor, unit, after, answered);
  const isForPeer = after.kind === "turn" && hasMark(after);
  const receipt = isForPeer
    ? (await receiptsOf(unit.tx, [after])).get(after.runId)
    : receiptOf({ run: after });
  if (receipt !== undefined) publishReceipt(unit, after, receipt.state, receipt.code);
  const text = spokenText(facts.reply ?? unfinished);
  unit.publish({ ...endEvent(after), text });
  unit.publish({ kind: "session", sessionKey: after.sessionKey, change: "state" });
  unit.after(() => parts.watch.noteEnd(after.runId, after));
  unit.after(() => parts.look());
  await publishBudgetRefusal(unit, run, facts, parts);
}
