// Implements the methods of the attention list: list the items and the unfinished runs, and retry or dismiss
// a session's last turn.
// AT3: a caller gets items of sessions that its token covers, and only actions that it may take (I9). To see
//      a pairing request, a caller needs the rights of the methods that accept or refuse it.

import { viewerScope } from "../../access/access.ts";
import { createGate } from "../../access/token.ts";
import type {
  ATTENTION_METHODS,
  AttentionGroupRows,
  AttentionItem,
} from "../../contract/methods/attention.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import {
  ATTENTION_GROUPS,
  type AttentionGroup,
  oncePerBudget,
  placeOfTurn,
} from "../../core/rules/attention/groups.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { peerInKey } from "../../core/shapes/session-key.ts";
import { findAgent } from "../../core/shapes/settings/settings.ts";
import { setHold } from "../../engine/run/hold.ts";
import { dismissRun, retryRun } from "../../flows/session/ended-run.ts";
import { failedDeliveries } from "../../store/queries/channels/deliveries.ts";
import { unansweredRequests } from "../../store/queries/permissions.ts";
import {
  type ActiveTurn,
  activeTurns,
  awaitedSessions,
  busyJobs,
  type EndedTurn,
  lastTurns,
  textsOfTurns,
} from "../../store/queries/runs/attention.ts";
import { answerAfter, type CallContext, commitAnswer, type Methods } from "../call.ts";
import type { PermissionDeps } from "../methods/rights/permissions.ts";
import { listActive } from "./active.ts";
import {
  activeItem,
  type Covers,
  coversOf,
  deliveryItem,
  endedItem,
  featureItems,
  instructionItems,
  pairingItems,
  permissionItems,
  storeItems,
} from "./items.ts";

const LIMIT = { byDefault: 50, max: 200 } as const;
/** Maximum number of rows read for one group. */
const ROWS_MAX = 500;
/** Failures, questions and results that are older than this are not listed. */
const SINCE_MS = 7 * 86_400_000;

/**
 * `jobs`: the unfinished jobs of its session that the caller may see. `unanswered`: the subject of a request
 * for permission that nobody answered in time.
 */
type Ended = EndedTurn &
  ReturnType<typeof placeOfTurn> & { readonly jobs: readonly string[]; readonly unanswered?: string };

/** The turns of a group, newest first, before their texts are read. */
interface Turns {
  readonly ended: readonly Ended[];
  readonly active: readonly ActiveTurn[];
  /** True if the store has more rows than were read. */
  readonly more: boolean;
}

/**
 * Returns the turns of each group that the caller may see. A run that waits for the answer to one of the
 * requests `open` is listed as that request only.
 */
async function turnsOf(
  ctx: CallContext,
  covers: Covers,
  open: readonly AttentionItem[],
): Promise<Record<AttentionGroup, Turns>> {
  const { db } = ctx.access;
  const wanted = { scope: viewerScope(ctx.access, ctx.viewer), limit: ROWS_MAX };
  const sinceMs = ctx.deps.engine.now() - SINCE_MS;
  const keepVisible = <T extends { readonly sessionKey: string }>(rows: readonly T[]): T[] =>
    rows.filter(({ sessionKey }) => covers.list(sessionKey));
  const failed = await lastTurns(db, "failed", { ...wanted, sinceMs });
  const done = await lastTurns(db, "done", { ...wanted, sinceMs });
  const running = await activeTurns(db, "running", wanted);
  const asking = new Set(open.map(({ kind, sessionKey }) => kind === "permission" && sessionKey));
  const waiting = await activeTurns(db, "waiting", wanted);
  const queued = await activeTurns(db, "queued", wanted);
  const ended = keepVisible([...failed, ...done]);
  const busy = await busyJobs(
    db,
    ended.map(({ sessionKey }) => sessionKey),
  );
  const late = await unansweredRequests(
    db,
    ended.map(({ runId }) => runId),
  );
  const all = ended.map((turn): Ended => {
    const jobs = (busy.get(turn.sessionKey) ?? []).filter(covers.list);
    const known = { ...turn, ...optional({ unanswered: late.get(turn.runId) }) };
    return { ...known, ...placeOfTurn({ ...known, hasJobs: jobs.length > 0 }), jobs };
  });
  const placed = oncePerBudget(all.sort((a, b) => b.endedAt - a.endedAt));
  const of = (group: AttentionGroup): Ended[] => placed.filter((turn) => turn.group === group);
  const isFull = (...lists: readonly (readonly unknown[])[]): boolean =>
    lists.some((rows) => rows.length === ROWS_MAX);
  return {
    needs_you: { ended: of("needs_you"), active: [], more: isFull(failed, done) },
    running: { ended: [], active: keepVisible(running), more: isFull(running) },
    waiting: {
      ended: of("waiting"),
      active: keepVisible([...waiting, ...queued]).filter((run) => !asking.has(run.sessionKey)),
      more: isFull(waiting, queued, done),
    },
    failed: { ended: of("failed"), active: [], more: isFull(failed) },
    done: { ended: of("done"), active: [], more: isFull(done) },
  };
}

