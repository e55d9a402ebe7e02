// Traces runs, their model calls and tool calls, by the OpenTelemetry conventions for generative AI.
// docs/MONITORING.md lists the attributes.
// TR1: one chain is one trace, across sessions, processes and restarts (span.ts). A trace is sent completely
// or not at all.
// A run is one span, from its first start to its end, sent by the process that ended it; its model and tool
// calls are sent by the process that made them.
// All text is redacted here, and text of people, agents and tools is only sent with `content` (I14).
// TR4: tracing never delays a run or makes it fail.

import type { ToolEvent } from "../agent/loop/tool-calls.ts";
import type { ModelOutcome, ModelPort, ModelRequest } from "../agent/model/model.ts";
import { evictOldest } from "../core/bounded.ts";
import { optional } from "../core/optional.ts";
import { sourceKinds } from "../core/rules/labels/labels.ts";
import { CODES } from "../core/shapes/errors.ts";
import type { LiveEvent } from "../core/shapes/event.ts";
import type { Labels } from "../core/shapes/labels.ts";
import type { Usage } from "../core/shapes/message.ts";
import type { Run } from "../core/shapes/run.ts";
import type { Settings, TraceSettings } from "../core/shapes/settings/settings.ts";
import { head } from "../core/text/cut.ts";
import { splitRef } from "../core/text/model-ref.ts";
import type { Bus } from "../engine/bus.ts";
import { getRunInChain } from "../store/queries/labels.ts";
import type { Db } from "../store/sql.ts";
import type { World } from "../world.ts";
import { shownArguments, shownMessages, shownText } from "./content.ts";
import { missingLibraries } from "./libraries.ts";
import { parentSpanOf } from "./lineage.ts";
import { type Exporter, SpanQueue } from "./queue.ts";
import { type Attribute, callSpanId, modelSpanId, runSpanId, type Span, traceIdOf } from "./span.ts";

/** Maximum number of runs of this process that are kept until their end event. */
const RUNS_MAX = 2_000;
/** Maximum number of ended runs whose span is not built yet. */
const LOOKUPS_MAX = 1_000;
const NAME_CHARS_MAX = 128;
/** Maximum characters of a tool's failure that is parsed for an error code. */
const FAILURE_CHARS_MAX = 20_000;

type Attributes = Record<string, Attribute | undefined>;
type RunEnded = Extract<LiveEvent, { kind: "run_ended" }>;
type ToolSeen = Pick<ToolEvent, "phase" | "callId" | "name" | "isError" | "result" | "atMs"> & {
  readonly arguments?: unknown;
};

export interface RunTrace {
  /** Wraps a model port to trace its calls. */
  port(port: ModelPort): ModelPort;
  tool(event: ToolSeen): void;
  /** Called when this process has finished or parked the attempt. */
  left(): void;
}

export interface Traces {
  /** Returns undefined if this run's chain is not traced. */
  forRun(run: Run): RunTrace | undefined;
  /** Records the runs that end. */
  follow(bus: Bus, db: Db): void;
  /** Exports the remaining spans, within a time limit. */
  close(): Promise<void>;
}

/**
 * Decides from the trace's id whether it is sent, so that all processes and attempts decide in the same way.
 */
function isSampled(traceId: string, ratio: number): boolean {
  return ratio >= 1 || Number.parseInt(traceId.slice(0, 8), 16) / 2 ** 32 < ratio;
}

/** Providers whose name in the OpenTelemetry conventions differs from their name here. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { google: "gcp.gemini" };

function modelAttributes(ref: string | undefined): Attributes {
  if (ref === undefined) return {};
  const { provider, model } = splitRef(ref);
  const name = Object.hasOwn(PROVIDER_NAMES, provider) ? PROVIDER_NAMES[provider] : provider;
  return { "gen_ai.provider.name": name, "gen_ai.request.model": model };
}

function usageAttributes(usage: Usage | undefined): Attributes {
  if (usage === undefined || usage.totalTokens === 0) return {};
  const { input, output, cacheRead, cacheWrite, cost } = usage;
  return {
    "gen_ai.usage.input_tokens": input + cacheRead + cacheWrite,
    "gen_ai.usage.output_tokens": output,
    "gen_ai.usage.cache_read.input_tokens": cacheRead > 0 ? cacheRead : undefined,
    "gen_ai.usage.cache_creation.input_tokens": cacheWrite > 0 ? cacheWrite : undefined,
    "parley.cost_usd": cost.total > 0 ? cost.total : undefined,
  };
}

/** Attributes of every span of a run. A session key may contain a phone number, so it counts as content. */
function runAttributes(run: Run, content: boolean): Attributes {
  const { agentId, sessionId, sessionKey, runId, chainId, hop, flow } = run;
  return {
    "gen_ai.agent.id": agentId,
    "gen_ai.conversation.id": sessionId,
    "parley.session_key": content ? sessionKey : undefined,
    "parley.run_id": runId,
    "parley.chain_id": chainId,
    "parley.hop": hop,
    "parley.flow_id": flow?.flowId,
    "parley.flow_step": flow?.step,
    "parley.flow_turn": flow?.turn,
  };
}

