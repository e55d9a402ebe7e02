// Settles (processes and stores) Discord's events, and acknowledges them in the order of their arrival.
// DQ1: if an event could not be settled, for example because the store failed, no later event is
//      acknowledged. The acknowledged sequence number stays before this event, so Discord sends it again
//      (I2).
// DQ2: the number of waiting events is limited. At the limit, the connection is closed and resumed later.
// DQ3: the events of one lane are processed in order, and do not wait for the files of other lanes.

/** Maximum number of events that are not acknowledged yet. */
const WAITING_MAX = 1_000;

/** The event that was settled: its sequence number, if it has one, and the result of its work. */
type Settled<T> = (sequence: number | undefined, result: T | undefined) => Promise<void>;

export interface Piece<T> {
  /** Sequence number of the event. Absent for a frame that is not an event. */
  readonly sequence?: number;
  /** Processes the event. Absent if the event needs no work. */
  readonly work?: () => Promise<T | undefined>;
  /** Events of one lane are processed in order. Absent: after all earlier and before all later events. */
  readonly lane?: string;
}

/** The end of the work of an event. Undefined if the work failed or was not started. */
type End<T> = { readonly result: T | undefined } | undefined;

export class Intake<T> {
  readonly #settled: Settled<T>;
  readonly #failed: (error: unknown) => void;
  /** For each lane, the work that runs or waits last. */
  readonly #lanes = new Map<string, Promise<unknown>>();
  /** The newest work for which all later work waits. */
  #barrier: Promise<unknown> = Promise.resolve();
  /** Resolves after all events have been acknowledged, or could not be: then to false. */
  #acknowledged: Promise<boolean> = Promise.resolve(true);
  /** The newest event, if it needs no work and is not acknowledged yet. */
  #idle: { sequence: number | undefined } | undefined;
  #waiting = 0;
  #stopped = false;

  /**
   * `settled` is called after each event, in order. `failed` is called at most once; after it, no work is
   * started.
   */
  constructor(settled: Settled<T>, failed: (error: unknown) => void) {
    this.#settled = settled;
    this.#failed = failed;
  }

  push({ sequence, work, lane }: Piece<T>): void {
    if (this.#stopped) return;
    // Most events need no work. If several of them wait one after the other, keep only the last, so that they
    // do not fill the queue. READY comes after the events that follow it.
    if (work === undefined && this.#idle !== undefined) {
      this.#idle.sequence = Math.max(this.#idle.sequence ?? 0, sequence ?? 0);
      return;
    }
    if (this.#waiting >= WAITING_MAX) {
      this.#fail(new Error(`more than ${WAITING_MAX} events wait to be stored`));
      return;
    }
    this.#waiting += 1;
    const event = { sequence };
    this.#idle = work === undefined ? event : undefined;
    const end = work === undefined ? Promise.resolve({ result: undefined }) : this.#start(work, lane);
    this.#acknowledged = this.#acknowledge(this.#acknowledged, event, end);
  }

  /** Starts no more work, and accepts no more events. */
  stop(): void {
    this.#stopped = true;
  }

  /** Resolves when no work is running. */
  async idle(): Promise<void> {
    while (this.#waiting > 0) await this.#acknowledged;
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#failed(error);
  }

  /** Does the work when its turn comes. */
  #start(work: () => Promise<T | undefined>, lane: string | undefined): Promise<End<T>> {
    const before = lane === undefined ? this.#acknowledged : (this.#lanes.get(lane) ?? this.#barrier);
    const end = before.then(async (): Promise<End<T>> => {
      if (this.#stopped) return undefined;
      try {
        return { result: await work() };
      } catch (error) {
        this.#fail(error);
        return undefined;
      }
    });
    if (lane === undefined) {
      this.#barrier = end;
      this.#lanes.clear();
      return end;
    }
    this.#lanes.set(lane, end);
    void end.then(() => {
      if (this.#lanes.get(lane) === end) this.#lanes.delete(lane);
    });
    return end;
  }

  async #acknowledge(
    before: Promise<boolean>,
    event: { readonly sequence: number | undefined },
    ending: Promise<End<T>>,
  ): Promise<boolean> {
    const isNext = await before;
    const end = await ending;
    if (this.#idle === event) this.#idle = undefined;
    try {
      if (!isNext || end === undefined) return false;
      await this.#settled(event.sequence, end.result);
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    } finally {
      this.#waiting -= 1;
    }
  }
}
