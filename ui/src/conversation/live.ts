// Owns what is being said at this moment: the text of each run that is under way, as its events bring it.
// LV1: however many deltas come, a text changes at most once between two pictures of the screen.
// LV2: a text is shown until the transcript has it: never twice, and without a gap.

import { type Signal, signal } from "@preact/signals";

export interface Live {
  readonly runId: string;
  readonly text: Signal<string>;
}

/** Texts of one session. A run speaks one message at a time. */
export class LiveTexts {
  readonly list = signal<readonly Live[]>([]);
  readonly #waiting = new Map<string, string>();
  /** Runs whose text the transcript has, or will have when it is read next. */
  readonly #written = new Set<string>();
  #frame = 0;

  /** The whole text so far of the message that a run is writing. */
  say(runId: string, text: string): void {
    this.#written.delete(runId);
    this.#waiting.set(runId, text);
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  /** What was said so far is on disk: it goes once the transcript was read anew. */
  written(runId: string): void {
    this.#written.add(runId);
  }

  /** Before the transcript is read: what is on disk by now. Give it to `drop` with the answer. */
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
