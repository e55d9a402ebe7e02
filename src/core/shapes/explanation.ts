// The shape of the answer to "may A do this to B?".

import type { Code } from "./errors.ts";

/** Actions of one session on another. Each stands for the tool that performs it. */
export const EXPLAINED = ["list", "read", "search", "send", "spawn", "status"] as const;
export type Explained = (typeof EXPLAINED)[number];

/** A rule, and its verdict on the question that is explained. */
export interface Check {
  readonly of: "sight" | "tool" | "spawn" | "send_policy" | "open_flow" | "wait_cycle";
  readonly allowed: boolean;
  readonly rule: string;
  readonly code?: Code;
  /** Settings that would allow the action. */
  readonly settings?: readonly string[];
  /** True if the rule only applies for now, because of a conversation or a wait in progress. */
  readonly now?: true;
}

export interface Explanation {
  readonly access: Explained;
  /** True if every check allows it. */
  readonly allowed: boolean;
  readonly code?: Code;
  /** The rule that decides: the first one that refuses, or else the one that grants the right. */
  readonly rule: string;
  readonly settings: readonly string[];
  readonly checks: readonly Check[];
}
