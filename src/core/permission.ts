// Owns the shape of a question that an agent asks an operator.

/** What an agent wants to be allowed, as an operator is shown it. */
export interface PermissionQuestion {
  readonly id: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  /** What it wants to do, in its own words. */
  readonly title: string;
  readonly kind?: string;
  /** Its arguments, as JSON, cut. */
  readonly detail?: string;
  /** ms since 1970. */
  readonly askedAt: number;
  /** Denied by then; ms since 1970. */
  readonly expiresAt: number;
}
