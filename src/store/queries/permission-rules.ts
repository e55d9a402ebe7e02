// Owns the table of commands that owners allowed for longer than once, for a session or for an agent.

import type { Selectable } from "kysely";
import type { NamedFiles } from "../../core/rules/approval/named-files.ts";
import type { PermissionRule } from "../../core/shapes/permission.ts";
import { visibleText } from "../../core/text/safe-text.ts";
import type { PermissionRuleTable } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";
import { readFiles } from "./permissions.ts";

function toRule(row: Selectable<PermissionRuleTable>): PermissionRule {
  return {
    id: row.id,
    agentId: row.agent_id,
    sessionKey: row.session_key,
    scope: row.scope,
    command: visibleText(row.command),
    folder: row.folder,
    createdAt: row.created_at,
    createdBy: row.created_by,
  };
}

export async function countRules(db: Db): Promise<number> {
  const query = db.selectFrom("permission_rules").select((is) => is.fn.countAll<number>().as("n"));
  return Number((await query.executeTakeFirstOrThrow()).n);
}

/** Stores a rule in place of an earlier one for the same command. `command` is as the agent wrote it. */
export async function insertRule(tx: Tx, rule: PermissionRule, files: NamedFiles): Promise<void> {
  const { id, agentId, sessionKey, scope, command, folder, createdAt, createdBy } = rule;
  const ofAgent = rulesFor(tx, { agentId, command, folder });
  const same = (await ofAgent.where("scope", "=", scope).execute()).filter(
    (row) => scope === "always" || row.session_key === sessionKey,
  );
  for (const row of same) await deleteRule(tx, row.id);
  await tx
    .insertInto("permission_rules")
    .values({
      id,
      agent_id: agentId,
      session_key: sessionKey,
      scope,
      command,
      folder,
      digest: JSON.stringify(files),
      created_at: createdAt,
      created_by: createdBy,
    })
    .execute();
}

/** The command of a session, as the agent wrote it. */
interface RuledCommand {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly command: string;
  readonly folder: string;
  /** Whether the agent's rules for all its sessions apply to the session. */
  readonly ofAgent: boolean;
}

const rulesFor = (
  db: Db,
  { agentId, command, folder }: Pick<RuledCommand, "agentId" | "command" | "folder">,
) =>
  db
    .selectFrom("permission_rules")
    .selectAll()
    .where("agent_id", "=", agentId)
    .where("command", "=", command)
    .where("folder", "=", folder);

/** Returns, for each rule that allows the command in the session, the files for which it was allowed. */
export async function allowedFiles(db: Db, ruled: RuledCommand): Promise<NamedFiles[]> {
  const rows = await rulesFor(db, ruled).execute();
  return rows
    .filter((row) => (row.scope === "always" ? ruled.ofAgent : row.session_key === ruled.sessionKey))
    .map((row) => readFiles(row.digest));
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
