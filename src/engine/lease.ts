// Owns the lease of this process on what it executes, and the judgement of the others' leases.
// LE1: this process has authority until a deadline by the monotonic clock, counted from before its last beat
//      was sent. A beat that fails ends it at once; a later one that finds the row gives it back.
// LE2: a beat that finds no row has lost all that this process executes. That is stopped before the process
//      joins anew.
// LE3: a process is silent when its beat has stood still for a whole lease during which the database answered
//      each beat of ours in time. So neither an outage, nor a pause of this process, nor a jump of the
//      database's clock ends a lease, and one's own is renewed before another is judged.
// LE4: whoever starts work has a beat that is at most half a lease old.

import {
  type Beat,
  beat,
  beats,
  joinProcesses,
  LEASE_MS,
  leave,
  type ProcessFacts,
} from "../store/processes.ts";
import type { SharedStore } from "../store/sql.ts";
import { together } from "../store/transaction.ts";
import { pause } from "../world/pause.ts";
import type { Timer, World } from "../world.ts";

const BEAT_MS = 1_000;
/** A beat that failed is tried again sooner. */
const BEAT_RETRY_MS = 250;
/** The authority ends so long before others may judge: two machines' clocks run at different speeds. */
const MARGIN_MS = 500;
const FRESH_MS = LEASE_MS / 2;
/** Between two answers of the database that count as one stretch of time. */
const GAP_MS = 2 * BEAT_MS;

/** The engine asks this of a lease before it acts. */
export interface Authority {
  /**
   * Whether this process may act for a run. Without authority it waits for the next beat; false: `signal`
   * fired first, or the process stops.
   */
  confirm(signal: AbortSignal): Promise<boolean>;
  /** Whether a run may start here (LE4), as far as is known. */
  isFresh(): boolean;
  /** The same, with a beat if it needs one. */
  renewed(): Promise<boolean>;
  /** When the authority ends, by the monotonic clock. */
  until(): number;
}

interface LeaseParts {
  readonly shared: SharedStore;
  readonly world: World;
  readonly facts: ProcessFacts;
}

export class Lease implements Authority {
  readonly #parts: LeaseParts;
  /** The last beat of each other process, and since when it has stood still, by the monotonic clock. */
  #others = new Map<string, Beat & { readonly since: number }>();
  #state: "new" | "open" | "stopped" = "new";
  #timer: Timer | undefined;
  #beating: Promise<void> | undefined;
  #until = Number.NEGATIVE_INFINITY;
  #sentAt = Number.NEGATIVE_INFINITY;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  #onLost: () => void = () => {};

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  /** Joins the others. Rejects when the database can't be had. `onLost`: stop what is executed (LE2). */
  async start(onLost: () => void): Promise<void> {
    this.#onLost = onLost;
    await this.#join();
    this.#state = "open";
    this.#beatLater(BEAT_MS);
  }

  /** Beats no more. */
  async stop(): Promise<void> {
    this.#state = "stopped";
    this.#timer?.cancel();
    await this.#beating;
  }

  /** Gives the row back: what this process still holds is free for the others. */
  async leave(): Promise<void> {
    await this.#parts.shared.urgently((tx) => leave(tx, this.#parts.facts.processId));
  }

  until(): number {
    return this.#until;
  }

  isFresh(): boolean {
    return this.#isHeld() && this.#now() - this.#sentAt <= FRESH_MS;
  }

  async renewed(): Promise<boolean> {
    if (!this.isFresh() && this.#state === "open" && this.#waitMs() === 0) await this.#beat();
    return this.isFresh();
  }

  async confirm(signal: AbortSignal): Promise<boolean> {
    while (!this.#isHeld()) {
      if (signal.aborted || this.#state !== "open") return false;
      const waitMs = this.#waitMs();
      if (waitMs > 0) await pause(this.#parts.world.clock, waitMs, signal);
      else await this.#beat();
    }
    return true;
  }

  /** The others whose beat has stood still for a whole lease (LE3). */
  silent(): Beat[] {
    if (!this.isFresh()) return [];
    const now = this.#now();
    return [...this.#others.values()].filter((other) => now - other.since >= LEASE_MS);
  }

  #now(): number {
    return this.#parts.world.clock.monotonic();
  }

  /** How long to wait before another beat: however many ask, a database that is away is not flooded. */
  #waitMs(): number {
    return Math.max(0, Math.ceil(this.#failedAt + BEAT_RETRY_MS - this.#now()));
  }

  #isHeld(): boolean {
    return this.#now() < this.#until;
  }

  #beatLater(afterMs: number): void {
    const { clock } = this.#parts.world;
    this.#timer?.cancel();
    if (this.#state === "open") this.#timer = clock.at(clock.now() + afterMs, () => void this.#beat());
  }

  /** One at a time: whoever asks meanwhile waits for the same. Never rejects. */
  #beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    const { shared, facts, world } = this.#parts;
    const sentAt = this.#now();
    try {
      const [isAlive, all] = await shared.urgently((tx) =>
        together(beat(tx, facts.processId, world.clock.now()), beats(tx)),
      );
      if (isAlive) this.#renew(sentAt, all);
      else await this.#lose();
      this.#beatLater(BEAT_MS);
    } catch (error) {
      this.#until = Number.NEGATIVE_INFINITY;
      this.#failedAt = this.#now();
      this.#answeredAt = Number.NEGATIVE_INFINITY;
      world.log.warn({ err: error }, "this process could not renew its lease; it is tried again");
      this.#beatLater(BEAT_RETRY_MS);
    }
  }

  #renew(sentAt: number, all: readonly Beat[]): void {
    const now = this.#now();
    // After an outage everybody has a whole lease to beat again.
    const known = now - this.#answeredAt > GAP_MS ? new Map<string, never>() : this.#others;
    const others = all.filter(({ processId }) => processId !== this.#parts.facts.processId);
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
    const { facts, world } = this.#parts;
    const { processId } = facts;
    // It stood still for longer than a lease, or the database did not hear it.
    const text = "other processes took this one for dead: it stops its runs and joins anew";
    world.log.warn({ processId }, text);
    this.#onLost();
    await this.#join();
  }

  async #join(): Promise<void> {
    const { shared, facts, world } = this.#parts;
    const sentAt = this.#now();
    const all = await shared.urgently(async (tx) => {
      await joinProcesses(tx, facts, world.clock.now());
      return beats(tx);
    });
    this.#renew(sentAt, all);
  }
}
