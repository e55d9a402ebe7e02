// Owns acceptance: the moment from which a run is kept (I2), has its place in the lane (I3) and counts in
// its chain (I8).
// A1: the run row, its lane number and its chain count are written by one transaction.
// A2: the same run id or tool call id never makes a second run.
// A3: an idempotency key is the id of its owner's run. If another's run has that id, the owner's run gets an
//     id made of owner and key; nobody is given a run that another owner began.

import { createHash } from "node:crypto";
import { fail, ok, type Result } from "../core/errors.ts";
import { ZERO_USAGE } from "../core/message.ts";
import type { FlowRef, Run, RunInput, RunKind } from "../core/run.ts";
import type { Route } from "../core/session.ts";
import { type Chain, countChainRun, holdChain } from "../store/chains.ts";
import { countAhead, countLane, getRun, getRunOfCall, insertRun } from "../store/runs.ts";
import { holdLane, takeLanePlace } from "../store/sessions.ts";
import type { Tx } from "../store/sql.ts";
import { together } from "../store/transaction.ts";
import type { Unit } from "./unit.ts";

export interface AcceptRequest {
  /** The caller's idempotency key; default: a new id. */
  readonly runId?: string;
  /** The owner of that key. Default: the runtime. */
  readonly askedBy?: string;
  readonly sessionKey: string;
  /** Default `turn`. */
  readonly kind?: RunKind;
  readonly input: RunInput;
  /** The conversation that it continues; default: a new one with hop 0. */
  readonly chain?: { readonly chainId: string; readonly hop: number };
  readonly route?: Route;
  readonly flow?: FlowRef;
  readonly parentRunId?: string;
  /** The stable id of the tool call that asks. */
  readonly callId?: string;
  /** Aborts the run this long after it started. Default 0: never. */
  readonly timeoutMs?: number;
  /** Where a new chain began, if not in this session. */
  readonly rootSessionKey?: string;
  /** Written by the runtime as the successor of a run: not subject to the queue limit. Default false. */
  readonly successor?: boolean;
}

export interface Accepted {
  readonly run: Run;
  /** Unfinished runs before it in its lane. */
  readonly queuedBehind: number;
  /** False: this id was accepted before, and `run` is that run as it is now. */
  readonly fresh: boolean;
}

export interface AcceptLimits {
  readonly queueMax: number;
  readonly maxHops: number;
  readonly maxChainRuns: number;
  /** Tokens that a chain may use. Absent: no budget. */
  readonly maxChainTokens?: number;
  /** USD that a chain may cost. Absent: no budget. */
  readonly maxChainCost?: number;
  /** What an agent may use in a day of UTC. Absent: as much as it likes. */
  readonly dailyBudgets?: Readonly<Record<string, DailyBudget>>;
}

interface DailyBudget {
  readonly dailyTokens?: number;
  readonly dailyCost?: number;
}

/** The daily budget of an agent, if it has one. */
export function dailyBudgetOf({ dailyBudgets = {} }: AcceptLimits, agentId: string): DailyBudget | undefined {
  return Object.hasOwn(dailyBudgets, agentId) ? dailyBudgets[agentId] : undefined;
}

/** The ids that a run under this key may have: the second where the first is another owner's (A3). */
function runIdsOf({ runId, askedBy }: AcceptRequest): readonly string[] {
  if (runId === undefined) return [];
  if (askedBy === undefined) return [runId];
  const whole = JSON.stringify([askedBy, runId]);
  return [runId, createHash("sha256").update(whole).digest("hex").slice(0, 32)];
}

/** The run that was accepted before, or the id of the new one. */
async function acceptedBefore(
  tx: Tx,
  request: AcceptRequest,
): Promise<Result<{ readonly run?: Run; readonly runId?: string }>> {
  const byCall = request.callId === undefined ? undefined : await getRunOfCall(tx, request.callId);
  if (byCall !== undefined) return ok({ run: byCall });
  if (request.runId === undefined) return ok({});
  for (const runId of runIdsOf(request)) {
    const run = await getRun(tx, runId);
    if (run === undefined) return ok({ runId });
    if (run.askedBy !== request.askedBy) continue;
    if (run.sessionKey === request.sessionKey && run.input.text === request.input.text) return ok({ run });
    break;
  }
  return fail("idempotency_conflict", `run id "${request.runId}" belongs to another request`, {
    hint: "Use a new idempotencyKey for a new request.",
  });
}

const CHAIN_HINT =
  "Finish here and report what you have; a new conversation starts with a new message from a person.";

const NEW_CHAIN: Chain = { runs: 0, tokens: 0, cost: 0 };

/** Whether a budget is set at all: without one nobody has to look at a chain. */
export function hasBudget({ maxChainTokens, maxChainCost }: AcceptLimits): boolean {
  return maxChainTokens !== undefined || maxChainCost !== undefined;
}

