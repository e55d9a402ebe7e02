// Accepts a run: from then on it is kept (I2), has a position in its lane (I3) and counts in its chain (I8).
// One transaction writes the run row, its lane number and its chain count.
// A2: the same run id or tool call id never makes a second run.
// The caller's idempotency key becomes the run's id. If another caller's run already has that id, the new id
// is a hash of caller and key, so a caller never receives a run that another caller began.

import { createHash } from "node:crypto";
import { sourceKeyIn } from "../../core/message-source.ts";
import { optional } from "../../core/optional.ts";
import { joinLabels, labelFrom, withArrival } from "../../core/rules/labels/labels.ts";
import { outsideInput } from "../../core/rules/labels/sources.ts";
import { isSessionMessage } from "../../core/rules/receipt.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import { ZERO_USAGE } from "../../core/shapes/message.ts";
import type { FlowRef, Run, RunInput, RunKind } from "../../core/shapes/run.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import { type Chain, countChainRun, holdChain } from "../../store/queries/chains/chains.ts";
import { addLabels } from "../../store/queries/labels.ts";
import { insertMark } from "../../store/queries/runs/inbox-marks.ts";
import { countAhead, countLane, getRun, getRunOfCall, insertRun } from "../../store/queries/runs/runs.ts";
import { holdLane, takeLanePlace } from "../../store/queries/sessions/sessions.ts";
import type { Tx } from "../../store/sql.ts";
import { together } from "../../store/transaction.ts";
import type { Unit } from "../unit.ts";
import { publishReceipt } from "./finish.ts";

export interface AcceptRequest {
  /** The caller's idempotency key; default: a new id. */
  readonly runId?: string;
  /** The caller that chose this key. Default: the runtime. */
  readonly askedBy?: string;
  readonly sessionKey: string;
  /** Default `turn`. */
  readonly kind?: RunKind;
  readonly input: RunInput;
  /** The chain to continue; default: a new chain with hop 0. */
  readonly chain?: { readonly chainId: string; readonly hop: number };
  readonly route?: Route;
  readonly flow?: FlowRef;
  readonly parentRunId?: string;
  /** The stable id of the tool call that sends the request. */
  readonly callId?: string;
  /**
   * Tokens that the chain may still use, as another gateway or a program asks. Counts only if the chain is
   * new, or began with such a limit, which it can lower (`RunInput.tokenLimit`). Default: no limit.
   */
  readonly tokensLeft?: number;
  /** Aborts the run this long after it started. Default 0: never. */
  readonly timeoutMs?: number;
  /** The session in which the new chain began. Default: this session. */
  readonly rootSessionKey?: string;
  /** See `Run.forgottenAt`. */
  readonly forgottenAt?: number;
  /**
   * True if the runtime creates this run as the successor of another run, so that the queue limit does not
   * apply. Default false.
   */
  readonly successor?: boolean;
}

export interface Accepted {
  readonly run: Run;
  /** Number of unfinished runs before this one in its lane. */
  readonly queuedBehind: number;
  /** False if a run with this id was accepted before; `run` is then that run in its current state. */
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
  /** Returns the label of a session whose texts are private. */
  readonly labelOfSession?: (session: Session) => Labels | undefined;
  /** Limits per agent and UTC day. Absent: no limit. */
  readonly dailyBudgets?: Readonly<Record<string, DailyBudget>>;
}

interface DailyBudget {
  readonly dailyTokens?: number;
  readonly dailyCost?: number;
}

/** Returns the daily budget of an agent, if it has one. */
export function dailyBudgetOf({ dailyBudgets = {} }: AcceptLimits, agentId: string): DailyBudget | undefined {
  return Object.hasOwn(dailyBudgets, agentId) ? dailyBudgets[agentId] : undefined;
}

/**
 * Returns the possible ids of a run for this key. The second id is used if another caller's run has the
 * first.
 */
function runIdsOf({ runId, askedBy }: AcceptRequest): readonly string[] {
  if (runId === undefined) return [];
  if (askedBy === undefined) return [runId];
  const whole = JSON.stringify([askedBy, runId]);
  return [runId, createHash("sha256").update(whole).digest("hex").slice(0, 32)];
}

/** Returns the run that this request has already created, or the id for a new one. */
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

const NEW_CHAIN: Chain = { runs: 0, tokens: 0, cost: 0, guest: false };

