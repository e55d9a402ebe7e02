// The shape of the settings for all parts: complete, checked and frozen.
// `config.ts` builds them from file and environment, and fills in the defaults.

import type { IncomingHooks } from "../incoming-hook.ts";
import type { SendOverride, Session } from "../session.ts";
import type { ChannelAccount } from "./channels.ts";
import type { LoggingSettings } from "./logging.ts";
import type { TraceSettings } from "./traces.ts";

export const VISIBILITY_MODES = ["self", "tree", "agent", "all"] as const;
export type VisibilityMode = (typeof VISIBILITY_MODES)[number];

export const THINKING_LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type ThinkingLevel = (typeof THINKING_LEVELS)[number];

export const PROVIDER_APIS = [
  "openai-completions",
  "openai-responses",
  "anthropic-messages",
  "google-generative-ai",
] as const;
export type ProviderApi = (typeof PROVIDER_APIS)[number];

export type ChatType = "direct" | "group" | "room" | "thread";

export interface SendRule {
  readonly match: {
    readonly channel?: string;
    readonly chatType?: ChatType;
    /** Prefix of the session key. */
    readonly keyPrefix?: string;
  };
  readonly action: SendOverride;
}

export interface SendPolicySettings {
  readonly rules: readonly SendRule[];
  readonly default: SendOverride;
}

export interface AgentToAgentSettings {
  readonly enabled: boolean;
  /** Agent id patterns with `*`, in lower case. Both agents must match. Empty with `enabled`: all agents. */
  readonly allow: readonly string[];
}

export interface ToolFilter {
  /** Empty: every tool. */
  readonly allow: readonly string[];
  /** Always wins. */
  readonly deny: readonly string[];
}

export interface ModelSettings {
  readonly id: string;
  readonly name?: string;
  /** Tokens. */
  readonly contextWindow: number;
  /** Tokens. */
  readonly maxOutputTokens: number;
  readonly reasoning: boolean;
  readonly images: boolean;
  /** USD a million tokens. */
  readonly cost: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
  };
}

export interface ProviderSettings {
  readonly id: string;
  readonly api: ProviderApi;
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** An attempt fails if no connection, including TLS, is established within this time. */
  readonly connectTimeoutSeconds: number;
  /** A request fails after this time without a byte. */
  readonly idleTimeoutSeconds: number;
  /** Retries of a request that failed for a temporary reason. */
  readonly maxRetries: number;
  readonly models: readonly ModelSettings[];
}

export const SANDBOX_MODES = ["off", "non-main", "all"] as const;
export type SandboxMode = (typeof SANDBOX_MODES)[number];

export const SANDBOX_BACKENDS = ["auto", "bubblewrap", "docker"] as const;
export type SandboxBackend = (typeof SANDBOX_BACKENDS)[number];
export const SANDBOX_GIT = ["read", "write"] as const;
type SandboxGit = (typeof SANDBOX_GIT)[number];

/** The sandbox of an agent's sessions. */
export interface SandboxSettings {
  /** `non-main`: every session but main sessions. */
  readonly mode: SandboxMode;
  /** Widest visibility of a sandboxed session: its own tree, or the value of `tools.sessions.visibility`. */
  readonly sessionToolsVisibility: "spawned" | "all";
  /** Whether sandboxed commands have network access. */
  readonly network: boolean;
  /** `auto`: the first backend that works here. */
  readonly backend: SandboxBackend;
  /** Limit for all processes of one call together. */
  readonly memoryMb: number;
  readonly processesMax: number;
  /** Limit for the workspace and for temporary files, each. */
  readonly diskMb: number;
  /** Access of sandboxed commands to the git repository of their workspace. */
  readonly git: SandboxGit;
  /** Image for docker. */
  readonly image?: string;
}

/** Settings of all sub-agents. */
export interface SubagentSettings {
  /** `<provider>/<model>`. Used if the target agent names none for its sub-agents. */
  readonly model?: string;
  /** Sub-agents that may execute at the same time. */
  readonly maxConcurrent: number;
  /** Unfinished sub-agents of one session. */
  readonly maxChildren: number;
  /** 1: a sub-agent cannot spawn. */
  readonly maxSpawnDepth: number;
  /** Time limit from the start of execution; 0: none. */
  readonly runTimeoutSeconds: number;
  /** Minutes after the end of the last run; 0: never. */
  readonly archiveAfterMinutes: number;
  readonly announce: "post" | "wake";
}

