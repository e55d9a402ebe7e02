// Says which labels a step brought into a session or a chain: the input of a run, or the result of a call.
// LS1: a step brought the marks that arrived with it. A later step of the same source brought this source,
//      too, as long as the session or the chain is marked with it.
// LS2: a run has the labels that its chain had when it was accepted, and those that it brought itself.

import { fieldsOf, jsonOf } from "../../json.ts";
import type { Labels } from "../../shapes/labels.ts";
import type { Run } from "../../shapes/run.ts";
import type { ToolCallRequest } from "../../shapes/tool.ts";
import { filterMarks, joinLabels } from "./labels.ts";
import { outsideCommand, outsideInput, webSource } from "./sources.ts";

/** Returns the source that the arguments of a call name, if its content is from outside. */
function sourceNamed(name: string, args: Readonly<Record<string, unknown>>): string | undefined {
  if (name === "exec") return outsideCommand(String(args.command));
  if (name === "fetch") return webSource(String(args.url));
  if (name === "search") return "web search";
  return name.startsWith("mcp__") ? `mcp ${name.split("__")[1]}` : undefined;
}

/** Returns the labels that the input of a run brought (LS1). `known`: those of its session or its chain. */
export function labelsOfInput(
  known: Labels | undefined,
  { runId, input, sessionKey }: Pick<Run, "runId" | "input" | "sessionKey">,
): Labels | undefined {
  const own = outsideInput(input, sessionKey);
  return filterMarks(
    known,
    ({ source, arrival }) =>
      source === own || (arrival !== undefined && arrival.runId === runId && arrival.callId === undefined),
  );
}

/** Returns the labels that the result of a call brought (LS1). `text`: the result, unless it is an error. */
export function labelsOfResult(
  known: Labels | undefined,
  { callId, name, arguments: args }: Pick<ToolCallRequest, "callId" | "name" | "arguments">,
  text: string | undefined,
): Labels | undefined {
  const sources =
    text === undefined
      ? []
      : [
          sourceNamed(name, args),
          // The address of a page may have led elsewhere.
          name === "fetch" ? sourceNamed(name, fieldsOf(jsonOf(text))) : undefined,
        ];
  return filterMarks(known, ({ source, arrival }) => arrival?.callId === callId || sources.includes(source));
}

/** Returns the labels that a run brought into its chain or its session, with its input and its calls. */
export function labelsOfRun(
  known: Labels | undefined,
  run: Pick<Run, "runId" | "input" | "sessionKey">,
): Labels | undefined {
  return joinLabels(
    labelsOfInput(known, run),
    filterMarks(known, ({ arrival }) => arrival?.runId === run.runId),
  );
}

/** Returns the labels of a run of a chain (LS2). */
export function labelsOfChainRun(
  known: Labels | undefined,
  { runId, acceptedAt }: Pick<Run, "runId" | "acceptedAt">,
): Labels | undefined {
  return filterMarks(
    known,
    ({ arrival }) => arrival === undefined || arrival.runId === runId || arrival.at <= acceptedAt,
  );
}