/** Returns whether a run's chain has a budget. If not, the chain's row need not be read. */
export function hasChainBudget(
  { maxChainTokens, maxChainCost }: AcceptLimits,
  { tokenLimit }: Pick<RunInput, "tokenLimit">,
): boolean {
  return (maxChainTokens ?? maxChainCost ?? tokenLimit) !== undefined;
}

/** Name of `RunInput.tokenLimit` in refusals. */
export const TOKEN_LIMIT_NAME = "the limit of the program or gateway that asked";

/** Fails if the chain has used up its budget. */
export function withinBudget(chain: Chain, limits: AcceptLimits): Result<void> {
  const { maxChainTokens, maxChainCost } = limits;
  const { tokens, cost, tokenLimit } = chain;
  const budgets = [
    [tokens, maxChainTokens, `used ${tokens} tokens (session.agentToAgent.maxChainTokens`],
    [tokens, tokenLimit, `used ${tokens} tokens (${TOKEN_LIMIT_NAME}`],
    [cost, maxChainCost, `cost ${cost.toFixed(4)} USD (session.agentToAgent.maxChainCost`],
  ] as const;
  for (const [used, limit, text] of budgets) {
    if (limit !== undefined && used >= limit)
      return fail("chain_limit", `this conversation has ${text} is ${limit})`, { hint: CHAIN_HINT });
  }
  return ok(undefined);
}

/** Returns the limit of tokens that a chain has from this request on. */
function tokenLimitOf(
  { runs, tokens, tokenLimit }: Chain,
  tokensLeft: number | undefined,
): number | undefined {
  // A chain that began without a limit may be one of this gateway's own, which nobody else may stop.
  const isLimitable = runs === 0 || tokenLimit !== undefined;
  if (tokensLeft === undefined || !isLimitable) return tokenLimit;
  return Math.min(tokens + tokensLeft, tokenLimit ?? Number.POSITIVE_INFINITY);
}

/** Checks that a chain may have another run. Returns the chain's use so far, and its limit. */
async function chainAllows(
  tx: Tx,
  chainId: string,
  limits: AcceptLimits,
  { chain: known, tokensLeft }: AcceptRequest,
): Promise<Result<Chain>> {
  const before = known === undefined ? NEW_CHAIN : await holdChain(tx, chainId);
  const used: Chain = { ...before, ...optional({ tokenLimit: tokenLimitOf(before, tokensLeft) }) };
  if (used.runs >= limits.maxChainRuns) {
    const error = `this conversation has had ${limits.maxChainRuns} runs (session.agentToAgent.maxChainRuns)`;
    return fail("chain_limit", error, { hint: CHAIN_HINT });
  }
  const within = withinBudget(used, limits);
  return within.ok ? ok(used) : within;
}

/** Returns a failure if the session accepts no further run. */
function refusedBy(
  session: Session,
  queued: number,
  { successor }: AcceptRequest,
  { queueMax }: AcceptLimits,
): Failure | undefined {
  if (session.archivedAt !== undefined) {
    return fail("session_archived", `session "${session.key}" is archived and read-only`, {
      hint: "An operator can restore it.",
    });
  }
  if (successor === true || queued < queueMax) return undefined;
  return fail("queue_full", `session "${session.key}" has ${queueMax} messages waiting (session.queueMax)`, {
    hint: "Wait until some of them have finished, then send again.",
  });
}

/** Returns the labels of everything that a session knows. */
const labelsKnown = ({ labelOfSession }: AcceptLimits, session: Session): Labels | undefined =>
  joinLabels(session.labels, labelOfSession?.(session));

interface AcceptPlace {
  readonly session: Session;
  readonly writer: Session | undefined;
  readonly known: Chain | undefined;
  readonly limits: AcceptLimits;
}

/**
 * Returns the labels of the texts that the run begins with: its message's, with those of the session that
 * wrote it, its chain's and its session's. `ofChain`: those of its chain from now on.
 */
async function labelsIn(
  { tx, now }: Unit,
  { input, chain }: AcceptRequest,
  { session, writer, known, limits }: AcceptPlace,
  runId: string,
): Promise<{ readonly labels: Labels | undefined; readonly ofChain: Labels | undefined }> {
  const source = outsideInput(input, session.key);
  const given = source === undefined ? undefined : labelFrom("outside", source, now, runId);
  const own = joinLabels(session.labels, joinLabels(input.labels, given));
  const ofSession = labelsKnown(limits, session);
  // Its chain may lack what another run of its session has read.
  const written = joinLabels(own, writer && labelsKnown(limits, writer));
  const isMarked = (written ?? ofSession) !== undefined;
  const before = known ?? (chain && isMarked ? await holdChain(tx, chain.chainId) : undefined);
  const labels = joinLabels(written, before?.labels);
  const all = joinLabels(labels, ofSession);
  return { labels, ofChain: joinLabels(before?.labels, withArrival(all, { at: now, runId })) };
}

