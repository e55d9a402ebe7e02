// The shape of usage totals.

export interface UsageSum {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
  /** USD. */
  readonly cost: number;
}

/** Groupings of usage. `tree` groups by the root session of the spawn tree. */
export const USAGE_GROUPS = ["agent", "tree", "session", "model", "day"] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export interface UsageLine extends UsageSum {
  /** Agent id, session key, `<provider>/<model>`, or day in UTC like 2027-03-01. */
  readonly name: string;
  readonly runs: number;
  /** ms since 1970. */
  readonly lastAt: number;
}
