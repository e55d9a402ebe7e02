// The complete settings for all parts: validated and frozen. `config.ts` reads them from the file and the
// environment. Their types derive from the schema of the file, which describes each setting
// (`config/schema/schema.ts`); only settings that the file does not have in this form are described here.

import type { Static } from "typebox";
import type { ConfigFile } from "../../../config/schema/schema.ts";
import type { Added } from "../../../features.ts";
import { nearestNames } from "../../text/nearest.ts";
import type { Session } from "../session.ts";
import type { ChannelAccount } from "./channels.ts";

export const VISIBILITY_MODES = ["self", "tree", "agent", "all"] as const;
export const THINKING_LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
/** Colours of the mark beside an agent's name. */
export const AGENT_COLORS = ["blue", "orange", "yellow", "pink", "cyan", "mint", "pear", "olive"] as const;
export const PROVIDER_APIS = [
  "openai-completions",
  "openai-responses",
  "anthropic-messages",
  "google-generative-ai",
] as const;
/** The commands of `exec` that an owner approves before they run. */
export const APPROVAL_MODES = ["always", "risky", "never"] as const;
/** The answers to a call that needs the consent of an owner (`labels.mode`). */
export const LABEL_MODES = ["ask", "deny", "watch", "off"] as const;
export const SANDBOX_MODES = ["off", "non-main", "all"] as const;
export const SANDBOX_GIT = ["read", "write"] as const;

/** Limits for one model answer and for one tool result. An answer that exceeds its limit ends the run. */
export const ANSWER_LIMITS = {
  maxAnswerBytes: 4 * 1024 * 1024,
  maxAnswerToolCalls: 256,
  maxToolResultBytes: 1024 * 1024,
};

type Defaults = ConfigFile["agents"]["defaults"];
type AgentInFile = ConfigFile["agents"]["list"][number];
type ProviderInFile = ConfigFile["models"]["providers"][string];
type ServerInFile = ConfigFile["tools"]["mcp"]["servers"][string];

type Known<T, K extends keyof T> = T & Readonly<Required<Pick<T, K>>>;

export type VisibilityMode = (typeof VISIBILITY_MODES)[number];
export type ThinkingLevel = (typeof THINKING_LEVELS)[number];
export type ProviderApi = (typeof PROVIDER_APIS)[number];
export type ApprovalMode = (typeof APPROVAL_MODES)[number];
export type LabelMode = (typeof LABEL_MODES)[number];
export type SandboxMode = (typeof SANDBOX_MODES)[number];

export type SendPolicySettings = ConfigFile["session"]["sendPolicy"];
export type SendRule = SendPolicySettings["rules"][number];
export type ChatType = NonNullable<SendRule["match"]["chatType"]>;
export type ToolFilter = ConfigFile["tools"]["subagents"]["tools"];
export interface AgentToAgentSettings {
  readonly enabled: boolean;
  /**
   * Patterns with `*` for agent ids, in lower case. Both agents must match. If it is empty and `enabled` is
   * true, all agents match.
   */
  readonly allow: readonly string[];
}

/** The tools of an agent. Absent approval: that of `tools.exec`. */
export interface AgentTools extends ToolFilter {
  readonly exec?: { readonly approval?: ApprovalMode | undefined } | undefined;
}
export type SearchSettings = NonNullable<ConfigFile["tools"]["search"]>;
export type SearchProvider = SearchSettings["provider"];
export type AttachmentSettings = ConfigFile["tools"]["sessions_spawn"]["attachments"];
export type TokenSettings = ConfigFile["gateway"]["auth"]["tokens"][number];
export const TOKEN_SCOPES = ["operator.read", "operator.write", "operator.admin"] as const;
export type TokenScope = (typeof TOKEN_SCOPES)[number];
/** `dir` and `backupDir` are absolute. Without `postgresUrl` the state is in `dir`. No days count as 0. */
export type StoreSettings = Pick<ConfigFile["store"], "dir" | "durability"> & Partial<ConfigFile["store"]>;
export type TraceSettings = Omit<Known<ConfigFile["telemetry"]["traces"], "endpoint">, "enabled">;

export type ModelSettings = Known<
  ProviderInFile["models"][number],
  "contextWindow" | "maxOutputTokens" | "reasoning" | "images" | "cost"
>;

export interface ProviderSettings extends Omit<Known<ProviderInFile, "api" | "baseUrl">, "models"> {
  readonly id: string;
  readonly models: readonly ModelSettings[];
}

/** Sandbox settings for the sessions of an agent. */
export type SandboxSettings = Known<Defaults["sandbox"], "git">;

