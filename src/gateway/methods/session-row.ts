// Converts a session to the protocol's form, with canonical keys and the protocol's kinds of sessions.

import { createGate } from "../../access/token.ts";
import type { ListedRow, SessionRow } from "../../contract/methods/sessions.ts";
import type { ParamsOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { countedLabels, shownLabels } from "../../core/rules/labels/labels.ts";
import { lastPlace } from "../../core/shapes/route.ts";
import { endCodeOf } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { channelOf } from "../../core/shapes/session-key.ts";
import { modelOf, windowOf } from "../../core/shapes/settings/settings.ts";
import { splitRef } from "../../core/text/model-ref.ts";
import { type ListedSession, visibleChildren } from "../../flows/session/list.ts";
import { holdsOf } from "../../store/queries/runs/holds.ts";
import { type EndedRun, endsOf } from "../../store/queries/runs/run-facts.ts";
import { openEdges } from "../../store/queries/runs/waits.ts";
import { LINE_MAX_CHARS } from "../attention/items.ts";
import type { BasicDeps, CallContext } from "../call.ts";

/** Returns the fields that name a model. */
export function splitModel(ref: string): { modelProvider: string; model: string } {
  const { provider, model } = splitRef(ref);
  return { modelProvider: provider, model };
}

type RowParts = Pick<BasicDeps, "settings" | "world">;

/** Returns a session's row; the parent session is named only if the reader may see it. */
export function sessionRow(
  { settings, world }: RowParts,
  session: Session,
  sees: (key: string) => boolean,
): SessionRow {
  const maskText = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : world.redactor.mask(text);
  const { spawnedBy } = session;
  return {
    key: session.key,
    kind: session.key === "global" ? "global" : session.kind === "group" ? "group" : "direct",
    sessionKind: session.kind,
    channel: channelOf(session),
    ...optional({ label: maskText(session.label), displayName: maskText(session.displayName) }),
    agentId: session.agentId,
    createdAt: session.createdAt,
    updatedAt: session.updatedAt,
    ...optional({ archivedAt: session.archivedAt }),
    sessionId: session.sessionId,
    ...splitModel(modelOf(settings, session)),
    contextTokens: windowOf(settings, modelOf(settings, session)),
    contextUsed: session.contextUsed,
    cost: session.cost,
    inputTokens: session.inputTokens,
    outputTokens: session.outputTokens,
    totalTokens: session.totalTokens,
    ...optional({ thinkingLevel: session.thinkingLevel, verboseLevel: session.verboseLevel }),
    systemSent: session.systemSent,
    abortedLastRun: session.abortedLastRun,
    ...optional({ sendPolicy: session.sendPolicy }),
    ...lastPlace(session.lastRoute),
    ...optional({ deliveryContext: session.lastRoute }),
    ...(spawnedBy !== undefined && sees(spawnedBy) ? { spawnedBy } : {}),
    ...optional({
      // The sources of outside content that count, without keys that the reader may not see.
      outside:
        session.labels &&
        shownLabels(countedLabels(settings, session.labels), sees).outside?.map(({ source }) =>
          world.redactor.mask(source),
        ),
    }),
  };
}

/** Returns the failure of a session's last turn, or undefined if its run was deleted. */
function failureRow({ world }: RowParts, run: EndedRun | undefined): ListedRow["failure"] {
  if (run?.endedAt === undefined) return undefined;
  const { runId, endedAt, error, open } = run;
  const reason = error === undefined ? undefined : world.redactor.line(error, LINE_MAX_CHARS);
  return { runId, endedAt, code: endCodeOf(run) ?? "run_failed", retriable: open, ...optional({ reason }) };
}

/** Returns which sessions these rows wait for, as far as the caller may see them. */
async function waitsOf(
  ctx: CallContext,
  rows: readonly ListedSession[],
  sees: (key: string) => boolean,
): Promise<Map<string, string[]>> {
  const waiting = rows.filter((row) => row.state === "waiting").map((row) => row.session.key);
  const found = new Map<string, string[]>(waiting.map((key) => [key, []]));
  if (waiting.length === 0) return found;
  const now = ctx.deps.world.clock.now();
  for (const { waiterSessionKey: from, targetSessionKey: to } of await openEdges(
    ctx.access.db,
    waiting,
    now,
  )) {
    const known = found.get(from);
    if (sees(to) && known?.includes(to) === false) known.push(to);
  }
  return found;
}

async function childrenOf(
  ctx: CallContext,
  rows: readonly ListedSession[],
  includeArchived: boolean | undefined,
): Promise<ReadonlyMap<string, Pick<ListedRow, "children" | "jobs" | "below">>> {
  const keys = rows.map((row) => row.session.key);
  const counts = await visibleChildren(ctx.access, ctx.viewer, { keys, ...optional({ includeArchived }) });
  return new Map(
    [...counts].map(([key, { children, running, failed, stopped, below }]) => {
      const jobs = { running, failed, stopped, done: children - running - failed - stopped };
      return [key, { children, jobs, ...optional({ below }) }];
    }),
  );
}

/**
 * Returns these rows with all that tells a reader how a session is doing: its failure, the sessions that it
 * waits for, and its jobs.
 */
export async function listedRows(
  ctx: CallContext,
  rows: readonly ListedSession[],
  {
    includeChildren,
    includeArchived,
  }: Pick<ParamsOf<"sessions.list">, "includeChildren" | "includeArchived">,
): Promise<ListedRow[]> {
  const sees = createGate(ctx.deps.settings, ctx.caller, "list");
  const waits = await waitsOf(ctx, rows, sees);
  const children = includeChildren === true ? await childrenOf(ctx, rows, includeArchived) : undefined;
  // A session that is working again has not failed.
  const failed = rows.flatMap(({ session: { key, failedRun }, state }) =>
    state === "idle" && failedRun !== undefined ? [{ key, failedRun }] : [],
  );
  const ends = await endsOf(
    ctx.access.db,
    failed.map(({ failedRun }) => failedRun),
  );
  const failures = new Map(
    failed.map(({ key, failedRun }) => [key, failureRow(ctx.deps, ends.get(failedRun))]),
  );
  const active = rows.filter(({ state }) => state === "running" || state === "waiting");
  const holds = await holdsOf(
    ctx.access.db,
    active.map(({ session: { key } }) => key),
  );
  return rows.map(({ session, state, queuedRuns }) => ({
    ...sessionRow(ctx.deps, session, sees),
    ...{ state, queuedRuns },
    ...optional({ waitingOn: waits.get(session.key), failure: failures.get(session.key) }),
    ...optional({ hold: holds.get(session.key) }),
    ...(children === undefined ? {} : (children.get(session.key) ?? { children: 0 })),
  }));
}
