// Owns the end of a sub-agent's job: whether it has ended, what it came to, and who is told how.
// JB1: a job ends when the child has no unfinished run and no unfinished children of its own.
// JB2: its status is the runtime's (I12); it is told once, in the unit that ends the run (I4).
// JB3: whatever became of the requester, the result is kept: posted, appended, or as a failed delivery for operators.

import {
  type AnnouncedStatus,
  type AnnouncementFacts,
  type AnnouncementStats,
  composeAnnouncement,
  normaliseAnnouncement,
} from "../core/announcement.ts";
import type { Run } from "../core/run.ts";
import type { Route, Session } from "../core/session.ts";
import type { Settings } from "../core/settings.ts";
import { isSilent, subagentAnnounceContext } from "../core/turn-rules.ts";
import type { Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { insertDelivery } from "../store/deliveries.ts";
import { endFlow, type Flow, getFlow, openSpawnsOf } from "../store/flows.ts";
import { usageOf } from "../store/ledger.ts";
import { activeRunsOfFlow, runsOfFlow } from "../store/runs.ts";
import { getSession } from "../store/sessions.ts";
import { lastToolResult } from "../store/transcripts.ts";
import { publishFlow } from "./flow-events.ts";
import { type Outbound, queueDelivery } from "./outbox.ts";
import { partyOf, provenanceFrom } from "./party.ts";

/** The kind of the stored deadline at which a finished child is archived, deleted or tidied. */
export const CHILD_DEADLINE = "child";

export interface JobParts {
  readonly settings: Settings;
  readonly outbound: Outbound;
  /** Where the readable copy of a transcript lies; absent in a cluster. */
  transcriptPath(sessionId: string): string | undefined;
}

/** A job at a moment at which it may have ended. */
interface Moment extends JobParts {
  readonly acceptor: Acceptor;
  readonly unit: Unit;
  readonly flow: Flow;
  readonly child: Session;
}

/** The input of an announce turn; what it is about stands in the context. */
const ANNOUNCE_INPUT = "Sub-agent announce step.";

function statusOf(run: Run | undefined): AnnouncedStatus {
  const state = run?.state;
  return state === "ok" || state === "error" || state === "timeout" || state === "aborted"
    ? state
    : "unknown";
}

/** What the child's last piece of work came to. */
async function outcomeOf(moment: Moment): Promise<{ runs: Run[]; last: Run | undefined; result: string }> {
  const runs = (await runsOfFlow(moment.unit.tx, moment.flow.flowId)).filter(
    (run) => run.flow?.step === "task",
  );
  const last = runs.at(-1);
  const reply = last?.reply ?? "";
  const result = isSilent(reply)
    ? ((await lastToolResult(moment.unit.tx, moment.child.sessionId)) ?? "")
    : reply;
  return { runs, last, result };
}

async function statsOf(moment: Moment, runs: readonly Run[]): Promise<AnnouncementStats> {
  const { unit, child } = moment;
  const started = Math.min(...runs.map((run) => run.startedAt ?? run.acceptedAt));
  const ended = Math.max(...runs.map((run) => run.endedAt ?? unit.now));
  const usage = await usageOf(unit.tx, { sessionKey: child.key });
  const path = moment.transcriptPath(child.sessionId);
  return {
    runtimeMs: runs.length === 0 ? 0 : ended - started,
    inputTokens: usage.input + usage.cacheRead + usage.cacheWrite,
    outputTokens: usage.output,
    totalTokens: usage.totalTokens,
    ...(usage.cost > 0 ? { costUsd: usage.cost } : {}),
    sessionKey: child.key,
    sessionId: child.sessionId,
    ...(path === undefined ? {} : { transcriptPath: path }),
  };
}

/** Asks the child itself to announce. False: no run is left for it. */
async function askChild(moment: Moment, last: Run, result: string): Promise<boolean> {
  const { acceptor, unit, settings, flow, child } = moment;
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
    successor: true,
  });
  return accepted.ok;
}

/** Kept where operators see it, and may have it delivered after all. */
async function keepForOperators(
  moment: Moment,
  route: Route | undefined,
  text: string,
  code: string,
): Promise<void> {
  const { unit, child, flow } = moment;
  await insertDelivery(unit.tx, {
    id: unit.newId(),
    sessionKey: child.key,
    runId: child.spawn?.runId ?? flow.flowId,
    kind: "announce",
    route: route ?? { channel: "internal", to: flow.requesterKey },
    text,
    state: "failed",
    code,
    error: `the requester ${flow.requesterKey} is not there to be told (${code})`,
    createdAt: unit.now,
  });
}

/** Gives the requester's agent the result as a message; a sub-agent's own job goes on with it. */
async function wake(
  moment: Moment,
  requester: Session,
  text: string,
  last: Run | undefined,
): Promise<boolean> {
  const { acceptor, unit, flow, child } = moment;
  const chain = { chainId: flow.chainId, hop: last?.hop ?? 1 };
  const job = requester.spawn;
  const ownJob = job === undefined ? undefined : await getFlow(unit.tx, job.flowId);
  const accepted = await acceptor.acceptIn(unit, {
    sessionKey: requester.key,
    input: { text, provenance: provenanceFrom(child, chain, "sessions_spawn") },
    chain,
    successor: true,
    ...(ownJob?.open === true ? { flow: { flowId: ownJob.flowId, step: "task", turn: 1 } as const } : {}),
    ...(child.spawn?.route === undefined ? {} : { route: child.spawn.route }),
  });
  return accepted.ok;
}

