// Keeps the messages that forks share when the session that wrote them is deleted.
// IN1: a deleted transcript is kept up to the last message that a fork shares. It then belongs to the session
//      of that fork, which inherits it. When the fork is deleted, the transcript is deleted, unless another
//      fork shares it, too. The transcript of a deleted fork does not count, even if it was kept, unless a
//      session continues it.
// In the full-text index, inherited messages still have the token of the deleted session. A search that is
// limited to the fork's session therefore does not find them. Other searches do.

import { sql } from "kysely";
import { holdSessions } from "../../locks.ts";
import { changesRows, type Db, type Tx } from "../../sql.ts";

/** Matches a row of `session_ids` if a session has its transcript, or a fork that continues it. */
const isInUse = (row: "c" | "f") => sql<boolean>`exists (
  with recursive down (id, key) as (
    select ${sql.ref(`${row}.session_id`)}, ${sql.ref(`${row}.session_key`)}
    union
    select n.session_id, n.session_key from down join session_ids n on n.forked_from = down.id
  )
  select 1 from down join sessions s on s.key = down.key)`;

/** A transcript that a session inherits. */
interface Inheritance {
  readonly sessionId: string;
  readonly heir: string;
}

/**
 * Gives the shared transcripts of a session that is being deleted to sessions of forks. `moveMessages` then
 * gives them the messages.
 */
export async function handOver(tx: Tx, key: string): Promise<readonly Inheritance[]> {
  const given: Inheritance[] = [];
  const held = new Set<string>();
  for (;;) {
    const { rows } = await sql<Inheritance>`
      select p.session_id as "sessionId", c.session_key as heir
      from session_ids p cross join session_ids c left join sessions s on s.key = c.session_key
      where p.session_key = ${key} and c.forked_from = p.session_id and c.session_key <> ${key}
        and ${isInUse("c")}
      order by case when s.key is null then 0 else 1 end, c.session_key desc`.execute(tx);
    // The last row of each transcript wins: an existing session if there is one, with the lowest key.
    const heirs = [...new Map(rows.map(({ sessionId, heir }) => [sessionId, heir]))].map(
      ([sessionId, heir]) => ({
        sessionId,
        heir,
      }),
    );
    if (heirs.length === 0) return given;
    const unheld = heirs.map(({ heir }) => heir).filter((heir) => !held.has(heir));
    if (unheld.length > 0) {
      // `holdForDeletion` has locked these sessions, except for a fork that was made in the meantime. If such
      // a fork is being deleted, the next query returns another session.
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
    }
    given.push(...heirs);
  }
}

/** Gives the messages of inherited transcripts, which `trimInherited` has trimmed, to the heirs. */
export async function moveMessages(tx: Tx, given: readonly Inheritance[]): Promise<void> {
  for (const { sessionId, heir } of given) {
    await tx.updateTable("messages").set({ session_key: heir }).where("session_id", "=", sessionId).execute();
  }
}

/**
 * Matches a row `p` of `session_ids` if its transcript is inherited: a fork of it belongs to the same
 * session.
 */
const INHERITED = sql<boolean>`exists (select 1 from session_ids c
  where c.forked_from = p.session_id and c.session_key = p.session_key)`;

/** Returns all inherited transcripts, and the sessions that own them. */
export async function inheritedTranscripts(db: Db): Promise<readonly Inheritance[]> {
  const { rows } = await sql<Inheritance>`
    select distinct p.session_id as "sessionId", p.session_key as heir from session_ids c
    join session_ids p on p.session_id = c.forked_from and p.session_key = c.session_key
    where c.forked_from is not null`.execute(db);
  return rows;
}

/** Returns whether a session has inherited this transcript. */
export async function isInheritedTranscript(db: Db, sessionId: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from session_ids p where p.session_id = ${sessionId} and ${INHERITED}`.execute(db);
  return rows.length > 0;
}

/** True if the transcript of a row of `session_ids` is inherited. */
export const IS_INHERITED = sql<boolean>`exists (
  select 1 from session_ids p where p.session_id = session_ids.session_id and ${INHERITED})`;

/**
 * Returns the last message of an inherited transcript that a fork shares. Undefined if the transcript is not
 * inherited, or if a message at which a fork begins was lost: then it is unknown which message is the last.
 */
async function lastShared(
  db: Db,
  sessionId: string,
): Promise<{ readonly seq: number; readonly id: string } | undefined> {
  const { rows } = await sql<{ seq: number | null; id: string | null }>`select m.seq, m.id
    from session_ids p join session_ids f on f.forked_from = p.session_id
      left join messages m on m.id = f.forked_at
    where p.session_id = ${sessionId} and ${INHERITED}
      and (f.session_key = p.session_key or ${isInUse("f")})
    order by case when m.seq is null then 0 else 1 end, m.seq desc limit 1`.execute(db);
  const [{ seq, id } = { seq: null, id: null }] = rows;
  return seq === null || id === null ? undefined : { seq, id };
}

/**
 * Deletes those messages and files of inherited transcripts that no fork shares any more. Ignores other
 * transcripts. Returns the ids of the transcripts that had such messages.
 */
export async function trimInherited(tx: Tx, sessionIds: readonly string[]): Promise<string[]> {
  const trimmed: string[] = [];
  for (const id of new Set(sessionIds)) {
    const last = await lastShared(tx, id);
    if (last === undefined) continue;
    const unshared = tx.deleteFrom("messages").where("session_id", "=", id).where("seq", ">", last.seq);
    if (await changesRows(tx, unshared)) trimmed.push(id);
    await sql`delete from sent_files where session_id = ${id}
      and created_at > (select created_at from messages where seq = ${last.seq})`.execute(tx);
  }
  return trimmed;
}
