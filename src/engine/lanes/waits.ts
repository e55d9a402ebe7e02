// Waits for a run or for jobs of sub-agents, and owns the wait graph: each wait of a run is an edge, and the
// waiting run holds no slot (I6). A caller that is not a run adds no edge, unless it is the client of an
// external session (`isEdge`).
// One transaction checks for cycles and inserts the wait (I7); such transactions run one at a time. If a run
// sends a message and waits, one transaction accepts the message and inserts the wait. A wait is a row: after
// a crash the same call finds it again, with its original deadline, and gets the same result.

import { isInInbox } from "../../core/rules/receipt.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { PermissionAnswered, PermissionQuestion } from "../../core/shapes/permission.ts";
import { isEnded, type Run } from "../../core/shapes/run.ts";
import { takeAdvisoryLock } from "../../store/locks.ts";
import { endedFlowsAmong, holdFlow, openSpawnEdges } from "../../store/queries/chains/flows.ts";
import { type HeldLane, isHeld } from "../../store/queries/runs/claims.ts";
import {
  giveUpJobWaits,
  insertJobWait,
  type JobWait,
  jobWaitsOfCall,
  openJobEdges,
} from "../../store/queries/runs/job-waits.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import {
  awaitedPeers,
  getWait,
  giveUpWait,
  insertWait,
  openEdges,
  type Wait,
} from "../../store/queries/runs/waits.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import type { Db, Store } from "../../store/sql.ts";
import type { Clock, World } from "../../world.ts";
import type { Bus } from "../bus.ts";
import type { Authority } from "../cluster/lease.ts";
import type { SlotKeeper } from "../run/slot-keeper.ts";
import { ASKS, untilDecided } from "../run/until-decided.ts";
import { untilStored } from "../run/until-stored.ts";
import type { Commit, Unit } from "../unit.ts";

/** Maximum number of sessions that one cycle check reads. If there are more, the wait is refused. */
const CYCLE_SESSIONS_MAX = 10_000;

/** Lets a tool call of a run wait for another run. */
export interface RunWait {
  readonly runId: string;
  readonly sessionKey: string;
  /**
   * Returns whether the run still holds its lane. Checked in every transaction in which a tool call of the
   * run writes (I1).
   */
  holds(unit: Unit): Promise<boolean>;
  /**
   * Waits until this process has authority over the run. Returns false if the run or the call is aborted
   * first. Call it between a commit and the action that it allows: the commit's answer may have been late.
   */
  mayAct(signal: AbortSignal): Promise<boolean>;
  /** Records the wait in the transaction that accepts the awaited run. Fails with `wait_cycle`. */
  open(unit: Unit, request: WaitRequest): Promise<Result<Wait>>;
  /** Waits until the awaited run ends or the recorded deadline passes. The waiting run holds no slot. */
  settle(callId: string, gaveUp?: GaveUp): Promise<WaitEnd>;
  /** Records a wait for jobs of sub-agents. Fails with `wait_cycle`. */
  openJobs(unit: Unit, request: JobsWaitRequest): Promise<Result<void>>;
  /**
   * Waits without a slot until a permission request is decided or expires. Returns undefined if the run or
   * the call was aborted.
   */
  decided(question: PermissionQuestion, signal: AbortSignal): Promise<PermissionAnswered | undefined>;
  /** Waits until all (or one) of the recorded jobs have ended or the deadline passes, without a slot. */
  settleJobs(callId: string, until: "all" | "any"): Promise<JobsWaitEnd>;
}

/** Called with the awaited run, in the transaction that ends the wait without an answer. */
export type GaveUp = (unit: Unit, target: Run) => Promise<void>;

export interface WaitRequest {
  readonly callId: string;
  readonly targetRunId: string;
  readonly targetSessionKey: string;
  readonly deadlineAt: number;
}

export interface JobsWaitRequest {
  readonly callId: string;
  readonly jobs: readonly { readonly flowId: string; readonly targetSessionKey: string }[];
  readonly deadlineAt: number;
}

/** How a wait for jobs ended, by job. */
export interface JobsWaitEnd {
  /** Jobs that ended in time. */
  readonly answered: readonly JobWait[];
  /** Jobs that had not ended when the wait ended. */
  readonly unanswered: readonly JobWait[];
}

