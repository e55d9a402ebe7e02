// Owns the lease of this process on the runs that it executes, and decides when the leases of other processes
// have expired.
// A beat (heartbeat) renews the lease in the process's row, and gives the process authority until a deadline.
// The deadline is counted by the monotonic clock, from the moment before the beat was sent. A failed beat
// ends the authority at once; a later beat that finds the row restores it. If a beat finds no row, other
// processes have taken the runs: this process stops them before it joins again.
// Another process is silent if, for the length of a lease, its beat did not change although the database
// answered each of our own beats in time. So an outage, a pause of this process or a jump of the database's
// clock does not end another process's lease. A process renews its own lease before it declares another
// process dead. A run starts only with a beat that is at most half a lease old, also if the database was slow
// to answer its claim.

import type { ProcessFacts } from "../../core/shapes/process.ts";
import type { StoredKind } from "../../store/queries/deadlines.ts";
import { type Beat, beat, beats, joinProcesses, LEASE_MS, leave } from "../../store/queries/processes.ts";
import type { SharedStore } from "../../store/sql.ts";
import { together } from "../../store/transaction.ts";
import { pause } from "../../world/pause.ts";
import type { Timer, World } from "../../world.ts";

const BEAT_MS = 1_000;
const BEAT_RETRY_MS = 250;
/**
 * The authority ends this long before other processes may declare this one dead, because the clocks of two
 * machines run at different speeds.
 */
const MARGIN_MS = 500;
const FRESH_MS = LEASE_MS / 2;
/**
 * Maximum gap between two answers of the database. After a longer gap, the database counts as having been out
 * of reach.
 */
const GAP_MS = 2 * BEAT_MS;

/** A worker that acts only under the lease of its process: see `Engine.attach`. */
export interface LeasedWorker {
  /** The first word of the kinds of the stored deadlines at which its work is due. */
  readonly of: string;
  /**
   * Begins the work of a kind that is due, if it is started and not stopped, and waits for none of it.
   * Returns the time of the next look. `kinds`: the number of its kinds for which work is stored.
   */
  begin(kind: StoredKind, kinds: number): Promise<number>;
  /** Called once this process has joined the others. */
  start(): Promise<void>;
  /**
   * Looks for work that is due. Called after each commit whose answer was lost and, if processes share the
   * store, in every sweep. It may be called before `start` and after `stop`.
   */
  sweep(): void;
  stop(): Promise<void>;
}

interface LeaseParts {
  readonly shared: SharedStore;
  readonly world: World;
  readonly processId: string;
  /** Called for each heartbeat, because the revision changes. */
  readonly facts: () => Omit<ProcessFacts, "processId">;
}

/** The engine checks it before it acts. */
export class Lease {
  readonly #parts: LeaseParts;
  /** The last beat of each other process, and the monotonic time since which that beat has not changed. */
  #others = new Map<string, Beat & { readonly since: number }>();
  #state: "new" | "open" | "stopped" = "new";
  #timer: Timer | undefined;
  #beating: Promise<void> | undefined;
  #until = Number.NEGATIVE_INFINITY;
  #sentAt = Number.NEGATIVE_INFINITY;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** How often other processes have taken the runs of this process. */
  #losses = 0;
  #onLost: () => void = () => {};

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  /**
   * Joins the other processes. Rejects if the database is not reachable. `onLost` must stop all executions.
   */
  async start(onLost: () => void): Promise<void> {
    this.#onLost = onLost;
    await this.#join();
    this.#state = "open";
    this.#beatLater(BEAT_MS);
  }

  async stop(): Promise<void> {
    this.#state = "stopped";
    this.#timer?.cancel();
    await this.#beating;
  }

  /** Deletes this process's row, so that other processes may take the runs that it still holds. */
  async leave(): Promise<void> {
    this.#until = Number.NEGATIVE_INFINITY;
    await this.#parts.shared.urgently((tx) => leave(tx, this.#parts.processId));
  }

  /** Returns when the authority ends, by the monotonic clock. */
  until(): number {
    return this.#until;
  }

  /**
   * Call it before a commit whose answer may come late. Returns a function that returns whether the last beat
   * is recent enough, and no other process has taken the runs of this process since the call.
   */
  watch(): () => boolean {
    const losses = this.#losses;
    return () => losses === this.#losses && this.isFresh();
  }

