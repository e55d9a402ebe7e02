// Decides which tool calls a run leaves to its client, the program that started it.

import {
  type AssistantMessage,
  type Message,
  type PlacedCall,
  resultIdOf,
  toolCallsOf,
} from "../shapes/message.ts";
import type { ClientTools, Run } from "../shapes/run.ts";
import type { ToolSpec } from "../shapes/tool.ts";

/** Returns whether the client runs the tool with this name, even if the agent has one of the same name. */
export function isClientTool(tools: ClientTools | undefined, name: string): boolean {
  return tools?.none !== true && tools?.list.some((tool) => tool.name === name) === true;
}

/** Returns the tools of a turn: the client's, and those of the agent's that have other names. */
export function withClientTools(own: readonly ToolSpec[], tools: ClientTools | undefined): ToolSpec[] {
  const offered = tools?.none === true ? [] : (tools?.list ?? []);
  const added = offered.map(({ name, description = "", parameters }) => {
    return { name, description, parameters, parallel: true, idempotent: true };
  });
  return [...own.filter(({ name }) => !isClientTool(tools, name)), ...added];
}

/** Returns the calls of an ended run that its client has to answer. */
export function clientCalls(
  { state, input }: Pick<Run, "state" | "input">,
  messages: readonly Message[],
): PlacedCall[] {
  const isWritten = (one: Message): one is AssistantMessage =>
    one.role === "assistant" && one.stopReason !== "injected";
  const last = messages.findLast(isWritten);
  if (state !== "ok" || last === undefined) return [];
  const answered = new Set(messages.map(({ id }) => id));
  return toolCallsOf(last)
    .map((call, index) => ({ messageId: last.id, index, call }))
    .filter((placed) => {
      return isClientTool(input.clientTools, placed.call.name) && !answered.has(resultIdOf(placed));
    });
}
