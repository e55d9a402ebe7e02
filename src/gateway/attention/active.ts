// Lists unfinished runs with their model and their usage so far. As in the attention list, a caller gets only
// runs of sessions that its token covers (I9).

import { viewerScope } from "../../access/access.ts";
import type { ActiveRun } from "../../contract/methods/attention.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { modelOf } from "../../core/shapes/settings/settings.ts";
import {
  type ActiveTurn,
  activeTurns,
  awaitedSessions,
  textsOfTurns,
} from "../../store/queries/runs/attention.ts";
import { callMessagesOf } from "../../store/queries/runs/calls.ts";
import type { CallContext } from "../call.ts";
import { activeItem, coversOf } from "./items.ts";

const LIMIT = { byDefault: 200, max: 1_000 } as const;
const STATES = ["running", "waiting", "queued"] as const;
/** Limits on the model answers that are read to add up the usage: their number, and their bytes together. */
const CALLS = { answersOnly: true, rowsMax: 20_000, bytesMax: 8 * 1024 * 1024 } as const;

interface Spent {
  readonly model: string;
  readonly tokens: number;
  readonly cost: number;
}

/**
 * Returns the model and the usage of each run that has called a model, or undefined if there are too many
 * calls to read.
 */
async function spentBy(
  ctx: CallContext,
  turns: readonly ActiveTurn[],
): Promise<ReadonlyMap<string, Spent> | undefined> {
  // Queued runs have not called a model.
  const begun = turns.filter(({ state }) => state !== "queued").map(({ runId }) => runId);
  const { messages, truncated } = await callMessagesOf(ctx.access.db, begun, CALLS);
  if (truncated) return undefined;
  const spent = new Map<string, Spent>();
  for (const message of messages) {
    if (message.kind !== "answer") continue;
    const { provider, model, usage } = message.answer;
    const before = spent.get(message.runId);
    spent.set(message.runId, {
      model: `${provider}/${model}`,
      tokens: (before?.tokens ?? 0) + usage.totalTokens,
      cost: (before?.cost ?? 0) + usage.cost.total,
    });
  }
  return spent;
}

export async function listActive(
  ctx: CallContext,
  params: ParamsOf<"runs.list">,
): Promise<PayloadOf<"runs.list">> {
  const limit = Math.min(params.limit ?? LIMIT.byDefault, LIMIT.max);
  const { db } = ctx.access;
  const covers = coversOf(ctx);
  const wanted = { scope: viewerScope(ctx.access, ctx.viewer), limit: limit + 1, everyQueued: true };
  const found: ActiveTurn[] = [];
  for (const state of STATES) found.push(...(await activeTurns(db, state, wanted)));
  const seen = found.filter(({ sessionKey }) => covers.list(sessionKey));
  const shown = seen.slice(0, limit);
  const ids = shown.map(({ runId }) => runId);
  const texts = await textsOfTurns(db, ids);
  const awaited = await awaitedSessions(db, ids);
  const spent = await spentBy(ctx, shown);
  const runs = shown.map((turn): ActiveRun => {
    const { runId, sessionKey, agentId, chainId, state, acceptedMs, sessionModel } = turn;
    const item = activeItem(ctx, covers, turn, { texts: texts.get(runId), awaited });
    const { label, waitingFor, waitingForCount, since, summary, hold } = item;
    const known = spent?.get(runId);
    const { tokens, cost } = spent === undefined ? {} : (known ?? { tokens: 0, cost: 0 });
    return {
      runId,
      sessionKey,
      agentId,
      chainId,
      state,
      acceptedAt: acceptedMs,
      since,
      summary,
      model: known?.model ?? modelOf(ctx.deps.settings, { agentId, ...optional({ model: sessionModel }) }),
      mayStop: covers.send(sessionKey),
      ...optional({ label, tokens, cost, waitingFor, waitingForCount, hold }),
    };
  });
  return { ts: ctx.deps.engine.now(), runs, truncated: seen.length > limit };
}
