// Reads a record as a script: what each run got and wrote, and when.

import { CHILDREN_WAIT_SECONDS } from "../../../contract/tools/sessions.ts";
import { fieldsOf, jsonOf, listOf } from "../../../core/json.ts";
import { isOverBudget } from "../../../core/rules/budget.ts";
import type { PromptPart } from "../../../core/rules/prompt/prompt.ts";
import {
  type AssistantMessage,
  type Compaction,
  isCompaction,
  resultIdOf,
  type ToolCallBlock,
  type ToolResultMessage,
  textOf,
  toolCallsOf,
} from "../../../core/shapes/message.ts";
import type { ChainRecord, RecordedEntry, RecordedFlow } from "../../../core/shapes/record/chain.ts";
import type { RunInputs } from "../../../core/shapes/record/revision.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { Settings } from "../../../core/shapes/settings/settings.ts";
import type { ToolCallRequest, ToolSpec } from "../../../core/shapes/tool.ts";
import { waitLimit } from "../../../tools/arguments.ts";
import { compareAcceptance, inLaneOrder, inStoredOrder } from "./order.ts";

/** An entry that a model wrote, or the note after its provider refused a part of the history. */
export type Product = (AssistantMessage | Compaction) & { readonly at: number };

export interface ScriptedRun {
  /** Position in the record. */
  readonly index: number;
  readonly run: Run;
  readonly entries: readonly RecordedEntry[];
  readonly products: readonly Product[];
  /** Results of tool calls, by the ids of their messages. */
  readonly results: ReadonlyMap<string, ToolResultMessage>;
  /** The unfinished text that the end of the run kept. */
  readonly partial: string;
  readonly inputs: RunInputs | undefined;
}

export interface JobWaits {
  readonly jobs: readonly RecordedFlow[];
  readonly beganAt: number;
}

export interface CancelledJob {
  readonly flow: RecordedFlow;
  /** Whether this call ended it, and not another call at the same time. */
  readonly isOwn: boolean;
}

const limitOf = waitLimit(CHILDREN_WAIT_SECONDS);

/** Returns whether an outside event began the run, and not another run of the chain. */
export function isOrigin({ input, flow, callId }: Run): boolean {
  const kind = input.provenance?.kind;
  return flow === undefined && callId === undefined && kind !== "notice" && kind !== "inter_session";
}

/**
 * Returns a name of what begins a run: a tool call, a turn of a flow, or a message of this kind to a session
 * (appended ones match after the turns). A run of the replay has the same name as its recorded run.
 */
function causeOf({ callId, flow, input, kind, sessionKey }: Run, toRecord = (text: string) => text): string {
  if (callId !== undefined) return `call ${toRecord(callId)}`;
  const session = toRecord(sessionKey);
  if (flow !== undefined) return `${flow.step} ${flow.turn} of ${toRecord(flow.flowId)} in ${session}`;
  return `${input.provenance?.kind} as ${kind} in ${session}`;
}

/** Returns whether a budget that was used up kept a run from starting. */
export function wasRefused({ run, products }: Pick<ScriptedRun, "run" | "products">): boolean {
  const isUnstarted = run.revision === undefined && products.length === 0;
  return isOverBudget(run) && isUnstarted && run.kind === "turn";
}

function callsOf({ run, products }: ScriptedRun): [string, ToolCallBlock][] {
  return products.flatMap((product) =>
    isCompaction(product)
      ? []
      : toolCallsOf(product).map((call, index): [string, ToolCallBlock] => [
          `${run.runId}:${resultIdOf({ messageId: product.id, index })}`,
          call,
        ]),
  );
}

export class Script {
  readonly record: ChainRecord;
  readonly runs: readonly ScriptedRun[];
  /** Times of refused sends and spawns, by the ids of the calls. */
  readonly refused: ReadonlyMap<string, number>;
  /** Jobs of sub-agents that calls cancelled, by the ids of the calls. */
  readonly cancels: ReadonlyMap<string, readonly CancelledJob[]>;
  /** Waits for jobs of sub-agents, by the ids of the calls. */
  readonly jobWaits: ReadonlyMap<string, JobWaits>;
  readonly #byId: ReadonlyMap<string, ScriptedRun>;
  readonly #byCause: ReadonlyMap<string, readonly ScriptedRun[]>;
  readonly #revisions: ReadonlyMap<string, unknown>;
  /** Settings of the runs whose inputs are not recorded. */
  readonly #settings: Settings | undefined;
  #places: Map<string, number> | undefined;

