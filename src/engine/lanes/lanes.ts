// A lane is the ordered queue of a session's runs. Claims the first run of a lane, executes it, ends it, and
// continues with the next run. At most one run of a session executes (I1). An idle lane is claimed by the
// transaction that accepts its work, and a final text is written by the transaction that ends its run, so a
// plain run costs two commits. If several processes share the store, a process claims a run only while it is
// alive and the deployment has a free slot. The state of each lane and its transitions are in lane-state.ts.
// L2: runs of a lane start in lane order (I3). A run that only appends its input needs no slot.
// L4: if the end of a run cannot be stored, the write is retried until it succeeds.

import { optional } from "../../core/optional.ts";
import { cautionFor } from "../../core/rules/crash-policy.ts";
import { FairQueue, type WaitingLane } from "../../core/rules/fair-queue.ts";
import { namesIn, type Pool } from "../../core/rules/pools.ts";
import { fail } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import { holdForEnd, holdSessions } from "../../store/locks.ts";
import { claimBudgetNotice } from "../../store/queries/chains/chains.ts";
import { isAlive } from "../../store/queries/processes.ts";
import type { HeldRun } from "../../store/queries/runs/claims.ts";
import {
  claimedBy,
  claimRun,
  hasQueued,
  heldBy,
  isHeld,
  moveHeld,
  nextInLane,
} from "../../store/queries/runs/claims.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { mayStart } from "../../store/queries/runs/slots.ts";
import { together } from "../../store/transaction.ts";
import { idsOf, withFields } from "../../world.ts";
import { failed, publishStart, writeInput } from "../run/begin.ts";
import { createExecution, type Execution, type ExecutionParts, type LaneHandle } from "../run/execution.ts";
import { type EndFacts, endInUnit, endWithText, isComplete, publishEnd } from "../run/finish.ts";
import { LostLane } from "../run/transcript-writer.ts";
import { logRetry, STORE_RETRY_MS, untilStored } from "../run/until-stored.ts";
import type { Unit } from "../unit.ts";
import {
  advance,
  IDLE,
  isAhead,
  isBusy,
  type LaneEffect,
  type LaneEvent,
  type LaneState,
  waitOf,
} from "./lane-state.ts";

/** Returned to roll back the transaction that ends a run, if this execution no longer holds the run. */
const NOT_HELD = fail("run_failed", "this process no longer holds the run");

/** Executes one claimed run to its end; set in the composition root. Failures are values. */
export interface Executor {
  execute(handle: LaneHandle): Promise<EndFacts>;
  /**
   * Called after a begun run was aborted, whether a process executes it or not: stops its work elsewhere.
   * Must not throw.
   */
  aborted?(run: Run): void;
}

/** A claimed run. `leaseHolds`: see `Authority.watch`; undefined if no other process could hold the run. */
interface Claimed {
  readonly kind: "run";
  readonly run: Run;
  readonly leaseHolds: (() => boolean) | undefined;
}

type Claim =
  | Claimed
  /**
   * No slot is free. If the whole deployment has none, `freedBefore` is the value of `#freed` before the
   * check. If only this process has none, it is absent.
   */
  | { kind: "full"; lane: WaitingLane; freedBefore?: number }
  | { kind: "empty" };

export interface LaneParts extends ExecutionParts {
  readonly executor: Executor;
  readonly owner: string;
  /** Returns the pool of slots that a run belongs to. */
  poolOf(run: Run): Pool;
  /** Returns the end of a turn that must not start. */
  refusalOf(unit: Unit, run: Run): Promise<EndFacts | undefined>;
  /** Returns when a begun run times out (ms since 1970). Undefined: never. */
  limitAt(run: Run): number | undefined;
}

export class Lanes {
  readonly #parts: LaneParts;
  /** Lanes that are not idle. Only `#send` changes it. */
  readonly #states = new Map<string, LaneState>();
  /** The runs that this process executes. */
  readonly #executing = new Set<string>();
  /** Lanes whose state says that they wait for a slot, in the order in which they get one. */
  readonly #starved = new FairQueue();
  /** Number of lanes that are being claimed or executed. */
  #busy = 0;
  /** Number of lanes that are being claimed and start before lanes with `isLast`. */
  #ahead = 0;
  /** Pools in which the deployment had no slot when a lane asked last, since a slot was freed. */
  readonly #fullPools = new Set<string>();
  /** Number of slots that were freed so far, in this process or in others. */
  #freed = 0;
  readonly #idle = Promise.withResolvers<void>();
  #closed = false;

