// Owns the order in which Discord's events are settled: one after the other, as they arrived.
// DQ1: an event that was not settled, because storing failed or time ran out, is dropped. The sequence
//      number stays before it, so Discord resends it (I2).
// DQ2: the queue is bounded; when it is full the connection is closed and resumed later.

/** Events that wait to be settled. */
const WAITING_MAX = 1_000;

export interface Piece {
  /** Sequence number of the event; absent: not an event. */
  readonly sequence?: number;
  /** Absent: nothing to do for this event. */
  readonly work?: () => Promise<void>;
}

export class Intake {
  readonly #settled: (sequence: number) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #waiting: Piece[] = [];
  #working: Promise<void> | undefined;
  #stopped = false;

  /** `settled`: called after each event. `failed`: called once; nothing runs after it. */
  constructor(settled: (sequence: number) => Promise<void>, failed: (error: unknown) => void) {
    this.#settled = settled;
    this.#failed = failed;
  }

  push(piece: Piece): void {
    if (this.#stopped) return;
    const last = this.#waiting.at(-1);
    // Most events need no work: merge consecutive ones.
    if (piece.work === undefined && last !== undefined && last.work === undefined) this.#waiting.pop();
    if (this.#waiting.length >= WAITING_MAX) {
      this.#fail(new Error(`more than ${WAITING_MAX} events wait to be stored`));
      return;
    }
    this.#waiting.push(piece);
    this.#working ??= this.#work();
  }

  /** Starts no further work. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
  }

  /** Resolves when no work is running. */
  async idle(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#failed(error);
  }

  async #work(): Promise<void> {
    // Runs after the events of the same tick, when `push` has returned.
    await Promise.resolve();
    try {
      for (let piece = this.#waiting.shift(); piece !== undefined; piece = this.#waiting.shift()) {
        await piece.work?.();
        if (piece.sequence !== undefined) await this.#settled(piece.sequence);
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#working = undefined;
    }
  }
}
