// Owns the streamed text, or the streamed thinking, of each active run. A text changes at most once per
// animation frame, however many deltas arrive.
// LV2: a streamed text is shown until the transcript contains it. It is never shown twice, and never
//      disappears in between.

import { type Signal, signal } from "@preact/signals";
import { now } from "../clock.ts";

export interface Live {
  readonly runId: string;
  readonly text: Signal<string>;
  /** Time of the first piece. */
  readonly since: number;
  /** Time from the first piece to the last one. Only thinking has it. */
  ms: number;
}

/** Streamed texts of one session. A run streams one message at a time. */
export class StreamedTexts {
  readonly list = signal<readonly Live[]>([]);
  readonly #waiting = new Map<string, { readonly text: string; readonly ms: number }>();
  /** Runs whose text is stored, so that the next read of the transcript contains it. */
  readonly #written = new Set<string>();
  #frame = 0;

  /** Sets the text of a run's message that has arrived so far. */
  say(runId: string, text: string, ms = 0): void {
    this.#written.delete(runId);
    this.#waiting.set(runId, { text, ms });
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  /** Marks a run's text as stored: it is dropped after the next read of the transcript. */
  written(runId: string): void {
    this.#written.add(runId);
  }

  /**
   * Call it before reading the transcript, and the returned function after that: it drops the texts that were
   * stored before, unless their runs have streamed more since.
   */
  onDisk(): () => void {
    const runIds = [...this.#written];
    return () => this.drop(runIds.filter((id) => this.#written.delete(id)));
  }

  drop(runIds: readonly string[]): void {
    for (const id of runIds) this.#waiting.delete(id);
    if (this.list.value.some(({ runId }) => runIds.includes(runId)))
      this.list.value = this.list.value.filter(({ runId }) => !runIds.includes(runId));
  }

  clear(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#waiting.clear();
    this.#written.clear();
    this.list.value = [];
  }

  #flush(): void {
    this.#frame = 0;
    const fresh: Live[] = [];
    for (const [runId, { text, ms }] of this.#waiting) {
      const known = this.list.value.find((live) => live.runId === runId);
      if (known === undefined) fresh.push({ runId, text: signal(text), since: now() - ms, ms });
      else {
        known.ms = ms;
        known.text.value = text;
      }
    }
    this.#waiting.clear();
    if (fresh.length > 0) this.list.value = [...this.list.value, ...fresh];
  }
}
