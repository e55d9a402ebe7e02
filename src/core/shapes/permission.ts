// The shape of a permission request from an agent to an operator.

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
  /** Time at which the request counts as denied; ms since 1970. */
  readonly expiresAt: number;
}
