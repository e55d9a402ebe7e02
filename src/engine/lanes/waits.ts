// Waits for runs and for jobs of sub-agents, and owns the wait graph: each wait of a run is an edge, and the
// waiting run holds no slot (I6). A caller that is not a run adds no edge, unless it is the client of an
// external session (`isEdge`).
// One transaction checks for cycles and inserts the wait (I7); such transactions run one at a time. If a run
// sends a message and waits, one transaction accepts the message and inserts the wait. A wait is a row: after
// a crash the same call finds it again, with its original deadline, and gets the same result. The transaction
// that ends the target answers the row; a waiter only reads it again when it may have changed.

import { joinLabels } from "../../core/rules/labels/labels.ts";
import { isInInbox } from "../../core/rules/receipt.ts";
import { describeCycle, ok, type Result } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { PermissionAnswered, PermissionQuestion } from "../../core/shapes/permission.ts";
import type { Run } from "../../core/shapes/run.ts";
import { takeAdvisoryLock } from "../../store/locks.ts";
import { getFlow, holdFlow, openSpawnEdges } from "../../store/queries/chains/flows.ts";
import { decidePermission, decisionOf } from "../../store/queries/permissions.ts";
import { type HeldLane, isHeld } from "../../store/queries/runs/claims.ts";
import type { RunContent } from "../../store/queries/runs/holds.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import {
  awaitedPeers,
  giveUpWaits,
  insertWait,
  openEdges,
  type Wait,
  type WaitInChain,
  waitsOfCall,
} from "../../store/queries/runs/waits.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import type { Db, Store } from "../../store/sql.ts";
import type { EngineCore } from "../engine.ts";
import type { createSlotKeeper } from "../run/slot-keeper.ts";
import { untilStored } from "../run/until-stored.ts";
import type { Unit } from "../unit.ts";

const ASKS = "an agent asks for permission; answer with: npx parley-gateway permissions";

/** Maximum number of sessions that one cycle check reads. If there are more, the wait is refused. */
const CYCLE_SESSIONS_MAX = 10_000;

export interface CallWait {
  /**
   * Records a wait; that for a message, in the transaction that accepts the message. Returns the rows of the
   * wait. Fails with `wait_cycle`.
   */
  open(unit: Unit, request: WaitRequest): Promise<Result<readonly Wait[]>>;
  /**
   * Waits until all or any of the targets have ended, or the recorded deadline has passed. Returns the rows
   * as they are then.
   */
  settle(waits: readonly Wait[], wanted: Wanted, gaveUp?: GaveUp): Promise<readonly WaitInChain[]>;
  /** Calls `work`, which waits for this call and returns its outcome. */
  during<T>(work: () => Promise<T>): Promise<T>;
}

/** Lets a tool call of a run wait. The run holds no slot meanwhile. */
export type RunWait = ReturnType<typeof createRunWait>;

export type Wanted = "all" | "any";

/** Called in the transaction that ends a wait before all of its targets have ended. */
export type GaveUp = (unit: Unit) => Promise<void>;

export interface WaitRequest extends Pick<Wait, "callId" | "kind" | "deadlineAt"> {
  /** Ids of runs, or of the flows of jobs, with the sessions that do the work. */
  readonly targets: readonly { readonly id: string; readonly sessionKey: string }[];
}

/** The database connection on which open waits are read, and the current time. */
interface WaitGraph {
  readonly tx: Db;
  readonly now: number;
}

/** Prefix of a node of the wait graph that is a job, not a lane. */
const JOB = "job:";
const jobNode = (childKey: string): string => `${JOB}${childKey}`;
const keyOf = (node: string): string => (node.startsWith(JOB) ? node.slice(JOB.length) : node);

/**
 * Returns the edges of the wait graph. A lane waits for the lanes and jobs that its run waits for. A job
 * waits for its sub-agent's lane and for the unfinished jobs that the sub-agent started.
 */
