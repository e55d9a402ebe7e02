// Owns the table of commands that owners allowed for longer than once, for a session or for an agent.

import { createHash } from "node:crypto";
import type { Selectable } from "kysely";
import type { PermissionRule } from "../../core/shapes/permission.ts";
import type { PermissionRuleTable } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

/** Returns the digest by which a rule and a request name a command and its folder. */
export function digestOfCommand(folder: string, command: string): string {
  return createHash("sha256")
    .update(JSON.stringify([folder, command]))
    .digest("hex");
}

function toRule(row: Selectable<PermissionRuleTable>): PermissionRule {
  return {
    id: row.id,
    agentId: row.agent_id,
    sessionKey: row.session_key,
    scope: row.scope,
    command: row.command,
    folder: row.folder,
    createdAt: row.created_at,
    createdBy: row.created_by,
  };
}

export async function countRules(db: Db): Promise<number> {
  const query = db.selectFrom("permission_rules").select((is) => is.fn.countAll<number>().as("n"));
  return Number((await query.executeTakeFirstOrThrow()).n);
}

export async function insertRule(tx: Tx, rule: PermissionRule, digest: string): Promise<void> {
  const { id, agentId, sessionKey, scope, command, folder, createdAt, createdBy } = rule;
  await tx
    .insertInto("permission_rules")
    .values({
      id,
      agent_id: agentId,
      session_key: sessionKey,
      scope,
      digest,
      command,
      folder,
      created_at: createdAt,
      created_by: createdBy,
    })
    .execute();
}

/** The command of a session, as rules name it. */
export interface RuledCommand {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly digest: string;
  /** Whether the agent's rules for all its sessions apply to the session. */
  readonly ofAgent: boolean;
}

/** Returns whether a rule allows the command in the session. */
export async function hasRule(
  db: Db,
  { agentId, sessionKey, digest, ofAgent }: RuledCommand,
): Promise<boolean> {
  const rows = await db
    .selectFrom("permission_rules")
    .select(["scope", "session_key"])
    .where("digest", "=", digest)
    .where("agent_id", "=", agentId)
    .execute();
  return rows.some((row) => (row.scope === "always" ? ofAgent : row.session_key === sessionKey));
}

/** Returns all rules, newest first. */
export async function listRules(db: Db): Promise<PermissionRule[]> {
  const query = db.selectFrom("permission_rules").selectAll();
  return (await query.orderBy("created_at", "desc").orderBy("id").execute()).map(toRule);
}

export async function deleteRule(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom("permission_rules").where("id", "=", id).execute();
}

/** Deletes the rules that apply to one session only. */
export async function deleteSessionRules(tx: Tx, sessionKey: string): Promise<void> {
  await tx
    .deleteFrom("permission_rules")
    .where("session_key", "=", sessionKey)
    .where("scope", "=", "session")
    .execute();
}