/** Settings of all sub-agents. `model`: used if the target agent sets none for its sub-agents. */
export type SubagentSettings = Omit<Defaults["subagents"], "allowAgents">;

/** Settings of an agent whose turns a feature executes. */
export interface OutsideRuntimeSettings {
  readonly type: "acp" | "a2a";
  /** Its program on this machine, with its arguments, if it is one. */
  readonly command?: readonly string[];
  readonly [name: string]: unknown;
}

/** Limits of `ANSWER_LIMITS`, in bytes of UTF-8. */
export type AnswerLimits = typeof ANSWER_LIMITS;

/** Daily budget (UTC) of an agent for all its sessions together. Calls that exceed it are refused. */
export interface AgentBudget {
  readonly dailyTokens?: number;
  /** USD. */
  readonly dailyCost?: number;
}

/** An agent: its own settings, or else the defaults. */
export interface AgentSettings
  extends Omit<
    Known<AgentInFile, keyof AgentInFile & keyof Defaults>,
    "model" | "tools" | "sandbox" | "subagents" | "runtime" | "budget"
  > {
  /** `<provider>/<model>`. */
  readonly model: string;
  readonly tools: AgentTools;
  readonly sandbox: SandboxSettings;
  readonly subagents: Known<NonNullable<AgentInFile["subagents"]>, "allowAgents">;
  /** Absent if the agent uses the built-in agent loop. */
  readonly runtime?: OutsideRuntimeSettings;
  /** Absent: no limit. */
  readonly budget?: AgentBudget;
}

/** Settings of an MCP server, an external program whose tools agents use. */
export interface McpServerSettings
  extends Omit<ServerInFile, "enabled" | "command" | "args" | "env" | "cwd" | "url" | "headers" | "oauth"> {
  readonly name: string;
  readonly reach:
    | ({ readonly kind: "stdio" } & Readonly<
        Required<Pick<ServerInFile, "command" | "args" | "env" | "cwd">>
      >)
    | ({ readonly kind: "http" } & Readonly<
        Required<Pick<ServerInFile, "url" | "headers">> & Pick<ServerInFile, "oauth">
      >);
}

/** The settings of enabled servers. */
export interface McpSettings extends Omit<ConfigFile["tools"]["mcp"], "servers"> {
  readonly servers: readonly McpServerSettings[];
}

export const backupFolder = ({ dir, backupDir = `${dir}/backups` }: StoreSettings): string => backupDir;

/** Returns a name of the store without secrets. All gateways that share the store use the same name. */
export function storeName({ dir, postgresUrl }: StoreSettings): string {
  if (postgresUrl === undefined) return dir;
  const { host, pathname, searchParams } = new URL(postgresUrl);
  const schema = searchParams.get("schema");
  return `postgres://${host}${pathname}${schema === null ? "" : `?schema=${schema}`}`;
}

type AddedSchemas = Added<"settings">;
/** The settings of features. */
export type AddedSettings = { readonly [K in keyof AddedSchemas]: Static<AddedSchemas[K]> };

export interface Settings extends Pick<ConfigFile, "logging" | "labels">, AddedSettings {
  /** Absent token: the gateway generates one at its first start and stores it in the store directory. */
  readonly gateway: Omit<ConfigFile["gateway"], "auth"> & ConfigFile["gateway"]["auth"];
  readonly store: StoreSettings;
  readonly providers: readonly ProviderSettings[];
  /** Never empty; exactly one has `default: true`. */
  readonly agents: readonly AgentSettings[];
  readonly maxConcurrent: Defaults["maxConcurrent"];
  readonly titles: Defaults["titles"];
  readonly subagents: SubagentSettings;
  readonly session: Omit<ConfigFile["session"], "threadBindings">;
  readonly tools: Pick<ConfigFile["tools"], "agentToAgent" | "history" | "fetch" | "search"> & {
    readonly filter: ToolFilter;
    readonly visibility: VisibilityMode;
    /**
     * Filter for sub-agents, in addition to the general filter. If `allow` is not empty, it replaces the
     * default rule for session tools.
     */
    readonly subagents: ToolFilter;
    /** Filter for sandboxed sessions, in addition to the general filter. */
    readonly sandbox: ToolFilter;
    readonly sessionsSpawn: ConfigFile["tools"]["sessions_spawn"];
    readonly exec: Omit<ConfigFile["tools"]["exec"], "approval"> & {
      /** Absent: `never` for commands in a sandbox, `risky` for others. */
      readonly approval?: ApprovalMode | undefined;
      /** `PATH` of commands. Absent: the system's default. */
      readonly searchPath?: string;
    };
    readonly sendFile: ConfigFile["tools"]["send_file"];
    readonly mcp: McpSettings;
  };
  readonly owners: ConfigFile["commands"]["owners"];
  /** Enabled channel accounts. */
  readonly channels: readonly ChannelAccount[];
  /** Absent: traces are off. */
  readonly traces?: TraceSettings;
}

