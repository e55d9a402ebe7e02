// Owns the tool `subagents`: the sub-agents of the calling session, and cancelling them.
// SA1: only one's own: a session that somebody else spawned is answered like one that is not there.

import { fail, toolFailure } from "../core/errors.ts";
import { redactSecrets } from "../core/redact.ts";
import type { Session } from "../core/session.ts";
import { KEY_CHARS_MAX } from "../core/session-key.ts";
import { mayAccess } from "../flows/access.ts";
import { cancelJob } from "../flows/cancel.ts";
import { listVisible } from "../flows/list.ts";
import { getFlow, openSpawnsOf } from "../store/flows.ts";
import { getRun } from "../store/runs.ts";
import { getSession } from "../store/sessions.ts";
import { notOneOf, textArgument } from "./arguments.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";

const ACTIONS = ["list", "cancel"];
const LISTED_MAX = 100;
const TASK_SHOWN_CHARS = 200;

export const subagents: Tool = {
  spec: {
    name: "subagents",
    description:
      "List the sub-agents that you started, with what each one is doing, or cancel one of them (or all). " +
      "You need not poll: each result is announced to you when it is there.",
    parameters: {
      type: "object",
      properties: {
        action: { type: "string", description: `${ACTIONS.join(" or ")}. Default: list.` },
        sessionKey: {
          type: "string",
          description: 'With cancel: the childSessionKey, or "all" for every one that is not finished.',
        },
      },
    },
    parallel: true,
    idempotent: true,
  },
  async execute(ctx, args) {
    const action = args.action ?? "list";
    if (action === "list") return listChildren(ctx);
    if (action === "cancel") return cancelChildren(ctx, args);
    return toolFailure(notOneOf("action", action, ACTIONS));
  },
};

async function children(ctx: ToolContext) {
  return listVisible(ctx, ctx.viewer, { spawnedBy: ctx.session.key, limit: LISTED_MAX });
}

async function jobOf(ctx: ToolContext, child: Session) {
  return child.spawn === undefined ? undefined : getFlow(ctx.db, child.spawn.flowId);
}

async function listChildren(ctx: ToolContext): Promise<ToolResult> {
  const page = await children(ctx);
  const rows: ToolResult[] = [];
  for (const { session, state } of page.rows) {
    const job = await jobOf(ctx, session);
    const run = session.spawn === undefined ? undefined : await getRun(ctx.db, session.spawn.runId);
    rows.push({
      sessionKey: session.key,
      ...(session.label === undefined ? {} : { label: redactSecrets(session.label) }),
      agentId: session.agentId,
      state,
      // `finished`: its result was announced, or it was cancelled.
      finished: job?.open !== true,
      ...(job?.endReason === undefined ? {} : { ended: job.endReason }),
      // Masked before it is cut: half a secret would not be known for one (I14).
      task: redactSecrets(job?.requestText ?? "").slice(0, TASK_SHOWN_CHARS),
      ...(run === undefined ? {} : { runId: run.runId, runState: run.state, acceptedAt: run.acceptedAt }),
      totalTokens: session.totalTokens,
    });
  }
  return { count: rows.length, subagents: rows, more: page.nextCursor !== undefined };
}

/** The children that have work left: not those of a page, which older ones may not be on. */
async function unfinished(ctx: ToolContext): Promise<Session[]> {
  const jobs = await openSpawnsOf(ctx.db, { sessionKey: ctx.session.key });
  const found = await Promise.all(jobs.map((job) => oneOf(ctx, job.targetKey)));
  return found.flat();
}

/** The child of this key, if it is one's own. */
async function oneOf(ctx: ToolContext, key: string): Promise<Session[]> {
  const child = await getSession(ctx.db, key);
  if (child?.spawnedBy !== ctx.session.key) return [];
  return (await mayAccess(ctx, ctx.viewer, "spawn", child)) ? [child] : [];
}

async function cancelChildren(ctx: ToolContext, args: Record<string, unknown>): Promise<ToolResult> {
  const wanted = textArgument(args, "sessionKey", KEY_CHARS_MAX);
  if (!wanted.ok) return toolFailure(wanted);
  if (wanted.value === undefined) {
    return toolFailure(fail("invalid_argument", 'cancel needs sessionKey: a childSessionKey, or "all"'));
  }
  const all = wanted.value === "all";
  const chosen = all ? await unfinished(ctx) : await oneOf(ctx, wanted.value);
  if (chosen.length === 0 && !all) {
    const keys = (await children(ctx)).rows.map(({ session }) => session.key);
    const hint = keys.length === 0 ? "You have no sub-agents." : `Yours are: ${keys.join(", ")}.`;
    return toolFailure(fail("not_visible", "that is no sub-agent of yours", { hint }));
  }
  const cancelled: string[] = [];
  const runIds: string[] = [];
  for (const child of chosen) {
    const ended = await cancelOne(ctx, child);
    if (ended === undefined) continue;
    cancelled.push(child.key);
    runIds.push(...ended);
  }
  return { status: "ok", cancelled, runIds };
}

/** The runs that it ended; undefined: the job was finished already. */
async function cancelOne(ctx: ToolContext, child: Session): Promise<readonly string[] | undefined> {
  const ended = await ctx.engine.commit(async (unit) => {
    const job = child.spawn === undefined ? undefined : await getFlow(unit.tx, child.spawn.flowId);
    if (job === undefined || !job.open) return undefined;
    return cancelJob(ctx.engine, unit, job);
  });
  return ended;
}
