// Finds the sessions that a chat of a channel uses.

import type { Route } from "../../../core/shapes/route.ts";
import type { Session } from "../../../core/shapes/session.ts";
import type { Db } from "../../sql.ts";
import { toSession } from "./sessions.ts";

/** Maximum number of sessions of one chat. */
const AT_PLACE_MAX = 50;

/**
 * Returns the sessions with one of these keys, and those that last used this chat, from any account and in
 * any thread. The most recently used come first; archived ones are left out.
 */
export async function sessionsOfChat(
  db: Db,
  { channel, to }: Pick<Route, "channel" | "to">,
  keys: readonly string[],
): Promise<Session[]> {
  const rows = await db
    .selectFrom("sessions")
    .selectAll()
    .where((eb) =>
      eb.or([
        ...(keys.length === 0 ? [] : [eb("key", "in", keys)]),
        eb.and([eb("last_channel", "=", channel), eb("last_to", "=", to)]),
      ]),
    )
    .where("archived_at", "is", null)
    .orderBy("updated_at", "desc")
    .limit(AT_PLACE_MAX)
    .execute();
  return rows.map(toSession);
}
