// Owns finding sessions by the place that their people read.

import type { Route } from "../core/route.ts";
import type { Session } from "../core/session.ts";
import { toSession } from "./sessions.ts";
import type { Db } from "./sql.ts";

/** Sessions of one place that are looked at. */
const AT_PLACE_MAX = 50;

/**
 * Sessions with one of these keys, or that a person last used at this chat, by any account and in any thread
 * of it; the one used last first. Archived ones are left out.
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
