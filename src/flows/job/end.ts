// Ends a sub-agent's job: decides whether it has ended, and announces its outcome. The runtime sets the
// status (I12), and the outcome is announced once, in the transaction that ends the run (I4). If the
// requester no longer exists, the result is still kept: it is posted, appended, or stored as a failed
// delivery for operators.
// JB1: a job ends when none of its runs is unfinished, and no child of its own. Other messages to the child
//      are not part of the job.
// The result is the child's own text. If the child was stopped, it is the text written so far.

import { optional } from "../../core/optional.ts";
import {
  type AnnouncedStatus,
  type AnnouncementFacts,
  type AnnouncementStats,
  announcedFacts,
  composeAnnouncement,
  jobOutcome,
} from "../../core/rules/announcement.ts";
import { isOverBudget } from "../../core/rules/budget.ts";
import { jobDelivery } from "../../core/rules/result-delivery.ts";
import { isSilent, skipsAnnouncement, subagentAnnounceContext } from "../../core/rules/turn-rules.ts";
import type { Code } from "../../core/shapes/errors.ts";
import { type Message, textOf } from "../../core/shapes/message.ts";
import { isEnded, type Run } from "../../core/shapes/run.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { AcceptRequest } from "../../engine/run/accept.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdSessions } from "../../store/locks.ts";
import { endJob, type Flow, getFlow, openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { usageOf } from "../../store/queries/runs/ledger.ts";
import {
  activeRuns,
  activeRunsOfFlow,
  getRun,
  makeAppend,
  runsOfFlow,
} from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { lastToolResult, readRun } from "../../store/queries/transcripts/transcripts.ts";
import { sessionMayBeIdle } from "../conversation/idle.ts";
import { partyOf, provenanceFrom } from "../conversation/party.ts";
import { answerTexts } from "../delivery/answer-texts.ts";
import { putInOutbox, queueDelivery } from "../delivery/outbox.ts";
import { publishFlow, publishFlowEnd } from "../flow-events.ts";

/** The kind of the stored deadline at which a finished child is archived, deleted or cleaned up. */
export const CHILD_DEADLINE = "child";

export interface JobParts {
  readonly settings: Settings;
  /** Returns the path of the readable copy of a transcript; undefined in a cluster. */
  transcriptPath(sessionId: string): string | undefined;
}

export interface Ending extends JobParts {
  readonly acceptor: Acceptor;
  readonly unit: Unit;
}

interface JobContext extends Ending {
  readonly flow: Flow;
  readonly child: Session;
}

/** The input of an announce turn. The context of the turn says what to announce. */
const ANNOUNCE_INPUT = "Sub-agent announce step.";

/** Starts the child's own announce turn. Returns false if the turn was refused. */
async function askChild(context: JobContext, last: Run, result: string): Promise<boolean> {
  const { acceptor, unit, settings, flow, child } = context;
  const requester = (await getSession(unit.tx, flow.requesterKey)) ?? child;
  const chain = { chainId: last.chainId, hop: last.hop };
  const accepted = await acceptor.acceptIn(unit, {
    sessionKey: child.key,
    input: {
      text: ANNOUNCE_INPUT,
      provenance: provenanceFrom(requester, chain, "sessions_spawn"),
      context: subagentAnnounceContext({
        requester: partyOf(settings, requester, child),
        self: partyOf(settings, child, child),
        task: flow.requestText,
        status: statusOf(last),
        result,
      }),
    },
    chain,
    flow: { flowId: flow.flowId, step: "announce", turn: 1 },
    // Without a limit, the announce turn could hold the result back forever.
    timeoutMs: last.timeoutMs,
    successor: true,
  });
  return accepted.ok;
}

/** How far a result gets: it starts a turn, is in the transcript, is for people only, or why in neither. */
type Reach = "turn" | "transcript" | "people" | `requester_${"deleted" | "archived" | "reset" | "refused"}`;

/** A result for a requester, and the run that the text for its people belongs to. */
interface ResultText {
  readonly runId: string;
  readonly requesterKey: string;
  readonly route: Route | undefined;
  readonly text: string;
}

/**
 * Posts a result that starts no turn. Without a chat, a result that is not in the transcript either is kept
 * as a failed delivery, which operators see and can retry. It belongs to the requester, because the child may
 * be deleted after its job.
 */
async function post(
  ending: Ending,
  requester: Session | undefined,
  { requesterKey: sessionKey, route, text, runId }: ResultText,
  reach: Exclude<Reach, "turn"> | Code,
): Promise<void> {
  const { unit } = ending;
  if (requester !== undefined && route !== undefined) {
    const posted = { session: requester, route, text, kind: "announce", runId } as const;
    await queueDelivery(ending, unit, { ...posted, isAnswer: true });
    return;
  }
  if (reach === "transcript" || reach === "people") return;
  const error = `the requester ${sessionKey} can't be notified (${reach})`;
  const facts = { sessionKey, runId, code: reach, error, state: "failed" } as const;
  const place = route ?? { channel: "internal", to: sessionKey };
  const id = unit.newId();
  await putInOutbox(unit, { id, ...facts, kind: "announce", route: place, text });
  const { channel, to } = place;
  const event = { kind: "delivery", deliveryId: id, ...facts, what: "announce" } as const;
  unit.publish({ ...event, channel, to, atMs: unit.now });
}

/** Returns the place where the people of a job's requester may read its result. */
function routeToPeople({ spawn }: Session): Route | undefined {
  return spawn?.announce === "parent" ? undefined : spawn?.route;
}

/** Returns what the turn that reads a result inherits. A requester that is a sub-agent continues its job. */
async function turnFor({ unit, child }: JobContext, requester: Session): Promise<Partial<AcceptRequest>> {
  const job = await openJobOf(unit, requester);
  const route = optional({ route: routeToPeople(child) });
  if (job === undefined) return route;
  const { timeoutMs = 0 } = (requester.spawn && (await getRun(unit.tx, requester.spawn.runId))) ?? {};
  return { ...route, flow: { flowId: job.flowId, step: "task", turn: 1 }, timeoutMs };
}

/**
 * Puts a result into the requester's lane. Its place there writes it into the transcript, between two runs,
 * also if the turn that reads it is refused or stopped.
 */
async function deliverResult(
  context: JobContext,
  requester: Session | undefined,
  text: string,
  last: Run | undefined,
): Promise<Reach> {
  const { acceptor, unit, flow, child } = context;
  if (requester === undefined) return "requester_deleted";
  if (requester.archivedAt !== undefined) return "requester_archived";
  if (requester.sessionId !== flow.requesterSessionId) return "requester_reset";
  const way = jobDelivery(requester, child.spawn);
  if (way === "channel") return "people";
  const chain = { chainId: flow.chainId, hop: last?.hop ?? 1 };
  const input = { text, provenance: provenanceFrom(child, chain, "sessions_spawn") };
  const result = { sessionKey: requester.key, input, chain, successor: true };
  if (way === "wake" || way === "inbox") {
    const turn = await turnFor(context, requester);
    if ((await acceptor.acceptIn(unit, { ...result, ...turn })).ok) return "turn";
  }
  const appended = await acceptor.acceptIn(unit, { ...result, kind: "append" });
  return appended.ok ? "transcript" : "requester_refused";
}

/**
 * Announces a result to its requester, and to people if the requester's agent will not do so. In the child's
 * own thread only a failure is posted, because a success was already posted there as the reply of its run.
 */
async function announce(context: JobContext, text: string, last: Run | undefined): Promise<void> {
  const { unit, flow, child } = context;
  const { thread, runId = flow.flowId } = child.spawn ?? {};
  const requester = await getSession(unit.tx, flow.requesterKey);
  const reach = await deliverResult(context, requester, text, last);
  if (thread !== undefined) {
    if (last?.state !== "error" && last?.state !== "timeout") return;
    const posted = { session: child, route: thread, text, runId: last.runId } as const;
    await queueDelivery(context, unit, { ...posted, kind: "announce" });
  } else if (reach !== "turn") {
    const { requesterKey } = flow;
    const route = routeToPeople(child);
    const result = { runId: last?.runId ?? runId, requesterKey, route, text };
    await post(context, requester, result, reach);
  }
}

/** Posts a job's reply in the job's own thread, if it has one, in the transaction that ends the run. */
async function postReply({ settings, unit }: Ending, run: Run, child: Session): Promise<void> {
  const { route, runId } = run;
  if (run.flow?.step !== "task" || route === undefined || run.state !== "ok") return;
  for (const text of await answerTexts(settings, unit, run, { session: child, route }))
    await queueDelivery({ settings }, unit, { session: child, route, text, kind: "announce", runId });
}

/** Returns the sub-agent whose result a turn tells a session's agent. */
function findResultChild(run: Run, session: Session): string | undefined {
  const { provenance } = run.input;
  if (run.kind !== "turn" || provenance?.kind !== "inter_session") return undefined;
  const { sourceTool, sourceSessionKey } = provenance;
  // The message of a spawn comes from the child's requester. It starts the child's job and is no result.
  const isResult = ![session.spawnedBy, session.key].includes(sourceSessionKey);
  return sourceTool === "sessions_spawn" && isResult ? sourceSessionKey : undefined;
}

/**
 * Lets queued turns that would tell the requester's agent results only append them to the transcript, because
 * a wait has returned these results.
 */
export async function writeDownWakes(
  unit: Unit,
  requester: Session,
  childKeys: readonly string[],
): Promise<void> {
  for (const run of await activeRuns(unit.tx, requester.key)) {
    const childKey = run.startedAt === undefined ? findResultChild(run, requester) : undefined;
    if (childKey !== undefined && childKeys.includes(childKey)) await makeAppend(unit.tx, run.runId);
  }
}

/**
 * Announces a result in another way if its turn did not start or ended at a budget. A run that has started
 * has written the result to the transcript. After a stop the result is appended, so that the agent's next
 * turn knows it.
 */
export async function wakeRunEnded(ending: Ending, run: Run): Promise<void> {
  const { acceptor, unit } = ending;
  const isWritten = run.startedAt !== undefined;
  if (isWritten && !isOverBudget(run)) return;
  const session = await getSession(unit.tx, run.sessionKey);
  if (session === undefined || findResultChild(run, session) === undefined) return;
  const { runId, route, sessionKey, input, code = "run_failed", chainId, hop } = run;
  const { text, provenance } = input;
  const isStopped = !isWritten && code === "run_aborted";
  const result = { runId, requesterKey: sessionKey, route, text };
  await post(ending, session, result, isWritten || isStopped ? "transcript" : code);
  if (!isStopped) return;
  const appended = { text, ...optional({ provenance }) };
  const chain = { chainId, hop };
  await acceptor.acceptIn(unit, { sessionKey, kind: "append", input: appended, chain, successor: true });
}

/**
 * Stores the date of a finished child's clean-up: now if the child or its attachments are to be removed, else
 * the archiving date, if there is one.
 */
export async function planChildCleanup(unit: Unit, child: Session): Promise<void> {
  const facts = child.spawn;
  if (facts === undefined) return;
  const tidies = facts.attachments !== undefined && facts.retainAttachments !== true;
  const atOnce = facts.cleanup === "delete" || tidies;
  if (!atOnce && facts.archiveAfterMinutes === 0) return;
  const dueAt = atOnce ? unit.now : unit.now + facts.archiveAfterMinutes * 60_000;
  await unit.setDeadline({ kind: CHILD_DEADLINE, key: child.key, dueAt });
}

interface Settlement {
  /** The text of the child's announce turn. If absent, the runtime composes the announcement. */
  readonly words?: string;
  /** Why these words are not complete. */
  readonly error?: string;
  /** True if the child chose to announce nothing. */
  readonly isQuiet?: boolean;
  /** True if the child was stopped, even while it only waited. */
  readonly stopped?: boolean;
}

/** Ends the job and announces it once. */
async function settle(
  context: JobContext,
  { words, error, isQuiet: chosen = false, stopped }: Settlement = {},
): Promise<void> {
  const { unit, flow, child } = context;
  const isQuiet = chosen || child.spawn?.announce === "none";
  const { runs, last, result } = await outcomeOf(context);
  const { flowId, requesterKey: to, targetKey: from, turnsMax } = flow;
  const runId = last?.runId ?? flowId;
  const waited = stopped === true && last?.state === "ok";
  const notes = waited ? "it was stopped while sub-agents of its own were at work" : (error ?? last?.error);
  const own: AnnouncementFacts = {
    status: waited ? "aborted" : statusOf(last),
    result,
    stats: await statsOf(context, runs),
    ...optional({ notes }),
  };
  const facts = words === undefined ? own : announcedFacts(words, own);
  const reason = isQuiet ? "silent" : "announced";
  if (!(await endJob(unit.tx, flowId, { reason, outcome: jobOutcome(facts), at: unit.now }))) return;
  if (!isQuiet) {
    const text = composeAnnouncement(facts);
    publishFlow(unit, { flowId, runId, step: "announce", from, to, turn: 1, turnsMax, text });
    await announce(context, text, last);
  }
  publishFlowEnd(unit, flow, { runId });
  await planChildCleanup(unit, child);
  await lookAbove(context, child);
}

/** Ends the parent's work if the parent only waited for this child and no run will wake it. */
export async function lookAbove(ending: Ending, { spawn }: Session): Promise<void> {
  const above = spawn && (await getSession(ending.unit.tx, spawn.requesterKey));
  if (above !== undefined) await jobMayHaveEnded(ending, above);
  if (above !== undefined) await sessionMayBeIdle(ending, above.key);
}

async function openJobOf(unit: Unit, { spawn }: Session): Promise<Flow | undefined> {
  const flow = spawn && (await getFlow(unit.tx, spawn.flowId));
  return flow?.open === true ? flow : undefined;
}

/** Returns whether a job has work left, in the child or below it (JB1). */
async function isAtWork(unit: Unit, flow: Flow): Promise<boolean> {
  if ((await activeRunsOfFlow(unit.tx, flow.flowId)).length > 0) return true;
  return (await openSpawnsOf(unit.tx, { sessionKey: flow.targetKey })).length > 0;
}

/** Announces a child's job if it has ended. Safe to call at any time. */
export async function jobMayHaveEnded(ending: Ending, child: Session): Promise<void> {
  const { unit } = ending;
  // Two of the child's children may end at the same time. The lock lets the later one see that it is the
  // last.
  await holdSessions(unit.tx, [child.key]);
  const flow = await openJobOf(unit, child);
  if (flow === undefined || (await isAtWork(unit, flow))) return;
  const context: JobContext = { ...ending, flow, child };
  const { last, result } = await outcomeOf(context);
  // A sub-agent with its own thread has already posted its result there, so it needs no announce turn.
  const { thread, announce: way } = child.spawn ?? {};
  const asks = last?.state === "ok" && thread === undefined && way !== "none";
  if (!(asks && (await askChild(context, last, result)))) await settle(context);
}

/** Ends the job of a child that was stopped as a whole, even if it still waited for results. */
export async function jobStopped(ending: Ending, child: Session): Promise<void> {
  const flow = await openJobOf(ending.unit, child);
  if (flow !== undefined) await settle({ ...ending, flow, child }, { stopped: true });
}

/**
 * Returns how to announce a job after its announce turn. If the turn failed or wrote nothing, the runtime
 * composes the text.
 */
function announcedBy({ state, reply = "", error }: Run): Settlement {
  if (state !== "ok") return {};
  if (skipsAnnouncement(reply)) return { isQuiet: true };
  return isSilent(reply) ? {} : { words: reply, ...optional({ error }) };
}

/** Called when a run of a job has ended. */
export async function jobRunEnded(ending: Ending, run: Run, flow: Flow): Promise<void> {
  const { unit } = ending;
  const child = await getSession(unit.tx, flow.targetKey);
  if (child === undefined || !flow.open) return;
  await postReply(ending, run, child);
  // The announce turn may have spawned sub-agents. Then the child announces again when they have finished.
  const isLast = run.flow?.step === "announce" && !(await isAtWork(unit, flow));
  if (!isLast) return jobMayHaveEnded(ending, child);
  await settle({ ...ending, flow, child }, announcedBy(run));
}

/** Returns the status of a run for an announcement. */
export function statusOf(run: Run | undefined): AnnouncedStatus {
  return run !== undefined && isEnded(run.state) ? run.state : "unknown";
}

/** Returns the task runs of a job, the last of them, and the job's result. */
async function outcomeOf(job: JobContext): Promise<{ runs: Run[]; last: Run | undefined; result: string }> {
  const runs = (await runsOfFlow(job.unit.tx, job.flow.flowId)).filter((run) => run.flow?.step === "task");
  const last = runs.at(-1);
  const reply = last?.reply ?? "";
  if (!isSilent(reply)) return { runs, last, result: reply };
  const written = last === undefined || last.state === "ok" ? undefined : await lastWords(job.unit, runs);
  const result = written ?? (await lastToolResult(job.unit.tx, job.child.sessionId)) ?? "";
  return { runs, last, result };
}

/** Returns the text that a failed job had written so far. */
async function lastWords(unit: Unit, runs: readonly Run[]): Promise<string | undefined> {
  const speaks = (message: Message): boolean => message.role === "assistant" && !isSilent(textOf(message));
  for (const run of runs.toReversed()) {
    const message = (await readRun(unit.tx, run.runId)).findLast(speaks);
    if (message !== undefined) return textOf(message);
  }
  return undefined;
}

async function statsOf(job: JobContext, runs: readonly Run[]): Promise<AnnouncementStats> {
  const { unit, child } = job;
  // A run that ended before it started has no duration.
  const begun = runs.filter((run) => run.startedAt !== undefined);
  const started = Math.min(...begun.map((run) => run.startedAt ?? unit.now));
  const ended = Math.max(...begun.map((run) => run.endedAt ?? unit.now));
  const usage = await usageOf(unit.tx, { sessionKey: child.key });
  return {
    runtimeMs: begun.length === 0 ? 0 : ended - started,
    inputTokens: usage.input + usage.cacheRead + usage.cacheWrite,
    outputTokens: usage.output,
    totalTokens: usage.totalTokens,
    ...(usage.cost > 0 ? { costUsd: usage.cost } : {}),
    sessionKey: child.key,
    sessionId: child.sessionId,
    ...optional({ transcriptPath: job.transcriptPath(child.sessionId) }),
  };
}