/** Attributes of what a chain had read when a run ended: kinds of sources, because a name may be a number. */
function labelAttributes({ outside, private: hidden }: Labels = {}): Attributes {
  return {
    "parley.outside": outside && sourceKinds(outside),
    "parley.private": hidden === undefined ? undefined : true,
  };
}

/** Returns the error code of a tool's failure. Text of MCP tools is not used as a code. */
function failureCode(result: string): string {
  if (result.length > FAILURE_CHARS_MAX) return "tool_error";
  try {
    const { code } = JSON.parse(result) as { code?: unknown };
    return typeof code === "string" && Object.hasOwn(CODES, code) ? code : "tool_error";
  } catch {
    return "tool_error";
  }
}

function toldOf(outcome: ModelOutcome) {
  const partial = "partial" in outcome ? outcome.partial : undefined;
  const message = outcome.kind === "message" ? outcome.message : partial;
  const error = "error" in outcome ? outcome.error : undefined;
  return { message, error };
}

class OtelTraces implements Traces {
  readonly #settings: TraceSettings;
  readonly #world: World;
  readonly #queue: SpanQueue;
  /** Runs that this process has executed, until their end event. */
  readonly #runs = new Map<string, { readonly run: Run; readonly open: Map<string, ToolSeen> }>();
  #lookups = 0;
  #looked: Promise<void> = Promise.resolve();
  #unfollow: () => void = () => {};

  constructor(settings: TraceSettings, world: World, exporter: Exporter) {
    this.#settings = settings;
    this.#world = world;
    this.#queue = new SpanQueue({ clock: world.clock, log: world.log, exporter });
  }

