// The shape of a permission request that an agent sends to an operator.

/** An action that an agent wants permission for, as the operator sees it. */
export interface PermissionQuestion {
  readonly id: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  /** Description of the action, written by the agent. */
  readonly title: string;
  readonly kind?: string;
  /** Arguments as JSON, shortened. */
  readonly detail?: string;
  /** ms since 1970. */
  readonly askedAt: number;
  /** Counts as denied from then on; ms since 1970. */
  readonly expiresAt: number;
}