async function append(
  moment: Moment,
  requester: Session,
  text: string,
  last: Run | undefined,
): Promise<boolean> {
  const { acceptor, unit, flow, child } = moment;
  const chain = { chainId: flow.chainId, hop: last?.hop ?? 1 };
  const accepted = await acceptor.acceptIn(unit, {
    sessionKey: requester.key,
    kind: "append",
    input: { text, provenance: provenanceFrom(child, chain, "sessions_spawn") },
    chain,
    successor: true,
  });
  return accepted.ok;
}

/** Tells the requester, by the way that was agreed at the spawn and that is still open. */
async function tell(moment: Moment, text: string, last: Run | undefined): Promise<void> {
  const { unit, flow, child } = moment;
  const route = child.spawn?.route;
  const requester = await getSession(unit.tx, flow.requesterKey);
  if (requester === undefined) return keepForOperators(moment, route, text, "requester_deleted");
  const runId = last?.runId ?? child.spawn?.runId ?? flow.flowId;
  const post = async (): Promise<void> => {
    if (route !== undefined) {
      await queueDelivery(moment, unit, { session: requester, route, text, kind: "announce", runId });
    }
  };
  if (requester.archivedAt !== undefined || requester.sessionId !== flow.requesterSessionId) {
    const code = requester.archivedAt === undefined ? "requester_reset" : "requester_archived";
    return route === undefined ? keepForOperators(moment, route, text, code) : post();
  }
  const wakes = requester.spawn !== undefined || child.spawn?.announce === "wake";
  if (wakes && (await wake(moment, requester, text, last))) return;
  await post();
  if (!(await append(moment, requester, text, last)))
    await keepForOperators(moment, route, text, "requester_refused");
}

function publish(moment: Moment, last: Run | undefined, step: "announce" | "ended", text: string): void {
  const { unit, flow, child } = moment;
  publishFlow(unit, {
    flowId: flow.flowId,
    runId: last?.runId ?? flow.flowId,
    step,
    from: child.key,
    to: flow.requesterKey,
    turn: 1,
    turnsMax: 0,
    text,
  });
}

/** Sets the date of a finished child's clean-up: at once for what must go, else when it is to be archived. */
export async function planChildCleanup(
  acceptor: Pick<Acceptor, "setDeadline">,
  unit: Unit,
  child: Session,
): Promise<void> {
  const facts = child.spawn;
  if (facts === undefined) return;
  const tidies = facts.attachments !== undefined && facts.retainAttachments !== true;
  const atOnce = facts.cleanup === "delete" || tidies;
  if (!atOnce && facts.archiveAfterMinutes === 0) return;
  const dueAt = atOnce ? unit.now : unit.now + facts.archiveAfterMinutes * 60_000;
  await acceptor.setDeadline(unit, { kind: CHILD_DEADLINE, key: child.key, dueAt });
}

/** Ends the job: told once, and never again. `words`: what the child's announce turn wrote, if it was asked. */
async function settle(moment: Moment, words?: string): Promise<void> {
  const { unit, flow } = moment;
  const { runs, last, result } = await outcomeOf(moment);
  const isQuiet = words !== undefined && isSilent(words);
  if (!(await endFlow(unit.tx, flow.flowId, isQuiet ? "silent" : "announced", unit.now))) return;
  if (!isQuiet) {
    const facts: AnnouncementFacts = {
      status: statusOf(last),
      result,
      stats: await statsOf(moment, runs),
      ...(last?.error === undefined ? {} : { notes: last.error }),
    };
    const text = words === undefined ? composeAnnouncement(facts) : normaliseAnnouncement(words, facts);
    publish(moment, last, "announce", text);
    await tell(moment, text, last);
  }
  publish(moment, last, "ended", "");
  await planChildCleanup(moment.acceptor, unit, moment.child);
  await lookAbove(moment);
}

/** A job above may only have waited for this one: if nobody is woken there, it ends now. */
async function lookAbove(moment: Moment): Promise<void> {
  const above = await getSession(moment.unit.tx, moment.flow.requesterKey);
  if (above?.spawn === undefined) return;
  await jobMayHaveEnded(moment, moment.acceptor, moment.unit, above);
}

/** Looks whether a child's job has ended, and if so announces it. Harmless at any time. */
export async function jobMayHaveEnded(
  parts: JobParts,
  acceptor: Acceptor,
  unit: Unit,
  child: Session,
): Promise<void> {
  const flow = child.spawn === undefined ? undefined : await getFlow(unit.tx, child.spawn.flowId);
  if (flow === undefined || !flow.open) return;
  if ((await activeRunsOfFlow(unit.tx, flow.flowId)).length > 0) return;
  if ((await openSpawnsOf(unit.tx, { sessionKey: child.key })).length > 0) return;
  const moment: Moment = { ...parts, acceptor, unit, flow, child };
  const { last, result } = await outcomeOf(moment);
  const asked = last?.state === "ok" && (await askChild(moment, last, result));
  if (!asked) await settle(moment);
}

/** A run of a job has ended. */
export async function jobRunEnded(
  parts: JobParts,
  acceptor: Acceptor,
  unit: Unit,
  run: Run,
  flow: Flow,
): Promise<void> {
  const child = await getSession(unit.tx, flow.targetKey);
  if (child === undefined || !flow.open) return;
  if (run.flow?.step !== "announce") return jobMayHaveEnded(parts, acceptor, unit, child);
  const moment: Moment = { ...parts, acceptor, unit, flow, child };
  await settle(moment, run.state === "ok" ? (run.reply ?? "") : undefined);
}
