// Owns durable execution: accept -> claim -> execute -> commit with successors. It does not know the purpose
// of a run; the flows do. Code outside this folder never changes a run's row.
// EN2: `start` after a crash continues every run where its transcript ends (I2); `stop` parks runs that it
//      cannot finish.

import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { ProcessFacts } from "../core/shapes/process.ts";
import { isEnded, type Run } from "../core/shapes/run.ts";
import type { Redactor } from "../core/text/redact/redact.ts";
import { holdForAbort } from "../store/locks.ts";
import { claimBudgetNotice, getChain } from "../store/queries/chains/chains.ts";
import { holdRun, notePlannedStop, requeueHeld } from "../store/queries/runs/claims.ts";
import { activeRuns, activeRunsOfFlow, countByState, getRun } from "../store/queries/runs/runs.ts";
import type { Store } from "../store/sql.ts";
import { pause } from "../world/pause.ts";
import { idsOf, type Log, type World } from "../world.ts";
import { createBus, type SharedBus } from "./bus.ts";
import { Dispatch } from "./cluster/dispatch.ts";
import { HintTransport } from "./cluster/hint-transport.ts";
import { Lease, type LeasedWorker } from "./cluster/lease.ts";
import { type DeadlineHandler, Deadlines } from "./deadlines.ts";
import { CallerWaits } from "./lanes/caller-waits.ts";
import { createEndWatch, type EndWatch } from "./lanes/end-watch.ts";
import { Scheduler } from "./lanes/scheduler.ts";
import {
  type Accepted,
  type AcceptLimits,
  type AcceptRequest,
  acceptIn,
  withinBudget,
} from "./run/accept.ts";
import { limitAt, refusalOf } from "./run/begin.ts";
import { Executions, type Executor } from "./run/executions.ts";
import { type AbortReason, type Acceptor, type EndFacts, endInUnit, type Successors } from "./run/finish.ts";
import { createFollowUp, guardSuccessors } from "./run/follow-up.ts";
import { Reconciler } from "./run/reconcile.ts";
import { type Commit, createCommit, type Unit, type UnitWatch } from "./unit.ts";

const PARK_MS = 1_500;

export interface EngineSettings extends AcceptLimits {
  /** Maximum number of runs that execute at the same time in the whole deployment. */
  readonly maxConcurrent: number;
  /** Maximum number of runs of sub-agents among these. Default: no limit of their own. */
  readonly maxSubagents?: number;
}

export interface AbortRequest {
  readonly sessionKey: string;
  /** Only this run, or its successors if it has ended. Absent: every unfinished run of the session. */
  readonly runId?: string;
  /** Default `run_aborted`. */
  readonly reason?: AbortReason;
  /**
   * True if the sub-agents that these runs started continue. Default false: the sub-agents' work is
   * cancelled, too.
   */
  readonly keepChildren?: boolean;
}

export interface Aborted {
  /** True if the run with the given `runId` was stopped; without `runId`, if any run was stopped. */
  readonly aborted: boolean;
  readonly runIds: readonly string[];
}

export interface Load {
  readonly running: number;
  readonly waiting: number;
  readonly queued: number;
  readonly slots: { readonly max: number; readonly taken: number };
}

export interface EngineParts extends UnitWatch {
  readonly store: Store;
  readonly world: World;
  readonly settings: EngineSettings;
  readonly successors: Successors;
  readonly executor: Executor;
  readonly deadlineHandlers?: ReadonlyMap<string, DeadlineHandler>;
  readonly facts?: () => Partial<Omit<ProcessFacts, "processId">>;
  /** Returns whether a turn must not start yet. `lookAtSlots` asks again. Default: no turn. */
  readonly isHeldBack?: (run: Run) => boolean;
  /**
   * Returns the end of a turn that must not start. Default: of a turn that crashed too often, or whose budget
   * is used up.
   */
  readonly refusalOf?: (run: Run) => EndFacts | undefined;
  /**
   * Returns when a begun run times out, in ms since 1970. Undefined: never. Default: `timeoutMs` after its
   * start.
   */
  readonly limitAt?: (run: Run) => number | undefined;
}

/** The parts that the whole engine shares. */
export interface EngineCore {
  readonly store: Store;
  readonly commit: Commit;
  readonly world: World;
  readonly bus: SharedBus;
  readonly owner: string;
  readonly limits: EngineSettings;
  readonly watch: EndWatch;
  /** Absent: no other process shares the store. */
  readonly lease?: Lease;
  readonly successors: Successors;
  readonly acceptor: Acceptor;
  look(): void;
}