  constructor(record: ChainRecord, settings?: Settings) {
    this.record = record;
    this.#settings = settings;
    this.#revisions = new Map(record.revisions.map(({ hash, body }) => [hash, body]));
    const ofRun = Map.groupBy(inStoredOrder(record.entries), ({ runId }) => runId);
    this.runs = inLaneOrder(record.runs).map((run, index) =>
      this.#scriptRun(run, index, ofRun.get(run.runId) ?? []),
    );
    this.#byId = new Map(this.runs.map((one) => [one.run.runId, one]));
    const accepted = this.runs.toSorted((one, other) => compareAcceptance(one.run, other.run));
    this.#byCause = Map.groupBy(accepted, ({ run }) => causeOf(run));
    this.cancels = this.#cancels();
    this.jobWaits = this.#jobWaits();
    this.refused = new Map(record.refusals.map(({ callId, at }) => [callId, at]));
  }

  /** Returns the id of the recorded call that a result answers. */
  callIdOf(resultId: string): string {
    return `${this.record.entries[this.placeOf(resultId) ?? -1]?.runId}:${resultId}`;
  }

  /** Returns the position of an entry, by its message id or by its number from 1. */
  placeOf(step: string): number | undefined {
    const { entries } = this.record;
    this.#places ??= new Map(entries.map(({ entry }, place) => [entry.id, place]));
    const place = this.#places.get(step) ?? (/^\d+$/.test(step) ? Number(step) - 1 : -1);
    return place >= 0 && place < entries.length ? place : undefined;
  }

  /** Returns the recorded runs that can correspond to a run of the replay, in the order of acceptance. */
  runsLike(run: Run, toRecord: (text: string) => string): readonly ScriptedRun[] {
    const same = this.#byId.get(run.runId);
    if (same !== undefined) return [same];
    // A notice to a person, for example that a budget is used up, is a chain of its own.
    if (isOrigin(run) || run.chainId !== this.record.chainId) return [];
    return this.#byCause.get(causeOf(run, toRecord)) ?? [];
  }

  hasBegun(callId: string): boolean {
    return this.#byCause.has(`call ${callId}`);
  }

  /** Returns the inputs of a recorded run of the same agent, for a run that is not in the record. */
  inputsLike(run: Run): RunInputs | undefined {
    const like = this.runs.filter((one) => one.run.agentId === run.agentId && one.inputs !== undefined);
    return (like.find((one) => one.run.flow?.step === run.flow?.step) ?? like[0])?.inputs;
  }

