// Owns how the processes that share a store work as one: who is alive, what the dead held, who is woken. An
// embedded store has one process and needs none of this.
// DI1: what a process held is taken over by the transaction that declares it dead (`lease.ts`), or once it
//      has left.
// DI2: a hint is only a hint: the sweep finds every lane, end, date and slot that no hint told of.
// DI3: what the rows say is mine and I don't execute is taken back; what I execute and the rows deny is
//      stopped.

import { dropOldest } from "../core/bounded.ts";
import type { LiveEvent } from "../core/event.ts";
import { withDelta } from "../core/text-delta.ts";
import { hasOrphans, idleLanes, requeueHeld } from "../store/claims.ts";
import { endedFlowsAmong } from "../store/flows.ts";
import { dropPayloads } from "../store/live-payloads.ts";
import { beats, declareDead, LEASE_MS } from "../store/processes.ts";
import { endedAmong, endedSince } from "../store/runs.ts";
import { countRunning } from "../store/slots.ts";
import type { SharedStore, Store } from "../store/sql.ts";
import { giveUpCallerWaits } from "../store/waits.ts";
import { idsOf, type Timer, type World } from "../world.ts";
import type { SharedBus } from "./bus.ts";
import { endEvent } from "./finish.ts";
import type { Hint, HintTransport } from "./hint-transport.ts";
import type { Lanes } from "./lanes.ts";
import type { Lease } from "./lease.ts";
import type { Commit, Unit } from "./unit.ts";
import type { EndWatch } from "./waits.ts";

/** The clock question has a timer of its own: nobody's lease waits for its answer. */
const CLOCK_MS = 1_000;
const SWEEP_MS = 500;
/** Lanes that one sweep wakes. */
const LANES_AT_ONCE = 32;
/** Old rows are cleared away once in so many sweeps. */
const TIDY_EVERY_SWEEPS = 120;
/** Ends that are told again after something may have been missed, and how far back beyond the gap. */
const TOLD_AGAIN_MAX = 1_000;
const TOLD_AGAIN_MS = 10 * LEASE_MS;
/** Runs of other processes whose text so far is known. */
const TEXTS_MAX = 1_000;

export interface DispatchParts {
  readonly store: Store;
  readonly shared: SharedStore;
  readonly commit: Commit;
  readonly world: World;
  /** This process. */
  readonly processId: string;
  readonly maxConcurrent: number;
  readonly bus: SharedBus;
  readonly hints: HintTransport;
  readonly lease: Lease;
  readonly lanes: Lanes;
  readonly watch: EndWatch;
  /** Another process left a slot to the others. */
  slotFree(): void;
  /** Lanes of another process wait for a slot. */
  slotWanted(): void;
  /** Runs that ended, whose outcome was not written to the clients of a dead process that waited for it. */
  answersLost(unit: Unit, runIds: readonly string[]): Promise<void>;
  /** A letter of another process to this one. */
  letter(body: unknown): void;
  /** Looks at dates, deliveries and whatever else is due. */
  lookAround(): void;
}

export class Dispatch {
  readonly #parts: DispatchParts;
  readonly #texts = new Map<string, { readonly part: string; readonly text: string }>();
  #state: "new" | "open" | "stopped" = "new";
  #sweeping: Promise<void> = Promise.resolve();
  #clockTimer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  #sweeps = 0;
  /** Up to here nothing was missed, as far as is known. */
  #wholeUntil = 0;
  #startedAt = 0;
  #gap = false;

  constructor(parts: DispatchParts) {
    this.#parts = parts;
  }

