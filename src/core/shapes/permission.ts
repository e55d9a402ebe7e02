// The shape of a permission request that an agent sends to its owner.

import type { Labels } from "./labels.ts";

export type PermissionDecision = "allow" | "deny";

/**
 * How long a permission lasts: for this request, for the chain, for the session, or for every repetition by
 * the agent.
 */
export const PERMISSION_SCOPES = ["once", "chain", "session", "always"] as const;
export type PermissionScope = (typeof PERMISSION_SCOPES)[number];

/** Words for the scopes of permissions that last. */
export const LASTING_SCOPES = {
  chain: "In this chain",
  session: "In this session",
  always: "Always",
} as const satisfies Record<Exclude<PermissionScope, "once">, string>;

export interface ShownCommand {
  readonly command: string;
  /** Folder in which it would run. */
  readonly folder: string;
  /** Why the owner is asked. Absent if only a setting says so. */
  readonly reason?: string;
}

export type FormValue = string | number | boolean | readonly string[];

export interface FormOption {
  /** Value that the server gets. */
  readonly value: string;
  readonly title: string;
}

/** A field of a form. Its name and its values are as the server wrote them. Its other texts are visible. */
export interface FormField {
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  /** `choice`: one of the options. `choices`: a list of them. */
  readonly type: "string" | "number" | "integer" | "boolean" | "choice" | "choices";
  /** True if an answer must have it. */
  readonly required: boolean;
  /** Value for an answer without this field. */
  readonly default?: FormValue;
  /** The options of a choice, at most 50. */
  readonly options?: readonly FormOption[];
  /** True if the server gave their titles in the older way, beside the values. */
  readonly hasEnumNames?: true;
  /** Format of a text. */
  readonly format?: "email" | "uri" | "date" | "date-time";
  /** The least number, number of characters of a text, or number of chosen options. */
  readonly min?: number;
  /** The greatest one. */
  readonly max?: number;
}

/** A question of an MCP server to a person. */
export interface ServerQuestion {
  /** Name of the server in the settings. */
  readonly server: string;
  /** Empty: it asks for a yes or no, or wants an address to be opened. */
  readonly fields: readonly FormField[];
  /** The address that the person is to open. Its host is in it as it is contacted. */
  readonly url?: string;
}

/** A request of an MCP server to a model. */
export interface ServerPrompt {
  readonly system: string;
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly text: string }[];
  readonly maxOutputTokens: number;
}

/**
 * An action that an agent wants permission for, as its owner sees it: whole, and not redacted. Line breaks
 * are marked with ⏎ and tabs with ⇥. Other characters that cannot be seen are escaped.
 */
export interface PermissionQuestion {
  readonly id: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  readonly title: string;
  readonly kind?: string;
  /** Names and values of the arguments. Only a long text that a program wants to write is shortened. */
  readonly detail?: string;
  /** The same as `title` and `detail`, if the request is about a command. */
  readonly asked?: ShownCommand;
  /** The rule that an answer for longer than once makes, if it is about labels: `fetch after web`. */
  readonly rule?: string;
  /** The labels of the run, if it is about labels. */
  readonly labels?: Labels;
  /** The question of an MCP server that the request passes on. */
  readonly form?: ServerQuestion;
  /** The scopes that an answer may have. Empty: it needs the content of the form instead. */
  readonly scopes: readonly PermissionScope[];
  /** ms since 1970. */
  readonly askedAt: number;
  /** Time at which the request counts as denied; ms since 1970. */
  readonly expiresAt: number;
}

export interface PermissionAnswered {
  readonly decision: PermissionDecision;
  readonly scope: PermissionScope;
  /** Name of the person who decided. Empty: nobody answered in time. */
  readonly by: string;
  /** The answer to the form of an MCP server. */
  readonly content?: Readonly<Record<string, FormValue>>;
}

export interface AnsweredPermission extends PermissionQuestion {
  /** The rule that was made of it. Absent if it was answered for once. */
  readonly ruleId?: string;
}

/** Returns the whole action for which a request asks. */
export function describeAction({ title, detail, asked }: PermissionQuestion): string {
  return asked?.command ?? [title, detail].filter((part) => part !== undefined).join(" · ");
}

/** The name that stands before the sources in the detail of a request about labels. */
export const SOURCES_NAME = "after reading";

/** Returns the text of a request about labels without the sources, which are its end. */
export function withoutSources(text: string): string {
  // The quotes of a source are escaped.
  const at = text.lastIndexOf(`; "${SOURCES_NAME}": `);
  return at < 0 ? text : text.slice(0, at);
}

/**
 * Returns a question as a caller may see and answer it: a token for some sessions allows nothing in all of
 * them, and sees nothing of a text that may leave only if an owner allows it.
 */
export function asAnswerable(question: PermissionQuestion, everySession: boolean): PermissionQuestion {
  if (everySession) return question;
  if (question.rule !== undefined) {
    const { detail: _, labels: __, ...shown } = question;
    return { ...shown, scopes: [] };
  }
  return { ...question, scopes: question.scopes.filter((scope) => scope !== "always") };
}

/** Says what an answer for longer than once allows. The command is shown beside it. */
export function lastingWords(
  { agentId, asked, rule }: Pick<PermissionQuestion, "agentId" | "asked" | "rule">,
  scope: Exclude<PermissionScope, "once">,
): string {
  const where = scope === "always" ? "in all its sessions" : LASTING_SCOPES[scope].toLowerCase();
  const who = scope === "chain" ? "each agent" : `agent ${agentId}`;
  if (rule !== undefined)
    return `From now on ${who} may do this without asking, to any place, ${where}: ${rule}.`;
  const folder = asked === undefined ? "" : `, in the folder ${asked.folder}`;
  return `From now on agent ${agentId} runs exactly this command without asking, ${where}${folder}.`;
}

/** A command, or a kind of call after outside content, that an owner allowed for longer than once. */
export interface PermissionRule {
  readonly id: string;
  readonly agentId: string;
  /** The session that asked. With scope `session`, the rule applies to it only. */
  readonly sessionKey: string;
  /** The chain of scope `chain`. */
  readonly chainId?: string;
  readonly scope: Exclude<PermissionScope, "once">;
  readonly command: string;
  /** Folder in which the command runs. */
  readonly folder: string;
  /** ms since 1970. */
  readonly createdAt: number;
  /** Name of the person who allowed the command. */
  readonly createdBy: string;
}

/** A change of an instruction file, a skill or a memory that waits for an owner. */
export interface InstructionChange {
  /** Stands for the file and its new text. */
  readonly id: string;
  /** Path of the file, or `memory:` and the agent. */
  readonly path: string;
  readonly kind: "new" | "changed" | "deleted";
  /** Source of the outside content of the run that may have changed the file. */
  readonly source: string;
  readonly sessionKey: string;
  /** ms since 1970. */
  readonly since: number;
  /** The whole change as lines of a unified diff. Control characters are escaped. */
  readonly diff: string;
}
