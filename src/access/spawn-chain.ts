// Reads the current spawn chain of a session, which determines the session's rights (I13).

import type { ChainLink, SpawnChain } from "../core/rules/sandbox-policy.ts";
import type { Session } from "../core/shapes/session.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import type { Db } from "../store/sql.ts";

/** Maximum number of links. It is above any spawn depth, and stops the walk over a damaged chain. */
const LINKS_MAX = 16;

/** Returns a session, its requester, the requester's requester, and so on, as long as they exist. */
export async function spawnChainOf(db: Db, session: Session): Promise<SpawnChain> {
  const above: ChainLink[] = [];
  let key = session.spawnedBy;
  while (key !== undefined && above.length < LINKS_MAX) {
    const link = await getSession(db, key);
    // An archived session stays in the chain: it is read-only, but its rights still limit its descendants.
    if (link === undefined) break;
    above.push(link);
    key = link.spawnedBy;
  }
  return [session, ...above];
}
