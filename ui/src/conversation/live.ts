// Owns the text, or the thinking, that each active run streams. A text changes at most once per animation
// frame, however many deltas arrive.
// LV2: a streamed text is shown until the transcript contains it. It is never shown twice, and never
//      disappears in between.

import { type Signal, signal } from "@preact/signals";
import { now } from "../clock.ts";

export interface Live {
  readonly runId: string;
  readonly text: Signal<string>;
  /** Time at which the first piece arrived. */
  readonly since: number;
  /** Time from the first to the last piece, in ms. Only thinking has it. */
  ms: number;
}

/** The texts that the runs of one session are streaming. A run streams one message at a time. */
export class StreamedTexts {
  readonly list = signal<readonly Live[]>([]);
  readonly #waiting = new Map<string, { readonly text: string; readonly ms: number }>();
  /** Runs whose streamed text is stored by now, so that the next read of the transcript contains it. */
  readonly #written = new Set<string>();
  #frame = 0;

  /** Sets the text that has arrived so far of the message that a run is streaming. */
  say(runId: string, text: string, ms = 0): void {
    this.#written.delete(runId);
    this.#waiting.set(runId, { text, ms });
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  /** Notes that a run's text is stored. The text is dropped after the next read of the transcript. */
  written(runId: string): void {
    this.#written.add(runId);
  }

  /**
   * Must be called before a read of the transcript. The returned function must be called after it, and drops
   * the texts that were stored before the read, unless their runs have streamed more text since.
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
