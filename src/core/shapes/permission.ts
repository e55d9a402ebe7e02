// The shape of a permission request that an agent sends to its owner.

import { jsonOf } from "../json.ts";

export type PermissionDecision = "allow" | "deny";

/** How long a permission lasts: for this request, for the session, or for every repetition by the agent. */
export const PERMISSION_SCOPES = ["once", "session", "always"] as const;
export type PermissionScope = (typeof PERMISSION_SCOPES)[number];

/** The command that a request is about. */
export interface ShownCommand {
  /** The whole command. */
  readonly command: string;
  /** Folder in which it would run. */
  readonly folder: string;
  /** Why the owner is asked. Absent if only a setting says so. */
  readonly reason?: string;
}

/** An action that an agent wants permission for, as its owner sees it. */
export interface PermissionQuestion {
  readonly id: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  /** Description of the action, written by the agent. */
  readonly title: string;
  readonly kind?: string;
  /** Names and values of the arguments, shortened. */
  readonly detail?: string;
  /** The same as `title` and `detail`, if the request is about a command and none of it was cut. */
  readonly asked?: ShownCommand;
  /** The scopes that an answer may have. */
  readonly scopes: readonly PermissionScope[];
  /** ms since 1970. */
  readonly askedAt: number;
  /** Time at which the request counts as denied; ms since 1970. */
  readonly expiresAt: number;
}

/** A decision about a permission request. */
export interface PermissionAnswered {
  readonly decision: PermissionDecision;
  readonly scope: PermissionScope;
  /** Name of the person who decided. Empty: nobody answered in time. */
  readonly by: string;
}

/** A request that was answered. */
export interface AnsweredPermission extends PermissionQuestion {
  /** The rule that was made of it. Absent if it was answered for once. */
  readonly ruleId?: string;
}

/** Says what an answer for longer than once allows. The command is shown beside it. */
export function lastingWords(
  { agentId, asked }: Pick<PermissionQuestion, "agentId" | "asked">,
  scope: Exclude<PermissionScope, "once">,
): string {
  const where = scope === "always" ? "in all its sessions" : "in this session";
  const folder = asked === undefined ? "" : `, in the folder ${asked.folder}`;
  return `From now on agent ${agentId} runs exactly this command without asking, ${where}${folder}.`;
}

/** A command that an owner allowed for longer than once. */
export interface PermissionRule {
  readonly id: string;
  readonly agentId: string;
  /** The session that asked. With scope `session`, the rule applies to it only. */
  readonly sessionKey: string;
  readonly scope: Exclude<PermissionScope, "once">;
  /** The command, shortened. */
  readonly command: string;
  /** Folder in which the command runs. */
  readonly folder: string;
  /** ms since 1970. */
  readonly createdAt: number;
  /** Name of the person who allowed the command. */
  readonly createdBy: string;
}

/** A field of `detail`: a name, and a value that is quoted if it could be mistaken for other fields. */
const FIELD = /([\w-]+): ("(?:[^"\\]|\\.)*"|[^;\p{Cc}]+)(?:; |$)/uy;
const NEEDS_QUOTES = /[;\p{Cc}]/u;
const ONLY_A_SETTING = / is always$/;

/** Returns the value of a field. A plain value may have quotation marks of its own. */
function unquoted(text: string): string {
  const value = NEEDS_QUOTES.test(text) || text.includes("\\") ? jsonOf(text) : undefined;
  return typeof value === "string" && NEEDS_QUOTES.test(value) ? value : text;
}

/** Returns the command that a request is about. Undefined if it is about something else, or was cut. */
export function askedCommand({
  title,
  kind,
  detail = "",
}: Pick<PermissionQuestion, "title" | "kind" | "detail">): ShownCommand | undefined {
  const fields: Record<string, string> = {};
  FIELD.lastIndex = 0;
  let end = 0;
  for (let found = FIELD.exec(detail); found !== null; found = FIELD.exec(detail)) {
    const [, name = "", value = ""] = found;
    fields[name] = unquoted(value);
    end = FIELD.lastIndex;
  }
  const { command = title, folder, reason = "", ...others } = fields;
  const isComplete = end === detail.length && Object.keys(others).length === 0;
  if (kind !== "exec" || folder === undefined || !isComplete) return undefined;
  return { command, folder, ...(reason === "" || ONLY_A_SETTING.test(reason) ? {} : { reason }) };
}