/** Returns the default agent, which is used wherever no agent is named. */
export function defaultAgent(settings: Settings): AgentSettings {
  const agent = settings.agents.find(({ default: isDefault }) => isDefault) ?? settings.agents[0];
  if (agent === undefined) throw new Error("the settings contain no agent");
  return agent;
}

/** Returns an error message if no agent has this name, else undefined. */
export function agentProblem(name: string, ids: readonly string[]): string | undefined {
  if (ids.includes(name.toLowerCase())) return undefined;
  const [nearest] = nearestNames(name, ids, 1);
  return `there is no agent ${JSON.stringify(name)}; the nearest is ${nearest}`;
}

/** Returns an error text for an agent that was removed from the configuration. */
export function notConfigured(agentId: string): string {
  return `agent "${agentId}" is no longer configured (agents.list)`;
}

/** Names the kind of an agent that is outside of this gateway, for errors: `an ACP agent`. */
export function outsideKind({ type }: { readonly type: "acp" | "a2a" }): string {
  return type === "acp" ? "an ACP agent" : "an A2A agent";
}

/** Returns the command of an agent that is a program, or undefined for any other agent. */
export function programOf({ runtime }: Pick<AgentSettings, "runtime">): readonly string[] | undefined {
  return runtime?.command;
}

export function findAgent(settings: Settings, agentId: string): AgentSettings | undefined {
  return settings.agents.find(({ id }) => id === agentId);
}

/**
 * Returns the agent whose settings apply to a session: its own agent, or the default agent if its own was
 * removed.
 */
export function agentOf(settings: Settings, session: Pick<Session, "agentId">): AgentSettings {
  return findAgent(settings, session.agentId) ?? defaultAgent(settings);
}

/** Built-in model that answers without a model provider. */
export const OFFLINE_MODEL = "offline/rehearsal";
export const OFFLINE_WINDOW = 200_000;

/** Returns every valid `<provider>/<model>`. */
export function modelNames(providers: readonly ProviderSettings[]): string[] {
  const configured = providers.flatMap(({ id, models }) => models.map((model) => `${id}/${model.id}`));
  return [...configured, OFFLINE_MODEL];
}

/**
 * Returns the full names of models that match: the name itself if it is a full name, otherwise one name for
 * each provider that has a model with this id.
 */
export function modelsNamed(wanted: string, names: readonly string[]): readonly string[] {
  const name = wanted.trim();
  if (names.includes(name)) return [name];
  return names.filter((full) => full.slice(full.indexOf("/") + 1) === name);
}

/** Thinking levels as other programs spell them. */
const THINKING_ALIASES: Readonly<Record<string, ThinkingLevel>> = { on: "low", mid: "medium" };

/** Returns the thinking level with this name, ignoring case. Returns undefined for an invalid name. */
export function thinkingNamed(wanted: string): ThinkingLevel | undefined {
  const word = wanted.trim().toLowerCase();
  return THINKING_LEVELS.find((level) => level === word) ?? THINKING_ALIASES[word];
}

/** Returns the model with which a run of this session starts. An external program chooses its own model. */
export function modelOf(settings: Settings, session: Pick<Session, "agentId" | "model">): string {
  const agent = agentOf(settings, session);
  return agent.runtime === undefined ? (session.model ?? agent.model) : agent.model;
}

/**
 * Returns the context window of a model in tokens. Returns null if it is unknown, for example for the model
 * of an external program.
 */
export function windowOf({ providers }: Pick<Settings, "providers">, model: string): number | null {
  if (model === OFFLINE_MODEL) return OFFLINE_WINDOW;
  for (const { id, models } of providers) {
    const found = models.find((one) => `${id}/${one.id}` === model);
    if (found !== undefined) return found.contextWindow;
  }
  return null;
}

/** Returns the thinking level with which a run of this session starts. */
export function thinkingOf(settings: Settings, session: Pick<Session, "agentId" | "thinkingLevel">): string {
  return session.thinkingLevel ?? agentOf(settings, session).thinking;
}

/** Returns the daily budgets of all agents that have one. */
export function dailyBudgets({ agents }: Pick<Settings, "agents">): Record<string, AgentBudget> {
  return Object.fromEntries(agents.flatMap(({ id, budget }) => (budget === undefined ? [] : [[id, budget]])));
}
