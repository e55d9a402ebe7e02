// Decides which run this process executes next, and claims it. A run is ready when it is the head of an idle
// lane, or when it holds its lane and wants to continue after a wait; a row says so (`ready_at`), so all
// processes see the same queues. A run that is accepted into an idle lane is claimed by the same transaction
// if a slot is free; a look at the queues claims every other run.
// L2: runs of a lane start in lane order (I3). A run that only appends its input needs no slot.
// SC1: one transaction claims one run, and a lane whose claim failed is left out for a while, so that no run
//      can keep others from starting.

import { optional } from "../../core/optional.ts";
import {
  type AgentUse,
  hasPriority,
  isSubagentQueue,
  nameQueue,
  nextHead,
} from "../../core/rules/run-queue.ts";
import type { Run } from "../../core/shapes/run.ts";
import { holdForEnd, holdFreeSessions } from "../../store/locks.ts";
import {
  askForSlot,
  claimedBy,
  claimRun,
  countRunning,
  type HeldLane,
  type ReadyRun,
  readyHeads,
  resumeRun,
} from "../../store/queries/runs/claims.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { releaseSlot, SUBAGENT_SLOTS, takeSlot } from "../../store/queries/runs/slots.ts";
import type { Db, Tx } from "../../store/sql.ts";
import { together } from "../../store/transaction.ts";
import { type Timer, withFields } from "../../world.ts";
import type { EngineCore } from "../engine.ts";
import { publishStart, writeInput } from "../run/begin.ts";
import type { Executions } from "../run/executions.ts";
import { type EndFacts, endInUnit } from "../run/finish.ts";
import { logRetry, STORE_RETRY_MS } from "../run/until-stored.ts";
import type { Unit } from "../unit.ts";

/** Delay before another look if another transaction has locked the lane of a ready run. */
const LOCKED_AGAIN_MS = 50;

/**
 * Result of an attempt to start a run. `full`: no slot is free. `pool`: sub-agents have all their slots.
 * `not now`: another process has locked its lane, or it is held back.
 */
type Start = "done" | "full" | "pool" | "not now";

interface LeftOut {
  readonly passed: ReadonlySet<string>;
  /** False if sub-agents have all their slots. */
  readonly hasPool: boolean;
}

interface SchedulerParts extends EngineCore {
  readonly executions: Executions;
  /** Returns the end of a turn that must not start. */
  refusalOf(unit: Unit, run: Run): Promise<EndFacts | undefined>;
  /** Returns whether a run must not start yet. */
  isHeldBack(run: Run): boolean;
  /** Tells the other processes that a run is ready, or that this run of another process may continue. */
  tell(resumed?: HeldLane): void;
}

