// Coordinates the processes that share a store: finds dead processes, takes over their runs, and wakes the
// lanes of live ones. An embedded store has one process and does not use this. The transaction that declares
// a process dead also takes over its runs (`lease.ts`); a process that stops frees its runs itself. Hints
// (hint-transport.ts) may be lost, so the sweep, a periodic check of all rows, also finds every waiting lane,
// ended run, due deadline and free slot. The sweep also starts runs that the rows assign to this process but
// that it does not execute, and stops runs that the rows assign to another process.

import { evictOldest } from "../../core/bounded.ts";
import { isLiveText, type LiveEvent, type LiveTextEvent } from "../../core/shapes/event.ts";
import type { Run } from "../../core/shapes/run.ts";
import { LongText } from "../../core/text/text-delta.ts";
import { beats, declareDead, LEASE_MS } from "../../store/queries/processes.ts";
import { hasOrphans, requeueHeld } from "../../store/queries/runs/claims.ts";
import type { SharedStore } from "../../store/sql.ts";
import { idsOf, type Timer } from "../../world.ts";
import type { EngineCore } from "../engine.ts";
import type { CallerWaits } from "../lanes/caller-waits.ts";
import type { Executions } from "../run/executions.ts";
import { NotReady } from "../unit.ts";
import type { Hint, HintTransport } from "./hint-transport.ts";
import type { Lease } from "./lease.ts";

/**
 * Interval at which the database's clock is read. This has its own timer, so that renewing a lease never
 * waits for the clock.
 */
const CLOCK_MS = 1_000;
const SWEEP_MS = 500;
/** Interval of the sweeps of a process that has no work, has missed no hint and has heard from all others. */
const IDLE_SWEEP_MS = 10_000;
/** After a gap in the hints, ends of runs are published again that came at most this long before it. */
const TOLD_AGAIN_MS = 10 * LEASE_MS;
/**
 * Maximum number of unfinished texts of remote runs that are kept. A run has up to two: its reply and its
 * thinking.
 */
const TEXTS_MAX = 1_000;
/** Maximum time to wait for the texts of another process. */
const ANSWER_MS = 500;
/** The texts of a process are known for this long after it was asked. It sends them for longer. */
const HEARD_MS = 2_000;

const keyOf = (kind: LiveTextEvent["kind"], runId: string): string => `${kind} ${runId}`;

interface DispatchParts extends EngineCore {
  readonly shared: SharedStore;
  readonly hints: HintTransport;
  readonly lease: Lease;
  readonly executions: Executions;
  readonly callerWaits: CallerWaits;
  /** See `Reconciler.reconcile`. */
  reconcile(sinceMs?: number): Promise<unknown>;
}