  /** Returns whether the last beat is recent enough for a run to start in this process. */
  isFresh(): boolean {
    return this.#isHeld() && this.#now() - this.#sentAt <= FRESH_MS;
  }

  /** Returns the same as `isFresh`, but first sends a new beat if the last one is too old. */
  async ensureFresh(): Promise<boolean> {
    if (!this.isFresh() && this.#state === "open" && this.#waitMs() === 0) await this.#beat();
    return this.isFresh();
  }

  /**
   * Resolves to true once this process may act for a run. While it may not, waits for the next heartbeat of
   * the lease. Resolves to false if `signal` fires first or the process stops.
   */
  async confirm(signal: AbortSignal): Promise<boolean> {
    const wasAborted = signal.aborted;
    while (!this.#isHeld()) {
      if (signal.aborted || this.#state !== "open") return false;
      const waitMs = this.#waitMs();
      if (waitMs > 0) await pause(this.#parts.world.clock, waitMs, signal);
      else await this.#beat();
    }
    // The beat may have found that other processes had taken the run: then it fired the signal.
    return wasAborted || !signal.aborted;
  }

  /** Returns the other processes whose beat has not changed for a whole lease. */
  silent(): Beat[] {
    if (!this.isFresh()) return [];
    const now = this.#now();
    return [...this.#others.values()].filter((other) => now - other.since >= LEASE_MS);
  }

  #now(): number {
    return this.#parts.world.clock.monotonic();
  }

  /**
   * Returns the delay before another beat, so that many callers do not flood a database that is unreachable.
   */
  #waitMs(): number {
    return Math.max(0, Math.ceil(this.#failedAt + BEAT_RETRY_MS - this.#now()));
  }

  #isHeld(): boolean {
    return this.#now() < this.#until;
  }

  #beatLater(afterMs: number): void {
    const { clock } = this.#parts.world;
    this.#timer?.cancel();
    if (this.#state === "open") this.#timer = clock.after(afterMs, () => void this.#beat());
  }

  #facts(): ProcessFacts {
    const { processId, facts } = this.#parts;
    return { processId, ...facts() };
  }

  /** Sends one beat at a time: concurrent callers share it. Never rejects. */
  #beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    const { shared, world } = this.#parts;
    const sentAt = this.#now();
    try {
      const [isAlive, all] = await shared.urgently((tx) =>
        together(beat(tx, this.#facts(), world.clock.now()), beats(tx)),
      );
      if (isAlive) this.#renew(sentAt, all);
      else await this.#lose();
      this.#beatLater(BEAT_MS);
    } catch (error) {
      this.#until = Number.NEGATIVE_INFINITY;
      this.#failedAt = this.#now();
      this.#answeredAt = Number.NEGATIVE_INFINITY;
      world.log.warn({ err: error }, "this process could not renew its lease; it will retry");
      this.#beatLater(BEAT_RETRY_MS);
    }
  }

  #renew(sentAt: number, all: readonly Beat[]): void {
    const now = this.#now();
    // After an outage of the database, every process gets a whole lease to send a beat again.
    const known = now - this.#answeredAt > GAP_MS ? new Map<string, never>() : this.#others;
    const others = all.filter(({ processId }) => processId !== this.#parts.processId);
    this.#others = new Map(
      others.map((other) => {
        const before = known.get(other.processId);
        return [other.processId, before?.beatAt === other.beatAt ? before : { ...other, since: now }];
      }),
    );
    this.#answeredAt = now;
    this.#sentAt = sentAt;
    this.#until = sentAt + LEASE_MS - MARGIN_MS;
  }

  async #lose(): Promise<void> {
    this.#until = Number.NEGATIVE_INFINITY;
    const { processId, world } = this.#parts;
    // This process paused for longer than a lease, or its heartbeats did not reach the database.
    const text = "other processes declared this one dead: it stops its runs and joins again";
    world.log.warn({ processId }, text);
    this.#losses += 1;
    this.#onLost();
    await this.#join();
  }

  async #join(): Promise<void> {
    const { shared, world } = this.#parts;
    const sentAt = this.#now();
    const all = await shared.urgently(async (tx) => {
      await joinProcesses(tx, this.#facts(), world.clock.now());
      return beats(tx);
    });
    this.#renew(sentAt, all);
  }
}