export class Scheduler {
  readonly #parts: SchedulerParts;
  #looking: Promise<void> | undefined;
  /** Whether something changed during a look. */
  #again = false;
  #closed = false;
  #timer: Timer | undefined;
  /** Queue of the run that found no slot in the last look. */
  #wanted: string | undefined;
  /** The place of each agent in the order in which they got slots here. */
  readonly #served = new Map<string, number>();
  #slots = 0;
  readonly #failing = new Set<string>();

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
  }

  /** Starts ready runs, as far as slots are free. Safe to call at any time. */
  look(): void {
    this.#again = true;
    if (!this.#closed) this.#looking ??= this.#work();
  }

  /** Stops claiming runs, and resolves when no claim is in progress. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  /** Returns whether a run of another queue must get the slot of a run of this queue. */
  isWanted(queue: string): boolean {
    return this.#wanted !== undefined && hasPriority(this.#wanted, queue);
  }

  /** Starts a run in the transaction that accepted it as the only run of its lane, if a slot is free. */
  async claimWith(unit: Unit, run: Run): Promise<void> {
    const { lease, executions } = this.#parts;
    if (unit.ended.has(run.runId)) return;
    const isBehind = this.#closed || (this.#wanted !== undefined && run.kind === "turn");
    const mayClaim = lease?.isFresh() !== false && executions.get(run.sessionKey) === undefined && !isBehind;
    if (mayClaim && (await this.#start(unit, run)) === "done") return;
    unit.after(() => {
      const isBehindStill = this.#wanted !== undefined && !hasPriority(nameQueue(run), this.#wanted);
      // The next slot that comes free here is followed by a look, if no look has missed the run. Slots that
      // another process frees are not noticed.
      if (isBehindStill && this.#looking === undefined && lease === undefined) return;
      this.look();
      this.#parts.tell();
    });
  }

  /** Lets a waiting run continue as soon as it has a slot: calls `Executions.resume` then. */
  async resume(unit: Unit, held: HeldLane, queue: string): Promise<void> {
    const { executions } = this.#parts;
    if (await askForSlot(unit.tx, held)) {
      if (this.#wanted === undefined && (await this.#takeSlot(unit, held.runId, queue)) === "done")
        return this.#goOn(unit, held);
      unit.after(() => this.look());
      return;
    }
    // The answer to an earlier request was lost, and the run has its slot; or its lane was lost, which its
    // next write reports.
    unit.after(() => executions.resume(held));
  }

  async #work(): Promise<void> {
    const { log, clock } = this.#parts.world;
    try {
      while (this.#again && !this.#closed) {
        this.#again = false;
        await this.#round();
      }
    } catch (error) {
      logRetry(log, error, "the queues of runs could not be read");
      this.#lookAt(clock.now() + STORE_RETRY_MS);
    }
    this.#looking = undefined;
  }

  #lookAt(atMs: number): void {
    this.#timer?.cancel();
    if (!this.#closed) this.#timer = this.#parts.world.clock.at(atMs, () => this.look());
  }

  /** Starts the heads of the queues, in their order, until no slot is free. */
  async #round(): Promise<void> {
    const { store, world, lease } = this.#parts;
    const left = { passed: new Set<string>(), hasPool: true };
    while (!this.#closed) {
      // Without a transaction first, because the queues are usually empty.
      const heads = await this.#headsIn(store.db, left);
      const now = world.clock.now();
      if (!heads.some(({ readyAt }) => readyAt <= now)) {
        this.#wanted = undefined;
        if (heads.length > 0) this.#lookAt(Math.min(...heads.map(({ readyAt }) => readyAt)));
        return;
      }
      // Without a lease nothing is claimed. The sweep looks again.
      if (lease !== undefined && !(await lease.ensureFresh())) return;
      const { start, head } = await this.#claimNext(left);
      if (start === "full") {
        this.#wanted = head?.queue;
        return;
      }
      if (start === "pool") left.hasPool = false;
      if (start === "not now" && head !== undefined) left.passed.add(head.sessionKey);
    }
  }

  /** Returns the heads of the queues, except those that this round leaves out. */
  async #headsIn(db: Db, { passed, hasPool }: LeftOut): Promise<ReadyRun[]> {
    const busy = this.#parts.executions.lanes();
    const heads = await readyHeads(db, { busy, passed: [...this.#failing, ...passed] });
    return heads.filter(({ queue }) => hasPool || !isSubagentQueue(queue));
  }

  /** Starts the run that is next, in a transaction that also chooses it, or lets it continue. */
  async #claimNext(left: LeftOut): Promise<{ readonly start: Start; readonly head?: ReadyRun }> {
    const { commit, world } = this.#parts;
    let head: ReadyRun | undefined;
    try {
      const start = await commit(async (unit): Promise<Start> => {
        const due = (await this.#headsIn(unit.tx, left)).filter(({ readyAt }) => readyAt <= unit.now);
        head = due.length < 2 ? due[0] : nextHead(due, await this.#useOf(unit.tx));
        if (head === undefined) return "done";
        const [lane] = await holdFreeSessions(unit.tx, [head.sessionKey]);
        if (lane === undefined) {
          // The transaction that has it may be the only one that would have looked afterwards.
          unit.after(() => world.clock.after(LOCKED_AGAIN_MS, () => this.look()));
          return "not now";
        }
        const run = await getRun(unit.tx, head.runId);
        if (run?.state === "queued") return this.#start(unit, run);
        return run?.state === "waiting" ? this.#resumeHeld(unit, run, head.queue) : "done";
      });
      return { start, ...optional({ head }) };
    } catch (error) {
      if (head === undefined) throw error;
      const { sessionKey, runId } = head;
      logRetry(withFields(world.log, { runId, sessionKey }), error, "a run could not be claimed");
      this.#failing.add(sessionKey);
      world.clock.after(STORE_RETRY_MS, () => {
        this.#failing.delete(sessionKey);
        this.look();
      });
      return { start: "not now", head };
    }
  }

  async #useOf(tx: Tx): Promise<(agentId: string) => AgentUse> {
    const running = [...(await countRunning(tx))];
    return (agentId) => ({
      held: running.reduce((sum, [queue, count]) => sum + (queue.slice(1) === agentId ? count : 0), 0),
      served: this.#served.get(agentId) ?? 0,
    });
  }

  async #resumeHeld(unit: Unit, run: Run, queue: string): Promise<Start> {
    const { runId, attempt, owner, sessionKey } = run;
    if (owner === undefined) return "done";
    const slot = await this.#takeSlot(unit, runId, queue);
    if (slot === "done") await this.#goOn(unit, { runId, attempt, owner, sessionKey });
    return slot;
  }

  async #goOn(unit: Unit, held: HeldLane): Promise<void> {
    const { owner, executions, tell } = this.#parts;
    // Its process may have stopped since, and put it back.
    if (!(await resumeRun(unit.tx, held.runId))) return releaseSlot(unit.tx, held.runId);
    unit.publish({ kind: "session", sessionKey: held.sessionKey, change: "state" });
    unit.after(() => (held.owner === owner ? executions.resume(held) : tell(held)));
  }

  /** Takes a slot for a run, in a transaction that starts it, or lets it continue. */
  async #takeSlot(unit: Unit, runId: string, queue: string): Promise<Start> {
    const { maxConcurrent, maxSubagents = maxConcurrent } = this.#parts.limits;
    const { tx } = unit;
    if (isSubagentQueue(queue) && !(await takeSlot(tx, runId, maxSubagents, SUBAGENT_SLOTS))) return "pool";
    if (!(await takeSlot(tx, runId, maxConcurrent))) {
      await releaseSlot(tx, runId);
      return "full";
    }
    this.#slots += 1;
    this.#served.set(queue.slice(1), this.#slots);
    return "done";
  }

  /** Starts a queued run whose lane the transaction holds, or ends it if it needs no execution. */
  async #start(unit: Unit, next: Run): Promise<Start> {
    const { owner, lease, executions, isHeldBack, refusalOf } = this.#parts;
    if (next.kind === "turn" && isHeldBack(next)) return "not now";
    const leaseHolds = lease?.watch();
    const isPlain = next.kind === "append" && next.input.unreadable !== true;
    const refusal = isPlain ? undefined : await refusalOf(unit, next);
    const endsAtOnce = next.kind === "append" || refusal !== undefined;
    // Taken before any write, so that a run that waits for a slot causes no writes.
    const slot = endsAtOnce ? "done" : await this.#takeSlot(unit, next.runId, nameQueue(next));
    if (slot !== "done") return slot;
    const run = claimedBy(next, owner, unit.now);
    // The text of a refused run is stored, too: nobody would send a reply, a notice or a result again.
    await together(claimRun(unit.tx, run), writeInput(unit, run));
    if (endsAtOnce) {
      await holdForEnd(unit.tx, run);
      await endInUnit(unit, run, refusal ?? { state: "ok", reply: "" }, this.#parts);
    } else {
      publishStart(unit, run);
      executions.beginAfter(unit, run, leaseHolds);
    }
    return "done";
  }
}
