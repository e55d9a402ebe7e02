// Owns the table of agents' permission requests. A row stays until its agent has read the decision, so the
// table holds only requests that are open or were just decided.
// A request is open until it is decided or expires. It is no longer open if its run has ended. A request that
// belongs to a tool call survives a crash; any other one ends with the attempt of its run.

import type { ExpressionBuilder, Selectable } from "kysely";
import { optional } from "../../core/optional.ts";
import {
  askedCommand,
  type PermissionAnswered,
  type PermissionQuestion,
  type PermissionScope,
} from "../../core/shapes/permission.ts";
import type { PermissionTable, Tables } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

function toQuestion(row: Selectable<PermissionTable>): PermissionQuestion {
  const shown = {
    title: row.title,
    ...optional({ kind: row.kind ?? undefined, detail: row.detail ?? undefined }),
  };
  return {
    id: row.id,
    sessionKey: row.session_key,
    agentId: row.agent_id,
    runId: row.run_id,
    ...shown,
    ...optional({ asked: askedCommand(shown) }),
    scopes: row.scopes_json === null ? ["once"] : (JSON.parse(row.scopes_json) as PermissionScope[]),
    askedAt: row.asked_at,
    expiresAt: row.expires_at,
  };
}

/**
 * Time for which an expired request is kept, so that its agent can still read a decision that was made in
 * time.
 */
const KEPT_MS = 60_000;

/** The command that a request is about. */
export interface AskedCommand {
  /** The tool call, if it continues after a crash. */
  readonly callId: string | undefined;
  /** Digest of the command and its folder. */
  readonly digest: string;
  readonly folder: string;
}

/** Deletes requests that nobody needs: those that expired long ago, of earlier attempts, of ended runs. */
async function forgetPermissions(tx: Tx, { askedAt, runId }: PermissionQuestion, attempt: number) {
  const withoutCall = tx.deleteFrom("permissions").where("call_id", "is", null);
  await withoutCall.where("expires_at", "<=", askedAt - KEPT_MS).execute();
  await withoutCall.where("run_id", "=", runId).where("attempt", "<", attempt).execute();
  await tx
    .deleteFrom("permissions")
    .where("call_id", "is not", null)
    .where((is) => is.not(is.exists(unfinished(is))))
    .execute();
}

const unfinished = (is: ExpressionBuilder<Tables, "permissions">) =>
  is
    .selectFrom("runs as r")
    .select("r.run_id")
    .whereRef("r.run_id", "=", "permissions.run_id")
    .where("r.ended_at", "is", null);

/** Stores a request, and deletes those that nobody needs. */
export async function insertPermission(
  tx: Tx,
  asked: PermissionQuestion,
  attempt: number,
  about?: AskedCommand,
): Promise<void> {
  await forgetPermissions(tx, asked, attempt);
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
      call_id: about?.callId ?? null,
      scopes_json: JSON.stringify(asked.scopes),
      digest: about?.digest ?? null,
      folder: about?.folder ?? null,
      scope: null,
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
    .where((is) => is.or([is("p.call_id", "is not", null), is("r.attempt", "=", is.ref("p.attempt"))]))
    .orderBy("p.asked_at")
    .orderBy("p.id")
    .execute();
  return rows.map(toQuestion);
}

/** Stores the decision about a request. Returns false if the request was already decided or deleted. */
export async function decidePermission(
  tx: Tx,
  id: string,
  { decision, scope, by, atMs }: PermissionAnswered & { atMs: number },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("permissions")
    .set({ decision, scope, decided_at: atMs, decided_by: by })
    .where("id", "=", id)
    .where("decision", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Returns the decision about a request. Undefined: there is no decision yet. `gone`: the row was deleted. */
export async function decisionOf(db: Db, id: string): Promise<PermissionAnswered | "gone" | undefined> {
  const query = db.selectFrom("permissions").select(["decision", "scope", "decided_by"]).where("id", "=", id);
  const row = await query.executeTakeFirst();
  if (row === undefined) return "gone";
  const { decision, scope, decided_by } = row;
  return decision === null ? undefined : { decision, scope: scope ?? "once", by: decided_by ?? "" };
}

/** Deletes a request. Returns whether it was open or decided until now, or had been deleted before. */
export async function deletePermission(tx: Tx, id: string): Promise<"open" | "decided" | "gone"> {
  const query = tx.deleteFrom("permissions").where("id", "=", id).returning("decision");
  const row = await query.executeTakeFirst();
  if (row === undefined) return "gone";
  return row.decision === null ? "open" : "decided";
}

/** Returns the command that a request is about, or undefined if it is not about a command. */
export async function commandOf(
  db: Db,
  id: string,
): Promise<Pick<AskedCommand, "digest" | "folder"> | undefined> {
  const query = db.selectFrom("permissions").select(["digest", "folder"]).where("id", "=", id);
  const { digest = null, folder = null } = (await query.executeTakeFirst()) ?? {};
  return digest === null || folder === null ? undefined : { digest, folder };
}

/** Returns the request of a tool call, decided or not, with the digest of its command. */
export async function permissionOfCall(
  db: Db,
  callId: string,
): Promise<{ readonly question: PermissionQuestion; readonly digest: string | null } | undefined> {
  const query = db.selectFrom("permissions").selectAll().where("call_id", "=", callId);
  const row = await query.executeTakeFirst();
  return row === undefined ? undefined : { question: toQuestion(row), digest: row.digest };
}

/** Deletes the request of a tool call. */
export async function deletePermissionOfCall(tx: Tx, callId: string): Promise<void> {
  await tx.deleteFrom("permissions").where("call_id", "=", callId).execute();
}
