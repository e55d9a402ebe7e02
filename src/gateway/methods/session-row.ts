// Converts a session to the protocol's form, with canonical keys and the protocol's kinds of sessions.

import type { ListedRow, SessionRow } from "../../contract/methods/sessions.ts";
import { optional } from "../../core/optional.ts";
import { endCodeOf } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { channelOf } from "../../core/shapes/session-key.ts";
import { modelOf, windowOf } from "../../core/shapes/settings/settings.ts";
import { splitRef } from "../../core/text/model-ref.ts";
import type { ListedSession } from "../../flows/session/list.ts";
import { type EndedRun, endsOf } from "../../store/queries/runs/run-facts.ts";
import type { BasicDeps, CallContext } from "../call.ts";
import { errorLine } from "../error-line.ts";

/** Returns the fields that name a model. */
export function splitModel(ref: string): { modelProvider: string; model: string } {
  const { provider, model } = splitRef(ref);
  return { modelProvider: provider, model };
}

/** Dependencies of a row. */
type RowParts = Pick<BasicDeps, "settings" | "world">;

function wireKind(session: Session): "direct" | "group" | "global" {
  if (session.key === "global") return "global";
  return session.kind === "group" ? "group" : "direct";
}

function routeFields({ lastRoute: route }: Session): Partial<SessionRow> {
  return optional({
    lastChannel: route?.channel,
    lastTo: route?.to,
    lastAccountId: route?.accountId,
    deliveryContext: route,
  });
}

/** Returns a session's row; the parent session is named only if the reader may see it. */
export function sessionRow(
  { settings, world }: RowParts,
  session: Session,
  sees: (key: string) => boolean,
): SessionRow {
  const masked = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : world.redactor.mask(text);
  const { spawnedBy } = session;
  return {
    key: session.key,
    kind: wireKind(session),
    sessionKind: session.kind,
    channel: channelOf(session),
    ...optional({ label: masked(session.label), displayName: masked(session.displayName) }),
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
    ...routeFields(session),
    ...(spawnedBy !== undefined && sees(spawnedBy) ? { spawnedBy } : {}),
  };
}

export function listedRow(parts: RowParts, row: ListedSession, sees: (key: string) => boolean): ListedRow {
  return { ...sessionRow(parts, row.session, sees), state: row.state, queuedRuns: row.queuedRuns };
}

/** Returns the failure of a session's last turn, or undefined if its run was deleted. */
function failureRow(
  parts: RowParts,
  run: EndedRun | undefined,
  sees: (key: string) => boolean,
): ListedRow["failure"] {
  if (run?.endedAt === undefined) return undefined;
  const { runId, endedAt, error, open } = run;
  const reason = error === undefined ? undefined : errorLine(parts, error, sees);
  return { runId, endedAt, code: endCodeOf(run) ?? "run_failed", retriable: open, ...optional({ reason }) };
}

/** Returns the failure of each session whose last turn failed, unless the session is working again. */
export async function failuresOf(
  { access, deps }: CallContext,
  rows: readonly ListedSession[],
  sees: (key: string) => boolean,
): Promise<ReadonlyMap<string, ListedRow["failure"]>> {
  const failed = rows.flatMap(({ session: { key, failedRun }, state }) =>
    state === "idle" && failedRun !== undefined ? [{ key, failedRun }] : [],
  );
  const ends = await endsOf(
    access.db,
    failed.map(({ failedRun }) => failedRun),
  );
  return new Map(failed.map(({ key, failedRun }) => [key, failureRow(deps, ends.get(failedRun), sees)]));
}
