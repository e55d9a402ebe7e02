// Owns the runs that this process executes: begins each after its claim, and writes its end. A final text is
// written by the transaction that ends its run, so a plain run costs two commits.
// L4: if the end of a run cannot be stored, the write is retried until it succeeds.

import type { Run } from "../../core/shapes/run.ts";
import { holdForEnd, holdSessions } from "../../store/locks.ts";
import { type HeldLane, heldBy, moveHeld } from "../../store/queries/runs/claims.ts";
import { readStandstill } from "../../store/queries/runs/holds.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import type { Timer } from "../../world.ts";
import { holdId } from "../lanes/end-watch.ts";
import type { Unit } from "../unit.ts";
import { failRun } from "./begin.ts";
import { createExecution, type Execution, type ExecutionParts, type LaneHandle } from "./execution.ts";
import { type EndFacts, endInUnit, LostLane, publishEnd } from "./finish.ts";
import { logRetry, STORE_RETRY_MS, untilStored } from "./until-stored.ts";

/** Executes one claimed run to its end; set in the composition root. Failures are values. */
export interface Executor {
  execute(handle: LaneHandle): Promise<EndFacts>;
  /**
   * Called after a begun run was aborted, whether a process executes it or not: stops its work elsewhere.
   * Must not throw.
   */
  noteAborted?(run: Run): void;
}

interface ExecutionsParts extends Omit<ExecutionParts, "running"> {
  readonly executor: Executor;
  /** Returns when a begun run times out (ms since 1970). Undefined: never. */
  limitAt(run: Run): number | undefined;
}

export class Executions {
  readonly #parts: ExecutionsParts & ExecutionParts;
  readonly #byLane = new Map<string, Execution>();
  readonly #claimed = new Set<string>();
  #closed = false;
  #idle = Promise.withResolvers<void>();

  constructor(parts: ExecutionsParts) {
    this.#parts = { ...parts, running: () => this.#byLane.size };
  }

  get(sessionKey: string): Execution | undefined {
    return this.#byLane.get(sessionKey);
  }

