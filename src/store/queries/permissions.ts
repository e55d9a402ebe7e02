// Owns the table of agents' permission requests. A row stays until its agent has read the decision, so the
// table holds only requests that are open or were just decided.
// A request is open until it is decided or expires. It is no longer open if its run has ended. A request that
// belongs to a tool call survives a crash; any other one ends with the attempt of its run.

import type { ExpressionBuilder, Selectable } from "kysely";
import { jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { NamedFiles } from "../../core/rules/approval/named-files.ts";
import type {
  PermissionAnswered,
  PermissionQuestion,
  PermissionScope,
} from "../../core/shapes/permission.ts";
import { visibleText } from "../../core/text/safe-text.ts";
import type { PermissionTable, Tables } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

const ONLY_A_SETTING = / is always$/;

function toQuestion(row: Selectable<PermissionTable>): PermissionQuestion {
  const command = visibleText(row.title);
  const about = visibleText(row.detail ?? "");
  const folder = row.folder === null ? undefined : visibleText(row.folder);
  const reason = ONLY_A_SETTING.test(about) ? undefined : about;
  return {
    id: row.id,
    sessionKey: row.session_key,
    agentId: row.agent_id,
    runId: row.run_id,
    title: command,
    ...optional({
      kind: row.kind ?? undefined,
      detail: folder === undefined ? about || undefined : `folder: ${folder}; reason: ${about}`,
      asked: folder === undefined ? undefined : { command, folder, ...optional({ reason }) },
    }),
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
  readonly folder: string;
  /** The files that the command names, as they are when the owner is asked. */
  readonly files: NamedFiles;
}

/** A request to store. Unlike in a `PermissionQuestion`, its texts are as the agent wrote them. */
export interface NewPermission extends Omit<PermissionQuestion, "asked"> {
  readonly attempt: number;
  readonly about?: AskedCommand | undefined;
}

/** Deletes requests that nobody needs: those that expired long ago, of earlier attempts, of ended runs. */
async function forgetPermissions(tx: Tx, { askedAt, runId, attempt }: NewPermission) {
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

/** Stores a request, and deletes those that nobody needs. Returns the request as its owner sees it. */
export async function insertPermission(tx: Tx, asked: NewPermission): Promise<PermissionQuestion> {
  await forgetPermissions(tx, asked);
  const { id, sessionKey, agentId, runId, attempt, title, kind, detail, askedAt, expiresAt, about } = asked;
  const row = await tx
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
      folder: about?.folder ?? null,
      digest: about === undefined ? null : JSON.stringify(about.files),
      scope: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return toQuestion(row);
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

/** A request about a command, and the command as the agent wrote it. */
export interface StoredCommand extends Pick<AskedCommand, "folder" | "files"> {
  readonly question: PermissionQuestion;
  readonly command: string;
}

/** Reads the files of a command. Rows of earlier versions have none. */
export function readFiles(json: string): NamedFiles {
  const files = jsonOf(json);
  return Array.isArray(files) ? (files as NamedFiles) : [];
}

function toCommand(row: Selectable<PermissionTable> | undefined): StoredCommand | undefined {
  if (row === undefined || row.folder === null) return undefined;
  const { title: command, folder, digest } = row;
  return { question: toQuestion(row), command, folder, files: readFiles(digest ?? "") };
}

/** Returns the command that a request is about, or undefined if it is not about a command. */
export async function commandOf(db: Db, id: string): Promise<StoredCommand | undefined> {
  return toCommand(await db.selectFrom("permissions").selectAll().where("id", "=", id).executeTakeFirst());
}

/** Returns the request of a tool call, decided or not, with its command. */
export async function permissionOfCall(db: Db, callId: string): Promise<StoredCommand | undefined> {
  const query = db.selectFrom("permissions").selectAll().where("call_id", "=", callId);
  return toCommand(await query.executeTakeFirst());
}

/** Deletes the request of a tool call. */
export async function deletePermissionOfCall(tx: Tx, callId: string): Promise<void> {
  await tx.deleteFrom("permissions").where("call_id", "=", callId).execute();
}
