// Owns the streamed text of each active run. A text changes at most once per animation frame, however many
// deltas arrive.
// LV2: a streamed text is shown until the transcript contains it. It is never shown twice, and never
//      disappears in between.

import { type Signal, signal } from "@preact/signals";

export interface Live {
  readonly runId: string;
  readonly text: Signal<string>;
}

/** Streamed texts of one session. A run streams one message at a time. */
export class StreamedTexts {
  readonly list = signal<readonly Live[]>([]);
  readonly #waiting = new Map<string, string>();
  /** Runs whose text is stored, so that the next read of the transcript contains it. */
  readonly #written = new Set<string>();
  #frame = 0;

  /** Sets the text of a run's message that has arrived so far. */
  say(runId: string, text: string): void {
    this.#written.delete(runId);
    this.#waiting.set(runId, text);
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  /** Marks a run's text as stored: it is dropped after the next read of the transcript. */
  written(runId: string): void {
    this.#written.add(runId);
  }

  /** Returns the runs with stored text. Call it before reading the transcript; pass the result to `drop`. */
  onDisk(): readonly string[] {
    return [...this.#written];
  }

  drop(runIds: readonly string[]): void {
    const gone = new Set(runIds.filter((id) => this.#written.delete(id)));
    for (const id of gone) this.#waiting.delete(id);
    if (this.list.value.some(({ runId }) => gone.has(runId)))
      this.list.value = this.list.value.filter(({ runId }) => !gone.has(runId));
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
    for (const [runId, text] of this.#waiting) {
      const known = this.list.value.find((live) => live.runId === runId);
      if (known === undefined) fresh.push({ runId, text: signal(text) });
      else known.text.value = text;
    }
    this.#waiting.clear();
    if (fresh.length > 0) this.list.value = [...this.list.value, ...fresh];
  }
}
