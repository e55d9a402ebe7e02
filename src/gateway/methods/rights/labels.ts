// Owns the methods about labels: list decisions, explain the labels of a session, and release them.
// A caller sees sessions, runs and sources only of sessions that its token covers (I9).

import { operatorKey } from "../../../access/access.ts";
import { spawnChainOf } from "../../../access/spawn-chain.ts";
import { createGate } from "../../../access/token.ts";
import { optional } from "../../../core/optional.ts";
import {
  countedLabels,
  decideSink,
  joinLabels,
  labelModeFor,
  labelOfSession,
  shownLabels,
} from "../../../core/rules/labels/labels.ts";
import { pathTo } from "../../../core/rules/labels/path.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { type Labels, NO_SINK, type TracedMark } from "../../../core/shapes/labels.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { Session } from "../../../core/shapes/session.ts";
import { agentOf } from "../../../core/shapes/settings/settings.ts";
import { listDecisions, noteDecision, readLabels, removeLabels } from "../../../store/queries/labels.ts";
import { labelRules } from "../../../store/queries/permission-rules.ts";
import { activeRuns, getRun, runsOfChain } from "../../../store/queries/runs/runs.ts";
import { getSession } from "../../../store/queries/sessions/sessions.ts";
import { ofOneAgent } from "../../../tools/approval.ts";
import type { CallContext, Methods } from "../../call.ts";

const LIST_DEFAULT = 100;
const LIST_MAX = 1_000;
const DAY_MS = 86_400_000;
/** Runs of a chain in which the way of a text is looked up. */
const CHAIN_RUNS_MAX = 1_000;

type Sees = (sessionKey: string) => boolean;

async function find(ctx: CallContext, text: string, access: "status" | "send"): Promise<Result<Session>> {
  const key = operatorKey(ctx.deps.settings, text);
  if (!key.ok) return key;
  if (!createGate(ctx.deps.settings, ctx.caller, access)(key.value))
    return fail("not_visible", `the token does not cover session ${key.value}`);
  const session = await getSession(ctx.access.db, key.value);
  return session === undefined
    ? fail("session_not_found", `there is no session ${JSON.stringify(key.value)}`)
    : ok(session);
}

/** Returns the marks of runs in sessions that the caller may see, with their ways to the session. */
async function traceMarks(
  { access: { db } }: CallContext,
  labels: Labels,
  { key, sees }: { readonly key: string; readonly sees: Sees },
): Promise<TracedMark[]> {
  const traced: TracedMark[] = [];
  const chains = new Map<string, readonly Run[]>();
  for (const mark of [...(labels.outside ?? []), ...(labels.private ?? [])]) {
    const run = mark.runId === undefined ? undefined : await getRun(db, mark.runId);
    if (run === undefined || !sees(run.sessionKey)) continue;
    const { runId, chainId, sessionKey } = run;
    const runs = chains.get(chainId) ?? (await runsOfChain(db, chainId, CHAIN_RUNS_MAX));
    chains.set(chainId, runs);
    const way = pathTo(runs, runId, key);
    const path = way.length > 0 ? way.filter((step) => sees(step.sessionKey)) : [{ runId, sessionKey }];
    traced.push({ ...mark, sessionKey, path });
  }
  return traced;
}

export const labelMethods: Methods<"labels.list" | "labels.explain" | "labels.release"> = {
  "labels.list": {
    async handle({ access, deps, caller }, { limit = LIST_DEFAULT, days, ...wanted }) {
      const sees = createGate(deps.settings, caller, "status");
      const rows = await listDecisions(access.db, {
        ...wanted,
        limit: Math.min(limit, LIST_MAX),
        since: days === undefined ? undefined : deps.engine.now() - days * DAY_MS,
      });
      return ok({
        decisions: rows
          .filter(({ sessionKey }) => sees(sessionKey))
          .map((row) => deps.world.redactor.all({ ...row, labels: shownLabels(row.labels, sees) }))
          // A token for some sessions sees nothing of a text that may leave only if an owner allows it.
          .map((row) => (caller.patterns === undefined ? row : { ...row, payload: "", labels: {} })),
      });
    },
  },
  "labels.explain": {
    async handle(ctx, { sessionKey, sink: kind, to }) {
      if ((kind === undefined) !== (to === undefined))
        return fail("invalid_argument", "sink and to belong together");
      const found = await find(ctx, sessionKey, "status");
      if (!found.ok) return found;
      const session = found.value;
      const { settings } = ctx.deps;
      const { db } = ctx.access;
      const { key, sessionId, agentId } = session;
      const sees = createGate(settings, ctx.caller, "status");
      const chain = await spawnChainOf(db, session);
      const [run] = (await activeRuns(db, key)).filter(({ state }) => state !== "queued");
      const known = await readLabels(db, { key, sessionId, chainId: run?.chainId });
      const labels = countedLabels(settings, joinLabels(known, labelOfSession(settings, session)));
      const shown = shownLabels(labels, sees);
      const answer = {
        sessionKey: key,
        labels: shown,
        mode: labelModeFor(chain, settings),
        readIn: await traceMarks(ctx, shown, { key, sees }),
      };
      if (kind === undefined || to === undefined) return ok(answer);
      const rules = await labelRules(db, {
        ...{ agentId, sessionKey: key, ofAgent: ofOneAgent(chain) },
        ...optional({ chainId: run?.chainId }),
      });
      const host = kind === "fetch" && URL.canParse(to) ? new URL(to).host : to;
      const sink = { kind, to: host, payload: "" };
      const verdict = decideSink({ settings, chain, labels, sink, rules });
      return ok({ ...answer, verdict: verdict.kind, why: verdict.why });
    },
  },
  "labels.release": {
    async handle(ctx, { sessionKey }) {
      const found = await find(ctx, sessionKey, "send");
      if (!found.ok) return found;
      const { key, labels = {} } = found.value;
      return ctx.deps.engine.commit(async (unit) => {
        await removeLabels(unit.tx, key);
        await noteDecision(unit.tx, {
          ...{
            id: unit.newOrderedId(),
            at: unit.now,
            sessionKey: key,
            agentId: agentOf(ctx.deps.settings, found.value).id,
          },
          ...{ sink: NO_SINK, destination: key, payload: "", labels },
          ...{ decision: "allowed", by: ctx.caller.id },
        });
        unit.publish({ kind: "session", sessionKey: key, change: "state" });
        const answer = { ok: true, sessionKey: key } as const;
        await ctx.remember(unit, answer);
        return ok(answer);
      });
    },
  },
};