/** Accepts a run in a transaction. A failure undoes the whole transaction. */
export async function acceptIn(
  unit: Unit,
  request: AcceptRequest,
  limits: AcceptLimits,
): Promise<Result<Accepted>> {
  const { tx } = unit;
  const { sessionKey, route, flow, parentRunId, askedBy, callId, forgottenAt } = request;
  // The first statement locks the lane. Only then do the other statements see all committed runs of the lane.
  const found = together(
    holdLane(tx, sessionKey, sourceKeyIn(request.input.provenance)),
    countLane(tx, sessionKey),
    acceptedBefore(tx, request),
  );
  const [lane, load, before] = await found;
  if (!before.ok) return before;
  const { run: known, runId } = before.value;
  if (known !== undefined) {
    return ok({ run: known, queuedBehind: await countAhead(tx, known), fresh: false });
  }
  if (lane === undefined) return fail("session_not_found", `there is no session "${request.sessionKey}"`);
  const { session, laneSeq, writer } = lane;
  const refused = refusedBy(session, load.queued, request, limits);
  if (refused !== undefined) return refused;
  const chain = request.chain ?? { chainId: unit.newOrderedId(), hop: 0 };
  // An external session has no model. The message goes to its inbox, between runs.
  const kind = session.external ? "append" : (request.kind ?? "turn");
  const isForInbox = session.external && request.input.injected !== true;
  const hasReceipt = isForInbox || (kind === "append" && isSessionMessage(request));
  // A message for an inbox calls no model of this gateway, but may wake a program that answers.
  const isStep = kind === "turn" || (isForInbox && isSessionMessage(request));
  if (isStep && chain.hop > limits.maxHops) {
    const times = `from session to session ${limits.maxHops} times`;
    const error = `this conversation has passed ${times} (session.agentToAgent.maxHops)`;
    return fail("chain_limit", error, { hint: CHAIN_HINT });
  }
  const allowed = kind === "turn" ? await chainAllows(tx, chain.chainId, limits, request) : ok(undefined);
  if (!allowed.ok) return allowed;
  const inherited = optional({
    guest: allowed.value?.guest || undefined,
    tokenLimit: allowed.value?.tokenLimit,
  });
  const newId = runId ?? unit.newOrderedId();
  const place = { session, writer, known: allowed.value, limits };
  const { labels, ofChain } = await labelsIn(unit, request, place, newId);
  const run: Run = {
    runId: newId,
    sessionKey: session.key,
    sessionId: session.sessionId,
    agentId: session.agentId,
    laneSeq,
    kind,
    state: "queued",
    input: { ...request.input, ...inherited },
    chainId: chain.chainId,
    hop: chain.hop,
    attempt: 0,
    crashes: 0,
    acceptedAt: unit.now,
    timeoutMs: Math.round(request.timeoutMs ?? 0),
    usage: ZERO_USAGE,
    ...optional({ route, flow, parentRunId, askedBy, callId, forgottenAt }),
  };
  await together(
    takeLanePlace(tx, session.key, unit.now),
    kind === "turn" || isForInbox
      ? countChainRun(tx, {
          ...chain,
          rootSessionKey: request.rootSessionKey ?? session.key,
          at: unit.now,
          runs: kind === "turn" ? 1 : 0,
          guest: request.input.guest === true,
          tokenLimit: allowed.value?.tokenLimit,
          labels: ofChain,
        })
      : undefined,
    labels === undefined || labels === session.labels
      ? undefined
      : addLabels(tx, { ...session, chainId: request.chain?.chainId }, labels, {
          at: unit.now,
          runId: newId,
        }),
    insertRun(tx, run, load.active === 0 ? unit.now : null),
    hasReceipt ? insertMark(tx, run, isSessionMessage(run) ? {} : { endedAt: unit.now }) : undefined,
  );
  publishReceipt(unit, run, "queued");
  unit.publish({ kind: "session", sessionKey: session.key, change: "state" });
  return ok({ run, queuedBehind: load.active, fresh: true });
}