/** The database connection on which open waits are read, and the current time. */
interface WaitGraph {
  readonly tx: Db;
  readonly now: number;
}

export interface WaitEnd {
  /** True if the run ended in time; `run` is then the ended run. False if the wait ended first. */
  readonly answered: boolean;
  readonly run: Run;
}

/** Prefix of a node of the wait graph that is a job, not a lane. */
const JOB = "job:";
const jobNode = (childKey: string): string => `${JOB}${childKey}`;
const keyOf = (node: string): string => (node.startsWith(JOB) ? node.slice(JOB.length) : node);

interface Edge {
  readonly from: string;
  readonly to: string;
}

/**
 * Returns the edges of the wait graph. A lane waits for the lanes and jobs that its run waits for. A job
 * waits for its sub-agent's lane and for the unfinished jobs that the sub-agent started.
 */
async function edgesFrom({ tx, now }: WaitGraph, nodes: readonly string[]): Promise<Edge[]> {
  const lanes = nodes.filter((node) => !node.startsWith(JOB));
  const children = nodes.filter((node) => node.startsWith(JOB)).map(keyOf);
  const waits = lanes.length === 0 ? [] : await openEdges(tx, lanes, now);
  const jobs = await openJobEdges(tx, lanes, now);
  const below = await openSpawnEdges(tx, children);
  return [
    ...waits,
    ...jobs.map(({ from, to }) => ({ from, to: jobNode(to) })),
    ...children.map((key) => ({ from: jobNode(key), to: key })),
    ...below.map(({ from, to }) => ({ from: jobNode(from), to: jobNode(to) })),
  ];
}

/**
 * Follows who waits for whom from `from` to one of `ends`, and returns the sessions on the way, both ends
 * included. Returns undefined if `from` waits for none of them.
 */
async function waitPath(
  graph: WaitGraph,
  from: string,
  ends: readonly string[],
): Promise<string[] | "too_many" | undefined> {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]]);
  const reached = () => ends.find((end) => cameFrom.has(end));
  let frontier = [from];
  while (frontier.length > 0 && reached() === undefined) {
    if (cameFrom.size > CYCLE_SESSIONS_MAX) return "too_many";
    const edges = await edgesFrom(graph, frontier);
    frontier = [];
    for (const edge of edges) {
      if (cameFrom.has(edge.to)) continue;
      cameFrom.set(edge.to, edge.from);
      frontier.push(edge.to);
    }
  }
  const end = reached();
  if (end === undefined) return undefined;
  const path: string[] = [];
  for (let at: string | undefined = end; at !== undefined; at = cameFrom.get(at)) {
    // A job and its sub-agent's lane have the same session, which is listed once.
    if (path[0] !== keyOf(at)) path.unshift(keyOf(at));
  }
  return path;
}

/** The target of a wait. */
interface WaitTarget {
  readonly kind: "run" | "job";
  readonly sessionKey: string;
}

const CYCLE_HINTS: Record<WaitTarget["kind"], string> = {
  run:
    "The message was not sent. Answer with what you know (your reply reaches the one who asked you), " +
    "or send with timeoutSeconds: 0.",
  job: "The call does not wait. Answer with what you know; the results are announced when they arrive.",
};

/**
 * Refuses a wait of `waiterKey` that would close a cycle. `also`: sessions that may lead to the waiter
 * through other gateways.
 */
export async function refuseCycle(
  graph: WaitGraph,
  waiterKey: string,
  { kind, sessionKey }: WaitTarget,
  also: readonly string[] = [],
): Promise<Result<void>> {
  const from = kind === "job" ? jobNode(sessionKey) : sessionKey;
  const path = await waitPath(graph, from, [waiterKey, ...also]);
  if (path === undefined) return ok(undefined);
  const cycle = path === "too_many" ? [waiterKey, sessionKey] : [waiterKey, ...path];
  return fail("wait_cycle", `waiting would close a cycle: ${cycle.join(" -> ")}`, {
    hint: CYCLE_HINTS[kind],
    details: { cycle },
  });
}

/**
 * A waiter: a run, or a caller outside of runs. A caller has an empty run id, and its wait ends with the
 * process that serves it.
 */