export interface AttachmentSettings {
  readonly enabled: boolean;
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
  /** With `cleanup: "keep"` attachments remain until the session is deleted. */
  readonly retainOnSessionKeep: boolean;
}

export const PERMISSION_POLICIES = ["deny", "allow", "ask"] as const;
export type PermissionPolicy = (typeof PERMISSION_POLICIES)[number];

/** An agent that is an external program, driven over the Agent Client Protocol. */
export interface AcpRuntime {
  readonly type: "acp";
  /** The program and its arguments; never empty. */
  readonly command: readonly string[];
  /** Variables added to the few that every such program gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path; absent: the agent's workspace. */
  readonly cwd?: string;
  /** The answer to permission requests of the program. */
  readonly permissions: PermissionPolicy;
  /** With `ask`: a request without an answer is denied after this time. */
  readonly askSeconds: number;
  /** Whether the program gets the session tools, through an MCP server. */
  readonly sessionTools: boolean;
  /** An idle program is stopped after this time. */
  readonly idleMinutes: number;
}

export interface AgentSettings extends AnswerLimits {
  readonly id: string;
  readonly name?: string;
  readonly default: boolean;
  /** `<provider>/<model>`. */
  readonly model: string;
  /** Tried in this order after the model has finally failed. */
  readonly fallbackModels: readonly string[];
  readonly thinking: ThinkingLevel;
  /** Absolute path. */
  readonly workspace: string;
  /** Added after the runtime's own system prompt. */
  readonly instructions?: string;
  readonly tools: ToolFilter;
  readonly subagents: {
    /**
     * Agents that it may spawn besides itself, `*`: any. From its own `subagents.allowAgents`, else the
     * defaults.
     */
    readonly allowAgents: readonly string[];
    /** `<provider>/<model>` of sub-agents that use this agent. */
    readonly model?: string;
  };
  /** Its own settings, else the defaults. */
  readonly sandbox: SandboxSettings;
  /** Absent: the built-in agent loop. */
  readonly runtime?: AcpRuntime;
  /** Limit of one run. */
  readonly maxModelCalls: number;
  /** Absent: no limit. */
  readonly budget?: AgentBudget;
}

/** Limits of one model answer and of one tool result. A larger answer ends its run. */
export interface AnswerLimits {
  /** UTF-8 bytes of text, thinking and call arguments together. */
  readonly maxAnswerBytes: number;
  readonly maxAnswerToolCalls: number;
  /** UTF-8 bytes. Longer results are cut. */
  readonly maxToolResultBytes: number;
}

export const ANSWER_LIMITS: AnswerLimits = {
  maxAnswerBytes: 4 * 1024 * 1024,
  maxAnswerToolCalls: 256,
  maxToolResultBytes: 1024 * 1024,
};

/** Daily budget of an agent (UTC), for all its sessions together. Calls that do not fit are refused. */
export interface AgentBudget {
  readonly dailyTokens?: number;
  /** USD. */
  readonly dailyCost?: number;
}

export type TokenScope = "operator.read" | "operator.write" | "operator.admin";

export interface TokenSettings {
  readonly token: string;
  readonly role: "operator" | "node";
  readonly scopes: readonly TokenScope[];
  /** Key patterns with `*`. Absent: every session. */
  readonly sessions?: readonly string[];
}

export interface StoreSettings {
  /** Absolute path. With PostgreSQL: for data of this machine only, for example a generated token. */
  readonly dir: string;
  readonly durability: "full" | "normal";
  /** Database with all state; other gateways may share it. Absent: state is in `dir`. Contains a password. */
  readonly postgresUrl?: string;
}

/** Names the store without secrets. The name is the same for all gateways that share it. */
export function storeName({ dir, postgresUrl }: StoreSettings): string {
  if (postgresUrl === undefined) return dir;
  const { host, pathname, searchParams } = new URL(postgresUrl);
  const schema = searchParams.get("schema");
  return `postgres://${host}${pathname}${schema === null ? "" : `?schema=${schema}`}`;
}

/** Events that can be sent to web hooks. */
export const HOOK_EVENTS = [
  "run.ended",
  "session.created",
  "session.reset",
  "session.archived",
  "session.deleted",
  "announcement.delivered",
  "delivery.failed",
] as const;
export type HookEventType = (typeof HOOK_EVENTS)[number];

