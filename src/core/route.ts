// Owns what a route is: the place that a delivery goes to.

/** Where a delivery goes: one value, never taken apart. */
export interface Route {
  readonly channel: string;
  readonly to: string;
  readonly accountId?: string;
  readonly threadId?: string;
}
