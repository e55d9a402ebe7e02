// Queues the spans that wait for export.
// SQ1: adding a span only costs memory, which is limited: above the limit the newest span is dropped.
// SQ2: one export runs at a time; spans of a failed export are dropped, not retried forever.
// SQ3: dropped spans are reported in one log line, at most one a minute.
// SQ4: a stop exports the waiting spans within a time limit, and counts the rest as dropped.

import { within } from "../world/pause.ts";
import type { Clock, Log, Timer } from "../world.ts";
import type { Span } from "./span.ts";

const QUEUE_SPANS_MAX = 4_096;
/** Maximum characters of text in all waiting spans. */
const QUEUE_CHARS_MAX = 16_000_000;
const BATCH_SPANS_MAX = 256;
/** How long the first span of a batch waits for others. */
const BATCH_DELAY_MS = 1_000;
const REPORT_INTERVAL_MS = 60_000;
const STOP_MAX_MS = 2_000;

/** Sends spans to a collector. */
export interface Exporter {
  /** Resolves to the reason of a failure, or undefined if the spans were exported. Never throws. */
  export(batch: readonly Span[]): Promise<string | undefined>;
  /** Cancels exports in progress. */
  close(): void;
}

function charsOf({ attributes }: Span): number {
  return Object.values(attributes).reduce<number>(
    (sum, value) => sum + (typeof value === "string" ? value.length : 0),
    0,
  );
}

export class SpanQueue {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #exporter: Exporter;
  #waiting: Span[] = [];
  #chars = 0;
  #timer: Timer | undefined;
  #exporting: Promise<void> | undefined;
  #underWay = 0;
  #dropped = 0;
  #reason = "";
  #reporting: Timer | undefined;
  #closed = false;

  constructor(parts: { clock: Clock; log: Log; exporter: Exporter }) {
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#exporter = parts.exporter;
  }

  add(span: Span): void {
    const chars = charsOf(span);
    if (this.#closed || this.#waiting.length >= QUEUE_SPANS_MAX || this.#chars + chars > QUEUE_CHARS_MAX) {
      this.drop(1, this.#closed ? "the gateway stops" : "too many spans wait for the collector");
      return;
    }
    this.#waiting.push(span);
    this.#chars += chars;
    if (this.#waiting.length >= BATCH_SPANS_MAX) this.#begin();
    else if (this.#exporting === undefined) {
      this.#timer ??= this.#clock.after(BATCH_DELAY_MS, () => this.#begin());
    }
  }

  drop(count: number, reason: string): void {
    this.#dropped += count;
    this.#reason = reason;
    if (this.#reporting !== undefined || this.#closed) return;
    this.#report();
    this.#reporting = this.#clock.after(REPORT_INTERVAL_MS, () => this.#reportAgain());
  }

  /** Exports the waiting spans, within the time limit. */
  async close(): Promise<void> {
    let over = false;
    const flush = async (): Promise<void> => {
      while (!over && (this.#exporting !== undefined || this.#waiting.length > 0)) {
        this.#begin();
        await this.#exporting;
      }
    };
    await within(this.#clock, STOP_MAX_MS, flush(), { keep: "alive" });
    over = true;
    this.#timer?.cancel();
    this.#reporting?.cancel();
    this.#closed = true;
    const lost = this.#waiting.length + this.#underWay;
    if (lost > 0) this.drop(lost, "the collector did not accept the spans before the stop");
    this.#waiting = [];
    this.#exporter.close();
    this.#report();
  }

  #begin(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#exporting !== undefined || this.#waiting.length === 0) return;
    const batch = this.#waiting.splice(0, BATCH_SPANS_MAX);
    for (const span of batch) this.#chars -= charsOf(span);
    this.#underWay = batch.length;
    this.#exporting = this.#export(batch);
  }

  async #export(batch: readonly Span[]): Promise<void> {
    const problem = await this.#exporter.export(batch);
    // An export that was in progress at the stop was already counted as dropped.
    if (this.#closed) return;
    this.#exporting = undefined;
    this.#underWay = 0;
    if (problem !== undefined) this.drop(batch.length, problem);
    if (this.#waiting.length > 0) this.#begin();
  }

  #reportAgain(): void {
    this.#reporting = undefined;
    if (this.#dropped === 0) return;
    this.#report();
    this.#reporting = this.#clock.after(REPORT_INTERVAL_MS, () => this.#reportAgain());
  }

  #report(): void {
    if (this.#dropped === 0) return;
    const fields = { count: this.#dropped, why: this.#reason };
    this.#log.warn(fields, "spans were dropped, so traces have gaps");
    this.#dropped = 0;
  }
}
