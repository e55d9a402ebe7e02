// The shape of usage, and its totals.

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
export const USAGE_GROUPS = ["agent", "tree", "session", "chain", "model", "day"] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export const USAGE_ORDERS = ["cost", "tokens"] as const;
export type UsageOrder = (typeof USAGE_ORDERS)[number];

export interface UsageTotal extends UsageSum {
  readonly runs: number;
}

export interface UsageLine extends UsageTotal {
  /** Agent id, session key, chain id, `<provider>/<model>`, or day in UTC like 2027-03-01. */
  readonly name: string;
  /** Label of the session, or of a chain's first session. */
  readonly label?: string;
  readonly sessionKey?: string;
  /** Beginning of the chain's first message. */
  readonly opening?: string;
  /** ms since 1970. */
  readonly lastAt: number;
}

/** Returns the sum of several lines of usage. */
export function totalUsage(lines: readonly UsageTotal[]): UsageTotal {
  const sum = (of: (line: UsageTotal) => number): number => lines.reduce((so, line) => so + of(line), 0);
  return {
    runs: sum((line) => line.runs),
    input: sum((line) => line.input),
    output: sum((line) => line.output),
    cacheRead: sum((line) => line.cacheRead),
    cacheWrite: sum((line) => line.cacheWrite),
    totalTokens: sum((line) => line.totalTokens),
    cost: sum((line) => line.cost),
  };
}