const ABORT_TEXT: Record<AbortReason, string> = {
  run_aborted: "the run was aborted",
  session_reset: "the session was reset before the run ended",
  session_deleted: "the session was deleted before the run ended",
};

export class Engine {
  readonly store: Store;
  readonly bus: SharedBus;
  /** The id of this process among those that share the store. */
  readonly processId: string;
  /** Returns when this process's lease ends, by the monotonic clock. With an embedded store it never ends. */
  readonly leaseUntil: () => number;
  /** See `Lease.watch`. Undefined with an embedded store. */
  readonly watchLease: (() => () => boolean) | undefined;
  readonly commit: Commit;
  /** Records failures of secondary work, which must not fail a run. */
  readonly log: Log;
  /** Redacts text of one session that is shown in other sessions. */
  readonly redactor: Redactor;
  /** Handles the deadline `FOLLOW_UP_DEADLINE`. */
  readonly followUp: DeadlineHandler;
  readonly callerWaits: CallerWaits;
  readonly #core: EngineCore;
  readonly #executions: Executions;
  readonly #scheduler: Scheduler;
  readonly #deadlines: Deadlines;
  /** Absent: no other process shares the store. */
  readonly #dispatch: Dispatch | undefined;
  readonly #workers: LeasedWorker[] = [];
  readonly #reconciler: Reconciler;
  #state: "new" | "running" | "stopping" = "new";

