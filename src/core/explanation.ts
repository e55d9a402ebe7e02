// Owns the shape of the answer to "may A do this to B?".

import type { Code } from "./errors.ts";

/** What one session may do to another, each by the tool of the same meaning. */
export const EXPLAINED = ["list", "read", "search", "send", "spawn", "status"] as const;
export type Explained = (typeof EXPLAINED)[number];

/** One rule, and what it says. */
export interface Check {
  readonly of: "sight" | "tool" | "spawn" | "send_policy" | "open_flow" | "wait_cycle";
  readonly allowed: boolean;
  readonly rule: string;
  readonly code?: Code;
  /** Settings that would allow it. */
  readonly settings?: readonly string[];
  /** It holds at this moment only: a conversation or a wait that is under way. */
  readonly now?: true;
}

export interface Explanation {
  readonly access: Explained;
  /** Every check says so. */
  readonly allowed: boolean;
  readonly code?: Code;
  /** The rule that decides: the first that refuses, else the one that gives the right. */
  readonly rule: string;
  readonly settings: readonly string[];
  readonly checks: readonly Check[];
}