  /** Joins the others. Rejects when the database can't be had. */
  async start(): Promise<void> {
    const { hints, world, lease } = this.#parts;
    this.#startedAt = world.clock.now();
    this.#wholeUntil = this.#startedAt;
    await lease.start(() => this.#leaseLost());
    const onGap = (): void => {
      this.#gap = true;
    };
    await hints
      .start((hint) => this.#hear(hint), onGap)
      .catch(async (error: unknown) => {
        await lease.stop();
        throw error;
      });
    this.#state = "open";
    this.#askClockLater();
    this.#sweeping = this.#sweep();
    await this.#sweeping;
  }

  /** Leaves: what this process still holds is free for the others at once. */
  async stop(): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "stopped";
    this.#clockTimer?.cancel();
    this.#sweepTimer?.cancel();
    const { store, hints, world, lease } = this.#parts;
    await lease.stop();
    await this.#sweeping;
    try {
      for (const sessionKey of await idleLanes(store.db, { limit: LANES_AT_ONCE, appends: false })) {
        hints.send({ kind: "wake", sessionKey });
      }
      await lease.leave();
    } catch (error) {
      world.log.warn({ err: error }, "the database was not told of the stop; the others will notice");
    }
    await hints.stop();
  }

  /** Text so far of a run that another process executes. */
  textOf(runId: string): string | undefined {
    return this.#texts.get(runId)?.text;
  }

  /** Takes text that another process tells. False: a part before it is missing, and is asked for. */
  #hearText(event: Extract<LiveEvent, { kind: "text" }>): boolean {
    const { runId, sessionKey, part } = event;
    const known = this.#texts.get(runId);
    const before = known?.part === part ? known.text : "";
    const text = withDelta(before, event);
    if (text === undefined) {
      this.#parts.hints.send({ kind: "text wanted", runId, sessionKey });
      return false;
    }
    this.#texts.delete(runId);
    this.#texts.set(runId, { part, text });
    dropOldest(this.#texts, TEXTS_MAX);
    return true;
  }

  #hear(hint: Hint): void {
    const { lanes, bus, watch } = this.#parts;
    if (hint.kind === "slot") {
      this.#parts.slotFree();
      return;
    }
    if (hint.kind === "slot wanted") {
      this.#parts.slotWanted();
      return;
    }
    if (hint.kind === "gap") {
      this.#gap = true;
      return;
    }
    if (hint.kind === "letter") {
      if (hint.to === this.#parts.processId) this.#parts.letter(hint.body);
      return;
    }
    if (hint.kind === "text wanted") {
      const execution = lanes.executionOf(hint.sessionKey);
      if (execution?.handle.run.runId === hint.runId) execution.publishText();
      return;
    }
    if (hint.kind === "wake") {
      lanes.wake(hint.sessionKey);
      return;
    }
    const { event } = hint;
    if (event.kind === "text" && !this.#hearText(event)) return;
    if (event.kind === "run_ended") {
      this.#texts.delete(event.runId);
      watch.ended(event.runId);
      lanes.stopEnded(event);
    }
    bus.hear(event);
  }

  /** Other processes may execute by now what this one did. */
  #leaseLost(): void {
    for (const execution of this.#parts.lanes.executions()) execution.stop("ended");
    this.#gap = true;
  }

  #askClockLater(): void {
    const { clock, log } = this.#parts.world;
    if (this.#state !== "open") return;
    this.#clockTimer = clock.at(clock.now() + CLOCK_MS, () => {
      void this.#parts.shared
        .syncClock()
        .catch((error: unknown) => log.debug({ err: error }, "the database was not asked for its time"))
        .finally(() => this.#askClockLater());
    });
  }

  #sweepLater(): void {
    const { world } = this.#parts;
    if (this.#state !== "open") return;
    // Not all at the same moment.
    const afterMs = SWEEP_MS * (0.8 + 0.4 * world.random());
    this.#sweepTimer = world.clock.at(world.clock.now() + afterMs, () => {
      this.#sweeping = this.#sweep();
    });
  }

  async #sweep(): Promise<void> {
    const { world } = this.#parts;
    try {
      const takenOver = await this.#takeOver();
      await this.#parts.lanes.compare();
      await this.#publishMissedEnds(takenOver);
      await this.#lookForEnds();
      await this.#wakeIdle();
      this.#parts.lookAround();
      if (this.#sweeps++ % TIDY_EVERY_SWEEPS === 0) await this.#tidy();
    } catch (error) {
      world.log.warn({ err: error }, "the sweep failed; it is tried again");
    }
    this.#sweepLater();
  }

  /** Declares the silent dead, and frees what the dead held. True: there was something. */
  async #takeOver(): Promise<boolean> {
    const { store, commit, world, lease } = this.#parts;
    if (lease.silent().length === 0 && !(await hasOrphans(store.db))) return false;
    const { dead, runs } = await commit(async (unit) => {
      const dead: string[] = [];
      // Judged once the database has answered: it may have been away since the look above.
      await beats(unit.tx);
      for (const one of lease.silent()) if (await declareDead(unit.tx, one)) dead.push(one.processId);
      await this.#parts.answersLost(unit, await giveUpCallerWaits(unit.tx, "the dead"));
      return { dead, runs: await requeueHeld(unit.tx, "the dead") };
    });
    for (const processId of dead) world.log.warn({ processId }, "a process has died: its lease is over");
    for (const run of runs) {
      const fields = { ...idsOf(run), crashes: run.crashes };
      world.log.warn(fields, "a run of a process that died is taken over");
      this.#parts.lanes.wake(run.sessionKey);
    }
    return true;
  }

  /** Ends that nobody here was told of, because the teller died or the wire was cut. */
  async #publishMissedEnds(takenOver: boolean): Promise<void> {
    const { store, world, bus, watch } = this.#parts;
    const now = world.clock.now();
    const missed = this.#gap || takenOver;
    if (missed) {
      const since = Math.max(this.#startedAt, this.#wholeUntil - TOLD_AGAIN_MS);
      for (const run of await endedSince(store.db, since, TOLD_AGAIN_MAX)) {
        watch.ended(run.runId);
        // Whoever was told of it already is not told again.
        bus.hear(endEvent(run));
      }
    }
    this.#gap = false;
    this.#wholeUntil = now;
  }

  async #lookForEnds(): Promise<void> {
    const { store, watch } = this.#parts;
    const watched = watch.watched();
    for (const runId of await endedAmong(store.db, watched)) watch.ended(runId);
    for (const flowId of await endedFlowsAmong(store.db, watched)) watch.ended(flowId);
  }

  async #wakeIdle(): Promise<void> {
    const { store, lanes, maxConcurrent } = this.#parts;
    const free = maxConcurrent - (await countRunning(store.db));
    const limit = Math.min(LANES_AT_ONCE, free);
    const turns = limit > 0 ? await idleLanes(store.db, { limit, appends: false }) : [];
    const appends = await idleLanes(store.db, { limit: LANES_AT_ONCE, appends: true });
    for (const sessionKey of new Set([...turns, ...appends])) lanes.wake(sessionKey);
  }

  async #tidy(): Promise<void> {
    const { store, world } = this.#parts;
    await store.transaction((tx) => dropPayloads(tx, world.clock.now()));
  }
}
