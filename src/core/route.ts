// Owns what a route is: the place that a delivery goes to.

/** The channel of clients on our own socket: there `to` is the key of a session. */
export const WEBCHAT = "webchat";

/** In place of a channel: where the people of the session `to` were last, at the moment of the delivery. */
export const LAST = "last";

/** Where a delivery goes: one value, never taken apart. */
export interface Route {
  readonly channel: string;
  readonly to: string;
  readonly accountId?: string;
  readonly threadId?: string;
}

/** Whether two routes name one place: channel, account, chat and thread. */
export function isSamePlace(one: Route | undefined, other: Route | undefined): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one.channel === other.channel &&
    one.to === other.to &&
    one.accountId === other.accountId &&
    one.threadId === other.threadId
  );
}