interface Waiter {
  readonly runId: string;
  readonly sessionKey: string;
  readonly processId?: string;
}

/** Returns whether the waits of this waiter are edges: it is a run, or the client of an external session. */
async function isEdge({ tx }: Unit, { runId, sessionKey }: Waiter): Promise<boolean> {
  return runId !== "" || (sessionKey !== "" && (await getSession(tx, sessionKey))?.external === true);
}

/** Records a wait, unless it would close a cycle. */
export async function openWait(unit: Unit, waiter: Waiter, request: WaitRequest): Promise<Result<Wait>> {
  if (await isEdge(unit, waiter)) {
    await takeAdvisoryLock(unit.tx, "waits");
    const target = { kind: "run", sessionKey: request.targetSessionKey } as const;
    const free = await refuseCycle(unit, waiter.sessionKey, target);
    if (!free.ok) return free;
  }
  const wait: Wait = {
    callId: request.callId,
    waiterRunId: waiter.runId,
    waiterSessionKey: waiter.sessionKey,
    targetRunId: request.targetRunId,
    targetSessionKey: request.targetSessionKey,
    state: "open",
    deadlineAt: request.deadlineAt,
  };
  await insertWait(unit.tx, wait, waiter.processId);
  return ok(wait);
}

/** A wait of a peer's run for the answer to its message. */
export interface PeerWait {
  /** The chain's id at the peer. */
  readonly chainId: string;
  readonly deadlineAt: number;
}

/**
 * Records the wait of a peer's session `from` for a run here, unless it would close a cycle (I7). This
 * gateway does not know the waits in others. So it is a cycle, too, if the run's session already waits for a
 * peer in the chain of the message.
 */
export async function openPeerWait(
  unit: Unit,
  from: string,
  { runId, sessionKey }: Pick<Run, "runId" | "sessionKey">,
  { chainId, deadlineAt }: PeerWait,
): Promise<Result<void>> {
  await takeAdvisoryLock(unit.tx, "waits");
  const elsewhere = await awaitedPeers(unit.tx, chainId, unit.now);
  const free = await refuseCycle(unit, from, { kind: "run", sessionKey }, elsewhere);
  if (!free.ok) return free;
  const ends = { targetRunId: runId, targetSessionKey: sessionKey, waiterSessionKey: from };
  const callId = `peer:${runId}`;
  await insertWait(unit.tx, { ...ends, callId, waiterRunId: callId, state: "open", deadlineAt });
  return ok(undefined);
}

/** Notifies waiters in this process that a run or a job has ended. */
export interface EndWatch {
  /**
   * Resolves once the run has ended, the deadline has passed or the signal has fired. Returns the run at that
   * time, or undefined if no run has this id.
   */
  until(runId: string, deadlineAt: number, signal?: AbortSignal): Promise<Run | undefined>;
  /** Like `until`, but resolves when one of these jobs or conversations has ended. */
  untilJob(flowIds: readonly string[], deadlineAt: number, signal?: AbortSignal): Promise<void>;
  /** Notifies the waiters that a run or a flow has ended. Without `run`, the waiters read its row. */
  ended(id: string, run?: Run): void;
  /** Returns the runs and flows that are watched in this process. */
  watched(): string[];
}

type Wake = (run?: Run) => void;

/**
 * `isRunning` returns whether this process executes the run. Such a run need not be read from its row,
 * because `ended` will be called for it.
 */