  lanes(): string[] {
    return [...this.#byLane.keys()];
  }

  all(): Execution[] {
    return [...this.#byLane.values()];
  }

  executes({ runId, sessionKey }: Pick<Run, "runId" | "sessionKey">): boolean {
    return this.#byLane.get(sessionKey)?.fence.runId === runId;
  }

  /**
   * Executes a run after the transaction that claims it. `leaseHolds`: see `Lease.watch`; undefined if no
   * other process could hold the run.
   */
  beginAfter(unit: Unit, run: Run, leaseHolds: (() => boolean) | undefined): void {
    const { runId } = run;
    this.#claimed.add(runId);
    unit.undone(() => this.#claimed.delete(runId));
    unit.after(() => {
      this.#claimed.delete(runId);
      const execution = createExecution(run, this.#parts.owner, this.#parts);
      this.#byLane.set(run.sessionKey, execution);
      // If the answer to the claim was late, another process may have the run by now.
      if (this.#closed || leaseHolds?.() === false) execution.stop("parked");
      if (this.#parts.bus.hasEnded(runId)) execution.stop("ended");
      void this.#execute(execution);
    });
  }

  resume(held: HeldLane): void {
    if (this.executes(held)) this.#byLane.get(held.sessionKey)?.noteResumed();
  }

  /** Stops the execution of a run whose row has ended. */
  stopEnded(run: Pick<Run, "runId" | "sessionKey">): void {
    if (this.executes(run)) this.#byLane.get(run.sessionKey)?.stop("ended");
  }

  /** Stops an aborted run, also at an agent elsewhere. */
  stopAborted(run: Run): void {
    this.stopEnded(run);
    if (run.startedAt !== undefined) this.#parts.executor.noteAborted?.(run);
  }

  /**
   * Compares the executions in memory with the rows that name this process, and corrects both. Returns false
   * if a run was being claimed; then call it again.
   */
  async compare(): Promise<boolean> {
    const { store, owner } = this.#parts;
    const before = this.all();
    // A run that begins to wait meanwhile is `running` in the rows that are read.
    const waiting = new Set(before.filter((execution) => execution.waiting()));
    const rows = await heldBy(store.db, owner);
    const mine = new Set(rows.map((row) => `${row.runId} ${row.attempt}`));
    for (const execution of before) {
      const { runId, attempt } = execution.fence;
      if (!mine.has(`${runId} ${attempt}`)) execution.stop("ended");
    }
    for (const row of rows) {
      const execution = this.#byLane.get(row.sessionKey);
      if (row.isRunning && execution !== undefined && waiting.has(execution)) this.resume(row);
    }
    const isClaimed = ({ runId }: HeldLane): boolean => this.#claimed.has(runId);
    await this.#takeBack(rows.filter((row) => !this.executes(row) && !isClaimed(row)));
    return !rows.some(isClaimed);
  }

  /**
   * Returns runs to their queues whose claim was committed although the answer to the commit was lost: their
   * rows name this process, but no execution exists.
   */
  async #takeBack(lost: readonly HeldLane[]): Promise<void> {
    const { commit, world } = this.#parts;
    if (lost.length === 0 || this.#closed) return;
    await commit(async (unit) => {
      await holdSessions(
        unit.tx,
        lost.map(({ sessionKey }) => sessionKey),
      );
      for (const held of lost) {
        if (await moveHeld(unit.tx, held, "queued", unit.now))
          world.log.warn({ runId: held.runId }, "the answer to a claim was lost; executing the run now");
      }
    });
  }

  close(): void {
    this.#closed = true;
  }

  /** Resolves when no run executes. Call it after `close`. */
  idle(): Promise<void> {
    this.#noteIdle();
    return this.#idle.promise;
  }

  #noteIdle(): void {
    if (this.#closed && this.#byLane.size === 0 && this.#claimed.size === 0) this.#idle.resolve();
  }

  async #execute(execution: Execution): Promise<void> {
    const { look } = this.#parts;
    const { run } = execution.handle;
    const unwatchLimit = this.#watchLimit(execution);
    const facts = await this.#factsOf(execution);
    unwatchLimit();
    await this.#end(execution, { ...facts, revision: execution.revision() });
    await this.#publishEnd(run);
    if (this.#leave(execution)) look();
  }

  /** Leaves the lane. Returns false if the execution had left it before. */
  #leave(execution: Execution): boolean {
    const { sessionKey } = execution.handle.run;
    if (this.#byLane.get(sessionKey) !== execution) return false;
    execution.leave();
    this.#byLane.delete(sessionKey);
    this.#noteIdle();
    return true;
  }

  /** Runs the executor. A run that was stopped before it began is not executed. */
  async #factsOf(execution: Execution): Promise<EndFacts> {
    const { handle } = execution;
    const world = { ...this.#parts.world, log: handle.log };
    if (execution.stopReason() !== undefined) return { state: "aborted" };
    try {
      // A repeated execution continues as after a crash: it does not repeat steps that are in the transcript.
      return await untilStored(world, handle.signal, () => this.#parts.executor.execute(handle));
    } catch (error) {
      if (!(error instanceof LostLane) && execution.stopReason() === undefined) {
        handle.log.error({ err: error }, "a run failed unexpectedly");
      }
      return failRun(error instanceof Error ? error.message : String(error));
    }
  }

  async #end(execution: Execution, facts: EndFacts): Promise<void> {
    const { commit } = this.#parts;
    const { handle, fence, writeFinal } = execution;
    const { run, log } = handle;
    while (execution.stopReason() !== "ended") {
      // Wait for the authority. If the run is parked during this wait, its row must still be updated.
      await this.#parts.lease?.confirm(handle.signal);
      try {
        await commit(async (unit) => {
          if (execution.stopReason() === "parked") {
            // The run returns to its queue, as the head of its lane.
            await holdForEnd(unit.tx, run);
            if (await moveHeld(unit.tx, fence, "queued", unit.now)) await writeFinal(unit);
            return;
          }
          // Leaves the lane before the end is published, so that the look that follows finds the next run.
          unit.after(() => this.#leave(execution));
          await endInUnit(unit, run, facts, this.#parts, execution);
        });
        return;
      } catch (error) {
        if (error instanceof LostLane) return;
        logRetry(log, error, "the end of a run could not be stored");
        if (this.#closed) return;
        await new Promise<void>((resolve) => this.#later(resolve));
      }
    }
  }

  /**
   * Reads the row of an ended run and publishes the end. Another process may have stored it, or the answer to
   * our commit was lost.
   */
  async #publishEnd({ runId }: Run): Promise<void> {
    const { store, bus, watch, world } = this.#parts;
    if (bus.hasEnded(runId)) return;
    try {
      const stored = await getRun(store.db, runId);
      if (stored !== undefined) publishEnd(stored, { bus, watch });
    } catch (error) {
      // `Reconciler` publishes the end later.
      world.log.warn({ err: error, runId }, "the end of a run could not be read");
    }
  }

  /** Times out the run at its limit. Returns a function that cancels this. */
  #watchLimit(execution: Execution): () => void {
    const { commit, store, watch, world } = this.#parts;
    const { run, log, signal } = execution.handle;
    const limitAt = this.#parts.limitAt(run);
    if (limitAt === undefined) return () => {};
    let timer: Timer | undefined;
    let isOver = false;
    const watchFor = (heldMs: number): void => {
      if (!isOver) timer = world.clock.at(limitAt + heldMs, () => void timeOut(heldMs));
    };
    const timeOut = async (countedMs: number): Promise<void> => {
      try {
        // While a person holds the run, its limit moves on (H3 of hold.ts).
        let heldMs = countedMs;
        const isReleased = async (): Promise<boolean> => {
          const standstill = await readStandstill(store.db, run.runId);
          heldMs = standstill.heldMs;
          return !standstill.isHeld;
        };
        await watch.until([holdId(run.sessionKey)], isReleased, Number.POSITIVE_INFINITY, signal);
        if (signal.aborted) return;
        if (heldMs > countedMs) return watchFor(heldMs);
        await commit(async (unit) => {
          const error = `the run took longer than its limit of ${run.timeoutMs / 1000} s`;
          const facts = { state: "timeout", code: "run_timeout", error } as const;
          const { textSoFar: unfinishedText, revision } = execution;
          const end = { ...facts, unfinishedText, revision: revision() };
          await endInUnit(unit, run, end, this.#parts, execution);
          unit.after(() => execution.stop("ended"));
        });
      } catch (problem) {
        if (problem instanceof LostLane) return;
        logRetry(log, problem, "a time-out could not be stored");
        this.#later(() => void timeOut(countedMs));
      }
    };
    watchFor(0);
    return () => {
      isOver = true;
      timer?.cancel();
    };
  }

  #later(action: () => void): void {
    const { clock } = this.#parts.world;
    if (!this.#closed) clock.after(STORE_RETRY_MS, action);
  }
}
