// Owns the metrics of this process, and their form for Prometheus. docs/MONITORING.md lists them.
// ME1: a label never has the name of a person, an agent or a session: only states, codes, kinds, and names of
// tools, models and MCP servers from the configuration or the program.
// ME2: this process counts its own events; counts from the store cover every process (`GaugeReadings`).

import type { ModelCall } from "../../agent/model/model.ts";
import { outsidePrefix } from "../../core/rules/tool-policy.ts";
import { CODES } from "../../core/shapes/errors.ts";
import type { EndedRunState } from "../../core/shapes/run.ts";
import { splitRef } from "../../core/text/model-ref.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Bus } from "../../engine/bus.ts";
import { toolNames } from "../../tools/catalog.ts";
import { isOutsideName } from "../../tools/mcp/names.ts";
import type { ToolAnswered } from "../../tools/tool.ts";
import type { LoopDelay, ProcessWatch } from "../../world/process.ts";
import type { Clock } from "../../world.ts";
import { Counter, Histogram, type Sample } from "./figures.ts";
import type { StoreReadings } from "./service.ts";
import { exposition, type Metric } from "./text.ts";

/**
 * Histogram bounds in seconds: `SHORT_S` for work of this machine, `LONG_S` for waits on people and models.
 */
const SHORT_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const LONG_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600];

const ENDED_STATES: readonly EndedRunState[] = ["ok", "error", "timeout", "aborted"];

/** Tools that can access another session. Their refusals are counted by code. */
const REACHING = ["sessions_send", "sessions_spawn"];

/** Values that are read at scrape time instead of counted. */
export interface GaugeReadings {
  /** Absent if the store does not answer. */
  readonly store?: StoreReadings;
  readonly connections: number;
}

interface MetricsParts {
  readonly clock: Clock;
  readonly process: ProcessWatch;
  readonly redactor: Redactor;
  readonly version: string;
  /** Names of the configured MCP servers. */
  readonly servers: readonly string[];
}

type Gauged = readonly (readonly [labels: Sample["labels"], value: number | undefined])[];

/** Returns values with a label, by the label's value. */
const by = (label: string, ...rows: readonly [string, number | undefined][]): Gauged =>
  rows.map(([name, value]) => [{ [label]: name }, value]);

/** Returns a metric that is read at scrape time. A value of undefined means that it is unknown. */
function gauge(name: string, help: string, given: number | undefined | Gauged): Metric {
  const rows = typeof given === "object" ? given : [[{}, given] as const];
  const samples = rows.flatMap(([labels, value]) => (value === undefined ? [] : [{ value, labels }]));
  return { name, help, type: "gauge", samples };
}

export class Metrics {
  readonly runsEnded = new Counter({
    name: "parley_runs_ended_total",
    help: "Runs that ended in this process, by the state in which they ended.",
    labels: ["state"],
  });
  readonly runSeconds: Histogram;
  readonly queueSeconds: Histogram;
  readonly modelCalls = new Counter({
    name: "parley_model_calls_total",
    help: "Model calls that ended, by provider, model and outcome.",
    labels: ["provider", "model", "outcome"],
  });
  readonly modelSeconds: Histogram;
  readonly tokens = new Counter({
    name: "parley_tokens_total",
    help: "Tokens of model calls, by provider, model and kind.",
    labels: ["provider", "model", "kind"],
  });
  readonly cost = new Counter({
    name: "parley_cost_usd_total",
    help: "Cost of model calls in US dollars, as far as prices are configured, by provider, model and kind.",
    labels: ["provider", "model", "kind"],
  });
  readonly deliveriesSettled = new Counter({
    name: "parley_deliveries_settled_total",
    help: "Deliveries of texts to people that this process finished, by kind and by state.",
    labels: ["what", "state"],
  });
  readonly eventsDropped = new Counter({
    name: "parley_hook_events_dropped_total",
    help: "Events for outgoing web hooks that were dropped because too many were waiting, by hook.",
    labels: ["hook"],
  });
  readonly refusals = new Counter({
    name: "parley_refusals_total",
    help: "Sends and spawns that were refused or failed, by tool and by code.",
    labels: ["tool", "code"],
  });
  readonly toolCalls = new Counter({
    name: "parley_tool_calls_total",
    help: "Tool calls that were answered, by tool (all tools of an MCP server count as one) and by outcome.",
    labels: ["tool", "outcome"],
  });
  readonly commitSeconds: Histogram;
  readonly #parts: MetricsParts;
  readonly #toolNames = new Set(toolNames());
  readonly #startedAt: number;
  #loop: LoopDelay | undefined;

  constructor(parts: MetricsParts) {
    const { clock } = parts;
    const now = (): number => clock.monotonic();
    const histogram = (name: string, help: string, bounds: readonly number[], labels: string[] = []) =>
      new Histogram({ name, help, labels }, bounds, now);
    this.#parts = parts;
    this.#startedAt = clock.now();
    // Count from 0: Prometheus can compute a rate only if it has seen a value before the first run ends.
    for (const state of ENDED_STATES) this.runsEnded.add(0, state);
    const run = "Seconds from the start of a run to its end, waits included.";
    this.runSeconds = histogram("parley_run_seconds", run, LONG_S);
    const queue = "Seconds from the acceptance of a run to its start.";
    this.queueSeconds = histogram("parley_run_queue_seconds", queue, LONG_S);
    const call = "Seconds of a model call up to the whole message, retries included.";
    this.modelSeconds = histogram("parley_model_call_seconds", call, LONG_S, ["provider", "model"]);
    const commit = "Seconds of a transaction of the engine, including the wait for a connection.";
    this.commitSeconds = histogram("parley_store_commit_seconds", commit, SHORT_S);
  }