export function createEndWatch(
  db: Db,
  clock: Clock,
  bus: Bus,
  isRunning: (runId: string) => boolean,
): EndWatch {
  const watchers = new Map<string, Set<Wake>>();
  const ended = (id: string, run?: Run): void => {
    for (const wake of watchers.get(id) ?? []) wake(run);
  };
  bus.subscribe((event) => {
    if (event.kind === "flow" && event.step === "ended") ended(event.flowId);
  });
  const add = (id: string, wake: Wake): void => {
    watchers.set(id, (watchers.get(id) ?? new Set()).add(wake));
  };
  const remove = (id: string, wake: Wake): void => {
    const set = watchers.get(id);
    set?.delete(wake);
    if (set?.size === 0) watchers.delete(id);
  };
  const watch = async (
    ids: readonly string[],
    isOver: () => Promise<boolean>,
    deadlineAt: number,
    signal: AbortSignal | undefined,
  ): Promise<Run | undefined> => {
    const woken = Promise.withResolvers<Run | undefined>();
    const wake: Wake = (run) => woken.resolve(run);
    const giveUp = (): void => wake();
    for (const id of ids) add(id, wake);
    const timer = clock.at(deadlineAt, giveUp);
    signal?.addEventListener("abort", giveUp, { once: true });
    if (signal?.aborted === true) wake();
    try {
      // Read the rows after adding the watchers, so that an end in between is not missed.
      return (await isOver()) ? undefined : await woken.promise;
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", giveUp);
      for (const id of ids) remove(id, wake);
    }
  };
  return {
    async until(runId, deadlineAt, signal) {
      let stored: Run | undefined;
      const isOver = async (): Promise<boolean> => {
        if (isRunning(runId)) return false;
        stored = await getRun(db, runId);
        return stored === undefined || isEnded(stored.state);
      };
      const run = await watch([runId], isOver, deadlineAt, signal);
      if (run !== undefined) return run;
      return stored !== undefined && isEnded(stored.state) ? stored : getRun(db, runId);
    },
    async untilJob(flowIds, deadlineAt, signal) {
      const isOver = async (): Promise<boolean> => (await endedFlowsAmong(db, flowIds)).length > 0;
      await watch(flowIds, isOver, deadlineAt, signal);
    },
    ended,
    watched: () => [...watchers.keys()],
  };
}

/**
 * Resolves to the run when it has ended, the deadline has passed or the signal has fired. If the run only put
 * a message into an inbox, its end is not enough: waits until the message is answered, which ends its
 * conversation.
 */
async function untilCome(watch: EndWatch, wait: Wait, signal: AbortSignal): Promise<Run | undefined> {
  const run = await watch.until(wait.targetRunId, wait.deadlineAt, signal);
  if (run?.flow !== undefined && isInInbox(run))
    await watch.untilJob([run.flow.flowId], wait.deadlineAt, signal);
  return run;
}

export interface SettleParts {
  readonly store: Store;
  readonly commit: Commit;
  readonly watch: EndWatch;
}

/** Waits for a recorded wait to end. Does not handle slots. */
export async function settleWait(
  { store, commit, watch }: SettleParts,
  callId: string,
  signal: AbortSignal,
  gaveUp?: GaveUp,
): Promise<WaitEnd> {
  const found = await getWait(store.db, callId);
  if (found === undefined) throw new Error(`no wait for call ${callId}`);
  let wait: Wait = found;
  let run: Run | undefined;
  if (wait.state === "open") {
    run = await untilCome(watch, wait, signal);
    signal.throwIfAborted();
    wait = (await getWait(store.db, callId)) ?? wait;
  }
  if (wait.state === "open") {
    // The awaited run may have ended since the row was read. If it ended before the deadline, the wait
    // returns its outcome. Otherwise the sender gets the outcome in another way.
    const target = await commit(async (unit) => {
      if (!(await giveUpWait(unit.tx, callId))) return undefined;
      const asked = await getRun(unit.tx, found.targetRunId);
      if (asked !== undefined) await gaveUp?.(unit, asked);
      return asked;
    });
    if (target !== undefined) return { answered: false, run: target };
    wait = (await getWait(store.db, callId)) ?? found;
  }
  return endOf(store, wait, run);
}

/** `known`: the awaited run, which need not be read again if it has ended. */
async function endOf(store: Store, wait: Wait, known?: Run): Promise<WaitEnd> {
  const hasEnded = known !== undefined && isEnded(known.state);
  const run = hasEnded ? known : await getRun(store.db, wait.targetRunId);
  if (run === undefined) throw new Error(`no run ${wait.targetRunId}`);
  return { answered: wait.state === "answered" || wait.state === "ready", run };
}

/** Returns the end of a wait, or undefined if the wait was not answered. */
export async function answeredBefore(store: Store, callId: string): Promise<WaitEnd | undefined> {
  const wait = await getWait(store.db, callId);
  const end = wait === undefined ? undefined : await endOf(store, wait);
  return end?.answered === true ? end : undefined;
}

/**
 * Records a wait for jobs, unless it would close a cycle. If a job has ended, its wait is answered
 * immediately.
 */