/** A program that receives events. */
export interface OutgoingHook {
  /** Name in the outbox. */
  readonly name: string;
  /** The URL may itself be a secret. */
  readonly url: string;
  readonly events: readonly HookEventType[];
  readonly secret: string;
  /** Key patterns with `*`. Absent: every session. */
  readonly sessions?: readonly string[];
}

/** An external program whose tools agents use, over the Model Context Protocol. */
export interface McpServerSettings {
  /**
   * Small letters, digits, `-` and single `_`, so that no name is a prefix of another server's tool names.
   */
  readonly name: string;
  readonly reach:
    | {
        readonly kind: "stdio";
        readonly command: string;
        readonly args: readonly string[];
        /** Added to the few variables that every external program gets. May contain secrets. */
        readonly env: Readonly<Record<string, string>>;
        /** Absolute path. */
        readonly cwd: string;
      }
    /** URL and headers may contain secrets. */
    | { readonly kind: "http"; readonly url: string; readonly headers: Readonly<Record<string, string>> };
  /** Agent id patterns with `*`. Empty: every agent. */
  readonly agents: readonly string[];
  /** Patterns that select tools by the names that the server gives them. Empty: all tools. */
  readonly tools: readonly string[];
  /** Whether sandboxed sessions may use it, although it runs outside of their sandbox. */
  readonly allowSandboxed: boolean;
  /** Limit of one call. */
  readonly timeoutSeconds: number;
  /** Limit of a start. */
  readonly startTimeoutSeconds: number;
}

export interface McpSettings {
  /** Enabled servers. */
  readonly servers: readonly McpServerSettings[];
  /** Longest time that a run waits for servers that are not ready. */
  readonly waitSeconds: number;
  /** Limit of the text of one result. */
  readonly maxResultBytes: number;
}

/** Settings of nodes: allowed commands and sessions. */
export interface NodeSettings {
  /** False: no node can connect, and no agent has the tool. */
  readonly enabled: boolean;
  /** Patterns with `*` of commands that may be sent to nodes. */
  readonly allowCommands: readonly string[];
  /** Patterns with `*` of session keys that a node may name besides its own session. */
  readonly allowedSessionKeys: readonly string[];
  /** Whether sandboxed sessions have the tool, although nodes are outside of every sandbox. */
  readonly allowSandboxed: boolean;
}

export interface Settings {
  readonly gateway: {
    readonly host: string;
    readonly port: number;
    /** Absent: generated at first start and kept in the store directory. */
    readonly token?: string;
    readonly tokens: readonly TokenSettings[];
    readonly allowedOrigins: readonly string[];
    readonly allowedHosts: readonly string[];
    /** Closes a slow client after this number of unsent bytes. */
    readonly maxBufferedBytes: number;
    readonly tickIntervalMs: number;
  };
  readonly store: StoreSettings;
  readonly providers: readonly ProviderSettings[];
  /** Never empty; exactly one has `default: true`. */
  readonly agents: readonly AgentSettings[];
  /** Runs that may execute at the same time. */
  readonly maxConcurrent: number;
  readonly subagents: SubagentSettings;
  readonly session: {
    readonly scope: "per-sender" | "global";
    readonly mainKey: string;
    readonly dmScope: "main" | "per-peer";
    readonly queueMax: number;
    readonly sendPolicy: SendPolicySettings;
    readonly agentToAgent: {
      readonly maxPingPongTurns: number;
      readonly maxHops: number;
      readonly maxChainRuns: number;
      /** Limit of tokens of all runs of a chain together. Absent: no limit. */
      readonly maxChainTokens?: number;
      /** Limit in USD of all runs of a chain together. Absent: no limit. */
      readonly maxChainCost?: number;
    };
  };
  readonly tools: {
    readonly filter: ToolFilter;
    readonly visibility: VisibilityMode;
    readonly agentToAgent: AgentToAgentSettings;
    /**
     * Filter for sub-agents, in addition to the general one. A non-empty `allow` replaces the rule for
     * session tools.
     */
    readonly subagents: ToolFilter;
    /** Filter for sandboxed sessions, in addition to the general one. */
    readonly sandbox: ToolFilter;
    readonly sessionsSpawn: { readonly attachments: AttachmentSettings };
    readonly history: { readonly maxTextChars: number; readonly maxBytes: number };
    readonly exec: {
      /** Longest run time of one command. */
      readonly timeoutSeconds: number;
      /** Limit of a command's output for the model, start and end together. */
      readonly maxOutputBytes: number;
      /** `PATH` of commands. Absent: the system's default. */
      readonly searchPath?: string;
    };
    readonly mcp: McpSettings;
  };
  /** Owners by channel id, for example `telegram:123`. */
  readonly owners: readonly string[];
  /** Enabled channel accounts. */
  readonly channels: readonly ChannelAccount[];
  readonly cron: {
    /** Whether due jobs are started. */
    readonly enabled: boolean;
  };
  /** Devices that offer commands. */
  readonly nodes: NodeSettings;
  /** Incoming web hooks. */
  readonly hooks: IncomingHooks;
  /** Enabled outgoing hooks. */
  readonly outgoingHooks: readonly OutgoingHook[];
  readonly logging: LoggingSettings;
  /** Absent: traces are off. */
  readonly traces?: TraceSettings;
}

