// The mark, the tone and the actions of a row of the inbox. Pure.

import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { outcomeWord } from "../parts/words.ts";
import { describeFailure } from "../setup/failed-run.ts";
import { TONES, type Tone } from "../styles/tones.ts";

/** Maximum number of rows that each group shows before the reader asks for more. */
export const SHOWN = { needs_you: 50, running: 10, waiting: 10, failed: 10, done: 8 } as const;

/** Shown if nothing needs the reader, and above the failed items. */
export const CALM = "Nothing needs your attention.";
export const FAILED_ABOUT = "Dismissed, or told to the session that asked.";

/** Actions that need only a click. The action `answer` is not one of them, because it needs a text. */
export type Deed = Exclude<AttentionItem["actions"][number], "answer">;

export const DEED_WORDS: Readonly<Record<AttentionItem["actions"][number], string>> = {
  answer: "Answer",
  approve: "Allow",
  deny: "Deny",
  retry: "Retry",
  dismiss: "Dismiss",
  stop: "Stop",
};

/** Returns the text of an item: of a failure whose cause is known, the cause in words. */
export const summaryOf = ({ code, summary }: AttentionItem): string => describeFailure(code, summary);

export function toneOf({ kind, state, hold }: AttentionItem): Tone {
  if (hold === "held") return "warn";
  if (kind === "question" || kind === "unanswered") return "waiting";
  if (kind === "delivery" || kind === "store") return "bad";
  return state === undefined ? "warn" : (TONES[state] ?? "quiet");
}

export function styleOf(action: AttentionItem["actions"][number]): string {
  return action === "approve" || action === "answer" ? "primary" : action === "dismiss" ? "quiet" : "";
}

/** Returns the text of an item's mark: for a plain run its state, otherwise its kind. */
export function markOf({ kind, state = "run", hold }: AttentionItem): string {
  if (hold === "held") return hold;
  if (kind === "run") return outcomeWord(state);
  return kind === "node" ? "device" : kind;
}
