// Implements the tool `session_status`, which returns state, usage and cost of a session or a run, or the
// receipt of a message.

import { openGate, partiesSeenIn, shownKey, viewerScope, visibleAmong } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import type { ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { withLabels } from "../../core/rules/labels/labels.ts";
import { sourceOf } from "../../core/rules/receipt.ts";
import { NOT_VISIBLE } from "../../core/rules/visibility.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { modelOf, thinkingOf, windowOf } from "../../core/shapes/settings/settings.ts";
import type { UsageSum } from "../../core/shapes/usage.ts";
import { type Flow, openFlowsOf } from "../../store/queries/chains/flows.ts";
import { bindingsOfSession } from "../../store/queries/channels/thread-bindings.ts";
import { getRunInChain, type RunInChain } from "../../store/queries/labels.ts";
import { receiptsOf } from "../../store/queries/runs/inbox-marks.ts";
import { usageOf } from "../../store/queries/runs/ledger.ts";
import { countAhead, getRun, listRuns } from "../../store/queries/runs/runs.ts";
import { activityOf, getSession } from "../../store/queries/sessions/sessions.ts";
import { textLimit } from "../arguments.ts";
import { type CallerContext, type ReadingContext, type Tool, tool } from "../tool.ts";

const RUN_ID_CHARS_MAX = 200;
/** Maximum number of unfinished runs in the answer; `queuedRuns` counts all of them. */
const RUNS_SHOWN_MAX = 20;
const FLOWS_SHOWN_MAX = 20;
const ACTIVE = ["queued", "running", "waiting"] as const;

type Tokens = Omit<UsageSum, "cost">;

type RunStatus = Extract<ToolResultOf<"session_status">, { readonly runId: string }>;
type MessageReport = Extract<ToolResultOf<"session_status">, { readonly messageId: string }>;
type SessionReport = Exclude<ToolResultOf<"session_status">, RunStatus | MessageReport>;

export const sessionStatus: Tool<ReadingContext & Pick<CallerContext, "session">> = tool("session_status", {
  limits: {
    sessionKey: textLimit(KEY_CHARS_MAX),
    runId: textLimit(RUN_ID_CHARS_MAX),
    messageId: textLimit(RUN_ID_CHARS_MAX),
  },
  async execute(ctx, { sessionKey, runId, messageId }) {
    if ([sessionKey, runId, messageId].filter((one) => one !== undefined).length > 1) {
      return fail("invalid_argument", "give only one of sessionKey, runId and messageId");
    }
    if (messageId !== undefined) return messageReport(ctx, messageId);
    if (runId !== undefined) {
      const inChain = await visibleRun(ctx, runId);
      if (!inChain.ok) return inChain;
      const { run, labels } = inChain.value;
      const report = await runStatus(ctx, run);
      return ok(report.reply === undefined ? report : withLabels(report, labels));
    }
    const wanted = sessionKey ?? ctx.session.sessionId;
    const found = await resolveSession(ctx, ctx.viewer, "status", { sessionKey: wanted });
    return found.ok ? ok(await sessionReport(ctx, found.value)) : found;
  },
});

/**
 * Returns a run if its session is visible. For an invisible run the answer is the same as for a missing one.
 */
async function visibleRun(ctx: ReadingContext, runId: string): Promise<Result<RunInChain>> {
  const inChain = await getRunInChain(ctx.db, runId);
  const run = inChain?.run;
  const session = run && (await getSession(ctx.db, run.sessionKey));
  const seen = session !== undefined && (await openGate(ctx, ctx.viewer).admits("status", session));
  if (inChain !== undefined && seen) return ok(inChain);
  const hint = "sessions_send gives run ids; session_status of a session names its unfinished runs.";
  if (run === undefined && viewerScope(ctx, ctx.viewer).all)
    return fail("run_not_found", `no run ${JSON.stringify(runId)}`, { hint });
  return fail("not_visible", `no run ${JSON.stringify(runId)} is visible to you`, { hint });
}

/** Returns the receipt of a message. For an invisible message the answer is the same as for a missing one. */
async function messageReport(ctx: ReadingContext, messageId: string): Promise<Result<MessageReport>> {
  const { db, viewer } = ctx;
  const run = await getRun(db, messageId);
  const receipt = run && (await receiptsOf(db, [run])).get(run.runId);
  const from = run === undefined ? undefined : sourceOf(run.input);
  if (run !== undefined && receipt !== undefined && from !== undefined) {
    const sees = await partiesSeenIn(ctx, viewer, [from, run.sessionKey]);
    const showVisibleKey = (key: string): string => (sees(key) ? shownKey(ctx, viewer, key) : NOT_VISIBLE);
    if (sees(from) || sees(run.sessionKey))
      return ok({ ...receipt, from: showVisibleKey(from), to: showVisibleKey(run.sessionKey) });
  }
  const hint = "sessions_send gives message ids; the entries of sessions_inbox have them, too.";
  if (receipt === undefined && viewerScope(ctx, viewer).all)
    return fail("message_not_found", `no message ${JSON.stringify(messageId)} between sessions`, { hint });
  return fail("not_visible", `no message ${JSON.stringify(messageId)} is visible to you`, { hint });
}

async function runStatus(ctx: ReadingContext, run: Run): Promise<RunStatus> {
  const queuedBehind = run.state === "queued" ? { queuedBehind: await countAhead(ctx.db, run) } : {};
  return {
    runId: run.runId,
    sessionKey: shownKey(ctx, ctx.viewer, run.sessionKey),
    agentId: run.agentId,
    state: run.state,
    ...queuedBehind,
    acceptedAt: run.acceptedAt,
    ...optional({ startedAt: run.startedAt, endedAt: run.endedAt, model: run.model }),
    ...(run.reply === undefined ? {} : { reply: await ctx.engine.redactor.whole(run.reply) }),
    ...optional({ code: run.code }),
    ...(run.error === undefined ? {} : { error: ctx.engine.redactor.mask(run.error) }),
    ...(run.crashes === 0 ? {} : { crashes: run.crashes }),
    ...optional({ takenBy: run.input.takenBy }),
    usage: tokensOf(run.usage),
    cost: run.usage.cost.total,
    chainId: run.chainId,
    hop: run.hop,
  };
}

async function sessionReport(ctx: ReadingContext, session: Session): Promise<SessionReport> {
  const { db } = ctx;
  const activity = (await activityOf(db, [session.key])).get(session.key);
  const unfinished = { sessionKey: session.key, states: ACTIVE, limit: RUNS_SHOWN_MAX };
  const [runs, flows, sum, bindings] = await Promise.all([
    listRuns(db, unfinished),
    openFlowsOf(db, session.key),
    usageOf(db, { sessionKey: session.key }),
    bindingsOfSession(db, session.key),
  ]);
  return {
    sessionKey: shownKey(ctx, ctx.viewer, session.key),
    sessionId: session.sessionId,
    agentId: session.agentId,
    kind: session.kind,
    state: activity?.state ?? "idle",
    queuedRuns: activity?.queuedRuns ?? 0,
    runs: runs.map(({ runId, state, acceptedAt }) => ({ runId, state, acceptedAt })),
    model: modelOf(ctx.settings, session),
    thinkingLevel: thinkingOf(ctx.settings, session),
    contextTokens: windowOf(ctx.settings, modelOf(ctx.settings, session)),
    contextUsed: session.contextUsed,
    usage: tokensOf(sum),
    cost: sum.cost,
    openFlows: await shownFlows(ctx, flows),
    ...(bindings.length === 0 ? {} : { boundTo: bindings.map(({ route }) => route) }),
    updatedAt: session.updatedAt,
    abortedLastRun: session.abortedLastRun,
  };
}

function tokensOf(usage: Tokens): Tokens {
  const { input, output, cacheRead, cacheWrite, totalTokens } = usage;
  return { input, output, cacheRead, cacheWrite, totalTokens };
}

/** Returns the open conversations of a session. A party that the viewer may not see is not named. */
async function shownFlows(ctx: ReadingContext, flows: readonly Flow[]): Promise<SessionReport["openFlows"]> {
  const shown = flows.slice(0, FLOWS_SHOWN_MAX);
  const parties = shown.flatMap(({ requesterKey, targetKey }) => [requesterKey, targetKey]);
  const sees = await visibleAmong(ctx, ctx.viewer, "status", parties);
  const nameSession = (key: string): string => (sees(key) ? shownKey(ctx, ctx.viewer, key) : NOT_VISIBLE);
  return shown.map(({ flowId, requesterKey, targetKey, turnsMax, createdAt }) => ({
    flowId,
    from: nameSession(requesterKey),
    to: nameSession(targetKey),
    turnsMax,
    createdAt,
  }));
}