export class Dispatch {
  readonly #parts: DispatchParts;
  readonly #texts = new Map<string, { readonly part: string; readonly text: LongText }>();
  readonly #readers = new Set<(body: unknown) => void>();
  /** Processes whose texts are known. */
  readonly #heard = new Set<string>();
  #answer = Promise.withResolvers<void>();
  #state: "new" | "open" | "stopped" = "new";
  #sweeping: Promise<void> = Promise.resolve();
  #clockTimer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  /** This process knows of every run that ended before this time. */
  #wholeUntil = 0;
  #startedAt = 0;
  #gap = false;
  /** Monotonic time before which no sweep is needed, if nothing happens. */
  #idleUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: DispatchParts) {
    this.#parts = parts;
  }

  /** Joins the other processes. Rejects if the database is not reachable. */
  async start(): Promise<void> {
    const { hints, world, lease } = this.#parts;
    this.#startedAt = world.clock.now();
    this.#wholeUntil = this.#startedAt;
    await lease.start(() => {
      // Other processes may already execute the same runs.
      for (const execution of this.#parts.executions.all()) execution.stop("ended");
      this.#gap = true;
    });
    await hints
      .start(
        (hint) => this.#hear(hint),
        () => {
          this.#gap = true;
        },
      )
      .catch(async (error: unknown) => {
        await lease.stop();
        throw error;
      });
    this.#state = "open";
    this.#askClockLater();
    this.#sweeping = this.#sweep();
    await this.#sweeping;
  }

  /** Leaves the other processes, and frees the runs that this one still holds. */
  async stop(): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "stopped";
    this.#clockTimer?.cancel();
    this.#sweepTimer?.cancel();
    const { hints, world, lease } = this.#parts;
    await lease.stop();
    await this.#sweeping;
    try {
      await lease.leave();
      hints.send({ kind: "ready" });
      // Others take the runs that could not be freed.
      hints.send({ kind: "gap" });
    } catch (error) {
      world.log.warn(
        { err: error },
        "could not record the stop in the database; other processes will find out when the lease ends",
      );
    }
    await hints.stop();
  }

  /** See `Engine.writeTo`. */
  write(to: string, body: unknown): void {
    this.#parts.hints.send({ kind: "letter", to, body });
  }

  /** See `Engine.onMessage`. */
  onLetter(read: (body: unknown) => void): () => void {
    this.#readers.add(read);
    return () => this.#readers.delete(read);
  }

  /** Returns the text that a run in another process has written so far. */
  textOf(runId: string): string | undefined {
    return this.#texts.get(keyOf("text", runId))?.text.text;
  }

  /**
   * Adds text that another process sent. Returns false, and requests the whole text, if an earlier part is
   * missing.
   */
  #hearText(event: LiveTextEvent): boolean {
    const { kind, runId, part } = event;
    const key = keyOf(kind, runId);
    const known = this.#texts.get(key);
    const text = known?.part === part ? known.text : new LongText();
    if (!text.change(event)) {
      this.follow(true);
      return false;
    }
    this.#texts.delete(key);
    this.#texts.set(key, { part, text });
    evictOldest(this.#texts, TEXTS_MAX);
    return true;
  }

  /** Makes the other processes send live text for a while, with `again` from the beginning. */
  follow(again = false): void {
    const { hints, shared } = this.#parts;
    hints.send({ kind: "follow", address: shared.address, again });
  }

  #showTextsTo({ address, again }: Extract<Hint, { kind: "follow" }>): void {
    const { hints, executions, owner } = this.#parts;
    if (hints.addFollower(address) || again) for (const one of executions.all()) one.publishText();
    if (again) hints.send({ kind: "followed", owner, address });
  }

  /** Throws `NotReady` if another process executes this run, and its text so far is not known here. */
  needText({ owner }: Run): void {
    const { bus, world } = this.#parts;
    if (owner === undefined || owner === this.#parts.owner || bus.showsText() || this.#heard.has(owner))
      return;
    this.follow(true);
    world.clock.after(ANSWER_MS, () => this.#noteHeard(owner));
    throw new NotReady(this.#answer.promise);
  }

  /** Notes that a process has sent all its texts, or does not answer. */
  #noteHeard(owner: string): void {
    this.#heard.add(owner);
    this.#parts.world.clock.after(HEARD_MS, () => this.#heard.delete(owner));
    this.#answer.resolve();
    this.#answer = Promise.withResolvers();
  }

  #hear(hint: Hint): void {
    if (hint.kind === "ready") this.#parts.look();
    else if (hint.kind === "resumed") this.#parts.executions.resume(hint.held);
    else if (hint.kind === "gap") this.#gap = true;
    else if (hint.kind === "follow") this.#showTextsTo(hint);
    else if (hint.kind === "followed") this.#noteHeard(hint.owner);
    else if (hint.kind === "event") this.#hearEvent(hint.event);
    else if (hint.to === this.#parts.owner) for (const read of this.#readers) read(hint.body);
  }

  #hearEvent(event: LiveEvent): void {
    const { executions, bus, watch } = this.#parts;
    if (isLiveText(event) && !this.#hearText(event)) return;
    if (event.kind === "run_ended") {
      for (const kind of ["text", "thinking"] as const) this.#texts.delete(keyOf(kind, event.runId));
      watch.noteEnd(event.runId);
      executions.stopEnded(event);
    }
    bus.hear(event);
  }

  #askClockLater(): void {
    const { clock, log } = this.#parts.world;
    if (this.#state !== "open") return;
    this.#clockTimer = clock.after(CLOCK_MS, () => {
      if (this.#parts.bus.showsText()) this.follow();
      void this.#parts.shared
        .syncClock()
        .catch((error: unknown) => log.debug({ err: error }, "could not read the database's time"))
        .finally(() => this.#askClockLater());
    });
  }

  #sweepLater(): void {
    const { world } = this.#parts;
    if (this.#state !== "open") return;
    // Random, so that not all processes sweep at the same time.
    const afterMs = SWEEP_MS * (0.8 + 0.4 * world.random());
    this.#sweepTimer = world.clock.after(afterMs, () => {
      this.#sweeping = this.#sweep();
    });
  }

  async #sweep(): Promise<void> {
    const { world } = this.#parts;
    if (this.#isIdle()) {
      this.#sweepLater();
      return;
    }
    const now = world.clock.now();
    let isMissing = false;
    try {
      const takenOver = await this.#takeOver();
      isMissing = this.#gap || takenOver;
      // Before the queries, because hints may be lost while they run.
      this.#gap = false;
      const since = Math.max(this.#startedAt, this.#wholeUntil - TOLD_AGAIN_MS);
      await this.#parts.reconcile(isMissing ? since : undefined);
      this.#wholeUntil = now;
      if (!takenOver) this.#idleUntil = world.clock.monotonic() + IDLE_SWEEP_MS;
    } catch (error) {
      this.#gap ||= isMissing;
      world.log.warn({ err: error }, "the periodic check of the shared store failed and will run again");
    }
    this.#sweepLater();
  }

  /** Returns whether the last sweep found nothing, and nothing has happened since. */
  #isIdle(): boolean {
    const { world, lease, executions, watch } = this.#parts;
    const isBusy = executions.all().length > 0 || !watch.isIdle();
    if (isBusy || this.#gap || lease.silent().length > 0) this.#idleUntil = Number.NEGATIVE_INFINITY;
    return world.clock.monotonic() < this.#idleUntil;
  }

  /** Declares silent processes dead and takes over their runs. Returns false if there was nothing to do. */
  async #takeOver(): Promise<boolean> {
    const { store, commit, world, lease } = this.#parts;
    if (lease.silent().length === 0 && !(await hasOrphans(store.db))) return false;
    const { dead, runs } = await commit(async (unit) => {
      const dead: string[] = [];
      // Query the database first: if it was down since the check above, no process may be declared dead.
      await beats(unit.tx);
      for (const one of lease.silent()) if (await declareDead(unit.tx, one)) dead.push(one.processId);
      await this.#parts.callerWaits.giveUp(unit, "the dead");
      return { dead, runs: await requeueHeld(unit.tx, unit.now, "the dead") };
    });
    for (const processId of dead) world.log.warn({ processId }, "a process is dead: its lease has expired");
    for (const run of runs) {
      const fields = { ...idsOf(run), crashes: run.crashes };
      world.log.warn(fields, "took over a run of a dead process");
    }
    return true;
  }
}
