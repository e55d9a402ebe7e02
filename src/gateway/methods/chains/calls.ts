// Computes the model calls and tool calls of a chain's runs from the stored messages. The functions are pure.
// Callers pass only runs whose steps the viewer sees in full. The results contain no texts (I9).
// CC1: the first model call begins when its run starts; each later one begins when the tool calls before it
//      have ended.
// CC2: a tool call begins when the answer that asks for it is complete. If the call or the previous one may
//      not run in parallel, it begins when the previous call has ended.
// CC3: the clock that stamps messages can be set back, and can differ from the one that stamps runs. A call
//      therefore begins no earlier than CC1 and CC2 allow, and ends no earlier than it begins.

import { TOOLS } from "../../../contract/tools.ts";
import { optional } from "../../../core/optional.ts";
import { isClientTool } from "../../../core/rules/client-tools.ts";
import type { ChainCall } from "../../../core/shapes/chain-step.ts";
import { type AssistantMessage, resultIdOf, toolCallsOf } from "../../../core/shapes/message.ts";
import { isEnded, type Run } from "../../../core/shapes/run.ts";
import type { CallMessage } from "../../../store/queries/runs/calls.ts";

interface Ends {
  get(id: string): { readonly at: number; readonly failed: boolean } | undefined;
}

function toolsOf(run: Run, answer: AssistantMessage, at: number, ends: Ends): ChainCall[] {
  const calls: ChainCall[] = [];
  const { runId } = run;
  let from = at;
  let until: number | undefined = at;
  let joins = false;
  for (const [index, { name }] of toolCallsOf(answer).entries()) {
    const isParallel =
      (TOOLS as Readonly<Record<string, { readonly parallel: boolean }>>)[name]?.parallel === true;
    if (!(joins && isParallel)) {
      // The calls before this one have not ended, so it has not begun.
      if (until === undefined) return calls;
      from = until;
    }
    joins = isParallel;
    const id = resultIdOf({ messageId: answer.id, index });
    const end = ends.get(id);
    const stampedAt = end?.at ?? run.endedAt;
    const endAt = stampedAt === undefined ? undefined : Math.max(from, stampedAt);
    // The client of a run that succeeded answers its own calls later.
    const isLeft = run.state === "ok" && isClientTool(run.input.clientTools, name);
    const failed = end === undefined ? isEnded(run.state) && !isLeft : end.failed;
    const call = { id, runId, kind: "tool", name, at: from, ...optional({ endAt }) } as const;
    calls.push(failed ? { ...call, failed } : call);
    until = endAt === undefined || until === undefined ? undefined : Math.max(until, endAt);
  }
  return calls;
}

function modelCall(run: Run, answer: AssistantMessage, at: number, endAt: number): ChainCall {
  const { totalTokens, cost } = answer.usage;
  return {
    id: answer.id,
    runId: run.runId,
    kind: "model",
    name: answer.model,
    at,
    endAt,
    ...(answer.stopReason === "error" ? { failed: true } : {}),
    ...(totalTokens > 0 ? { tokens: totalTokens } : {}),
    ...(cost.total > 0 ? { cost: cost.total } : {}),
  };
}

function callsOfRun(run: Run, messages: readonly CallMessage[], ends: Ends): ChainCall[] {
  const { runId, startedAt, state, model = "" } = run;
  if (startedAt === undefined || run.kind !== "turn") return [];
  const calls: ChainCall[] = [];
  let from = startedAt;
  for (const message of messages) {
    // The runtime writes some answers itself, and calls no model for them.
    if (message.kind !== "answer" || message.answer.api === "parley") continue;
    const answeredAt = Math.max(from, message.at);
    const tools = toolsOf(run, message.answer, answeredAt, ends);
    calls.push(modelCall(run, message.answer, from, answeredAt), ...tools);
    from = Math.max(answeredAt, ...tools.map(({ endAt }) => endAt ?? Number.POSITIVE_INFINITY));
  }
  if (state === "running" && Number.isFinite(from))
    calls.push({ id: `${runId}:model`, runId, kind: "model", name: model, at: from });
  return calls;
}

/** Returns the calls of these runs, in the order of the runs. */
export function callsOf(runs: readonly Run[], messages: readonly CallMessage[]): ChainCall[] {
  const ends = new Map(
    messages.flatMap((one) => (one.kind === "result" ? [[one.id, { at: one.at, failed: one.failed }]] : [])),
  );
  const byRun = Map.groupBy(messages, ({ runId }) => runId);
  return runs.flatMap((run) => callsOfRun(run, byRun.get(run.runId) ?? [], ends));
}
