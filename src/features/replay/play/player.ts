// Plays the parts of models and tools in a replay. Each answer comes from the record, at its recorded time
// and in its recorded order. Calls of session tools really run.

import { untilAborted } from "../../../agent/loop/abort.ts";
import { asksForSummary } from "../../../agent/loop/compaction.ts";
import {
  FAILURE_CODES,
  type ModelOutcome,
  type ModelPort,
  type ModelRequest,
} from "../../../agent/model/model.ts";
import { fieldsOf, isObject, jsonOf, listOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import type { ModelBudget } from "../../../core/rules/budget.ts";
import { labelsOfResult } from "../../../core/rules/labels/steps.ts";
import { CONTEXT_TITLE } from "../../../core/rules/prompt/prompt.ts";
import type { Code } from "../../../core/shapes/errors.ts";
import type { Labels } from "../../../core/shapes/labels.ts";
import {
  type Entry,
  isCompaction,
  type ToolResultMessage,
  textOf,
  type Usage,
  ZERO_USAGE,
} from "../../../core/shapes/message.ts";
import { SESSION_PLACE } from "../../../core/shapes/record/revision.ts";
import type { Variation } from "../../../core/shapes/record/variation.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { ToolCallRequest, ToolOutcome } from "../../../core/shapes/tool.ts";
import { limitAt } from "../../../engine/run/begin.ts";
import type { EndFacts } from "../../../engine/run/finish.ts";
import type { Offer, ReallyCall, TurnHooks } from "../../../execute.ts";
import type { ReplayOutcome } from "../contract.ts";
import { IdPairs } from "./ids.ts";
import { Live, type LiveParts } from "./live.ts";
import {
  type CancelledJob,
  type Product,
  resultOf,
  type Script,
  type ScriptedRun,
  wasRefused,
} from "./script.ts";

class Gates {
  readonly #open = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();

  open(name: string): void {
    this.#open.add(name);
    for (const resume of this.#waiting.get(name) ?? []) resume();
    this.#waiting.delete(name);
  }

  isOpen(name: string): boolean {
    return this.#open.has(name);
  }

  wait(name: string): Promise<void> {
    if (this.#open.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      const others = this.#waiting.get(name) ?? [];
      this.#waiting.set(name, [...others, resolve]);
    });
  }
}

/** A step in which the replay did something else than the record. */
export type Difference = NonNullable<ReplayOutcome["difference"]> & {
  /** Time of the step, by the record's clock. */
  readonly at: number;
};

const NOTHING = "(nothing)";
const DENIED: Code = "label_denied";

interface PlayerParts {
  readonly now: () => number;
  /** Marks the session and the chain of a run with the labels that a call brought. */
  readonly mark: (run: Run, callId: string, labels: Labels) => Promise<void>;
  readonly vary?: { readonly variation: Variation; readonly parts: LiveParts };
}

export class Player implements TurnHooks {
  readonly ids = new IdPairs();
  readonly gates = new Gates();
  readonly differences: Difference[] = [];
  readonly port: ModelPort;
  readonly live: Live | undefined;
  readonly #script: Script;
  readonly #now: () => number;
  readonly #mark: PlayerParts["mark"];
  /** Recorded runs, by the id of the replayed run. */
  readonly #matches = new Map<string, ScriptedRun | undefined>();
  readonly #taken = new Set<ScriptedRun>();
  /** The run that each transcript's session executes. */
  readonly #playing = new Map<string, Run>();
  /** Number of products that each recorded run has given. */
  readonly #given = new Map<ScriptedRun, number>();

  constructor(script: Script, { now, mark, vary }: PlayerParts) {
    this.live = vary && new Live(script, this.ids, vary.variation, vary.parts);
    this.#script = script;
    this.#now = now;
    this.#mark = mark;
    this.port = { call: (request, onText, signal) => this.#answer(request, onText, signal) };
  }

  begins(run: Run): void {
    this.#playing.set(run.sessionId, run);
  }

  /** Returns the recorded run that corresponds to a replayed one, if there is one. */
  match(run: Run): ScriptedRun | undefined {
    if (this.#matches.has(run.runId)) return this.#matches.get(run.runId);
    const alike = this.#script.runsLike(run, (text) => this.ids.toRecord(text));
    const found = alike.find((one) => !this.#taken.has(one));
    this.#matches.set(run.runId, found);
    if (found !== undefined) {
      this.#taken.add(found);
      for (const name of ["runId", "sessionKey", "sessionId"] as const)
        this.ids.pair(run[name], found.run[name]);
      this.ids.pair(run.flow?.flowId, found.run.flow?.flowId);
    }
    return found;
  }

  #differs({ runId, sessionKey }: Run, step: string, expected: string, got: string): void {
    const names = { runId: this.ids.toRecord(runId), sessionKey: this.ids.toRecord(sessionKey) };
    this.differences.push({ at: this.#now(), ...names, step, expected, got });
  }

  offer(run: Run, made: Offer, { sessionKey, context }: { sessionKey: string; context?: string }): Offer {
    const inputs = this.match(run)?.inputs ?? (this.live && this.#script.inputsLike(run));
    if (inputs === undefined)
      return { ...made, parts: this.live?.prompt(run.agentId, made.parts) ?? made.parts };
    const recorded = this.#script.promptOf(inputs).map((part) => {
      const text = this.ids.toReplay(part.text.replaceAll(SESSION_PLACE, () => sessionKey));
      return { ...part, text };
    });
    const own = this.live?.prompt(run.agentId, recorded) ?? recorded;
    const parts = context === undefined ? own : [...own, { title: CONTEXT_TITLE, text: context.trim() }];
    return { ...made, parts, tools: this.#script.toolsOf(inputs) };
  }

  #isReal(run: Run): boolean {
    const one = this.match(run);
    return this.live?.isReal(run, one, (one && this.#given.get(one)) ?? 0) === true;
  }

  /** Limits a budget to the calls of real models. The record says which other calls it refused. */
  budgetOf(run: Run, budget: ModelBudget): ModelBudget {
    const reserve: ModelBudget["reserve"] = async (call, spent) => {
      if (this.#isReal(run)) return budget.reserve(call, spent);
      return { kind: "fits", maxOutputTokens: call.maxOutputTokens, reserved: { tokens: 0, cost: 0 } };
    };
    return { ...budget, reserve };
  }

  async #answer(
    request: ModelRequest,
    onText: Parameters<ModelPort["call"]>[1],
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    const run = this.#playing.get(request.sessionId);
    const one = run && this.match(run);
    if (run !== undefined && this.live !== undefined && this.#isReal(run))
      return this.live.port.call(request, onText, signal);
    if (one === undefined) {
      if (run !== undefined) this.#differs(run, "run", NOTHING, "a run that is not in the record");
      return { kind: "failed", error: "this run is not in the record" };
    }
    const at = this.#given.get(one) ?? 0;
    const product = one.products[at];
    const summary = asksForSummary(request.entries);
    const unexpected = product === undefined ? one.run.state === "ok" : isCompaction(product) !== summary;
    if (run !== undefined && this.live !== undefined && unexpected) {
      this.live.leave(run);
      return this.live.port.call(request, onText, signal);
    }
    if (product === undefined) return this.#end(one, onText, signal);
    if (isCompaction(product) && !summary)
      return { kind: "overflow", error: "the request was too long in the record" };
    if (summary && !isCompaction(product)) {
      this.#differs(one.run, `model call ${at + 1}`, "an answer", "a summary of older messages");
      return { kind: "failed", error: "the record has no answer to this call" };
    }
    const came = await untilAborted(this.gates.wait(`answer ${one.index} ${at}`), signal);
    if (typeof came === "symbol") return { kind: "aborted" };
    this.#given.set(one, at + 1);
    if (!isCompaction(product) && product.omits !== undefined)
      return { kind: "refused", part: product.omits, error: "the provider refused it in the record" };
    return { kind: "message", message: this.#message(one, product) };
  }

  #message(one: ScriptedRun, product: Product) {
    if (isCompaction(product)) {
      const text = this.ids.toReplay(product.summary);
      const by = { api: "replay", provider: "replay", model: "replay", stopReason: "stop" };
      const content = [{ type: "text" as const, text }];
      const usage = summaryUsage(one);
      return { role: "assistant" as const, content, timestamp: product.timestamp, ...by, usage };
    }
    const { id: _, at: __, ...message } = product;
    return this.ids.valueToReplay(message);
  }

  /** Returns the recorded end of a run that a used-up budget kept from starting. */
  refusalOf(run: Run): EndFacts | undefined {
    const one = this.match(run);
    if (one === undefined || !wasRefused(one)) return undefined;
    const { code, error = "" } = one.run;
    return { state: "error", error: this.ids.toReplay(error), ...optional({ code }) };
  }

  /** Answers that a failed run discarded are not in the record: their usage is only in its sum. */
  spent(run: Run): Usage | undefined {
    return this.live?.hasLeft(run) === true ? undefined : this.match(run)?.run.usage;
  }

  /** Returns when a run times out: if it did so in the record, at that time, a little after its limit. */
  limitAt(run: Run): number | undefined {
    const recorded = this.match(run)?.run;
    if (recorded === undefined || this.live !== undefined) return limitAt(run);
    return recorded.state === "timeout" ? recorded.endedAt : undefined;
  }

  /** Ends a run whose record has no further answer. */
  async #end(
    one: ScriptedRun,
    onText: Parameters<ModelPort["call"]>[1],
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    const { state, error = "", code } = one.run;
    if (state === "ok") {
      this.#differs(one.run, `model call ${one.products.length + 1}`, NOTHING, "another model call");
      return { kind: "failed", error: "the record has no answer to this call" };
    }
    if (one.partial !== "") onText({ offset: 0, text: this.ids.toReplay(one.partial) });
    const ended = state === "error" ? this.gates.wait(`end ${one.index}`) : new Promise<void>(() => {});
    if (typeof (await untilAborted(ended, signal)) === "symbol") return { kind: "aborted" };
    const known = FAILURE_CODES.find((one) => one === code);
    return { kind: "failed", error: this.ids.toReplay(error), ...optional({ code: known }) };
  }

  /** Returns the recorded result of a call of the last message, by the id of the call or of its result. */
  #recordedResult(one: ScriptedRun, id: string): ToolResultMessage | undefined {
    const [messageId = "", index = "0"] = id.split(":").slice(-2);
    const message = one.products[(this.#given.get(one) ?? 1) - 1];
    this.ids.pair(messageId, message?.id);
    return resultOf(one, message?.id ?? "", Number(index));
  }

  /** Waits until the record's time has come to store this entry: results have the order of the record. */
  async beforeAppend(run: Run, entry: Entry, signal: AbortSignal): Promise<void> {
    if (isCompaction(entry) || entry.role !== "toolResult" || this.live?.hasLeft(run) === true) return;
    const one = this.match(run);
    const recorded = one && this.#recordedResult(one, entry.id);
    if (recorded !== undefined) await untilAborted(this.gates.wait(`result ${recorded.id}`), signal);
  }

  /** Holds a run that was stopped in the record until it is stopped here: it was stopped before its end. */
  async beforeEnd(run: Run, signal: AbortSignal): Promise<void> {
    const state = this.match(run)?.run.state;
    if (this.live?.hasLeft(run) === true || (state !== "aborted" && state !== "timeout")) return;
    await untilAborted(new Promise(() => {}), signal);
  }

  async call(run: Run, request: ToolCallRequest, really: ReallyCall): Promise<ToolOutcome> {
    const one = this.match(run);
    if (this.live?.hasLeft(run))
      return this.live.call(request, really, (result) => this.#recallAnswer(run, request, result));
    if (one === undefined) return really();
    const recorded = this.#recordedResult(one, request.callId);
    const callId = this.ids.toRecord(request.callId);
    const isLive = this.live?.isLive(request.name) === true;
    // An owner who is not here denied it.
    const isDenied = recorded !== undefined && fieldIn(textOf(recorded), "code") === DENIED;
    if (!isLive && (isDenied || !this.#script.reallyRuns(request, callId)))
      return recorded === undefined ? new Promise(() => {}) : this.#recallAnswer(run, request, recorded);
    const outcome = await (isLive ? this.live?.track(really()) : this.#reallyRun(request, callId, really));
    if (outcome === undefined || recorded === undefined) return outcome ?? really();
    const compared = this.#compareOutcome(one, recorded, outcome);
    if (this.ids.toRecord(compared.text) !== textOf(recorded)) this.live?.leave(run);
    return compared;
  }

  /** Runs a session tool at its recorded time. */
  async #reallyRun(request: ToolCallRequest, callId: string, really: ReallyCall): Promise<ToolOutcome> {
    const { cancels, jobWaits, refused } = this.#script;
    const jobs = cancels.get(callId);
    if (jobs !== undefined) return this.#cancel(request, jobs, really);
    const wait = jobWaits.get(callId);
    if (wait !== undefined || refused.has(callId) || this.#script.hasBegun(callId))
      await this.gates.wait(`call ${callId}`);
    if (wait === undefined) return really();
    // Calls of the same message can spawn more sub-agents, which the recorded call did not see.
    const { sessionKey: _, ...args } = request.arguments;
    return really({ ...args, sessionKeys: wait.jobs.map(({ targetKey }) => this.ids.toReplay(targetKey)) });
  }

  /** Cancels each job at its recorded time, because a call that cancels several takes some time. */
  async #cancel(
    request: ToolCallRequest,
    jobs: readonly CancelledJob[],
    really: ReallyCall,
  ): Promise<ToolOutcome> {
    const [cancelled, runIds]: unknown[][] = [[], []];
    for (const { flow, isOwn } of jobs) {
      const { flowId, targetKey, endReason } = flow;
      const isCancelled = endReason === "cancelled";
      if (isCancelled) await this.gates.wait(`cancel ${flowId}`);
      if (!isCancelled || !isOwn) {
        // The job ended by itself, or by another call, at the same time.
        cancelled?.push(this.ids.toReplay(targetKey));
        continue;
      }
      const outcome = await really({ ...request.arguments, sessionKey: this.ids.toReplay(targetKey) });
      const result = fieldsOf(jsonOf(outcome.text));
      if (outcome.isError) return outcome;
      cancelled?.push(...listOf(result.cancelled));
      runIds?.push(...listOf(result.runIds));
    }
    return { text: JSON.stringify({ status: "ok", cancelled, runIds }), isError: false };
  }

  /** Answers a call from the record, and marks what the recorded call brought. */
  async #recallAnswer(run: Run, request: ToolCallRequest, recorded: ToolResultMessage): Promise<ToolOutcome> {
    const { content, isError, details, id } = recorded;
    const call = { ...request, callId: this.#script.callIdOf(id) };
    const text = isError ? undefined : textOf(recorded);
    const labels = labelsOfResult(this.#script.record.labels, call, text);
    if (labels !== undefined) await this.#mark(run, request.callId, labels);
    const images = content.filter((block) => block.type === "image");
    return {
      text: this.ids.toReplay(textOf(recorded)),
      isError,
      ...(images.length === 0 ? {} : { images }),
      ...(details === undefined ? {} : { details: this.ids.valueToReplay(details) }),
    };
  }

  /**
   * Checks the outcome of a session tool. A refusal may name sessions outside of the chain, so only its code
   * is compared.
   */
  #compareOutcome(one: ScriptedRun, recorded: ToolResultMessage, outcome: ToolOutcome): ToolOutcome {
    const expected = textOf(recorded);
    for (const name of ["runId", "childSessionKey"])
      this.ids.pair(fieldIn(outcome.text, name), fieldIn(expected, name));
    const got = this.ids.toRecord(outcome.text);
    if (got === expected) return outcome;
    if (recorded.toolName === "subagents" && got === this.#inOwnOrder(expected))
      return { ...outcome, text: this.ids.toReplay(expected) };
    const isSame = (field: string): boolean => fieldIn(expected, field) === fieldIn(outcome.text, field);
    // A run that a call no longer waits for may end shortly before or after its result is written.
    const isLate = recorded.toolName === "sessions_send" && fieldIn(expected, "status") === "timeout";
    if ((recorded.isError && isSame("code")) || (isLate && isSame("status")))
      return { ...outcome, text: this.ids.toReplay(expected) };
    this.#differs(one.run, `result of ${recorded.toolName}`, expected, got);
    return outcome;
  }

  /**
   * Returns the recorded result of a wait with its jobs in the order of the replay's ids. Spawns of parallel
   * calls make their ids at the same time, so the recorded order can be another one.
   */
  #inOwnOrder(expected: string): string {
    const { results, unfinished, ...rest } = fieldsOf(jsonOf(expected));
    const ids = new Map(this.#script.record.flows.map((flow) => [flow.targetKey, flow.flowId]));
    const placeOf = (row: unknown): string =>
      this.ids.toReplay(ids.get(String(fieldsOf(row).sessionKey)) ?? "");
    const sortRows = (rows: unknown): unknown[] =>
      [...listOf(rows)].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    return JSON.stringify({ ...rest, results: sortRows(results), unfinished: sortRows(unfinished) });
  }
}

function fieldIn(text: string, name: string): string | undefined {
  const value = jsonOf(text);
  const field = isObject(value) ? value[name] : undefined;
  return typeof field === "string" ? field : undefined;
}

/** Returns the usage of a run's first summary: that of the run, without that of its answers. */
function summaryUsage({ run, products }: ScriptedRun): Usage {
  if (products.filter(isCompaction).length !== 1) return ZERO_USAGE;
  const answers = products.flatMap((product) => (isCompaction(product) ? [] : [product.usage]));
  const rest = (of: (usage: Usage) => number): number =>
    of(run.usage) - answers.reduce((sum, usage) => sum + of(usage), 0);
  return {
    input: rest((usage) => usage.input),
    output: rest((usage) => usage.output),
    cacheRead: rest((usage) => usage.cacheRead),
    cacheWrite: rest((usage) => usage.cacheWrite),
    totalTokens: rest((usage) => usage.totalTokens),
    cost: {
      input: rest((usage) => usage.cost.input),
      output: rest((usage) => usage.cost.output),
      cacheRead: rest((usage) => usage.cost.cacheRead),
      cacheWrite: rest((usage) => usage.cost.cacheWrite),
      total: rest((usage) => usage.cost.total),
    },
  };
}
