// Decides which sessions need a person's attention, and sorts them into the groups of the attention list.
// AT1: the last turn of a session determines its group. A question to a person, a failure, or a request for
//      permission that nobody answered in time, needs attention until somebody dismisses or retries it, or
//      another turn follows.
// AT2: a failed job, or a failed step between sessions, needs no attention, because its requester was told. A
//      used-up budget always needs attention, because no agent can raise it.
// AT4: an agent elsewhere says whether it waits for a message (A2A's input-required). Models have no such
//      sign, and would often forget one. So their reply is a question if its text ends with one.
// AT5: a session that is done waits as long as a job of it is unfinished.

import type { EndedRunState, FlowStep } from "../../shapes/run.ts";
import { plainLine } from "../../text/plain-line.ts";
import { isOverBudget } from "../budget.ts";
import { isSilent } from "../turn-rules.ts";

/** All groups, in the order in which a list shows them. */
export const ATTENTION_GROUPS = ["needs_you", "running", "waiting", "failed", "done"] as const;
export type AttentionGroup = (typeof ATTENTION_GROUPS)[number];

/** Heading of each group. */
export const GROUP_TITLES: Readonly<Record<AttentionGroup, string>> = {
  needs_you: "Needs you",
  running: "Running",
  waiting: "Waiting",
  failed: "Failed",
  done: "Done",
};

export interface LastTurn {
  readonly state: EndedRunState;
  readonly code?: string;
  readonly flowStep?: FlowStep;
  readonly tail: string;
  /** The agent is elsewhere, and waits for another message. */
  readonly asks?: boolean;
  readonly dismissed: boolean;
  /** Subject of a request for permission of the turn that nobody answered in time. */
  readonly unanswered?: string;
  /** A session that this one spawned has an unfinished run. */
  readonly hasJobs?: boolean;
}

export interface TurnPlace {
  readonly group: Exclude<AttentionGroup, "running">;
  readonly kind: "run" | "budget" | "question" | "unanswered";
}

/** Returns the group of a session, given its last ended turn. */
export function placeOfTurn(turn: LastTurn): TurnPlace {
  const { state, flowStep, tail, asks, dismissed, unanswered, hasJobs } = turn;
  if (state === "error" || state === "timeout") {
    const isBudget = isOverBudget(turn);
    const kind = isBudget ? "budget" : "run";
    const needsPerson = !dismissed && (isBudget || flowStep === undefined);
    return { group: needsPerson ? "needs_you" : "failed", kind };
  }
  if (state === "ok" && !dismissed && unanswered !== undefined)
    return { group: "needs_you", kind: "unanswered" };
  const isOpen =
    state === "ok" && !dismissed && flowStep === undefined && (asks === true || asksPerson(tail));
  if (isOpen) return { group: "needs_you", kind: "question" };
  return { group: hasJobs === true ? "waiting" : "done", kind: "run" };
}

/** A line of a list, a line that continues one, or an empty line. */
const LIST_LINE = /^(?:\s*(?:[-*+•]|\w{1,2}[.)])\s|\s{2}|\s*$)/;
/** A heading, which asks the reader nothing: `## Why?` or `**Why?**`. */
const HEADING = /^\s*(?:#|\*\*.*\*\*:?\s*$)/;

/** Returns a reply without the list at its end. */
function aboveList(reply: string): string {
  const lines = reply.split("\n");
  return lines.slice(0, lines.findLastIndex((line) => !LIST_LINE.test(line)) + 1).join("\n");
}

function endsWithQuestion(text: string): boolean {
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  return !/^\s*>/.test(last) && /[?？؟][)\]）*_~]*$/u.test(last);
}

/** Returns whether a reply ends with a list below a question: the answers to choose from. */
function asksToChoose(reply: string): boolean {
  const above = aboveList(reply);
  const last = above.split("\n").at(-1) ?? "";
  return endsWithQuestion(above) && !HEADING.test(last);
}

/**
 * Returns whether a reply ends with a question of its own, or with a list of answers to one: the question
 * mark is not in quotation marks, in code, in a quoted line or in the heading of a list. Ignores brackets
 * and emphasis after it.
 */
export function asksPerson(reply: string): boolean {
  return !isSilent(reply) && (endsWithQuestion(reply) || asksToChoose(reply));
}

/** Returns the end of a reply that asks: its last paragraph, with a list of answers to choose from. */
export function questionOf(reply: string): string {
  const text = reply.trim();
  const above = endsWithQuestion(text) || !asksToChoose(text) ? text : aboveList(text);
  const start = above.search(/\n\s*\n(?!.*\n\s*\n)/s);
  return text.slice(Math.max(start, 0)).trim();
}

/** Returns the first line of a reply that contains words, without the marks of Markdown. */
export function firstLine(reply: string): string {
  const lines = reply.split("\n").map((line) => plainLine(line.replace(/^[\s#>*+-]+\s/, "")));
  return lines.find((line) => /[\p{L}\p{N}]/u.test(line)) ?? reply;
}

/**
 * Puts all but one turn for each used-up budget into the group `failed`, because one action is needed. That
 * one is the first, which is the newest if `turns` are newest first.
 */
export function oncePerBudget<T extends TurnPlace & { code?: string; agentId: string; chainId: string }>(
  turns: readonly T[],
): T[] {
  const told = new Set<string>();
  return turns.map((turn) => {
    const { kind, group, code, agentId, chainId } = turn;
    if (kind !== "budget" || group !== "needs_you") return turn;
    const budget = code === "chain_limit" ? `chain ${chainId}` : `agent ${agentId}`;
    if (told.has(budget)) return { ...turn, group: "failed" as const };
    told.add(budget);
    return turn;
  });
}
