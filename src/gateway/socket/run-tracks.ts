// Keeps the state of runs that the translation of events needs: their event numbers and their flow steps.
// RT1: numbers rise within a run, also over a restart of the gateway. If several gateways share a store, they
// take the numbers from the database's clock, so that they agree.
// Ended runs are kept only for a while.

import { evictOldest } from "../../core/bounded.ts";
import { isQuietStep } from "../../core/rules/turn-rules.ts";
import type { FlowStep } from "../../core/shapes/run.ts";

/**
 * Maximum number of ended runs that keep their event numbers, because a flow may still publish events about
 * them.
 */
const PAST_RUNS_MAX = 1_000;
/**
 * Maximum number of remembered notes. Clients saw a note when it was written, so its delivery is not sent to
 * them again.
 */
const NOTES_MAX = 200;

interface Track {
  seq: number;
  readonly flowStep: FlowStep | undefined;
}

interface RunStart {
  readonly runId: string;
  readonly startedAt?: number;
  readonly flowStep?: FlowStep;
}

export class RunTracks {
  readonly #now: () => number;
  readonly #since: number;
  readonly #live = new Map<string, Track>();
  readonly #past = new Map<string, number>();
  readonly #shown = new Set<string>();
  /**
   * True if event numbers come from the database's clock, so that a process always continues above the
   * numbers of the other processes.
   */
  readonly #byClock: boolean;

  constructor(now: () => number, byClock: boolean) {
    this.#now = now;
    this.#byClock = byClock;
    this.#since = now();
  }

  has(runId: string | undefined): boolean {
    return runId !== undefined && this.#live.has(runId);
  }

  begin(run: RunStart): void {
    if (this.#live.has(run.runId)) return;
    // A run that began before this process has already used event numbers. It has had less than one event per
    // ms, so the number of ms since its start is above all of them.
    const earlier = run.startedAt !== undefined && run.startedAt < this.#since;
    const used = earlier ? this.#now() - (run.startedAt ?? 0) : 0;
    // The flow of the run may have published events before the run began.
    const seq = Math.max(used, this.#past.get(run.runId) ?? 0);
    this.#past.delete(run.runId);
    this.#live.set(run.runId, { seq, flowStep: run.flowStep });
  }

  next(runId: string): number {
    const live = this.#live.get(runId);
    const least = this.#byClock ? Math.floor(this.#now()) : 0;
    const seq = Math.max(least, (live?.seq ?? this.#past.get(runId) ?? 0) + 1);
    if (live === undefined) this.#remember(runId, seq);
    else live.seq = seq;
    return seq;
  }

  end(runId: string): void {
    // A run that ended in the queue may also have used event numbers, because its flow published events.
    this.#remember(runId, this.#live.get(runId)?.seq ?? this.#past.get(runId) ?? 0);
    this.#live.delete(runId);
  }

  isQuiet(runId: string | undefined): boolean {
    return runId !== undefined && isQuietStep(this.#live.get(runId)?.flowStep);
  }

  /** Records a note that was shown when it was written. */
  noteShown(sessionKey: string, text: string): void {
    this.#shown.add(`${sessionKey}\n${text}`);
    evictOldest(this.#shown, NOTES_MAX);
  }

  /** Returns whether this text was already shown as a note; called once, when it is delivered. */
  takeNote(sessionKey: string, text: string): boolean {
    return this.#shown.delete(`${sessionKey}\n${text}`);
  }

  #remember(runId: string, seq: number): void {
    this.#past.delete(runId);
    this.#past.set(runId, seq);
    evictOldest(this.#past, PAST_RUNS_MAX);
  }
}