  forRun(run: Run): RunTrace | undefined {
    if (!isSampled(traceIdOf(run.chainId), this.#settings.sampleRatio)) return undefined;
    const open = new Map<string, ToolSeen>();
    this.#runs.delete(run.runId);
    this.#runs.set(run.runId, { run, open });
    evictOldest(this.#runs, RUNS_MAX);
    return {
      port: (port) => ({
        call: async (request, onText, signal, log) => {
          const startMs = this.#world.clock.now();
          const from = this.#world.clock.monotonic();
          const outcome = await port.call(request, onText, signal, log);
          this.#tellModel(run, request, outcome, {
            startMs,
            endMs: startMs + (this.#world.clock.monotonic() - from),
          });
          return outcome;
        },
      }),
      tool: (event) => {
        const begun = open.get(event.callId);
        if (event.phase === "start") open.set(event.callId, event);
        if (event.phase === "start" || begun === undefined) return;
        open.delete(event.callId);
        const { isError, result = "" } = event;
        const code = isError === true ? failureCode(result) : undefined;
        this.#tellTool(run, begun, { endMs: event.atMs, result, ...optional({ code }) });
      },
      // The run's next attempt traces the calls that are still open.
      left: () => open.clear(),
    };
  }

  follow(bus: Bus, db: Db): void {
    this.#unfollow = bus.subscribe((event, here) => {
      if (event.kind !== "run_ended") return;
      const known = this.#runs.get(event.runId);
      this.#runs.delete(event.runId);
      for (const begun of known?.open.values() ?? []) {
        const code = event.code ?? event.state;
        this.#tellTool(known?.run, begun, { endMs: event.endedAt, code });
      }
      known?.open.clear();
      if (!here || !isSampled(traceIdOf(event.chainId), this.#settings.sampleRatio)) return;
      if (this.#lookups >= LOOKUPS_MAX) {
        this.#queue.drop(1, "more runs end than can be looked up in the store");
        return;
      }
      this.#lookups += 1;
      const told = this.#tellRun(db, event, known?.run);
      this.#looked = Promise.all([this.#looked, told]).then(() => {});
    });
  }

  async close(): Promise<void> {
    this.#unfollow();
    await this.#looked;
    await this.#queue.close();
  }

  /** Sends a span; redacts every text in it. */
  #tell(span: Omit<Span, "attributes"> & { readonly attributes: Attributes }): void {
    const masked = Object.entries(span.attributes).flatMap(([name, value]) => {
      if (value === undefined) return [];
      return [[name, typeof value === "string" ? this.#world.redactor.mask(value) : value] as const];
    });
    const name = head(this.#world.redactor.mask(span.name), NAME_CHARS_MAX);
    this.#queue.add({ ...span, name, attributes: Object.fromEntries(masked) });
  }

  #describeFailure(words: string | undefined): NonNullable<Span["failed"]> {
    return this.#settings.content && words !== undefined
      ? { words: shownText(words, this.#world.redactor) }
      : {};
  }

  #tellModel(
    run: Run,
    request: ModelRequest,
    outcome: ModelOutcome,
    times: Pick<Span, "startMs" | "endMs">,
  ): void {
    const { content } = this.#settings;
    const { redactor } = this.#world;
    const { ref, settings } = request.model;
    const { message, error } = toldOf(outcome);
    this.#tell({
      traceId: traceIdOf(run.chainId),
      spanId: modelSpanId(this.#world.ids.uuid()),
      ...times,
      parentSpanId: runSpanId(run.runId),
      name: `chat ${settings.id}`,
      kind: "client",
      attributes: {
        "gen_ai.operation.name": "chat",
        ...modelAttributes(ref),
        ...runAttributes(run, content),
        "parley.attempt": run.attempt,
        ...usageAttributes(message?.usage),
        "gen_ai.response.finish_reasons": message === undefined ? undefined : [message.stopReason],
        "gen_ai.input.messages": content ? shownMessages(request.entries, redactor) : undefined,
        "gen_ai.output.messages":
          content && message !== undefined ? shownMessages([message], redactor) : undefined,
        "error.type": outcome.kind === "message" ? undefined : `model_${outcome.kind}`,
      },
      ...(outcome.kind === "message" ? {} : { failed: this.#describeFailure(error) }),
    });
  }

  #tellTool(
    run: Run | undefined,
    begun: ToolSeen,
    end: { readonly endMs: number; readonly result?: string; readonly code?: string },
  ): void {
    if (run === undefined) return;
    const { content } = this.#settings;
    const { redactor } = this.#world;
    const name = head(begun.name, NAME_CHARS_MAX);
    this.#tell({
      traceId: traceIdOf(run.chainId),
      spanId: callSpanId(run.runId, begun.callId),
      parentSpanId: runSpanId(run.runId),
      name: `execute_tool ${name}`,
      kind: "internal",
      startMs: begun.atMs,
      endMs: end.endMs,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": begun.callId,
        ...runAttributes(run, content),
        "parley.attempt": run.attempt,
        "gen_ai.tool.call.arguments": content ? shownArguments(begun.arguments, redactor) : undefined,
        "gen_ai.tool.call.result":
          content && end.result !== undefined ? shownText(end.result, redactor) : undefined,
        "error.type": end.code,
      },
      ...(end.code === undefined ? {} : { failed: this.#describeFailure(undefined) }),
    });
  }

  async #tellRun(db: Db, event: RunEnded, executed: Run | undefined): Promise<void> {
    try {
      // Takes these values from the event, because the run's row may already be deleted together with its
      // session.
      const { runId, state, code, error, usage, endedAt } = event;
      const facts = { state, usage, endedAt, ...optional({ code }) };
      const inChain = await getRunInChain(db, runId);
      const run = inChain?.run ?? (executed && ({ ...executed, ...facts } as Run));
      if (run === undefined || run.kind !== "turn") return;
      const parentSpanId = await parentSpanOf(db, run);
      this.#tell({
        traceId: traceIdOf(run.chainId),
        spanId: runSpanId(runId),
        ...optional({ parentSpanId }),
        name: `invoke_agent ${run.agentId}`,
        kind: "internal",
        startMs: run.startedAt ?? run.acceptedAt,
        endMs: endedAt,
        attributes: {
          ...this.#runFacts(run, state),
          ...labelAttributes(inChain?.labels),
        },
        ...(state === "ok" ? {} : { failed: this.#describeFailure(error) }),
      });
    } catch (error) {
      const { runId, sessionKey, chainId } = event;
      const about = { runId, sessionKey, chainId };
      this.#world.log.debug({ err: error, ...about }, "a run could not be read for its trace");
      this.#queue.drop(1, "the store could not be read");
    } finally {
      this.#lookups -= 1;
    }
  }

  #runFacts(run: Run, state: RunEnded["state"]): Attributes {
    const { content } = this.#settings;
    const { redactor } = this.#world;
    const { input, reply, startedAt, acceptedAt } = run;
    const asked = { role: "user" as const, content: [{ type: "text" as const, text: input.text }] };
    const said = { role: "assistant" as const, content: [{ type: "text" as const, text: reply ?? "" }] };
    return {
      "gen_ai.operation.name": "invoke_agent",
      ...modelAttributes(run.model),
      ...runAttributes(run, content),
      "parley.attempt": run.attempt,
      "parley.run_state": state,
      "parley.queue_ms": startedAt === undefined ? undefined : Math.max(0, startedAt - acceptedAt),
      "parley.steered_into": input.takenBy,
      ...usageAttributes(run.usage),
      "gen_ai.input.messages": content ? shownMessages([asked], redactor) : undefined,
      "gen_ai.output.messages": content && reply !== undefined ? shownMessages([said], redactor) : undefined,
      "error.type": state === "ok" ? undefined : (run.code ?? state),
    };
  }
}

/**
 * Opens traces by the settings. Returns undefined if they are disabled, or if their libraries are missing,
 * which is logged.
 */
export async function openTraces(
  settings: Settings,
  world: World,
  version: string,
): Promise<Traces | undefined> {
  if (settings.traces === undefined) return undefined;
  const missing = missingLibraries();
  if (missing !== undefined) {
    world.log.error({}, missing);
    return undefined;
  }
  const { openOtlp } = await import("./otlp.ts");
  const exporter = openOtlp(settings.traces, { version, instanceId: world.ids.uuid() });
  return new OtelTraces(settings.traces, world, exporter);
}
