// The shape of a route: the destination of a delivery.

/** The channel of clients on our own socket; `to` is a session key. */
export const WEBCHAT = "webchat";

/** Used instead of a channel: the last chat of the people of session `to`, looked up at delivery. */
export const LAST = "last";

/** Destination of a delivery: one value, passed on as a whole. */
export interface Route {
  readonly channel: string;
  readonly to: string;
  readonly accountId?: string;
  readonly threadId?: string;
}

/** Returns whether two routes name the same channel, account, chat and thread. */
export function isSameRoute(one: Route | undefined, other: Route | undefined): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one.channel === other.channel &&
    one.to === other.to &&
    one.accountId === other.accountId &&
    one.threadId === other.threadId
  );
}
