// Formats the result of the tool `subagents` for the chat.

import type { ToolResultOf } from "../../contract/tools.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { age, excerpt, table } from "../layout.ts";

const TASK_CHARS_MAX = 60;

type List = Extract<ToolResultOf<"subagents">, { readonly subagents: unknown }>;
/** Result of the tool `subagents`: its list, or an error. */
type SubagentsResult = Partial<List> & { readonly error?: string };

export function subagentLines(answer: SubagentsResult, nowMs: number): string[] {
  const { subagents: rows, more, error } = answer;
  if (rows === undefined) return [safeLine(error ?? "the gateway returned no list of sub-agents")];
  if (rows.length === 0) return ["This session has no sub-agents."];
  const cells = rows.map((row) => [
    row.sessionKey,
    row.finished ? (row.ended ?? "finished") : row.state,
    row.acceptedAt === undefined ? "" : `${age(row.acceptedAt, nowMs)} ago`,
    row.label ?? "",
    excerpt(row.task, TASK_CHARS_MAX),
  ]);
  const lines = table(["SUB-AGENT", "STATE", "STARTED", "LABEL", "TASK"], cells);
  return more === true ? [...lines, "(more: npx parley-gateway sessions tree)"] : lines;
}
