// Owns waiting for a run: by a run (an edge of the wait graph, no slot), or by anybody else (no edge).
// WT1: cycle check and insertion are one serialised step (I7): both happen in the unit that accepts the
//      message.
// WT2: a wait is a row: after a crash the same call finds it again, with its first deadline.

import { fail, ok, type Result } from "../core/errors.ts";
import { isEnded, type Run } from "../core/run.ts";
import { enter } from "../store/locks.ts";
import { getRun } from "../store/runs.ts";
import type { Db, Store } from "../store/sql.ts";
import { getWait, giveUpWait, insertWait, openEdges, type Wait } from "../store/waits.ts";
import type { Clock } from "../world.ts";
import type { Commit, Unit } from "./unit.ts";

/** Sessions that one cycle check looks at; above it the wait is refused rather than risked. */
const CYCLE_SESSIONS_MAX = 10_000;

/** What a tool call of a run uses to wait for another run. */
export interface RunWait {
  readonly runId: string;
  readonly sessionKey: string;
  /** Whether the run still holds its lane: asked in every unit in which a call of it writes (I1). */
  holds(unit: Unit): Promise<boolean>;
  /** Records the wait in the unit that accepts the awaited run. Fails with `wait_cycle`. */
  open(unit: Unit, request: WaitRequest): Promise<Result<Wait>>;
  /** Waits until the awaited run ends or the recorded deadline passes. The run's slot is free meanwhile. */
  settle(callId: string): Promise<WaitEnd>;
}

export interface WaitRequest {
  readonly callId: string;
  readonly targetRunId: string;
  readonly targetSessionKey: string;
  readonly deadlineAt: number;
}

/** Where the open waits are read. */
interface WaitGraph {
  readonly tx: Db;
  readonly now: number;
}

export interface WaitEnd {
  /** True: the run ended in time and `run` is its end; false: waiting ended first. */
  readonly answered: boolean;
  readonly run: Run;
}

/** The sessions on a path of open waits from `from` to `to`, both included; undefined: there is none. */
async function waitPath(
  { tx, now }: WaitGraph,
  from: string,
  to: string,
): Promise<string[] | "too_many" | undefined> {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]]);
  let frontier = [from];
  while (frontier.length > 0 && !cameFrom.has(to)) {
    if (cameFrom.size > CYCLE_SESSIONS_MAX) return "too_many";
    const edges = await openEdges(tx, frontier, now);
    frontier = [];
    for (const edge of edges) {
      if (cameFrom.has(edge.to)) continue;
      cameFrom.set(edge.to, edge.from);
      frontier.push(edge.to);
    }
  }
  if (!cameFrom.has(to)) return undefined;
  const path: string[] = [];
  for (let at: string | undefined = to; at !== undefined; at = cameFrom.get(at)) path.unshift(at);
  return path;
}

/** Refuses a wait of `waiterKey` for `targetKey` that would close a cycle. */
export async function refuseCycle(
  graph: WaitGraph,
  waiterKey: string,
  targetKey: string,
): Promise<Result<void>> {
  const path = await waitPath(graph, targetKey, waiterKey);
  if (path === undefined) return ok(undefined);
  const cycle = path === "too_many" ? [waiterKey, targetKey] : [waiterKey, ...path];
  return fail("wait_cycle", `waiting would close a cycle: ${cycle.join(" -> ")}`, {
    hint:
      "The message was not sent. Answer with what you know (your reply reaches whoever asked you), " +
      "or send with timeoutSeconds: 0.",
    details: { cycle },
  });
}

/** Who waits. A caller that is no run has empty names, and waits in a process. */
interface Waiter {
  readonly runId: string;
  readonly sessionKey: string;
  readonly processId?: string;
}

/** Records a wait, unless it would close a cycle. */
export async function openWait(unit: Unit, waiter: Waiter, request: WaitRequest): Promise<Result<Wait>> {
  if (waiter.runId !== "") {
    await enter(unit.tx, "waits");
    const free = await refuseCycle(unit, waiter.sessionKey, request.targetSessionKey);
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

/** Who in this process wants to know that a run ended. */
export interface EndWatch {
  /** Resolves once the run has ended, the deadline has passed or the signal has fired. */
  until(runId: string, deadlineAt: number, signal?: AbortSignal): Promise<void>;
  ended(runId: string): void;
  /** Runs that somebody here watches. */
  watched(): string[];
}

export function createEndWatch(db: Db, clock: Clock): EndWatch {
  const watchers = new Map<string, Set<() => void>>();
  return {
    async until(runId, deadlineAt, signal) {
      let wake = (): void => {};
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const set = watchers.get(runId) ?? new Set();
      watchers.set(runId, set.add(wake));
      const timer = clock.at(deadlineAt, wake);
      signal?.addEventListener("abort", wake, { once: true });
      if (signal?.aborted === true) wake();
      try {
        // The row is read after the watch stands, so that an end in between is not missed.
        const run = await getRun(db, runId);
        if (run !== undefined && !isEnded(run.state)) await woken;
      } finally {
        timer.cancel();
        signal?.removeEventListener("abort", wake);
        set.delete(wake);
        if (set.size === 0) watchers.delete(runId);
      }
    },
    ended(runId) {
      for (const wake of watchers.get(runId) ?? []) wake();
    },
    watched: () => [...watchers.keys()],
  };
}

/** Waits for a recorded wait to end, without any regard to slots. */
export async function settleWait(
  parts: { store: Store; commit: Commit; watch: EndWatch },
  callId: string,
  signal: AbortSignal,
): Promise<WaitEnd> {
  const { store, commit, watch } = parts;
  const found = await getWait(store.db, callId);
  if (found === undefined) throw new Error(`no wait for call ${callId}`);
  let wait: Wait = found;
  if (wait.state === "open") {
    await watch.until(wait.targetRunId, wait.deadlineAt, signal);
    signal.throwIfAborted();
    wait = (await getWait(store.db, callId)) ?? wait;
  }
  if (wait.state === "open") {
    // The target may end in between: in time, and its outcome counts; or too late, and the sender learns
    // it otherwise.
    wait = await commit(async (unit) => {
      await giveUpWait(unit.tx, callId);
      return (await getWait(unit.tx, callId)) ?? found;
    });
  }
  const run = await getRun(store.db, wait.targetRunId);
  if (run === undefined) throw new Error(`no run ${wait.targetRunId}`);
  return { answered: wait.state === "answered", run };
}
