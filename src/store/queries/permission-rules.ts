// Owns the table of commands that owners allowed for longer than once, for a session or for an agent.

import type { NamedFiles } from "../../core/rules/approval/named-files.ts";
import type { PermissionRule } from "../../core/shapes/permission.ts";
import { visibleText } from "../../core/text/safe-text.ts";
import { recordsOf } from "../records.ts";
import { countRows, type Db, type Tx } from "../sql.ts";
import { NO_FOLDER, readFiles } from "./permissions.ts";

const RULES = recordsOf<PermissionRule & { readonly digest: string }>()("permission_rules", {
  key: ["id"],
  columns: [
    "agent_id",
    "session_key",
    "chain_id",
    "scope",
    "command",
    "folder",
    "digest",
    "created_at",
    "created_by",
  ],
});

export const countRules = (db: Db) => countRows(RULES.rows(db));

/** Stores a rule in place of an earlier one for the same command. `command` is as the agent wrote it. */
export async function insertRule(tx: Tx, rule: PermissionRule, files: NamedFiles): Promise<void> {
  const { agentId, sessionKey, chainId, scope, command, folder } = rule;
  const work = tx.selectFrom("runs").select("chain_id").where("ended_at", "is", null);
  await tx
    .deleteFrom("permission_rules")
    .where("scope", "=", "chain")
    .where("chain_id", "not in", work)
    .execute();
  const same = (await RULES.all(RULES.rows(tx, { agentId, command, folder, scope }))).filter(
    (one) => scope === "always" || (one.sessionKey === sessionKey && one.chainId === chainId),
  );
  for (const { id } of same) await deleteRule(tx, id);
  await RULES.insert(tx, { ...rule, digest: JSON.stringify(files) });
}

/** The command of a session, as the agent wrote it. */
interface RuledCommand {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly command: string;
  readonly folder: string;
  /** Whether the agent's rules for all its sessions apply to the session. */
  readonly ofAgent: boolean;
  /** The chain of the call. The rules of a chain apply to all its agents. */
  readonly chainId?: string;
}

type RuledPlace = Omit<RuledCommand, "command" | "folder">;

const appliesTo =
  ({ agentId, sessionKey, chainId, ofAgent }: RuledPlace) =>
  (rule: PermissionRule): boolean => {
    if (rule.scope === "chain") return rule.chainId === chainId;
    if (rule.agentId !== agentId) return false;
    return rule.scope === "always" ? ofAgent : rule.sessionKey === sessionKey;
  };

/** Returns, for each rule that allows the command in the session, the files for which it was allowed. */
export async function allowedFiles(
  db: Db,
  { command, folder, ...place }: RuledCommand,
): Promise<NamedFiles[]> {
  const rules = await RULES.all(RULES.rows(db, { agentId: place.agentId, command, folder }));
  return rules.filter(appliesTo(place)).map(({ digest }) => readFiles(digest));
}

/** Returns whether a chain has had unfinished work at each moment since a time. */
async function hasWorkedSince(db: Db, chainId: string, since: number): Promise<boolean> {
  const runs = db.selectFrom("runs").select(["accepted_at", "ended_at"]).where("chain_id", "=", chainId);
  const later = runs.where((is) => is.or([is("ended_at", "is", null), is("ended_at", ">=", since)]));
  let until = since;
  for (const run of await later.orderBy("accepted_at").execute()) {
    if (run.accepted_at > until) return false;
    until = Math.max(until, run.ended_at ?? Number.POSITIVE_INFINITY);
  }
  return true;
}

/** Returns the rules about labels that apply to a call. The rules of a chain end with its work. */
export async function labelRules(db: Db, place: RuledPlace): Promise<string[]> {
  const rules = (await RULES.all(RULES.rows(db, { folder: NO_FOLDER }))).filter(appliesTo(place));
  const commands: string[] = [];
  for (const { scope, chainId = "", createdAt, command } of rules)
    if (scope !== "chain" || (await hasWorkedSince(db, chainId, createdAt))) commands.push(command);
  return commands;
}

/** Returns all rules, newest first. */
export async function listRules(db: Db): Promise<PermissionRule[]> {
  const rules = await RULES.all(RULES.rows(db).orderBy("created_at", "desc").orderBy("id"));
  return rules.map(({ digest: _, ...rule }) => ({ ...rule, command: visibleText(rule.command) }));
}

export const deleteRule = (tx: Tx, id: string) => RULES.remove(tx, { id });

/** Deletes the rules that apply to one session only. */
export const deleteSessionRules = (tx: Tx, sessionKey: string) =>
  RULES.remove(tx, { sessionKey, scope: "session" });