export async function openJobsWait(
  unit: Unit,
  waiter: Waiter,
  { callId, jobs, deadlineAt }: JobsWaitRequest,
): Promise<Result<void>> {
  const inOrder = jobs.toSorted((a, b) => (a.flowId < b.flowId ? -1 : 1));
  const isOpen = new Map<string, boolean>();
  for (const { flowId } of inOrder) isOpen.set(flowId, (await holdFlow(unit.tx, flowId))?.open === true);
  if (await isEdge(unit, waiter)) {
    await takeAdvisoryLock(unit.tx, "waits");
    for (const { flowId, targetSessionKey: sessionKey } of inOrder) {
      if (isOpen.get(flowId) !== true) continue;
      const free = await refuseCycle(unit, waiter.sessionKey, { kind: "job", sessionKey });
      if (!free.ok) return free;
    }
  }
  const ends = { waiterRunId: waiter.runId, waiterSessionKey: waiter.sessionKey };
  for (const { flowId, targetSessionKey } of inOrder) {
    const state = isOpen.get(flowId) === true ? "open" : "answered";
    const wait: JobWait = { ...ends, callId, flowId, targetSessionKey, state, deadlineAt };
    await insertJobWait(unit.tx, wait, waiter.processId);
  }
  return ok(undefined);
}

/** Waits until all or one of the jobs of a recorded wait have ended. Does not handle slots. */
export async function settleJobsWait(
  { store, commit, watch }: SettleParts,
  callId: string,
  until: "all" | "any",
  signal: AbortSignal,
): Promise<JobsWaitEnd> {
  let rows = await jobWaitsOfCall(store.db, callId);
  const openRows = (): JobWait[] => rows.filter((row) => row.state === "open");
  // Each round lasts until one more job has ended or the deadline has passed.
  for (let rounds = rows.length; rounds > 0 && openRows().length > 0; rounds -= 1) {
    if (until === "any" && openRows().length < rows.length) break;
    const before = openRows();
    const flowIds = before.map((row) => row.flowId);
    await watch.untilJob(flowIds, before[0]?.deadlineAt ?? 0, signal);
    signal.throwIfAborted();
    rows = await jobWaitsOfCall(store.db, callId);
    if (openRows().length === before.length) break;
  }
  if (openRows().length > 0) {
    rows = await commit(async (unit) => {
      await giveUpJobWaits(unit.tx, callId);
      return jobWaitsOfCall(unit.tx, callId);
    });
  }
  return {
    answered: rows.filter((row) => row.state === "answered"),
    unanswered: rows.filter((row) => row.state !== "answered"),
  };
}

/**
 * Creates the functions with which a run waits. If the store fails, settling a wait is retried
 * (`untilStored`).
 */
export function createRunWait(
  parts: SettleParts & { readonly world: World; readonly bus: Bus; readonly lease?: Authority },
  held: HeldLane,
  keeper: SlotKeeper,
  signal: AbortSignal,
): RunWait {
  const waiter = { runId: held.runId, sessionKey: held.sessionKey };
  const settling = <T>(settle: () => Promise<T>): Promise<T> =>
    keeper.duringWait(() => untilStored(parts.world, signal, settle));
  return {
    ...waiter,
    open: (unit, request) => openWait(unit, waiter, request),
    openJobs: (unit, request) => openJobsWait(unit, waiter, request),
    holds: (unit) => isHeld(unit.tx, held),
    async mayAct(callSignal) {
      const both = AbortSignal.any([signal, callSignal]);
      // A signal that has fired before does not keep the lease from being confirmed.
      return (await parts.lease?.confirm(both)) !== false && !both.aborted;
    },
    settle: (callId, gaveUp) => settling(() => settleWait(parts, callId, signal, gaveUp)),
    decided: (question, callSignal) => {
      const { clock, log } = parts.world;
      const { id: permissionId, title: what } = question;
      log.warn({ permissionId, what }, ASKS);
      const both = AbortSignal.any([signal, callSignal]);
      return settling(() => untilDecided({ ...parts, clock, now: () => clock.now() }, question, both));
    },
    settleJobs: (callId, until) => settling(() => settleJobsWait(parts, callId, until, signal)),
  };
}