  close(): void {
    this.#parts.process.stop();
  }

  /** Counts this process's events on the event bus. */
  follow(bus: Bus): () => void {
    return bus.subscribe((event, here) => {
      if (!here) return;
      if (event.kind === "run_started" && event.queuedMs !== undefined) {
        this.queueSeconds.observe(event.queuedMs / 1000);
      } else if (event.kind === "run_ended") {
        this.runsEnded.add(1, event.state);
        if (event.startedAt === undefined) return;
        this.runSeconds.observe(Math.max(0, event.endedAt - event.startedAt) / 1000);
      } else if (event.kind === "delivery") {
        this.deliveriesSettled.add(1, event.what, event.state);
      }
    });
  }

  readonly committed = (ms: number): void => this.commitSeconds.observe(ms / 1000);

  readonly modelCalled = ({ ref, outcome, ms, usage }: ModelCall): void => {
    const { provider, model: name } = splitRef(ref);
    // A model's name may look like a key (I14).
    const model = [provider, this.#parts.redactor.mask(name)];
    this.modelCalls.add(1, ...model, outcome);
    this.modelSeconds.observe(ms / 1000, ...model);
    if (usage === undefined) return;
    for (const kind of ["input", "output", "cacheRead", "cacheWrite"] as const) {
      this.tokens.add(usage[kind], ...model, kind);
      this.cost.add(usage.cost[kind], ...model, kind);
    }
  };

  readonly eventDropped = (program: string): void => this.eventsDropped.add(1, program);

  /** Counts an answered tool call, of any caller. */
  readonly toolAnswered: ToolAnswered = (name, { status, code }) => {
    const failed = status === "error" || status === "forbidden";
    this.toolCalls.add(1, this.#toolLabel(name), failed ? String(status) : "ok");
    if (!failed || !REACHING.includes(name)) return;
    this.refusals.add(1, name, Object.hasOwn(CODES, String(code)) ? String(code) : "other");
  };

  /**
   * Measures the delay of the event loop since the last call. Only one caller may use it, at even intervals.
   */
  measureLoop(): LoopDelay | undefined {
    this.#loop = this.#parts.process.loopDelay();
    return this.#loop;
  }

  residentBytes(): number {
    return this.#parts.process.use().residentBytes;
  }

  /** Returns the text for Prometheus. */
  text(readings: GaugeReadings): string {
    const counted = [
      this.runsEnded,
      this.runSeconds,
      this.queueSeconds,
      this.modelCalls,
      this.modelSeconds,
      this.tokens,
      this.cost,
      this.deliveriesSettled,
      this.eventsDropped,
      this.refusals,
      this.toolCalls,
      this.commitSeconds,
    ].map((figure): Metric => ({ ...figure.spec, type: figure.type, samples: figure.samples() }));
    return exposition([...counted, ...this.#gauges(readings)]);
  }

  #gauges({ store, connections }: GaugeReadings): Metric[] {
    const { process, version } = this.#parts;
    const { residentBytes, heapUsedBytes, cpuSeconds } = process.use();
    const { queued, running, waiting, slots } = store?.load ?? {};
    const { pending, failed } = store?.deliveries ?? {};
    const { p50, p99, max } = this.#loop ?? {};
    const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
    const cpu = gauge("process_cpu_seconds_total", "CPU time of this process, user and system.", cpuSeconds);
    return [
      gauge(
        "parley_runs",
        "Unfinished runs of the store, by state.",
        by("state", ["queued", queued], ["running", running], ["waiting", waiting]),
      ),
      gauge("parley_slots", "Runs that may execute at the same time, in the whole deployment.", slots?.max),
      gauge("parley_slots_taken", "Slots that are taken, in the whole deployment.", slots?.taken),
      gauge("parley_lanes", "Sessions with unfinished runs, in the store.", store?.lanes.busy),
      gauge(
        "parley_lane_runs_max",
        "Unfinished runs of the session that has the most of them.",
        store?.lanes.longest,
      ),
      gauge("parley_waits_open", "Runs and callers that wait for a run, in the store.", store?.openWaits),
      gauge(
        "parley_deliveries",
        "Deliveries of the store that wait, or failed and were not dismissed.",
        by("state", ["pending", pending], ["failed", failed]),
      ),
      gauge("parley_connections", "Clients that are connected to this process.", connections),
      gauge(
        "parley_event_loop_delay_seconds",
        "Recent delay of the event loop, in seconds.",
        by("quantile", ["0.5", seconds(p50)], ["0.99", seconds(p99)], ["1", seconds(max)]),
      ),
      gauge("parley_info", "This program.", by("version", [version, 1])),
      { ...cpu, type: "counter" },
      gauge("process_resident_memory_bytes", "Memory of this process.", residentBytes),
      gauge("process_heap_bytes", "Memory that JavaScript objects of this process use.", heapUsedBytes),
      gauge(
        "process_start_time_seconds",
        "Time at which this process began to measure, in seconds since 1970.",
        this.#startedAt / 1000,
      ),
    ];
  }

  #toolLabel(name: string): string {
    if (this.#toolNames.has(name)) return name;
    if (!isOutsideName(name)) return "unknown";
    const server = this.#parts.servers.find((one) => name.startsWith(outsidePrefix(one)));
    return server === undefined ? "unknown" : `${outsidePrefix(server)}*`;
  }
}
