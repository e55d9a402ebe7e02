// Owns the order in which what Discord brings is settled: one thing after the other, as it came.
// DQ1: what was not settled, because storing it failed or there was no time left, is dropped: the sequence
//      number stays behind it, and Discord brings it again (I2).
// DQ2: no more waits here than a named number; over that the connection is ended, and taken up again later.

/** Things that wait to be settled. */
const WAITING_MAX = 1_000;

export interface Piece {
  /** Of the event; absent: it is none. */
  readonly sequence?: number;
  /** Absent: nothing is to be done about it. */
  readonly work?: () => Promise<void>;
}

export class Intake {
  readonly #settled: (sequence: number) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #waiting: Piece[] = [];
  #working: Promise<void> | undefined;
  #stopped = false;

  /** `settled`: called behind each event. `failed`: called once; nothing is done after it. */
  constructor(settled: (sequence: number) => Promise<void>, failed: (error: unknown) => void) {
    this.#settled = settled;
    this.#failed = failed;
  }

  push(piece: Piece): void {
    if (this.#stopped) return;
    const last = this.#waiting.at(-1);
    // Most events bring nothing to do: a row of them is as one.
    if (piece.work === undefined && last !== undefined && last.work === undefined) this.#waiting.pop();
    if (this.#waiting.length >= WAITING_MAX) {
      return this.#fail(new Error(`more than ${WAITING_MAX} events wait to be stored`));
    }
    this.#waiting.push(piece);
    this.#working ??= this.#work();
  }

  /** Nothing more is begun. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
  }

  /** Resolves when nothing is being done. */
  async idle(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#failed(error);
  }

  async #work(): Promise<void> {
    // Behind the events of the same moment: `push` has returned.
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
