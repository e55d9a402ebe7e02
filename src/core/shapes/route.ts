// The shape of a route: the destination of a delivery.

import { optional } from "../optional.ts";

/** Channel for clients on the gateway's own socket. `to` is a session key. */
export const WEBCHAT = "webchat";

/** Channels that deliver to a session, not to a chat platform. */
const IN_HOUSE: readonly string[] = [WEBCHAT, "internal"];

/** Returns whether a route leads to a session itself, not to a chat platform. */
export function isInHouse({ channel }: Pick<Route, "channel">): boolean {
  return IN_HOUSE.includes(channel);
}

/**
 * Channel that stands for the chat in which people last wrote to session `to`. The chat is determined at
 * delivery.
 */
export const LAST = "last";

/** Destination of a delivery. */
export interface Route {
  readonly channel: string;
  readonly to: string;
  readonly accountId?: string;
  readonly threadId?: string;
}

/** Returns a route in the fields of a session's row. */
export function lastPlace(route: Route | undefined): {
  readonly lastChannel?: string;
  readonly lastTo?: string;
  readonly lastAccountId?: string;
  readonly lastThreadId?: string;
} {
  const { channel: lastChannel, to: lastTo, accountId: lastAccountId, threadId: lastThreadId } = route ?? {};
  return optional({ lastChannel, lastTo, lastAccountId, lastThreadId });
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
