// Implements the commands for running work: stop it, and list, cancel or inspect sub-agents.
// CW1: in a group, people can stop only runs that they started; owners can stop all runs. In a direct chat,
//      the person can stop all runs except those that another person started.
// A command can name only sub-agents of this conversation. For any other name the answer is the same, whether
// such a sub-agent exists or not (I9).

import { openGate } from "../../access/access.ts";
import { textOf } from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { cancelJob } from "../../flows/job/cancel.ts";
import { jobOf } from "../../flows/job/children.ts";
import { listVisible } from "../../flows/session/list.ts";
import { type Flow, openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { activeRuns, getRun } from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { lastMessages } from "../../store/queries/transcripts/transcripts.ts";
import {
  accessOf,
  begunBy,
  type ConversationContext,
  code,
  count,
  excerpt,
  isTrusted,
  viewerOf,
} from "./context.ts";
import { ago } from "./status.ts";

const LISTED_MAX = 20;
const LOG_MESSAGES = 10;
/** Number of characters of a sub-agent's id that are shown as its name. */
const SHORT_ID_CHARS = 8;

const NOT_YOURS = "Only an owner, or the person who started this work, can stop it.";

/** Returns whether the sender may stop a run. */
function mayStop({ request }: ConversationContext, run: Pick<Run, "input">): boolean {
  if (request.sender.isOwner || begunBy(request, run)) return true;
  return request.chatType === "direct" && run.input.sender === undefined;
}

/**
 * Returns the active runs of this conversation, and the runs whose sub-agents are still running. `all`: their
 * number. `mine`: those that the sender may stop.
 */
async function stoppable(here: ConversationContext): Promise<{ all: number; mine: string[] }> {
  const { unit, session } = here;
  const active = await activeRuns(unit.tx, session.key);
  const jobs = await openSpawnsOf(unit.tx, { sessionKey: session.key });
  const ids = new Set([
    ...active.map(({ runId }) => runId),
    ...jobs.flatMap((job) => job.requesterRunId ?? []),
  ]);
  const mine: string[] = [];
  for (const runId of ids) {
    const run = active.find((one) => one.runId === runId) ?? (await getRun(unit.tx, runId));
    if (run !== undefined && mayStop(here, run)) mine.push(runId);
  }
  return { all: ids.size, mine };
}

export async function stop(here: ConversationContext): Promise<string> {
  const { parts, unit, session, request } = here;
  if (request.args !== "") return "/stop takes no arguments; nothing was stopped.";
  const sessionKey = session.key;
  const { all, mine } = await stoppable(here);
  const ended: string[] = [];
  if (mine.length === all && isTrusted(request)) {
    // Stop everything in the session, also work that no run of this conversation requested, for example an
    // operator's call.
    ended.push(...(await parts.engine.abortIn(unit, { sessionKey })).runIds);
  } else {
    for (const runId of mine) {
      ended.push(...(await parts.engine.abortIn(unit, { sessionKey, runId })).runIds);
    }
  }
  const stopped = new Set(ended).size;
  if (stopped > 0) return `Stopped: ${count(stopped, "run")}${mine.length < all ? " that you began" : ""}.`;
  return all > mine.length ? NOT_YOURS : "Nothing is running here.";
}

/** Returns a sub-agent's id: the end of its key. */
function idOf({ key }: Session): string {
  return key.slice(key.lastIndexOf(":") + 1);
}

async function children(here: ConversationContext) {
  const wanted = { spawnedBy: here.session.key, limit: LISTED_MAX };
  return listVisible(accessOf(here), await viewerOf(here), wanted);
}

async function list(here: ConversationContext): Promise<string> {
  const { rows, nextCursor } = await children(here);
  if (rows.length === 0) return "This conversation has no sub-agents.";
  const lines: string[] = [];
  for (const { session, state } of rows) {
    const job = await jobOf(here.unit.tx, session);
    const name = session.label === undefined ? "" : ` ${code(here.unit, session.label)}`;
    const does = job?.open === true ? state : (job?.endReason ?? "finished");
    const since = ago(session.createdAt, here.unit.now);
    const shortId = idOf(session).slice(0, SHORT_ID_CHARS);
    const task = excerpt(here.unit, job?.requestText ?? "", 120);
    lines.push(`- ${code(here.unit, shortId)}${name}: ${does}, since ${since}; ${task}`);
  }
  return [...lines, ...(nextCursor === undefined ? [] : ["and more"])].join("\n");
}

/** Returns the sub-agents with this name: the beginning of the id, the key, or the label. */
async function meant(here: ConversationContext, name: string): Promise<Session[]> {
  const { rows } = await children(here);
  const open: Session[] = [];
  for (const job of await openSpawnsOf(here.unit.tx, { sessionKey: here.session.key })) {
    const child = await getSession(here.unit.tx, job.targetKey);
    if (child !== undefined) open.push(child);
  }
  // Also search the running sub-agents that are too old to be in the list.
  const known = new Map([...rows.map(({ session }) => session), ...open].map((child) => [child.key, child]));
  const gate = openGate(accessOf(here), await viewerOf(here));
  const found: Session[] = [];
  for (const child of known.values()) {
    const isId = name.length >= 4 && idOf(child).startsWith(name);
    const isMeant = child.key === name || child.label === name || isId;
    if (isMeant && (await gate.admits("read", child))) found.push(child);
  }
  return found;
}

/**
 * Returns the sub-agent with this name. If there is none, or more than one, returns the answer for the sender
 * of the command.
 */
async function oneMeant(here: ConversationContext, name: string): Promise<Session | string> {
  const [first, second] = await meant(here, name);
  if (first === undefined)
    return `No sub-agent of this conversation is named ${code(here.unit, name)}: /subagents lists them.`;
  return second === undefined
    ? first
    : `Several sub-agents are called ${code(here.unit, name)}: give more of the id.`;
}

/**
 * Returns whether the sender may cancel a sub-agent. It depends on the run that started the sub-agent (CW1).
 */
export async function mayCancel(here: ConversationContext, job: Flow): Promise<boolean> {
  const { request, unit } = here;
  const run = job.requesterRunId === undefined ? undefined : await getRun(unit.tx, job.requesterRunId);
  return run === undefined ? isTrusted(request) : mayStop(here, run);
}

async function cancel(here: ConversationContext, name: string): Promise<string> {
  const { unit, parts, session } = here;
  let jobs: Flow[] = [];
  if (name.toLowerCase() === "all") jobs = await openSpawnsOf(unit.tx, { sessionKey: session.key });
  else {
    const child = await oneMeant(here, name);
    if (typeof child === "string") return child;
    const job = await jobOf(unit.tx, child);
    if (job?.open === true) jobs = [job];
  }
  let refused = 0;
  let cancelled = 0;
  for (const job of jobs) {
    if (await mayCancel(here, job)) {
      await cancelJob(parts.engine, unit, job);
      cancelled += 1;
    } else refused += 1;
  }
  if (cancelled > 0) return `Cancelled: ${count(cancelled, "sub-agent")}.`;
  return refused > 0
    ? "Only an owner, or the person who started a sub-agent, can cancel it."
    : "There is nothing left to cancel.";
}

export async function subagents(here: ConversationContext): Promise<string> {
  const [action = "list", ...rest] = here.request.args.split(/\s+/).filter((part) => part !== "");
  const name = rest.join(" ");
  if (action === "list" && name === "") return list(here);
  if (action === "cancel" && name !== "") return cancel(here, name);
  if (action === "log" && name !== "") {
    const child = await oneMeant(here, name);
    if (typeof child === "string") return child;
    const messages = await lastMessages(here.unit.tx, child.sessionId, LOG_MESSAGES, { includeTools: false });
    const lines = messages
      .map((message) => ({ who: message.role === "user" ? "told" : "said", text: textOf(message) }))
      .filter(({ text }) => text.trim() !== "")
      .map(({ who, text }) => `- ${who}: ${excerpt(here.unit, text)}`);
    return lines.length === 0 ? "This sub-agent has written nothing yet." : lines.join("\n");
  }
  return "/subagents takes `list`, `cancel <id | all>` or `log <id>`.";
}
