// Owns reading who spawned whom: what the rights of a session depend on, as it is at this moment (I13).

import type { ChainLink, SpawnChain } from "../core/sandbox-policy.ts";
import type { Session } from "../core/session.ts";
import { getSession } from "../store/sessions.ts";
import type { Db } from "../store/sql.ts";

/** Links that are followed: beyond any spawn depth, and an end for a damaged chain. */
const LINKS_MAX = 16;

/** A session, its requester, that one's requester, and so on, as far as they still exist. */
export async function spawnChainOf(db: Db, session: Session): Promise<SpawnChain> {
  const above: ChainLink[] = [];
  let key = session.spawnedBy;
  while (key !== undefined && above.length < LINKS_MAX) {
    const link = await getSession(db, key);
    // What is archived is read-only, but its rights are still there to be measured against.
    if (link === undefined) break;
    above.push(link);
    key = link.spawnedBy;
  }
  return [session, ...above];
}
