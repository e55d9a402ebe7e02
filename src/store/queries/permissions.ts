// Owns the table of agents' permission requests. A row stays until its agent has read the decision, so the
// table holds only requests that are open or were just decided.
// A request is open until it is decided or expires. It is no longer open if its run has ended, or if the run
// has begun another attempt.

import type { Selectable } from "kysely";
import { optional } from "../../core/optional.ts";
import type { PermissionDecision, PermissionQuestion } from "../../core/shapes/permission.ts";
import type { PermissionTable } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

function toQuestion(row: Selectable<PermissionTable>): PermissionQuestion {
  return {
    id: row.id,
    sessionKey: row.session_key,
    agentId: row.agent_id,
    runId: row.run_id,
    title: row.title,
    ...optional({ kind: row.kind ?? undefined, detail: row.detail ?? undefined }),
    askedAt: row.asked_at,
    expiresAt: row.expires_at,
  };
}

/**
 * Time for which an expired request is kept, so that its agent can still read a decision that was made in
 * time.
 */
const KEPT_MS = 60_000;

/**
 * Stores a request. Deletes requests that expired long ago, and requests of earlier attempts of the same run.
 */
export async function insertPermission(tx: Tx, asked: PermissionQuestion, attempt: number): Promise<void> {
  await tx
    .deleteFrom("permissions")
    .where("expires_at", "<=", asked.askedAt - KEPT_MS)
    .execute();
  await tx
    .deleteFrom("permissions")
    .where("run_id", "=", asked.runId)
    .where("attempt", "<", attempt)
    .execute();
  const { id, sessionKey, agentId, runId, title, kind, detail, askedAt, expiresAt } = asked;
  await tx
    .insertInto("permissions")
    .values({
      id,
      session_key: sessionKey,
      agent_id: agentId,
      run_id: runId,
      attempt,
      title,
      kind: kind ?? null,
      detail: detail ?? null,
      asked_at: askedAt,
      expires_at: expiresAt,
      decision: null,
      decided_at: null,
      decided_by: null,
    })
    .execute();
}

/** Returns the open requests, oldest first. */
export async function openPermissions(db: Db, nowMs: number): Promise<PermissionQuestion[]> {
  const rows = await db
    .selectFrom("permissions as p")
    .innerJoin("runs as r", "r.run_id", "p.run_id")
    .selectAll("p")
    .where("p.decision", "is", null)
    .where("p.expires_at", ">", nowMs)
    .where("r.ended_at", "is", null)
    .whereRef("r.attempt", "=", "p.attempt")
    .orderBy("p.asked_at")
    .orderBy("p.id")
    .execute();
  return rows.map(toQuestion);
}

/** Stores the decision about a request. Returns false if the request was already decided or deleted. */
export async function decidePermission(
  tx: Tx,
  id: string,
  { decision, by, atMs }: { decision: PermissionDecision; by: string; atMs: number },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("permissions")
    .set({ decision, decided_at: atMs, decided_by: by })
    .where("id", "=", id)
    .where("decision", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Returns the decision about a request. Undefined: there is no decision yet. `gone`: the row was deleted. */
export async function decisionOf(db: Db, id: string): Promise<PermissionDecision | "gone" | undefined> {
  const query = db.selectFrom("permissions").select("decision").where("id", "=", id);
  const row = await query.executeTakeFirst();
  return row === undefined ? "gone" : (row.decision ?? undefined);
}

export async function deletePermission(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom("permissions").where("id", "=", id).execute();
}