/** Whether a chain's budget allows a further run to start. */
export function withinBudget(chain: Chain, limits: AcceptLimits): Result<void> {
  const { maxChainTokens, maxChainCost } = limits;
  const told = (text: string): Result<void> => fail("chain_limit", text, { hint: CHAIN_HINT });
  if (maxChainTokens !== undefined && chain.tokens >= maxChainTokens) {
    const setting = `session.agentToAgent.maxChainTokens is ${maxChainTokens}`;
    return told(`this conversation has used ${chain.tokens} tokens (${setting})`);
  }
  if (maxChainCost !== undefined && chain.cost >= maxChainCost) {
    const setting = `session.agentToAgent.maxChainCost is ${maxChainCost}`;
    return told(`this conversation has cost ${chain.cost.toFixed(4)} USD (${setting})`);
  }
  return ok(undefined);
}

/** Whether a chain may have one more run, at this hop. */
async function chainAllows(
  tx: Tx,
  chain: { chainId: string; hop: number },
  limits: AcceptLimits,
  isNew: boolean,
): Promise<Result<void>> {
  const hint = CHAIN_HINT;
  if (chain.hop > limits.maxHops) {
    const times = `from session to session ${limits.maxHops} times`;
    return fail("chain_limit", `this conversation has passed ${times} (session.agentToAgent.maxHops)`, {
      hint,
    });
  }
  const used = isNew ? NEW_CHAIN : await holdChain(tx, chain.chainId);
  if (used.runs >= limits.maxChainRuns) {
    const runs = `${limits.maxChainRuns} runs`;
    return fail("chain_limit", `this conversation has had ${runs} (session.agentToAgent.maxChainRuns)`, {
      hint,
    });
  }
  return withinBudget(used, limits);
}

/** Accepts a run inside a unit. A failure undoes the whole unit. */
export async function acceptIn(
  unit: Unit,
  request: AcceptRequest,
  limits: AcceptLimits,
): Promise<Result<Accepted>> {
  const { tx } = unit;
  // First: from here on this lane is this unit's; it is counted once that is so.
  const [lane, load] = await together(holdLane(tx, request.sessionKey), countLane(tx, request.sessionKey));
  const before = await acceptedBefore(tx, request);
  if (!before.ok) return before;
  const { run: known, runId } = before.value;
  if (known !== undefined) {
    return ok({ run: known, queuedBehind: await countAhead(tx, known), fresh: false });
  }
  if (lane === undefined) return fail("session_not_found", `there is no session "${request.sessionKey}"`);
  const { session, laneSeq } = lane;
  if (session.archivedAt !== undefined) {
    return fail("session_archived", `session "${session.key}" is archived and read-only`, {
      hint: "An operator can restore it.",
    });
  }
  if (request.successor !== true && load.queued >= limits.queueMax) {
    return fail(
      "queue_full",
      `session "${session.key}" has ${limits.queueMax} messages waiting (session.queueMax)`,
      {
        hint: "Wait until some have been worked off, then send again.",
      },
    );
  }
  const chain = request.chain ?? { chainId: unit.newOrderedId(), hop: 0 };
  // An external session has no model: the message goes to its inbox, between runs.
  const kind = session.external ? "append" : (request.kind ?? "turn");
  if (kind === "turn") {
    const allowed = await chainAllows(tx, chain, limits, request.chain === undefined);
    if (!allowed.ok) return allowed;
  }
  const run: Run = {
    runId: runId ?? unit.newOrderedId(),
    sessionKey: session.key,
    sessionId: session.sessionId,
    agentId: session.agentId,
    laneSeq,
    kind,
    state: "queued",
    input: request.input,
    chainId: chain.chainId,
    hop: chain.hop,
    attempt: 0,
    crashes: 0,
    crashesInRow: 0,
    acceptedAt: unit.now,
    timeoutMs: Math.round(request.timeoutMs ?? 0),
    usage: ZERO_USAGE,
    ...(request.route === undefined ? {} : { route: request.route }),
    ...(request.flow === undefined ? {} : { flow: request.flow }),
    ...(request.parentRunId === undefined ? {} : { parentRunId: request.parentRunId }),
    ...(request.askedBy === undefined ? {} : { askedBy: request.askedBy }),
    ...(request.callId === undefined ? {} : { callId: request.callId }),
  };
  await together(
    takeLanePlace(tx, session.key, unit.now),
    kind === "turn"
      ? countChainRun(tx, { ...chain, rootSessionKey: request.rootSessionKey ?? session.key, at: unit.now })
      : undefined,
    insertRun(tx, run),
  );
  unit.publish({ kind: "session", sessionKey: session.key, change: "state" });
  return ok({ run, queuedBehind: load.active, fresh: true });
}