async function edgesFrom(
  { tx, now }: WaitGraph,
  nodes: readonly string[],
): Promise<{ from: string; to: string }[]> {
  const lanes = nodes.filter((node) => !node.startsWith(JOB));
  const children = nodes.filter((node) => node.startsWith(JOB)).map(keyOf);
  const waits = await openEdges(tx, lanes, now);
  const below = await openSpawnEdges(tx, children);
  return [
    ...waits.map(({ waiterSessionKey: from, targetSessionKey: to, kind }) => ({
      from,
      to: kind === "job" ? jobNode(to) : to,
    })),
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
  const findReached = () => ends.find((end) => cameFrom.has(end));
  let frontier = [from];
  while (frontier.length > 0 && findReached() === undefined) {
    if (cameFrom.size > CYCLE_SESSIONS_MAX) return "too_many";
    const edges = await edgesFrom(graph, frontier);
    frontier = [];
    for (const edge of edges) {
      if (cameFrom.has(edge.to)) continue;
      cameFrom.set(edge.to, edge.from);
      frontier.push(edge.to);
    }
  }
  const end = findReached();
  if (end === undefined) return undefined;
  const path: string[] = [];
  for (let at: string | undefined = end; at !== undefined; at = cameFrom.get(at)) {
    // A job and its sub-agent's lane have the same session, which is listed once.
    if (path[0] !== keyOf(at)) path.unshift(keyOf(at));
  }
  return path;
}

const CYCLE_HINTS: Record<Wait["kind"], string> = {
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
  { kind, sessionKey }: Pick<Wait, "kind"> & { readonly sessionKey: string },
  also: readonly string[] = [],
): Promise<Result<void>> {
  const from = kind === "job" ? jobNode(sessionKey) : sessionKey;
  const path = await waitPath(graph, from, [waiterKey, ...also]);
  if (path === undefined) return ok(undefined);
  const cycle = path === "too_many" ? [waiterKey, sessionKey] : [waiterKey, ...path];
  return { ...describeCycle(cycle), hint: CYCLE_HINTS[kind] };
}

/**
 * A waiter: a run, or a caller outside of runs. A caller has an empty run id, and its wait ends with the
 * process that serves it.
 */
interface Waiter {
  readonly runId: string;
  readonly sessionKey: string;
  readonly processId?: string;
  /** The chain of the message, if the waiter is at a peer. */
  readonly peerChainId?: string;
}

/** Returns whether the waits of this waiter are edges: it is a run, or the client of an external session. */
async function isEdge({ tx }: Unit, { runId, sessionKey }: Waiter): Promise<boolean> {
  return runId !== "" || (sessionKey !== "" && (await getSession(tx, sessionKey))?.external === true);
}

/** Records a wait, unless it would close a cycle. The wait for a job that has ended is answered at once. */
export async function openWait(
  unit: Unit,
  waiter: Waiter,
  { callId, kind, targets, deadlineAt }: WaitRequest,
): Promise<Result<readonly Wait[]>> {
  const ends = { callId, kind, waiterRunId: waiter.runId, waiterSessionKey: waiter.sessionKey, deadlineAt };
  const waits: Wait[] = [];
  for (const { id: targetId, sessionKey } of targets.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const isOpen = kind === "run" || (await holdFlow(unit.tx, targetId))?.open === true;
    waits.push({ ...ends, targetId, targetSessionKey: sessionKey, state: isOpen ? "open" : "answered" });
  }
  if (await isEdge(unit, waiter)) {
    await takeAdvisoryLock(unit.tx, "waits");
    const { peerChainId: chainId } = waiter;
    const elsewhere = chainId === undefined ? [] : await awaitedPeers(unit.tx, chainId, unit.now);
    for (const { targetSessionKey: sessionKey } of waits.filter(isOpenWait)) {
      const free = await refuseCycle(unit, waiter.sessionKey, { kind, sessionKey }, elsewhere);
      if (!free.ok) return free;
    }
  }
  for (const wait of waits) await insertWait(unit.tx, wait, waiter.processId);
  return ok(waits);
}

/** A wait of a peer's run for the answer to its message. */
export interface PeerWait {
  readonly chainId: string;
  readonly deadlineAt: number;
}

/**
 * Records the wait of a peer's session `from` for a run here, unless it would close a cycle (I7). This
 * gateway does not know the waits in others. So it is a cycle, too, if the run's session already waits for a
 * peer in the chain of the message.
 */
export function openPeerWait(
  unit: Unit,
  from: string,
  { runId: id, sessionKey }: Pick<Run, "runId" | "sessionKey">,
  { chainId: peerChainId, deadlineAt }: PeerWait,
): Promise<Result<unknown>> {
  const callId = `peer:${id}`;
  const targets = [{ id, sessionKey }];
  const waiter = { runId: callId, sessionKey: from, peerChainId };
  return openWait(unit, waiter, { callId, kind: "run", targets, deadlineAt });
}

/**
 * Returns whether a message in an inbox can get no answer, because its conversation has ended. Its run ended
 * when the inbox got the message.
 */
async function isCancelled({ db }: Store, { kind, targetId }: Wait): Promise<boolean> {
  const run = kind === "run" ? await getRun(db, targetId) : undefined;
  const flow = run?.flow && isInInbox(run) ? await getFlow(db, run.flow.flowId) : undefined;
  return flow?.open === false;
}

const isOpenWait = ({ state }: Wait): boolean => state === "open";

/** Waits for a recorded wait to end. Does not handle slots. */
export async function settleWait(
  { store, commit, watch }: EngineCore,
  waits: readonly Wait[],
  wanted: Wanted,
  signal: AbortSignal,
  gaveUp?: GaveUp,
): Promise<readonly WaitInChain[]> {
  const [first] = waits;
  if (first === undefined) return [];
  const { callId, deadlineAt } = first;
  let rows: readonly WaitInChain[] = waits;
  const isOver = (): boolean => !rows.some(isOpenWait) || (wanted === "any" && !rows.every(isOpenWait));
  const look = async (): Promise<boolean> => {
    rows = await waitsOfCall(store.db, callId);
    return isOver() || isCancelled(store, first);
  };
  await watch.until(
    waits.map(({ targetId }) => targetId),
    look,
    deadlineAt,
    signal,
  );
  // The wait can also fail because the gateway stops. If it is answered by then, the answer counts.
  if (!isOver()) signal.throwIfAborted();
  if (!rows.some(isOpenWait)) return rows;
  return commit(async (unit) => {
    if (await giveUpWaits(unit.tx, callId)) await gaveUp?.(unit);
    return waitsOfCall(unit.tx, callId);
  });
}

const UNANSWERED: PermissionAnswered = { decision: "deny", scope: "once", by: "" };

/**
 * Resolves with the decision, or with a denial when the request expires or is deleted. Resolves with
 * undefined when the wait is aborted.
 */
async function untilDecided(
  { store, commit, watch }: EngineCore,
  { id, sessionKey, expiresAt }: PermissionQuestion,
  signal: AbortSignal,
): Promise<PermissionAnswered | undefined> {
  let decided: PermissionAnswered | "gone" | undefined;
  const look = async (): Promise<boolean> => {
    decided = await decisionOf(store.db, id);
    return decided !== undefined;
  };
  await watch.until([id], look, expiresAt, signal);
  if (signal.aborted) return undefined;
  if (decided === undefined) {
    await commit(async (unit) => {
      if (await decidePermission(unit.tx, id, { ...UNANSWERED, atMs: unit.now }))
        unit.publish({ kind: "permission", id, sessionKey, change: "settled", answer: UNANSWERED });
    });
    // If an answer was stored before this denial, it counts, because the owner gets a confirmation of it.
    await look();
  }
  return decided === undefined || decided === "gone" ? UNANSWERED : decided;
}

/**
 * Creates the functions with which the tools of a run wait, act while it holds its lane, and know what it has
 * read. If the store fails, settling a wait is retried (`untilStored`).
 */
export function createRunWait(
  parts: EngineCore,
  held: HeldLane,
  keeper: ReturnType<typeof createSlotKeeper>,
  signal: AbortSignal,
) {
  const waiter = { runId: held.runId, sessionKey: held.sessionKey };
  let content: RunContent | undefined;
  const settling = <T>(settle: () => Promise<T>): Promise<T> =>
    keeper.duringWait(() => untilStored(parts.world, signal, settle));
  const waits: CallWait = {
    open: (unit, request) => openWait(unit, waiter, request),
    during: (work) => work(),
    settle: (rows, wanted, gaveUp) => settling(() => settleWait(parts, rows, wanted, signal, gaveUp)),
  };
  return {
    ...waiter,
    ...waits,
    /**
     * Returns what the run has read, as of its last calls and without what an owner has released since.
     * Undefined: unknown.
     */
    content: () => content,
    noteContent(read: RunContent): void {
      content = read;
    },
    /** Adds the labels of a text that the run reads now. */
    addLabels(labels: Labels | undefined): void {
      content = content && { ...content, labels: joinLabels(content.labels, labels) };
    },
    /**
     * Returns whether the run still holds its lane. Checked in every transaction in which a tool call of the
     * run writes (I1).
     */
    holds: (unit: Unit) => isHeld(unit.tx, held),
    /**
     * Waits until this process has authority over the run. Returns false if the run or the call is aborted
     * first. Call it between a commit and the action that it allows: the commit's answer may have been late.
     */
    async mayAct(callSignal: AbortSignal): Promise<boolean> {
      const both = AbortSignal.any([signal, callSignal]);
      // A signal that has fired before does not keep the lease from being confirmed.
      return (await parts.lease?.confirm(both)) !== false && !both.aborted;
    },
    /**
     * Waits until a permission request is decided or expires. Returns undefined if the run or the call was
     * aborted. `keepsSlot`: other work of the run may continue meanwhile, and a failure of the store is
     * thrown.
     */
    waitForDecision: (question: PermissionQuestion, callSignal: AbortSignal, keepsSlot = false) => {
      const { id: permissionId, title: what } = question;
      parts.world.log.warn({ permissionId, what }, ASKS);
      const decide = () => untilDecided(parts, question, AbortSignal.any([signal, callSignal]));
      return keepsSlot ? decide() : settling(decide);
    },
  };
}