/** Returns the default agent, for everything that names no agent. */
export function defaultAgent(settings: Settings): AgentSettings {
  const found = settings.agents.find((agent) => agent.default) ?? settings.agents[0];
  if (found === undefined) throw new Error("settings without an agent");
  return found;
}

/** Explains that an agent was removed from the configuration. */
export function notConfigured(agentId: string): string {
  return `agent "${agentId}" is no longer configured (agents.list)`;
}

export function findAgent(settings: Settings, agentId: string): AgentSettings | undefined {
  return settings.agents.find((agent) => agent.id === agentId);
}

/** Returns the agent whose settings apply to a session; the default agent if its own was removed. */
export function agentOf(settings: Settings, session: Pick<Session, "agentId">): AgentSettings {
  return findAgent(settings, session.agentId) ?? defaultAgent(settings);
}

/** The built-in model that answers without a provider. */
export const OFFLINE_MODEL = "offline/rehearsal";
export const OFFLINE_WINDOW = 200_000;

/** Returns every valid `<provider>/<model>`. */
export function modelNames(providers: readonly ProviderSettings[]): string[] {
  const configured = providers.flatMap(({ id, models }) => models.map((model) => `${id}/${model.id}`));
  return [...configured, OFFLINE_MODEL];
}

/**
 * Returns the full names that a model name may mean: one for a known full name or a bare id of one provider;
 * several for a bare id of several providers; none otherwise.
 */
export function modelsNamed(wanted: string, names: readonly string[]): readonly string[] {
  const name = wanted.trim();
  if (names.includes(name)) return [name];
  return names.filter((full) => full.slice(full.indexOf("/") + 1) === name);
}

/** Spellings that other programs use. */
const THINKING_ALIASES: Readonly<Record<string, ThinkingLevel>> = { on: "low", mid: "medium" };

/** Returns the thinking level of a word, in any case. undefined: invalid. */
export function thinkingNamed(wanted: string): ThinkingLevel | undefined {
  const word = wanted.trim().toLowerCase();
  return THINKING_LEVELS.find((level) => level === word) ?? THINKING_ALIASES[word];
}

/** Returns the initial model of a run in this session. An external program chooses its own. */
export function modelOf(settings: Settings, session: Pick<Session, "agentId" | "model">): string {
  const agent = agentOf(settings, session);
  return agent.runtime === undefined ? (session.model ?? agent.model) : agent.model;
}

/**
 * Returns the context window of a model in tokens. null: unknown, for example an external program's model.
 */
export function windowOf({ providers }: Pick<Settings, "providers">, model: string): number | null {
  if (model === OFFLINE_MODEL) return OFFLINE_WINDOW;
  for (const { id, models } of providers) {
    const found = models.find((one) => `${id}/${one.id}` === model);
    if (found !== undefined) return found.contextWindow;
  }
  return null;
}

/** Returns the initial thinking level of a run in this session. */
export function thinkingOf(settings: Settings, session: Pick<Session, "agentId" | "thinkingLevel">): string {
  return session.thinkingLevel ?? agentOf(settings, session).thinking;
}

/** Returns the daily budgets of all agents that have one. */
export function dailyBudgets({ agents }: Pick<Settings, "agents">): Record<string, AgentBudget> {
  return Object.fromEntries(agents.flatMap(({ id, budget }) => (budget === undefined ? [] : [[id, budget]])));
}