  #cancels(): Map<string, CancelledJob[]> {
    const spawns = this.record.flows.filter(({ kind }) => kind === "spawn");
    const jobs = new Map(spawns.map((flow) => [flow.targetKey, flow]));
    const targets = new Map(this.runs.map(({ run }) => [run.runId, run.sessionKey]));
    const calls = this.runs.flatMap(({ run, results }) =>
      [...results.values()].flatMap((result) => {
        if (result.toolName !== "subagents") return [];
        const { cancelled, runIds } = fieldsOf(jsonOf(textOf(result)));
        const flows = listOf(cancelled).flatMap((key) => jobs.get(String(key)) ?? []);
        const stopped = new Set(listOf(runIds).map((runId) => targets.get(String(runId))));
        return [{ callId: `${run.runId}:${result.id}`, flows, stopped }];
      }),
    );
    // Of several calls that found a job, the one that stopped its runs ended it.
    const endedBy = (flow: RecordedFlow) => {
      const found = calls.filter(({ flows }) => flows.includes(flow));
      return found.find(({ stopped }) => stopped.has(flow.targetKey)) ?? found[0];
    };
    return new Map(
      calls
        .filter(({ flows }) => flows.length > 0)
        .map((call) => [call.callId, call.flows.map((flow) => ({ flow, isOwn: endedBy(flow) === call }))]),
    );
  }

  #jobWaits(): Map<string, JobWaits> {
    const jobs = new Map(this.record.flows.map((flow) => [flow.flowId, flow]));
    const calls = new Map(this.runs.flatMap(callsOf));
    const found = new Map<string, JobWaits>();
    const waits = this.record.waits.filter(({ flowId }) => flowId !== undefined);
    for (const [callId, rows] of Map.groupBy(waits, (wait) => wait.callId)) {
      const waitedFor = rows.flatMap(({ flowId = "" }) => jobs.get(flowId) ?? []);
      const limit = limitOf(calls.get(callId)?.arguments.timeoutSeconds, "timeoutSeconds");
      const [row] = rows;
      if (row === undefined || waitedFor.length < rows.length || !limit.ok) continue;
      found.set(callId, { jobs: waitedFor, beganAt: row.deadlineAt - limit.value * 1000 });
    }
    return found;
  }

  #scriptRun(run: Run, index: number, entries: readonly RecordedEntry[]): ScriptedRun {
    const products: Product[] = [];
    const results = new Map<string, ToolResultMessage>();
    let partial = "";
    for (const { entry, at } of entries) {
      if (isCompaction(entry)) products.push({ ...entry, at });
      else if (entry.role === "toolResult") results.set(entry.id, entry);
      else if (entry.role === "assistant" && entry.omits !== undefined) products.push({ ...entry, at });
      else if (entry.role === "assistant" && entry.provider === "parley") partial = textOf(entry);
      else if (entry.role === "assistant" && (entry.provider !== "parley" || entry.stopReason === "injected"))
        products.push({ ...entry, at });
    }
    // The end of a run stores its last answer, some time after the model gave it.
    const last = products.at(-1);
    const isFinal = last !== undefined && entries.at(-1)?.entry.id === last.id && run.state !== "aborted";
    if (isFinal && run.endedAt !== undefined) products.splice(-1, 1, { ...last, at: run.endedAt });
    const inputs = run.revision === undefined ? undefined : this.#revisions.get(run.revision);
    return { index, run, entries, products, results, partial, inputs: inputs as RunInputs | undefined };
  }

  /**
   * Returns whether a call really runs, because its effects are inside the replay. The list of sub-agents has
   * those of other chains, too, and a call that found nothing to wait for or to cancel only read: these come
   * from the record.
   */
  reallyRuns({ name, arguments: args }: ToolCallRequest, callId: string): boolean {
    if (name !== "subagents") return name === "sessions_send" || name === "sessions_spawn";
    return (
      (args.action === "cancel" && this.cancels.has(callId)) ||
      (args.action === "wait" && this.jobWaits.has(callId))
    );
  }

  /** Returns the settings with which a run worked, or undefined if they are not kept. */
  settingsOf({ inputs }: ScriptedRun): Settings | undefined {
    if (inputs === undefined) return this.#settings;
    return this.#revisions.get(inputs.settings) as Settings | undefined;
  }

  toolsOf(inputs: RunInputs): readonly ToolSpec[] {
    const hashes = (this.#revisions.get(inputs.tools) ?? []) as readonly string[];
    return hashes.flatMap((hash) => (this.#revisions.get(hash) as ToolSpec | undefined) ?? []);
  }

  promptOf(inputs: RunInputs): readonly PromptPart[] {
    return inputs.prompt.flatMap((hash) => (this.#revisions.get(hash) as PromptPart | undefined) ?? []);
  }

  #isKept({ tools, prompt }: RunInputs): boolean {
    const hashes = (this.#revisions.get(tools) ?? [tools]) as readonly string[];
    return [tools, ...hashes, ...prompt].every((hash) => this.#revisions.has(hash));
  }

  /** Returns why the chain cannot be replayed, or undefined if it can. */
  refusal(): string | undefined {
    if (this.runs.length === 0) return "it has no runs";
    const external = this.record.sessions.find(({ session }) => session.external);
    if (external !== undefined)
      return `session ${external.session.key} belongs to an outside program, whose messages are not recorded`;
    for (const one of this.runs) {
      const why = this.#refusalOf(one);
      if (why !== undefined) return why;
    }
    return undefined;
  }

  #refusalOf(one: ScriptedRun): string | undefined {
    const { run, entries } = one;
    const name = `run ${run.runId} of ${run.sessionKey}`;
    if (run.code === "session_reset" || run.code === "session_deleted")
      return `its session ${run.sessionKey} was reset or deleted during the chain`;
    if (run.kind !== "turn" || wasRefused(one)) return undefined;
    if (run.startedAt !== undefined && entries.length === 0 && run.input.takenBy === undefined)
      return `the transcript of ${name} was deleted`;
    if (run.callId !== undefined && run.input.results !== undefined)
      return `${name} began with results of calls that its client ran`;
    if (run.callId !== undefined && run.parentRunId === undefined)
      return `${name} began with a call of an outside program`;
    const settings = this.settingsOf(one);
    if (run.code === "run_crashed") return `its process died before the prompt of ${name} was stored`;
    const lost = `the prompt and the settings of ${name} are not kept any longer (store.recordDays)`;
    if (settings === undefined) {
      // A run that was stopped before its first model call has no inputs.
      return run.startedAt === undefined || (run.state === "aborted" && one.products.length === 0)
        ? undefined
        : lost;
    }
    if (one.inputs !== undefined && !this.#isKept(one.inputs)) return lost;
    if (settings.agents.some(({ id, runtime }) => id === run.agentId && runtime !== undefined))
      return `agent ${run.agentId} is outside of the gateway`;
    for (const product of one.products) {
      const calls = isCompaction(product) ? [] : toolCallsOf(product);
      const spawns = calls.filter((call) => call.name === "sessions_spawn");
      if (spawns.some((call) => call.arguments.attachments !== undefined))
        return `${name} spawned a sub-agent with attachments, whose contents are not recorded`;
      if (spawns.some((call) => call.arguments.thread === true))
        return `${name} spawned a sub-agent with a thread of a channel`;
    }
    return undefined;
  }
}

export function resultOf(one: ScriptedRun, messageId: string, index: number): ToolResultMessage | undefined {
  return one.results.get(resultIdOf({ messageId, index }));
}
