// Owns the spans that wait to be exported.
// SQ1: adding one costs nothing but memory, which is bounded: beyond it the newest span is dropped.
// SQ2: one export goes on at a time; what could not be exported is dropped, never tried for ever.
// SQ3: dropped spans are counted in one log line, at most one a minute.
// SQ4: at a stop what waits is exported within a bound, and the rest is counted.

import type { Clock, Log, Timer } from "../world.ts";
import type { Span } from "./span.ts";

const QUEUE_SPANS_MAX = 4_096;
/** Text of all spans that wait, in characters. */
const QUEUE_CHARS_MAX = 16_000_000;
const BATCH_SPANS_MAX = 256;
/** So long the first span of a batch waits for others. */
const BATCH_DELAY_MS = 1_000;
const REPORT_INTERVAL_MS = 60_000;
const STOP_MAX_MS = 2_000;

/** Hands spans to a collector. */
export interface Exporter {
  /** Why they could not be exported; undefined: they were. Never throws. */
  export(batch: readonly Span[]): Promise<string | undefined>;
  /** Gives up what is still under way. */
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
      this.#timer ??= this.#clock.at(this.#clock.now() + BATCH_DELAY_MS, () => this.#begin());
    }
  }

  /** Counts spans that nobody will see. */
  drop(count: number, reason: string): void {
    this.#dropped += count;
    this.#reason = reason;
    if (this.#reporting !== undefined || this.#closed) return;
    this.#report();
    this.#reporting = this.#clock.at(this.#clock.now() + REPORT_INTERVAL_MS, () => this.#reportAgain());
  }

  /** Exports what waits, as far as it goes within the bound. */
  async close(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = this.#clock.at(this.#clock.now() + STOP_MAX_MS, late.resolve, "alive");
    let over = false;
    const flush = async (): Promise<void> => {
      while (!over && (this.#exporting !== undefined || this.#waiting.length > 0)) {
        this.#begin();
        await this.#exporting;
      }
    };
    await Promise.race([flush(), late.promise]);
    over = true;
    timer.cancel();
    this.#timer?.cancel();
    this.#reporting?.cancel();
    this.#closed = true;
    const lost = this.#waiting.length + this.#underWay;
    if (lost > 0) this.drop(lost, "the collector did not take them before the stop");
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
    // What was under way at the stop is counted already.
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
    this.#reporting = this.#clock.at(this.#clock.now() + REPORT_INTERVAL_MS, () => this.#reportAgain());
  }

  #report(): void {
    if (this.#dropped === 0) return;
    const fields = { count: this.#dropped, why: this.#reason };
    this.#log.warn(fields, "spans were dropped, so traces have gaps");
    this.#dropped = 0;
  }
}
