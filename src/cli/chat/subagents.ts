// Owns how the answer of the tool `subagents` is shown in a chat.

import { safeLine } from "../../core/safe-text.ts";
import { age, excerpt, table } from "../layout.ts";

const TASK_CHARS_MAX = 60;

interface SubagentRow {
  readonly sessionKey: string;
  readonly label?: string;
  readonly state: string;
  readonly finished: boolean;
  /** How the job ended: `announced`, `silent`, `cancelled`. */
  readonly ended?: string;
  readonly task: string;
  readonly acceptedAt?: number;
}

/** What the tool answers: the rows, or why it refused. */
interface Answer {
  readonly subagents?: readonly SubagentRow[];
  readonly more?: boolean;
  readonly error?: string;
}

export function subagentLines(answer: Answer, nowMs: number): string[] {
  const { subagents: rows, more, error } = answer;
  if (rows === undefined) return [safeLine(error ?? "the gateway did not say which there are")];
  if (rows.length === 0) return ["There are no sub-agents of this session."];
  const cells = rows.map((row) => [
    row.sessionKey,
    row.finished ? (row.ended ?? "finished") : row.state,
    row.acceptedAt === undefined ? "" : `${age(row.acceptedAt, nowMs)} ago`,
    row.label ?? "",
    excerpt(row.task, TASK_CHARS_MAX),
  ]);
  const lines = table(["SUB-AGENT", "STATE", "STARTED", "LABEL", "TASK"], cells);
  return more === true ? [...lines, "(and more; see parley sessions tree)"] : lines;
}