  constructor(parts: EngineParts) {
    const { store, world, facts } = parts;
    this.store = store;
    this.log = world.log;
    this.redactor = world.redactor;
    this.processId = world.ids.uuid();
    const { shared } = store;
    // Connects this process with the others, if any can share the store.
    const cluster = shared && {
      shared,
      hints: new HintTransport({ store, shared, world }),
      lease: new Lease({
        shared,
        world,
        processId: this.processId,
        facts: () => ({ host: "", version: "", ...facts?.() }),
      }),
    };
    this.leaseUntil = () => cluster?.lease.until() ?? Number.POSITIVE_INFINITY;
    this.watchLease = cluster && (() => cluster.lease.watch());
    this.bus = createBus(
      world.log,
      (event) => cluster?.hints.send({ kind: "event", event }),
      () => this.#dispatch?.follow(),
    );
    this.commit = createCommit(store, world, this.bus, {
      ...parts,
      lookAtDates: () => this.lookAtDates(),
      inDoubt: (sinceMs) => this.#reconciler.noteDoubt(sinceMs),
    });
    const handlers = parts.deadlineHandlers ?? new Map();
    const { commit, processId, bus } = this;
    this.#deadlines = new Deadlines({ db: store.db, commit, world, handlers, workers: this.#workers });
    const core: EngineCore = {
      ...{ store, commit, world, bus, owner: processId, limits: parts.settings },
      ...optional({ lease: cluster?.lease }),
      watch: createEndWatch(store.db, world.clock, bus),
      successors: guardSuccessors(parts.successors),
      acceptor: this,
      look: () => this.#look(),
    };
    this.#core = core;
    this.followUp = createFollowUp(parts.successors, this);
    this.callerWaits = new CallerWaits(core);
    this.#executions = new Executions({
      ...core,
      executor: parts.executor,
      limitAt: parts.limitAt ?? limitAt,
      scheduler: {
        resume: (...asked) => this.#scheduler.resume(...asked),
        isWanted: (queue) => this.#scheduler.isWanted(queue),
      },
    });
    const engine = { ...core, executions: this.#executions };
    this.#scheduler = new Scheduler({
      ...engine,
      refusalOf: async (unit, run) =>
        parts.refusalOf === undefined ? refusalOf(unit, run, parts.settings) : parts.refusalOf(run),
      isHeldBack: parts.isHeldBack ?? (() => false),
      tell: (resumed) =>
        cluster?.hints.send(resumed === undefined ? { kind: "ready" } : { kind: "resumed", held: resumed }),
    });
    this.#reconciler = new Reconciler({
      ...engine,
      lookAround: () => {
        this.#look();
        this.#deadlines.look();
        for (const worker of this.#workers) worker.sweep();
      },
    });
    this.#dispatch =
      cluster &&
      new Dispatch({
        ...engine,
        ...cluster,
        callerWaits: this.callerWaits,
        reconcile: (sinceMs) => this.#reconciler.reconcile(sinceMs),
      });
  }

  #look(): void {
    if (this.#state === "running") this.#scheduler.look();
  }

  /** Adds a worker that starts after this process has joined the others, and stops before it leaves. */
  attach(worker: LeasedWorker): void {
    this.#workers.push(worker);
  }

  writeTo(processId: string, body: unknown): void {
    this.#dispatch?.write(processId, body);
  }

  /** Calls `read` with messages of other processes to this one. Returns a function that stops it. */
  onMessage(read: (body: unknown) => void): () => void {
    return this.#dispatch?.onLetter(read) ?? (() => {});
  }

  now(): number {
    return this.#core.world.clock.now();
  }

  newId(): string {
    return this.#core.world.ids.uuid();
  }

  /** See `Unit.newOrderedId`. */
  newOrderedId(): string {
    return this.#core.world.ids.orderedUuid();
  }

  async start(): Promise<void> {
    // No other process uses this store, so the process that held the runs has exited.
    if (this.#dispatch === undefined) {
      const resumed = await this.commit(async (unit) => {
        await this.callerWaits.giveUp(unit);
        return requeueHeld(unit.tx, unit.now);
      });
      for (const run of resumed) {
        this.log.info({ ...idsOf(run), crashes: run.crashes }, "continuing a run that a stop interrupted");
      }
    }
    this.#state = "running";
    if (this.#dispatch === undefined) this.#look();
    this.#deadlines.start();
    await this.#dispatch?.start();
    await Promise.all(this.#workers.map((worker) => worker.start()));
  }

  /** Fails while the gateway starts or stops, because it accepts no messages then. */
  accepting(): Result<void> {
    if (this.#state === "running") return ok(undefined);
    const doing = this.#state === "new" ? "starting" : "stopping";
    return fail("shutting_down", `the gateway is ${doing}; it accepts no new messages`, {
      hint: "Send again in a moment.",
    });
  }

  async accept(request: AcceptRequest): Promise<Result<Accepted>> {
    const open = this.accepting();
    return open.ok ? this.commit((unit) => this.acceptIn(unit, request)) : open;
  }

  /** Accepts a run in the caller's transaction. A failure undoes the transaction. */
  async acceptIn(unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
    const accepted = await acceptIn(unit, request, this.#core.limits);
    if (accepted.ok && accepted.value.fresh && this.#state !== "new") {
      const { run, queuedBehind } = accepted.value;
      if (queuedBehind === 0) unit.atEnd(() => this.#scheduler.claimWith(unit, run));
    }
    // A refused successor is reported here. Any other caller reports the failure itself and rolls back.
    if (!accepted.ok && accepted.code === "chain_limit" && request.successor === true) {
      await this.#successorRefused(unit, request);
    }
    return accepted;
  }

  /** Ends a run that needs no execution, in the transaction that accepts it. */
  async endIn(unit: Unit, run: Run, facts: EndFacts): Promise<void> {
    await endInUnit(unit, run, facts, this.#core);
  }

  /**
   * If a step of a flow is refused because of the chain's budget, reports this once to the chain's root
   * session.
   */
  async #successorRefused(unit: Unit, { sessionKey, chain }: AcceptRequest): Promise<void> {
    if (chain === undefined) return;
    const budget = withinBudget(await getChain(unit.tx, chain.chainId), this.#core.limits);
    if (budget.ok || !(await claimBudgetNotice(unit.tx, chain.chainId))) return;
    await this.#core.successors.budgetUsedUp(this, unit, { sessionKey, ...chain }, budget.error);
  }

  /** Looks for rows that are due. Safe to call at any time. */
  lookAtDates(): void {
    this.#deadlines.look();
  }

  /** Starts the runs that a higher limit of slots allows, or that are no longer held back. */
  lookAtSlots(): void {
    this.#look();
  }

  /**
   * Returns the run when it has ended, or its state at the deadline (ms since 1970). Returns undefined for an
   * unknown run.
   */
  async waitForRun(runId: string, deadlineAt: number, signal?: AbortSignal): Promise<Run | undefined> {
    const { db } = this.store;
    let run: Run | undefined;
    const hasEnded = async (ended?: Run): Promise<boolean> => {
      // The end of a run that executes here is never missed, so its row need not be read.
      if (
        ended === undefined &&
        !this.bus.hasEnded(runId) &&
        this.#executions.all().some(({ fence }) => fence.runId === runId)
      )
        return false;
      run = ended ?? (await getRun(db, runId));
      return run === undefined || isEnded(run.state);
    };
    await this.#core.watch.until([runId], hasEnded, deadlineAt, signal);
    return run !== undefined && isEnded(run.state) ? run : getRun(db, runId);
  }

  /**
   * Ends unfinished runs. If several transactions end a run, the first to commit decides: an end never
   * changes.
   */
  async abort(request: AbortRequest): Promise<Aborted> {
    return this.commit((unit) => this.abortIn(unit, request));
  }

  async abortIn(unit: Unit, request: AbortRequest): Promise<Aborted> {
    const { sessionKey, runId } = request;
    const code = request.reason ?? "run_aborted";
    await holdForAbort(unit.tx, sessionKey);
    // A run that only appends a text starts no turn, so a plain stop lets it write the text, which nobody
    // would send again.
    const runs =
      runId === undefined
        ? (await activeRuns(unit.tx, sessionKey)).filter(
            ({ kind }) => kind === "turn" || code !== "run_aborted",
          )
        : await this.#findNamed(unit, sessionKey, runId);
    const ended: string[] = [];
    for (const run of runs) {
      // Its execution may write until this transaction holds the run.
      await holdRun(unit.tx, run.runId);
      const execution = this.#executions.get(run.sessionKey);
      const mine = execution?.handle.run.runId === run.runId ? execution : undefined;
      if (mine === undefined) this.#dispatch?.needText(run);
      const facts: EndFacts = {
        state: "aborted",
        code,
        error: ABORT_TEXT[code],
        ...(mine === undefined
          ? { heardText: this.#dispatch?.textOf(run.runId) ?? "" }
          : { unfinishedText: mine.textSoFar, revision: mine.revision() }),
      };
      // Does nothing if this run has already ended together with an earlier run of this list.
      await endInUnit(unit, run, facts, this.#core);
      ended.push(run.runId);
      unit.after(() => this.#executions.stopAborted(run));
    }
    const aborted = runId === undefined ? ended.length > 0 : ended.includes(runId);
    if (request.keepChildren === true) return { aborted, runIds: ended };
    const below = await this.#core.successors.cancelBelow(this, unit, request);
    return { aborted, runIds: [...ended, ...below] };
  }

  /**
   * Returns the run with this id if it has not ended. If it has ended, returns the runs of its flow that have
   * not started.
   */
  async #findNamed(unit: Unit, sessionKey: string, runId: string): Promise<Run[]> {
    const run = await getRun(unit.tx, runId);
    if (run === undefined || run.sessionKey !== sessionKey) return [];
    if (!isEnded(run.state)) return [run];
    if (run.flow === undefined) return [];
    const successors = await activeRunsOfFlow(unit.tx, run.flow.flowId);
    return successors.filter((successor) => successor.state === "queued");
  }

  async load(): Promise<Load> {
    const counts = await countByState(this.store.db);
    return { ...counts, slots: { max: this.#core.limits.maxConcurrent, taken: counts.running } };
  }

  /**
   * Gives executing runs `graceMs` to finish, then parks the unfinished ones, which continue at the next
   * start.
   */
  async stop(graceMs: number): Promise<void> {
    if (this.#state === "stopping") return;
    this.#state = "stopping";
    this.#executions.close();
    const closed = this.#scheduler.close();
    await this.notePlannedStop();
    await this.#atMost(PARK_MS, closed);
    this.#reconciler.stop();
    this.callerWaits.stop();
    for (const execution of this.#executions.all()) if (execution.waiting()) execution.stop("parked");
    const idle = this.#executions.idle();
    await this.#atMost(graceMs, idle);
    for (const execution of this.#executions.all()) execution.stop("parked");
    await this.#atMost(PARK_MS, idle);
    await Promise.all([...this.#workers, this.#deadlines].map((part) => part.stop()));
    await this.#dispatch?.stop();
  }

  /** Lets the death of this process count against none of its runs, if the stop is cut short. */
  async notePlannedStop(): Promise<void> {
    const noted = this.commit((unit) => notePlannedStop(unit.tx, this.processId)).catch((error: unknown) =>
      this.log.warn({ err: error }, "could not record that this stop is planned"),
    );
    await this.#atMost(PARK_MS, noted);
  }

  async #atMost(ms: number, work: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    await Promise.race([work, pause(this.#core.world.clock, ms, over.signal)]);
    over.abort();
  }
}