/** Items that are not turns. `first` come before all others. */
interface Requests {
  readonly first: readonly AttentionItem[];
  readonly items: readonly AttentionItem[];
  readonly more: boolean;
}

const NO_REQUESTS: Requests = { first: [], items: [], more: false };

/**
 * Returns the items of the group `needs_you` that are not turns: a problem of the store, permission requests,
 * changed instruction files, pairing requests and failed deliveries.
 */
async function requests(ctx: CallContext<PermissionDeps>, covers: Covers): Promise<Requests> {
  const deliveries = covers.isAdmin ? await failedDeliveries(ctx.access.db, ROWS_MAX) : [];
  const shown = deliveries.filter(({ sessionKey }) => covers.deliveries(sessionKey));
  const items = [
    ...(await pairingItems(ctx, covers)),
    ...(await featureItems(ctx, covers)),
    ...shown.map((delivery) => deliveryItem(ctx, covers, delivery)),
  ];
  const first = [
    ...(await storeItems(ctx, covers)),
    ...(await permissionItems(ctx, covers)),
    ...(await instructionItems(ctx)),
  ];
  return { first, items, more: deliveries.length === ROWS_MAX };
}

async function list(
  ctx: CallContext<PermissionDeps>,
  params: ParamsOf<"attention.list">,
): Promise<PayloadOf<"attention.list">> {
  const limit = Math.min(params.limit ?? LIMIT.byDefault, LIMIT.max);
  const covers = coversOf(ctx);
  const other = await requests(ctx, covers);
  const turns = await turnsOf(ctx, covers, other.first);
  const shown = ATTENTION_GROUPS.map((group) => {
    const { ended, active, more } = turns[group];
    const newest = [...active].sort((a, b) => b.sinceMs - a.sinceMs);
    return { group, ended: ended.slice(0, limit), active: newest.slice(0, limit), more };
  });
  const { db } = ctx.access;
  const texts = await textsOfTurns(
    db,
    shown.flatMap(({ ended, active }) => [...ended, ...active].map(({ runId }) => runId)),
  );
  const awaited = await awaitedSessions(
    db,
    shown.flatMap(({ active }) =>
      active.filter(({ state }) => state === "waiting").map(({ runId }) => runId),
    ),
  );
  const groups = shown.map(({ group, ended, active, more }): AttentionGroupRows => {
    const items: AttentionItem[] = [
      ...ended.map((turn) => endedItem(ctx, covers, turn, texts.get(turn.runId))),
      ...active.map((turn) => activeItem(ctx, covers, turn, { texts: texts.get(turn.runId), awaited })),
    ];
    const count = turns[group].ended.length + turns[group].active.length;
    const { first, items: rest, more: isMore } = group === "needs_you" ? other : NO_REQUESTS;
    const newest = [...items, ...rest].sort((a, b) => b.since - a.since);
    return {
      group,
      count: count + first.length + rest.length,
      more: more || isMore,
      items: [...first, ...newest].slice(0, limit),
    };
  });
  return { ts: ctx.deps.engine.now(), groups };
}

/** Returns the handler that holds a run, or releases it. */
function holding(isHeld: boolean) {
  return async (ctx: CallContext<PermissionDeps>, { runId, skip }: ParamsOf<"runs.release">) => {
    const change = isHeld ? "hold" : skip === true ? "skip" : "release";
    const { settings } = ctx.deps;
    const covers = createGate(settings, ctx.caller, "send");
    return commitAnswer(ctx, async (unit): Promise<Result<PayloadOf<"runs.hold">>> => {
      const changed = await setHold(unit, runId, change, ({ sessionKey }) => covers(sessionKey));
      if (!changed.ok) return changed;
      const { agentId, sessionKey } = changed.value;
      const isElsewhere =
        peerInKey(sessionKey) !== undefined || findAgent(settings, agentId)?.runtime !== undefined;
      if (isElsewhere)
        return fail("invalid_argument", "this gateway does not make the tool calls of that run");
      return ok({ ok: true, runId, sessionKey });
    });
  };
}

const answerOf = ({ runId, sessionKey }: { runId: string; sessionKey: string }) =>
  ({ ok: true, runId, sessionKey }) as const;

export const attentionMethods: Methods<keyof typeof ATTENTION_METHODS, PermissionDeps> = {
  "attention.list": { handle: async (ctx, params) => ok(await list(ctx, params)) },
  "runs.list": { handle: async (ctx, params) => ok(await listActive(ctx, params)) },
  "runs.retry": {
    async handle(ctx, { runId }) {
      const covers = createGate(ctx.deps.settings, ctx.caller, "send");
      const guest = isGuest(ctx.viewer);
      return answerAfter(ctx, answerOf, (also) => retryRun(ctx.deps, runId, { covers, guest, also }));
    },
  },
  "runs.dismiss": {
    async handle(ctx, { runId }) {
      const covers = createGate(ctx.deps.settings, ctx.caller, "send");
      return answerAfter(ctx, answerOf, (also) => dismissRun(ctx.deps, runId, { covers, also }));
    },
  },
  "runs.hold": { handle: holding(true) },
  "runs.release": { handle: holding(false) },
};
