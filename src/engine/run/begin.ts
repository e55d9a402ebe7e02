// Begins a run: checks that it may start, writes its input to the transcript once, and publishes its start.

import { optional } from "../../core/optional.ts";
import { crashedTooOften, isCrashed } from "../../core/rules/crash-policy.ts";
import { hasMark, isSessionMessage } from "../../core/rules/receipt.ts";
import type { Code } from "../../core/shapes/errors.ts";
import { injectedMessage, type Message, type UserMessage } from "../../core/shapes/message.ts";
import { endsWithResult, type Run } from "../../core/shapes/run.ts";
import { getChain } from "../../store/queries/chains/chains.ts";
import { usageOfDay } from "../../store/queries/runs/ledger.ts";
import { appendEntry } from "../../store/queries/transcripts/append.ts";
import { readRun } from "../../store/queries/transcripts/transcripts.ts";
import type { Unit } from "../unit.ts";
import { type AcceptLimits, dailyBudgetOf, hasChainBudget, withinBudget } from "./accept.ts";
import { type EndFacts, publishMessage, publishReceipt } from "./finish.ts";

/** Returns the end of a run that was never executed. */
export function failRun(error: string, code: Code = "run_failed"): EndFacts {
  return { state: "error", code, error };
}

/** Returns the run's input as a message of the transcript. */
export function inputMessage(unit: Unit, run: Run): UserMessage {
  const { input, runId } = run;
  return {
    // The sender knows its message by the id of the run that delivers it (`core/shapes/run.ts`).
    id: isSessionMessage(run) ? runId : unit.newOrderedId(),
    role: "user",
    content: [{ type: "text", text: input.text }, ...(input.images ?? [])],
    timestamp: unit.now,
    ...optional({ provenance: input.provenance, senderName: input.senderName }),
  };
}

/** Writes the run's input to the transcript, unless an earlier attempt did. */
export async function writeInput(unit: Unit, run: Run): Promise<void> {
  if (run.attempt > 1 && (await readRun(unit.tx, run.runId)).length > 0) return;
  const { sessionKey, sessionId, runId } = run;
  for (const entry of inputEntries(unit, run)) {
    await appendEntry(unit.tx, { sessionKey, sessionId, runId, entry }, unit.redactor);
    publishMessage(unit, run, entry);
  }
}

function inputEntries(unit: Unit, run: Run): Message[] {
  const { injected, text, results = [] } = run.input;
  if (injected === true) return [injectedMessage(unit.newOrderedId(), text, unit.now)];
  const given = results.map((result) => ({ ...result, timestamp: unit.now }));
  return endsWithResult(run.input) ? given : [...given, inputMessage(unit, run)];
}

/** Publishes that a run was claimed. */
export function publishStart(unit: Unit, run: Run): void {
  const { runId, chainId, sessionKey } = run;
  const startedAt = run.startedAt ?? unit.now;
  const flowStep = run.flow === undefined ? {} : { flowStep: run.flow.step };
  const queued = run.attempt > 1 ? {} : { queuedMs: Math.max(0, startedAt - run.acceptedAt) };
  if (run.attempt === 1 && !hasMark(run)) publishReceipt(unit, run, "offered");
  unit.publish({ kind: "run_started", runId, sessionKey, chainId, startedAt, ...queued, ...flowStep });
  unit.publish({ kind: "session", sessionKey, change: "state" });
}

/**
 * Returns why a run must not start: its row is damaged, it crashed too often, or the budget of its agent or
 * of its chain is used up.
 */
export async function refusalOf(unit: Unit, run: Run, limits: AcceptLimits): Promise<EndFacts | undefined> {
  if (run.input.unreadable === true) {
    return failRun("the stored message of this run is damaged and can't be read; send it again");
  }
  if (isCrashed(run)) {
    const { code, error, hint } = crashedTooOften(run.crashes);
    return failRun(`${error}. ${hint}`, code);
  }
  // A run that has begun checks its budgets before each model call (`spending.ts`).
  if (run.startedAt !== undefined) return undefined;
  const day = await dailyRefusal(unit, run.agentId, limits);
  if (day !== undefined || !hasChainBudget(limits, run.input)) return day;
  const budget = withinBudget(await getChain(unit.tx, run.chainId), limits);
  return budget.ok ? undefined : failRun(budget.error, "chain_limit");
}

/** Returns when a begun run times out (ms since 1970). Undefined: never. */
export function limitAt({ startedAt = 0, timeoutMs }: Run): number | undefined {
  return timeoutMs === 0 ? undefined : startedAt + timeoutMs;
}

/** Returns the refusal if the agent has used up its daily budget. */
async function dailyRefusal(
  unit: Unit,
  agentId: string,
  limits: AcceptLimits,
): Promise<EndFacts | undefined> {
  const budget = dailyBudgetOf(limits, agentId);
  if (budget === undefined) return undefined;
  const { dailyTokens = Number.POSITIVE_INFINITY, dailyCost = Number.POSITIVE_INFINITY } = budget;
  const used = await usageOfDay(unit.tx, agentId, unit.now);
  const tell = (what: string, key: string, value: number): EndFacts => {
    const text = `agent "${agentId}" has used ${what} today, and its ${key} is ${value}`;
    return failRun(`${text}; its next run can start after 00:00 UTC, or with a higher budget`, "budget_used");
  };
  if (used.totalTokens >= dailyTokens) return tell(`${used.totalTokens} tokens`, "dailyTokens", dailyTokens);
  if (used.cost >= dailyCost) return tell(`${used.cost.toFixed(4)} USD`, "dailyCost", dailyCost);
  return undefined;
}