  constructor(parts: LaneParts) {
    this.#parts = parts;
  }

  /** Claims the head of the lane, unless another call is already claiming it. */
  wake(sessionKey: string): void {
    if (!this.#closed) this.#send(sessionKey, { kind: "wake" });
  }

  /** Moves a lane to its next state and performs the effect. */
  #send(sessionKey: string, event: LaneEvent): LaneEffect {
    const before = this.#stateOf(sessionKey);
    const { state, effect } = advance(before, event);
    if (state === IDLE) this.#states.delete(sessionKey);
    else this.#states.set(sessionKey, state);
    this.#busy += Number(isBusy(state)) - Number(isBusy(before));
    this.#ahead += Number(isAhead(state)) - Number(isAhead(before));
    if (before.kind === "executing") this.#executing.delete(before.execution.fence.runId);
    if (state.kind === "executing") this.#executing.add(state.execution.fence.runId);
    const lane = waitOf(state);
    if (lane === undefined) this.#starved.delete(sessionKey);
    else if (lane !== waitOf(before)) this.#starved.add(sessionKey, lane);
    this.#noteIdle();
    if (effect === "look") void this.#step(sessionKey);
    if (effect === "stop") this.executionOf(sessionKey)?.stop("ended");
    if (effect === "wake") this.wake(sessionKey);
    return effect;
  }

