// The shape of a permission request that an agent sends to its owner.

export type PermissionDecision = "allow" | "deny";

/** An action that an agent wants permission for, as its owner sees it. */
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
