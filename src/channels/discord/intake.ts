// Settles (processes and stores) Discord's events one after the other, in the order of their arrival.
// DQ1: if an event could not be settled, for example because the store failed, no later event is settled. The
//      acknowledged sequence number stays before this event, so Discord sends it again (I2).
// DQ2: the queue is limited. If it is full, the connection is closed and resumed later.

/** Maximum number of events that wait to be settled. */
const WAITING_MAX = 1_000;

export interface Piece {
  /** Sequence number of the event. Absent for a frame that is not an event. */
  readonly sequence?: number;
  /** Settles the event. Absent if the event needs no work. */
  readonly work?: () => Promise<void>;
}

export class Intake {
  readonly #settled: (sequence: number) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #waiting: Piece[] = [];
  #working: Promise<void> | undefined;
  #stopped = false;

  /** `settled` is called after each event. `failed` is called at most once; after it, no event is settled. */
  constructor(settled: (sequence: number) => Promise<void>, failed: (error: unknown) => void) {
    this.#settled = settled;
    this.#failed = failed;
  }

  push(piece: Piece): void {
    if (this.#stopped) return;
    const last = this.#waiting.at(-1);
    // Most events need no work. If several of them wait one after the other, keep only the last, so that they
    // do not fill the queue.
    if (piece.work === undefined && last !== undefined && last.work === undefined) this.#waiting.pop();
    if (this.#waiting.length >= WAITING_MAX) {
      this.#fail(new Error(`more than ${WAITING_MAX} events wait to be stored`));
      return;
    }
    this.#waiting.push(piece);
    this.#working ??= this.#work();
  }

  /** Drops all waiting events and accepts no more. */
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
    // Wait until `push` has returned and further events of the same tick are in the queue.
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
