// Decides which live events are needs of a person, and what a notification says about one. The needs are
// those of the inbox: permission requests, failures and questions (core/rules/attention/groups.ts).
// NE1: a notification can allow only what it shows whole, to a reader who sees it unredacted.

import { optional } from "../../core/optional.ts";
import { placeOfTurn, questionOf } from "../../core/rules/attention/groups.ts";
import type { LiveEvent } from "../../core/shapes/event.ts";
import { describeAction, type PermissionDecision } from "../../core/shapes/permission.ts";
import { agentIdInKey } from "../../core/shapes/session-key.ts";
import { cut } from "../../core/text/cut.ts";
import { plainLine } from "../../core/text/plain-line.ts";
import type { NEEDS } from "./settings.ts";

/** A longer text is cut by many phones, so that it can't be allowed there. */
export const WHOLE_MAX_CHARS = 240;

/** A need, as a row of the outbox holds it. */
export interface Need {
  readonly kind: (typeof NEEDS)[number] | "test";
  /** The id of its item in the inbox: a second notification about it replaces the first one. */
  readonly item: string;
  /** Id of the permission request, or of the run. */
  readonly ref: string;
  readonly agentId: string;
  /** Unredacted. */
  readonly text: string;
  readonly since: number;
  /** The text for a token that covers only some sessions, if it may not see all of it, nor allow it. */
  readonly limited?: string;
  /** Only of a permission request. */
  readonly expiresAt?: number;
  /** Whether a press allows it: it is shown whole, and no form has to be filled in. */
  readonly mayAllow?: boolean;
}

/** Returns the need that an event has caused, if any. */
export function needOf(event: LiveEvent, now: number): Need | undefined {
  const agentId = agentIdInKey(event.sessionKey) ?? event.sessionKey;
  if (event.kind === "permission" && event.change === "asked") {
    const { id: ref, asked, scopes, expiresAt, title, rule } = event.question;
    const action = describeAction(event.question);
    const whole = asked?.folder ? `${action} · in ${asked.folder}` : action;
    // A phone cuts a text of many lines, too.
    const isShort = whole.length <= WHOLE_MAX_CHARS && !whole.includes("\n");
    const mayAllow = scopes.includes("once") && isShort;
    const text = cut(whole, WHOLE_MAX_CHARS);
    const item = `permission:${ref}`;
    const limited = rule === undefined ? undefined : cut(title, WHOLE_MAX_CHARS);
    const need = { kind: "permission", item, ref, agentId, text, since: now, expiresAt, mayAllow } as const;
    return { ...need, ...optional({ limited }) };
  }
  if (event.kind !== "run_ended" || event.takenBy !== undefined) return undefined;
  const { runId: ref, state, code, flowStep, text, error = "" } = event;
  // An appended message ends no run.
  if (state === "ok" && event.startedAt === undefined) return undefined;
  const place = placeOfTurn({ state, tail: text, dismissed: false, ...optional({ code, flowStep }) });
  if (place.group !== "needs_you") return undefined;
  const isQuestion = place.kind === "question";
  const words = isQuestion ? plainLine(questionOf(text)) : error || code || "The run failed.";
  const kind = isQuestion ? "question" : "failure";
  return { kind, item: `run:${ref}`, ref, agentId, text: cut(words, WHOLE_MAX_CHARS), since: now };
}

const TITLES: Readonly<Record<Need["kind"], string>> = {
  permission: "asks for permission",
  failure: "failed",
  question: "asks you",
  test: "can notify you here",
};

/** Returns the heading of a notification. */
export const titleOf = ({ kind, agentId }: Need): string => `${agentId} ${TITLES[kind]}`;

/**
 * Returns the decisions that a notification offers. `shown`: its text. `mayAnswer`: whether its reader may
 * answer, and `mayAllow`: also by allowing.
 */
export function decisionsOf(
  need: Need,
  { shown, mayAnswer, mayAllow = true }: { shown: string; mayAnswer: boolean; mayAllow?: boolean },
): PermissionDecision[] {
  if (need.kind !== "permission" || !mayAnswer) return [];
  return need.mayAllow === true && mayAllow && shown === need.text ? ["allow", "deny"] : ["deny"];
}