  #stateOf(sessionKey: string): LaneState {
    return this.#states.get(sessionKey) ?? IDLE;
  }

  /**
   * Wakes as many waiting lanes as there are free slots. If several processes share the store, wakes only one
   * lane: when it has its slot, or needs none, `#follow` wakes the next. Returns false if no lane waits.
   */
  slotFree(): boolean {
    this.#freed += 1;
    this.#fullPools.clear();
    if (this.#starved.size === 0) return false;
    this.#wakeNext();
    return true;
  }

  /** Returns the waiting lanes that get the free slots, at most `most`. Leaves out lanes of full pools. */
  #next(most?: number): string[] {
    const { slots } = this.#parts;
    const isFull = (pool: Pool): boolean => namesIn(pool).some((name) => this.#fullPools.has(name));
    const free = (pool: Pool): number => (isFull(pool) ? 0 : slots.free(pool));
    return this.#starved.next({ ...slots, free }, most);
  }

  #wakeNext(): void {
    for (const sessionKey of this.#next(this.#parts.shared === undefined ? undefined : 1)) {
      const state = this.#stateOf(sessionKey);
      // A lane in another state checks again by itself.
      if (state.kind !== "waiting") continue;
      if (state.lane.isLast !== true || this.#ahead === 0) this.wake(sessionKey);
    }
  }

  /** Returns whether other lanes must get the free slots before this one. */
  #isBehind(sessionKey: string, lane: WaitingLane): boolean {
    if (this.#parts.slots.free(lane.pool) === 0) return true;
    // Whether a lane that may start before this one is being claimed.
    const othersClaim = this.#ahead > Number(isAhead(this.#stateOf(sessionKey)));
    if (lane.isLast === true && othersClaim) return true;
    if (this.#starved.size === 0) return false;
    const waits = this.#starved.has(sessionKey);
    if (waits) this.#send(sessionKey, { kind: "head", lane });
    // The lane does not wait yet: add it to the queue only for this comparison.
    else this.#starved.add(sessionKey, lane);
    // This lane is about to ask for a slot of its pools.
    for (const name of namesIn(lane.pool)) this.#fullPools.delete(name);
    const isNext = this.#next().includes(sessionKey);
    if (!waits) this.#starved.delete(sessionKey);
    return !isNext;
  }

  /** Returns whether this process executes a run. */
  executes(runId: string): boolean {
    return this.#executing.has(runId);
  }

  executionOf(sessionKey: string): Execution | undefined {
    const state = this.#stateOf(sessionKey);
    return state.kind === "executing" ? state.execution : undefined;
  }

  /**
   * Compares the executions in memory with the rows that name this process, and corrects both. Returns false
   * if a lane was being claimed; then call it again.
   */
  async compare(): Promise<boolean> {
    const { store, owner } = this.#parts;
    const before = this.executions();
    const rows = await heldBy(store.db, owner);
    const mine = new Set(rows.map((row) => `${row.runId} ${row.attempt}`));
    for (const execution of before) {
      const { runId, attempt } = execution.fence;
      if (!mine.has(`${runId} ${attempt}`)) execution.stop("ended");
    }
    const executing = new Set(before.map(({ handle }) => handle.run.sessionKey));
    let isSettled = true;
    for (const row of rows) {
      if (!executing.has(row.sessionKey) && !(await this.#takeBack(row))) isSettled = false;
    }
    return isSettled;
  }

  /**
   * Executes a run whose claim was committed although the answer to the commit was lost: its row names this
   * process, but no execution exists. Returns false if the lane is being claimed.
   */
  async #takeBack(held: HeldRun): Promise<boolean> {
    const { sessionKey } = held;
    if (this.#closed) return true;
    if (this.#send(sessionKey, { kind: "take" }) === "refuse") return false;
    try {
      const { commit, world } = this.#parts;
      const back = await commit(async (unit) => {
        await holdSessions(unit.tx, [sessionKey]);
        return moveHeld(unit.tx, held, "queued");
      });
      if (back) world.log.warn(idsOf(held), "the answer to a claim was lost; executing the run now");
    } finally {
      this.#send(sessionKey, { kind: "left" });
    }
    this.wake(sessionKey);
    return true;
  }

  /** Stops the execution of a run whose row has ended. */
  stopEnded({ runId, sessionKey }: Pick<Run, "runId" | "sessionKey">): void {
    this.#send(sessionKey, { kind: "ended", runId });
  }

  /** Stops an aborted run, also at an agent elsewhere. */
  stopAborted(run: Run): void {
    this.stopEnded(run);
    if (run.startedAt !== undefined) this.#parts.executor.aborted?.(run);
  }

  executions(): Execution[] {
    return [...this.#states.values()].flatMap((state) =>
      state.kind === "executing" ? [state.execution] : [],
    );
  }

  /** Stops claiming lanes. A run whose claim is in progress is parked. */
  close(): void {
    this.#closed = true;
  }

  /**
   * At the end of a planned stop, returns each run that still executes to its queue, so that it does not
   * count as crashed.
   */
  async giveBack(): Promise<void> {
    const { commit, world } = this.#parts;
    for (const { fence, handle } of this.executions()) {
      try {
        await commit((unit) => moveHeld(unit.tx, fence, "queued"));
      } catch (error) {
        world.log.warn(
          { ...idsOf(handle.run), err: error },
          "a run could not be returned to its lane at the stop",
        );
      }
    }
  }

  /** Resolves when no lane is being claimed or executed. Call it after `close`. */
  idle(): Promise<void> {
    this.#noteIdle();
    return this.#idle.promise;
  }

  #noteIdle(): void {
    if (this.#closed && this.#busy === 0) this.#idle.resolve();
  }

  /**
   * Claims an idle lane in the transaction that accepted its work. If the lane is busy, or the lease must be
   * renewed first, the lane is checked after the commit. `head`: the turn that the transaction accepted as
   * the only run of its lane; it is not read again.
   */
  async claimWith(unit: Unit, sessionKey: string, head?: Run): Promise<void> {
    const { lease } = this.#parts;
    if (this.#closed) return;
    if (lease?.isFresh() === false || this.#send(sessionKey, { kind: "take" }) === "refuse") {
      unit.after(() => this.wake(sessionKey));
      return;
    }
    unit.undone(() => {
      this.#send(sessionKey, { kind: "undone" });
      if (this.#starved.hasLast()) this.slotFree();
    });
    const isQueued = head !== undefined && !unit.ended.has(head.runId);
    const outcome = await this.#claim(unit, sessionKey, isQueued ? head : undefined);
    unit.after(() => void this.#follow(sessionKey, outcome));
  }

  async #step(sessionKey: string): Promise<void> {
    let outcome: Claim;
    try {
      outcome = await this.#look(sessionKey);
    } catch (error) {
      logRetry(withFields(this.#parts.world.log, { sessionKey }), error, "a lane could not be read");
      this.#send(sessionKey, { kind: "left" });
      this.#later(() => this.wake(sessionKey));
      return;
    }
    await this.#follow(sessionKey, outcome);
  }

  /**
   * Checks without a transaction first, because the lane is usually empty. A run that is accepted later wakes
   * the lane.
   */
  async #look(sessionKey: string): Promise<Claim> {
    const { store, commit, lease } = this.#parts;
    if (!(await hasQueued(store.db, sessionKey))) return { kind: "empty" };
    // Without a lease nothing is claimed. The sweep checks the lane again.
    if (lease !== undefined && !(await lease.renewed())) return { kind: "empty" };
    return commit(async (unit) => {
      await holdSessions(unit.tx, [sessionKey]);
      return this.#claim(unit, sessionKey);
    });
  }

  /** Continues after the claim is committed: executes the claimed run, or wakes lanes that may start now. */
  async #follow(sessionKey: string, outcome: Claim): Promise<void> {
    const { slots, shared } = this.#parts;
    if (outcome.kind === "run") {
      const execution = this.#start(outcome);
      if (this.#starved.size > 0) shared?.wanted();
      const executed = this.#execute(execution);
      if (slots.taken() < slots.max()) this.slotFree();
      return executed;
    }
    const waited = this.#starved.has(sessionKey);
    this.#send(sessionKey, outcome);
    if (outcome.kind === "full" && outcome.freedBefore !== undefined) {
      shared?.wanted();
      // A freed slot wakes lanes that found none. If a slot was freed during the check, wake this lane now.
      if (outcome.freedBefore !== this.#freed) this.wake(sessionKey);
      else this.#passOver(outcome.lane);
      return;
    }
    // Look for another lane if this lane no longer waits, if it found no slot (one may have been freed
    // since), or if a lane that must start last was waiting for the result of this claim.
    if (waited || outcome.kind === "full" || this.#starved.hasLast()) this.slotFree();
  }

  /** Offers the slot that a lane did not get to lanes outside its pools, of which one may be full. */
  #passOver({ pool }: WaitingLane): void {
    if (pool === undefined) return;
    for (const name of namesIn(pool)) this.#fullPools.add(name);
    this.#wakeNext();
  }

  /** Ends waiting appends and, if a slot is free, claims the next turn. `head`: see `claimWith`. */
  async #claim(unit: Unit, sessionKey: string, head?: Run): Promise<Claim> {
    const { slots, owner, lease } = this.#parts;
    const leaseHolds = lease?.watch();
    for (let known = head; ; known = undefined) {
      const next = known ?? (await nextInLane(unit.tx, sessionKey));
      if (next === undefined) return { kind: "empty" };
      const isPlain = next.kind === "append" && next.input.unreadable !== true;
      const refusal = isPlain ? undefined : await this.#parts.refusalOf(unit, next);
      const endsAtOnce = next.kind === "append" || refusal !== undefined;
      // Check this before any write, so that a lane that waits for a slot causes no writes.
      const isLast = cautionFor(next) !== "none";
      const lane = { agentId: next.agentId, pool: this.#parts.poolOf(next), isLast };
      if (!endsAtOnce && this.#isBehind(sessionKey, lane)) return { kind: "full", lane };
      const freedBefore = this.#freed;
      const gate = await this.#gate(unit, endsAtOnce, lane.pool);
      if (gate !== "open") return gate === "full" ? { kind: "full", lane, freedBefore } : { kind: "empty" };
      if (!endsAtOnce) {
        // Another lane of this process may have taken the slot since the check.
        if (!slots.tryTake(lane)) return { kind: "full", lane };
        unit.undone(() => slots.release(lane));
      }
      const run = claimedBy(next, owner, unit.now);
      // The text of a refused run is stored, too: nobody would send a reply, a notice or a result again.
      await together(claimRun(unit.tx, run, lane.pool), writeInput(unit, run));
      if (endsAtOnce) {
        await this.#endAtOnce(unit, run, refusal);
        continue;
      }
      publishStart(unit, run);
      return { kind: "run", run, leaseHolds };
    }
  }

  /**
   * Checks whether this process may claim a run while other processes execute runs. `stale`: the others may
   * consider this process dead.
   */
  async #gate(unit: Unit, endsAtOnce: boolean, pool: Pool): Promise<"open" | "full" | "stale"> {
    const { shared, owner } = this.#parts;
    if (shared === undefined) return "open";
    const [alive, room] = await together(
      isAlive(unit.tx, owner),
      endsAtOnce ? true : mayStart(unit.tx, pool, shared.limits),
    );
    if (!alive) return "stale";
    return room ? "open" : "full";
  }

  /** Ends a run in the transaction that claims it, if the run only appends its input or must not start. */
  async #endAtOnce(unit: Unit, run: Run, refusal: EndFacts | undefined): Promise<void> {
    const { finish } = this.#parts;
    await this.#holdParties(unit, run);
    await endInUnit(unit, run, refusal ?? { state: "ok", reply: "" }, finish);
    if (refusal !== undefined) await this.#publishBudgetRefusal(unit, run, refusal);
  }

  /** Notifies the root session of a chain, once, that the chain's budget has ended a run. */
  async #publishBudgetRefusal(unit: Unit, run: Run, { code, error = "" }: EndFacts): Promise<void> {
    const { finish } = this.#parts;
    if (code !== "chain_limit" || !(await claimBudgetNotice(unit.tx, run.chainId))) return;
    await finish.successors.budgetUsedUp(finish.acceptor, unit, run, error);
  }

  #start({ run, leaseHolds }: Claimed): Execution {
    const { owner, poolOf } = this.#parts;
    const execution = createExecution(run, owner, this.#parts, poolOf(run));
    this.#send(run.sessionKey, { kind: "claimed", execution });
    // If the answer to the claim was late, another process may have the run by now.
    if (this.#closed || leaseHolds?.() === false) execution.stop("parked");
    return execution;
  }

  async #execute(execution: Execution): Promise<void> {
    const { world } = this.#parts;
    const { run } = execution.handle;
    const limitAt = this.#parts.limitAt(run);
    const timer =
      limitAt === undefined ? undefined : world.clock.at(limitAt, () => void this.#timeOut(execution));
    const facts = await this.#factsOf(execution);
    timer?.cancel();
    await this.#end(execution, { ...facts, revision: execution.revision() });
    await this.#publishEnd(run);
    execution.leave();
    this.#send(run.sessionKey, { kind: "over" });
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
      return failed("run_failed", error instanceof Error ? error.message : String(error));
    }
  }

  /** Writes the end of a run, and retries if that fails (L4). */
  async #end(execution: Execution, facts: EndFacts): Promise<void> {
    const { commit, finish } = this.#parts;
    const { run, log } = execution.handle;
    while (execution.stopReason() !== "ended") {
      // Wait for the authority. If the run is parked during this wait, its row must still be updated.
      await this.#parts.lease?.confirm(execution.handle.signal);
      try {
        await commit(async (unit) => {
          const isParked = execution.stopReason() === "parked";
          if (!isParked && execution.hasFinal() && isComplete(facts)) {
            const holding = this.#holdParties(unit, run);
            const [, ended] = await together(
              holding,
              endWithText(unit, { run, ...execution }, facts, finish),
            );
            return ended ? true : NOT_HELD;
          }
          if (!(await this.#holds(unit, execution))) return false;
          await execution.writeFinal(unit);
          if (isParked) return moveHeld(unit.tx, execution.fence, "queued");
          const ended = await endInUnit(unit, run, facts, finish);
          if (ended) await this.#publishBudgetRefusal(unit, run, facts);
          return ended;
        });
        return;
      } catch (error) {
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
      // `UnconfirmedCommits` publishes the end later.
      world.log.warn({ err: error, runId }, "the end of a run could not be read");
    }
  }

  async #timeOut(execution: Execution): Promise<void> {
    const { commit, finish } = this.#parts;
    const { run, log } = execution.handle;
    const error = `the run took longer than its limit of ${run.timeoutMs / 1000} s`;
    try {
      const done = await commit(async (unit) => {
        if (!(await this.#holds(unit, execution))) return false;
        // Read the text inside the transaction: text that was read earlier may since have been stored as a
        // message, and must not be stored twice.
        const unfinishedText = execution.textSoFar();
        const revision = execution.revision();
        const facts: EndFacts = { state: "timeout", code: "run_timeout", error, unfinishedText, revision };
        return endInUnit(unit, run, facts, finish);
      });
      if (done) execution.stop("ended");
    } catch (problem) {
      logRetry(log, problem, "a time-out could not be stored");
      this.#later(() => void this.#timeOut(execution));
    }
  }

  /**
   * Locks the rows that the end of an execution changes. Returns false if the execution no longer holds its
   * lane, or if its run has ended.
   */
  async #holds(unit: Unit, { handle, fence }: Execution): Promise<boolean> {
    const [, held] = await together(this.#holdParties(unit, handle.run), isHeld(unit.tx, fence));
    return held;
  }

  #holdParties(unit: Unit, { sessionKey, flow }: Run): Promise<void> {
    return holdForEnd(unit.tx, { sessionKey, ...optional({ flowId: flow?.flowId }) });
  }

  #later(action: () => void): void {
    const { clock } = this.#parts.world;
    if (!this.#closed) clock.after(STORE_RETRY_MS, action);
  }
}
