// Owns the text and the thinking that each active run streams. They change at most once per animation frame,
// however many deltas arrive.
// LV2: a streamed text is shown until the transcript contains it. It is never shown twice, and never
//      disappears in between.

import { type Signal, signal } from "@preact/signals";
import { now } from "../clock.ts";

type Kind = "text" | "thinking";

export interface Live {
  readonly id: string;
  readonly runId: string;
  readonly kind: Kind;
  readonly text: Signal<string>;
  /** Time at which the first piece arrived. */
  readonly since: number;
  /** Time from the first to the last piece, in ms. Only thinking has it. */
  ms: number;
}

const idOf = (runId: string, kind: Kind): string => `${kind}:${runId}`;

/** The texts that the runs of one session are streaming. A run streams one message at a time. */
export class StreamedTexts {
  readonly list = signal<readonly Live[]>([]);
  readonly #waiting = new Map<string, Omit<Live, "text" | "since"> & { text: string }>();
  /** Ids of texts that are stored by now, so that the next read of the transcript contains them. */
  readonly #written = new Set<string>();
  #frame = 0;

  /** Sets the text that has arrived so far of the message that a run is streaming. */
  say(runId: string, kind: Kind, text: string, ms = 0): void {
    const id = idOf(runId, kind);
    this.#written.delete(id);
    this.#waiting.set(id, { id, runId, kind, text, ms });
    this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  /** Notes that what a run has streamed is stored. It is dropped after the next read of the transcript. */
  written(runId: string): void {
    for (const kind of ["text", "thinking"] as const) this.#written.add(idOf(runId, kind));
  }

  /**
   * Must be called before a read of the transcript. The returned function must be called after it, and drops
   * the texts that were stored before the read, unless their runs have streamed more text since.
   */
  onDisk(): () => void {
    const ids = [...this.#written];
    return () => this.#drop(ids.filter((id) => this.#written.delete(id)));
  }

  /** Drops what a run has thought, because its model call is made again. */
  forgetThinking(runId: string): void {
    this.#drop([idOf(runId, "thinking")]);
  }

  #drop(ids: readonly string[]): void {
    for (const id of ids) this.#waiting.delete(id);
    if (this.list.value.some(({ id }) => ids.includes(id)))
      this.list.value = this.list.value.filter(({ id }) => !ids.includes(id));
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
    for (const { text, ...piece } of this.#waiting.values()) {
      const known = this.list.value.find(({ id }) => id === piece.id);
      if (known === undefined)
        this.list.value = [...this.list.value, { ...piece, text: signal(text), since: now() - piece.ms }];
      else {
        known.ms = piece.ms;
        known.text.value = text;
      }
    }
    this.#waiting.clear();
  }
}
