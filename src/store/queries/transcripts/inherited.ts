// Keeps the messages that forks share when the session that wrote them is deleted.
// IN1: a deleted transcript is kept up to the last message that a fork shares. It then belongs to the session
//      of that fork, which inherits it. When the fork is deleted, the transcript is deleted, unless another
//      fork shares it, too.
// In the full-text index, inherited messages still have the token of the deleted session. A search that is
// limited to the fork's session therefore does not find them. Other searches do.

import { sql } from "kysely";
import { holdSessions } from "../../locks.ts";
import type { Db, Tx } from "../../sql.ts";

/**
 * Returns the transcripts of a session that forks in other sessions share. For each, names the session of one
 * fork.
 */
async function heirsOf(tx: Tx, key: string): Promise<{ sessionId: string; heir: string }[]> {
  const { rows } = await sql<{ sessionId: string; heir: string }>`
    select p.session_id as "sessionId", min(c.session_key) as heir
    from session_ids p join session_ids c on c.forked_from = p.session_id
    where p.session_key = ${key} and c.session_key <> ${key} group by p.session_id`.execute(tx);
  return rows;
}

/**
 * Gives the shared transcripts of a session that is being deleted to sessions of forks. Returns the ids of
 * these transcripts.
 */
export async function handOver(tx: Tx, key: string): Promise<string[]> {
  const given: string[] = [];
  const held = new Set<string>();
  for (;;) {
    const heirs = await heirsOf(tx, key);
    if (heirs.length === 0) return given;
    const unheld = heirs.map(({ heir }) => heir).filter((heir) => !held.has(heir));
    if (unheld.length > 0) {
      // Another transaction may be deleting one of these sessions. If it is, the next query returns another
      // session.
      await holdSessions(tx, unheld);
      for (const heir of unheld) held.add(heir);
      continue;
    }
    for (const { sessionId, heir } of heirs) {
      await tx
        .updateTable("session_ids")
        .set({ session_key: heir })
        .where("session_id", "=", sessionId)
        .execute();
      await tx
        .updateTable("messages")
        .set({ session_key: heir })
        .where("session_id", "=", sessionId)
        .execute();
      given.push(sessionId);
    }
  }
}

/**
 * Matches a row `p` of `session_ids` if its transcript is inherited: a fork of it belongs to the same
 * session.
 */
const INHERITED = sql<boolean>`exists (select 1 from session_ids c
  where c.forked_from = p.session_id and c.session_key = p.session_key)`;

/** Returns the ids of all inherited transcripts. */
export async function inheritedTranscripts(db: Db): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct p.session_id as id from session_ids c
    join session_ids p on p.session_id = c.forked_from and p.session_key = c.session_key
    where c.forked_from is not null`.execute(db);
  return rows.map(({ id }) => id);
}

/** Returns whether a session has inherited this transcript. */
export async function isInheritedTranscript(db: Db, sessionId: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from session_ids p where p.session_id = ${sessionId} and ${INHERITED}`.execute(db);
  return rows.length > 0;
}

/** Returns a condition that is true if the transcript with this id is inherited. */
export function isInherited(sessionId: string) {
  const id = sql.ref(sessionId);
  return sql<boolean>`exists (select 1 from session_ids p where p.session_id = ${id} and ${INHERITED})`;
}

/**
 * Deletes those messages of inherited transcripts that no fork shares any more. Ignores transcripts that are
 * not inherited. Returns the ids of the inherited ones.
 */
export async function trimInherited(tx: Tx, sessionIds: readonly string[]): Promise<string[]> {
  const trimmed: string[] = [];
  for (const id of new Set(sessionIds)) {
    const { rows } = await sql<{ last: number | null }>`select (
        select max(m.seq) from session_ids f join messages m on m.id = f.forked_at
        where f.forked_from = p.session_id
      ) as last from session_ids p where p.session_id = ${id} and ${INHERITED}`.execute(tx);
    const [found] = rows;
    if (found === undefined) continue;
    await tx
      .deleteFrom("messages")
      .where("session_id", "=", id)
      .where("seq", ">", Number(found.last ?? 0))
      .execute();
    trimmed.push(id);
  }
  return trimmed;
}
