// Decides which of a session's states needs a person: the groups of the attention list.
// AT1: a session is in one group, by its last turn. A question to its person or a failure needs that person
//      until it is dismissed, retried or followed by another turn.
// AT2: the failure of a job or of a step between sessions was reported to its requester, so it needs nobody.
//      A used-up budget always does: no agent can extend it.

import type { EndedRunState, FlowStep } from "../../shapes/run.ts";
import { isSilent } from "../turn-rules.ts";

/** All groups, in the order of a list. */
export const ATTENTION_GROUPS = ["needs_you", "running", "waiting", "failed", "done"] as const;
export type AttentionGroup = (typeof ATTENTION_GROUPS)[number];

/** The heading of each group, for people. */
export const GROUP_TITLES: Readonly<Record<AttentionGroup, string>> = {
  needs_you: "Needs you",
  running: "Running",
  waiting: "Waiting",
  failed: "Failed",
  done: "Done",
};

/** Codes of runs that a budget stopped. */
const BUDGET_CODES: readonly string[] = ["budget_used", "chain_limit"];

export interface LastTurn {
  readonly state: EndedRunState;
  readonly code?: string;
  readonly flowStep?: FlowStep;
  /** The end of its reply. */
  readonly tail: string;
  readonly dismissed: boolean;
}

/** The place of a last turn. */
export interface TurnPlace {
  readonly group: Extract<AttentionGroup, "needs_you" | "failed" | "done">;
  readonly kind: "run" | "budget" | "question";
}

/** Returns the group of a session whose last turn has ended. */
export function placeOfTurn({ state, code, flowStep, tail, dismissed }: LastTurn): TurnPlace {
  if (state === "error" || state === "timeout") {
    const isBudget = code !== undefined && BUDGET_CODES.includes(code);
    const kind = isBudget ? "budget" : "run";
    const needsPerson = !dismissed && (isBudget || flowStep === undefined);
    return { group: needsPerson ? "needs_you" : "failed", kind };
  }
  const isOpen = state === "ok" && !dismissed && flowStep === undefined && asksPerson(tail);
  return isOpen ? { group: "needs_you", kind: "question" } : { group: "done", kind: "run" };
}

/** Whether a reply ends with a question. Markup and quotes behind the question mark do not count. */
export function asksPerson(reply: string): boolean {
  return !isSilent(reply) && /[?？؟]["'”’»)*_`~\s]*$/u.test(reply);
}

/** Returns the last paragraph of a reply, where its question is. */
export function lastParagraph(reply: string): string {
  return (
    reply
      .trim()
      .split(/\n\s*\n/)
      .at(-1) ?? ""
  );
}

/** Returns the first line of a reply that has words, without marks of a heading, list or quote. */
export function firstLine(reply: string): string {
  const lines = reply.split("\n").map((line) =>
    line
      .replaceAll("**", "")
      .replace(/^[\s#>*+-]+/, "")
      .trim(),
  );
  return lines.find((line) => /[\p{L}\p{N}]/u.test(line)) ?? reply;
}

/** Keeps one item of each budget: the newest, if `turns` are newest first. */
export function oncePerBudget<T extends { kind: string; code?: string; agentId: string; chainId: string }>(
  turns: readonly T[],
): T[] {
  const told = new Set<string>();
  return turns.filter(({ kind, code, agentId, chainId }) => {
    if (kind !== "budget") return true;
    const budget = code === "chain_limit" ? `chain ${chainId}` : `agent ${agentId}`;
    if (told.has(budget)) return false;
    told.add(budget);
    return true;
  });
}
