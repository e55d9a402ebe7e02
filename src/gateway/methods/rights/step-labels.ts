// Says which labels the messages of a transcript and the runs of a chain brought, as a caller may see them
// (core/rules/labels/steps.ts).

import { createGate } from "../../../access/token.ts";
import { countedLabels, filterMarks, joinLabels, shownLabels } from "../../../core/rules/labels/labels.ts";
import { labelsOfInput, labelsOfResult, labelsOfRun } from "../../../core/rules/labels/steps.ts";
import type { Labels } from "../../../core/shapes/labels.ts";
import { resultIdOf, textOf, toolCallsOf } from "../../../core/shapes/message.ts";
import type { Run } from "../../../core/shapes/run.ts";
import type { Session } from "../../../core/shapes/session.ts";
import { labelsAround } from "../../../store/queries/labels.ts";
import { outsideInputs } from "../../../store/queries/runs/run-facts.ts";
import type { HistoryPage } from "../../../store/queries/transcripts/transcripts.ts";
import type { CallContext } from "../../call.ts";

/** Returns the labels that count, as the caller may see them, or undefined if there are none. */
function shownTo({ deps, caller }: CallContext, labels: Labels | undefined): Labels | undefined {
  if (labels === undefined) return undefined;
  const sees = createGate(deps.settings, caller, "status");
  const counted = filterMarks(countedLabels(deps.settings, labels), () => true);
  return counted && deps.world.redactor.all(shownLabels(counted, sees));
}

/** Returns the labels that messages brought into the session, by message id, or undefined if none did. */
export async function labelsOfMessages(
  ctx: CallContext,
  { key: sessionKey, labels: known }: Session,
  { messages, runIds }: HistoryPage,
): Promise<Record<string, Labels> | undefined> {
  if (known === undefined) return undefined;
  const calls = new Map(
    messages.flatMap((message) =>
      message.role === "assistant"
        ? toolCallsOf(message).map(
            (call, index) => [resultIdOf({ messageId: message.id, index }), call] as const,
          )
        : [],
    ),
  );
  const runIdsOfInputs = messages.flatMap(({ role, id }) => (role === "user" ? (runIds.get(id) ?? []) : []));
  const inputs = await outsideInputs(ctx.access.db, runIdsOfInputs);
  const brought = messages.flatMap((message) => {
    const { id, role } = message;
    const runId = runIds.get(id);
    if (runId === undefined || role === "assistant") return [];
    if (role === "user") {
      const input = inputs.get(runId) ?? { text: "" };
      return [[id, labelsOfInput(known, { runId, sessionKey, input })] as const];
    }
    const { toolName: name, isError } = message;
    const call = { callId: `${runId}:${id}`, name, arguments: calls.get(id)?.arguments ?? {} };
    return [[id, labelsOfResult(known, call, isError ? undefined : textOf(message))] as const];
  });
  const shown = brought.flatMap(([id, own]) => {
    const seen = shownTo(ctx, own);
    return seen === undefined ? [] : [[id, seen] as const];
  });
  return shown.length === 0 ? undefined : Object.fromEntries(shown);
}

/** Returns the labels that runs of a chain brought into it or into their sessions, by run id. */
export async function labelsOfRuns(
  ctx: CallContext,
  runs: readonly Run[],
  sessionKeys: readonly string[],
): Promise<Map<string, Labels>> {
  const [first] = runs;
  const brought = new Map<string, Labels>();
  if (first === undefined) return brought;
  const { chain, sessions } = await labelsAround(ctx.access.db, first.chainId, sessionKeys);
  if (chain === undefined && sessions.size === 0) return brought;
  for (const run of runs) {
    const own = joinLabels(labelsOfRun(chain, run), labelsOfRun(sessions.get(run.sessionKey), run));
    const shown = shownTo(ctx, own);
    if (shown !== undefined) brought.set(run.runId, shown);
  }
  return brought;
}
