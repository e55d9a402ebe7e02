// Keeps the metrics of the last hour in memory: one value of each metric every ten seconds.
// HI1: the number of points is limited: the oldest are dropped first. The history is lost when the process
// ends.
// An unmeasurable value is a gap (null), never a zero.

import type { Timer, World } from "../../world.ts";
import type { MetricsHistory } from "./contract.ts";
import type { GaugeReadings, Metrics } from "./counters.ts";

const STEP_MS = 10_000;
/** The first values are measured soon, because someone may watch the gateway's start. */
const FIRST_MS = 1_000;
const POINTS_MAX = 360;
/** Rates and shares cover the last minute, so that rare events do not appear as spikes. */
const WINDOW_MS = 60_000;
const WINDOW_STEPS = WINDOW_MS / STEP_MS;

type Unit = MetricsHistory["series"][number]["unit"];

interface Series {
  readonly name: string;
  readonly title: string;
  readonly unit: Unit;
  readonly help: string;
  readonly values: (number | null)[];
  /** Returns the current value, or undefined if it could not be measured. */
  measure(readings: GaugeReadings): number | null | undefined;
}

/** Returns a function that returns a counter's increase in the last minute. Its first call returns null. */
function gain(total: () => number): () => number | null {
  const seen: number[] = [];
  return () => {
    const now = total();
    const before = seen[0];
    seen.push(now);
    if (seen.length > WINDOW_STEPS) seen.shift();
    return before === undefined ? null : now - before;
  };
}

function seriesOf(metrics: Metrics): Series[] {
  const made: Series[] = [];
  const add = (name: string, title: string, unit: Unit, help: string, measure: Series["measure"]) =>
    made.push({ name, title, unit, help, measure, values: [] });
  const inMs = (seconds: number | null) => (seconds === null ? null : seconds * 1000);
  const { runsEnded, runSeconds, queueSeconds, modelSeconds, tokens, cost, commitSeconds } = metrics;
  const ended = gain(() => runsEnded.total());
  const bad = gain(() => runsEnded.total(({ state }) => state === "error" || state === "timeout"));
  const used = gain(() => tokens.total());
  const spent = gain(() => cost.total());
  const share = (of: typeof runSeconds, part: number) => () => inMs(of.quantile(part, WINDOW_MS));
  add("runs", "Runs ended", "per_minute", "Runs that ended in the last minute.", ended);
  add("failures", "Runs failed", "per_minute", "Runs that failed or timed out in the last minute.", bad);
  add(
    "queued",
    "Queued",
    "count",
    "Runs that wait in a lane or for a slot.",
    ({ store }) => store?.load.queued,
  );
  add("running", "Running", "count", "Runs that execute.", ({ store }) => store?.load.running);
  add("waiting", "Waiting", "count", "Runs that wait for other runs.", ({ store }) => store?.load.waiting);
  add("run_p50", "Run time, median", "ms", "Time from start to end, waits included.", share(runSeconds, 0.5));
  add("run_p95", "Run time, 95 %", "ms", "95 % of runs took at most this.", share(runSeconds, 0.95));
  add("queue_p50", "Queue wait, median", "ms", "Time from acceptance to start.", share(queueSeconds, 0.5));
  add(
    "model_p50",
    "Model call, median",
    "ms",
    "Time of a model call until the whole message has arrived.",
    share(modelSeconds, 0.5),
  );
  add("model_p95", "Model call, 95 %", "ms", "95 % of calls took at most this.", share(modelSeconds, 0.95));
  add("tokens", "Tokens", "per_minute", "Input, output and cache tokens in the last minute.", used);
  add("cost", "Cost", "usd_per_minute", "Cost of the last minute.", spent);
  const outbox = ({ store }: GaugeReadings) => store?.deliveries;
  add(
    "deliveries_pending",
    "Deliveries waiting",
    "count",
    "Texts that wait to be sent.",
    (now) => outbox(now)?.pending,
  );
  add(
    "deliveries_failed",
    "Deliveries failed",
    "count",
    "Failed deliveries that were not dismissed.",
    (now) => outbox(now)?.failed,
  );
  const late = "99 % of due work in this process started with less delay than this.";
  add("loop_p99", "Event loop delay, 99 %", "ms", late, () => metrics.measureLoop()?.p99);
  const commit = "95 % of transactions in the last minute took at most this.";
  add("commit_p95", "Store commit, 95 %", "ms", commit, share(commitSeconds, 0.95));
  add("memory", "Memory", "bytes", "Resident memory of the process.", () => metrics.residentBytes());
  add(
    "connections",
    "Connections",
    "count",
    "Clients that are connected to this process.",
    (now) => now.connections,
  );
  return made;
}

export class History {
  readonly #world: World;
  readonly #read: () => Promise<GaugeReadings>;
  readonly #series: readonly Series[];
  readonly #times: number[] = [];
  #timer: Timer | undefined;
  #isOpen = true;

  /** `read`: returns the current inputs of the measurements. */
  constructor(world: World, metrics: Metrics, read: () => Promise<GaugeReadings>) {
    this.#world = world;
    this.#read = read;
    this.#series = seriesOf(metrics);
  }

  start(): void {
    this.#next(FIRST_MS);
  }

  stop(): void {
    this.#isOpen = false;
    this.#timer?.cancel();
  }

  /** Returns the points after `since` (ms since 1970). */
  after(since: number): MetricsHistory {
    const first = this.#times.findIndex((time) => time > since);
    const from = first < 0 ? this.#times.length : first;
    const series = this.#series.map(({ measure: _, values, ...said }) => ({
      ...said,
      values: values.slice(from),
    }));
    return { stepMs: STEP_MS, pointsMax: POINTS_MAX, times: this.#times.slice(from), series };
  }

  #next(ms: number): void {
    const { clock } = this.#world;
    this.#timer = clock.after(ms, () => void this.#step());
  }

  async #step(): Promise<void> {
    try {
      this.#take(await this.#read());
    } catch (error) {
      this.#world.log.warn({ err: error }, "could not measure the metrics history");
    }
    if (this.#isOpen) this.#next(STEP_MS);
  }

  #take(readings: GaugeReadings): void {
    this.#times.push(this.#world.clock.now());
    for (const { values, measure } of this.#series) {
      const value = measure(readings) ?? null;
      // Rounded to the precision of a plot.
      values.push(value === null ? null : Number(value.toPrecision(4)));
    }
    if (this.#times.length <= POINTS_MAX) return;
    this.#times.shift();
    for (const { values } of this.#series) values.shift();
  }
}
