// Owns the shape of what was consumed, added up.

export interface UsageSum {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
  /** USD. */
  readonly cost: number;
}

/** What usage can be told apart by. `tree`: by the session above all that spawned the one that used it. */
export const USAGE_GROUPS = ["agent", "tree", "session", "model", "day"] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export interface UsageLine extends UsageSum {
  /** An agent's id, a session's key, `<provider>/<model>`, or a day of UTC like 2027-03-01. */
  readonly name: string;
  readonly runs: number;
  /** ms since 1970. */
  readonly lastAt: number;
}
