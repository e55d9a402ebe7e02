// Reads the spawn chain of a session, on which its rights depend, as it is at this time (I13).

import type { ChainLink, SpawnChain } from "../core/rules/sandbox-policy.ts";
import type { Session } from "../core/shapes/session.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import type { Db } from "../store/sql.ts";

/** Maximum number of links: more than any spawn depth, and an end for a damaged chain. */
const LINKS_MAX = 16;

/** Returns a session, its requester, the requester of that one, and so on, as far as they still exist. */
export async function spawnChainOf(db: Db, session: Session): Promise<SpawnChain> {
  const above: ChainLink[] = [];
  let key = session.spawnedBy;
  while (key !== undefined && above.length < LINKS_MAX) {
    const link = await getSession(db, key);
    // An archived session is read-only, but its rights still limit those below it.
    if (link === undefined) break;
    above.push(link);
    key = link.spawnedBy;
  }
  return [session, ...above];
}
