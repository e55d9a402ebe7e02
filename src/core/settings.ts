// Owns the shape of the settings as every part sees them: complete, checked and frozen.
// `config.ts` makes one from file and environment; nothing here has a default of its own.

import type { ChannelAccount } from "./channel-settings.ts";
import type { IncomingHooks } from "./incoming-hook.ts";
import type { LoggingSettings } from "./logging.ts";
import type { SendOverride, Session } from "./session.ts";
import type { TraceSettings } from "./trace-settings.ts";

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
    /** The beginning of the session's key. */
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
  /** Agent id patterns with `*`, in lower case; both parties must match. Empty with `enabled`: all. */
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
  /** A try fails if no connection stands after this long, TLS included. */
  readonly connectTimeoutSeconds: number;
  /** A request is given up after this long without a byte. */
  readonly idleTimeoutSeconds: number;
  /** Further tries of a request that failed for a passing reason. */
  readonly maxRetries: number;
  readonly models: readonly ModelSettings[];
}

export const SANDBOX_MODES = ["off", "non-main", "all"] as const;
export type SandboxMode = (typeof SANDBOX_MODES)[number];

export const SANDBOX_BACKENDS = ["auto", "bubblewrap", "docker"] as const;
export type SandboxBackend = (typeof SANDBOX_BACKENDS)[number];
export const SANDBOX_GIT = ["read", "write"] as const;
type SandboxGit = (typeof SANDBOX_GIT)[number];

/** How tool calls of an agent's sessions are contained. */
export interface SandboxSettings {
  /** `non-main`: every session but main sessions. */
  readonly mode: SandboxMode;
  /** What a sandboxed session sees at most: its own tree, or whatever `tools.sessions.visibility` says. */
  readonly sessionToolsVisibility: "spawned" | "all";
  /** Whether contained commands reach the network. */
  readonly network: boolean;
  /** `auto`: the first one that works here. */
  readonly backend: SandboxBackend;
  /** Of one call, all its processes together. */
  readonly memoryMb: number;
  readonly processesMax: number;
  /** Of the workspace and of temporary files, each. */
  readonly diskMb: number;
  /** What contained commands may do to the git repository of their workspace. */
  readonly git: SandboxGit;
  /** For docker only. */
  readonly image?: string;
}

/** What holds for all sub-agents, whoever spawns them. */
export interface SubagentSettings {
  /** `<provider>/<model>` where the target agent names none for its sub-agents. */
  readonly model?: string;
  /** Sub-agents that execute at once. */
  readonly maxConcurrent: number;
  /** Unfinished ones of one session. */
  readonly maxChildren: number;
  /** 1: a sub-agent can't spawn. */
  readonly maxSpawnDepth: number;
  /** From the start of execution; 0: none. */
  readonly runTimeoutSeconds: number;
  /** From the end of the last run; 0: never. */
  readonly archiveAfterMinutes: number;
  readonly announce: "post" | "wake";
}

export interface AttachmentSettings {
  readonly enabled: boolean;
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
  /** With `cleanup: "keep"` they stay until the session is deleted. */
  readonly retainOnSessionKeep: boolean;
}

export const PERMISSION_POLICIES = ["deny", "allow", "ask"] as const;
export type PermissionPolicy = (typeof PERMISSION_POLICIES)[number];

/** An agent that is a program of its own, driven over the Agent Client Protocol. */
export interface AcpRuntime {
  readonly type: "acp";
  /** The program and its arguments; never empty. */
  readonly command: readonly string[];
  /** Besides the few variables that every such program gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path; absent: the agent's workspace. */
  readonly cwd?: string;
  /** What is answered when the program asks whether it may do something. */
  readonly permissions: PermissionPolicy;
  /** With `ask`: what nobody answered in this time is denied. */
  readonly askSeconds: number;
  /** Whether it gets the session tools, through an MCP server. */
  readonly sessionTools: boolean;
  /** A program that has nothing to do is kept this long. */
  readonly idleMinutes: number;
}

export interface AgentSettings extends AnswerLimits {
  readonly id: string;
  readonly name?: string;
  readonly default: boolean;
  /** `<provider>/<model>`. */
  readonly model: string;
  /** Asked in this order when the model has failed for good. */
  readonly fallbackModels: readonly string[];
  readonly thinking: ThinkingLevel;
  /** Absolute path. */
  readonly workspace: string;
  /** Put behind the runtime's own system prompt. */
  readonly instructions?: string;
  readonly tools: ToolFilter;
  readonly subagents: {
    /** Agents it may name besides itself, `*`: any. Its own `subagents.allowAgents`, else the defaults'. */
    readonly allowAgents: readonly string[];
    /** `<provider>/<model>` of sub-agents that are this agent. */
    readonly model?: string;
  };
  /** Its own, else the defaults'. */
  readonly sandbox: SandboxSettings;
  /** Absent: the built-in agent loop. */
  readonly runtime?: AcpRuntime;
  /** Of one run. */
  readonly maxModelCalls: number;
  /** Absent: it may use as much as it likes. */
  readonly budget?: AgentBudget;
}

/** Limits of one answer of a model, and of one result of a tool. An answer that passes one ends its run. */
export interface AnswerLimits {
  /** UTF-8 bytes of text, thinking and arguments of calls together. */
  readonly maxAnswerBytes: number;
  readonly maxAnswerToolCalls: number;
  /** UTF-8 bytes; what is beyond is cut. */
  readonly maxToolResultBytes: number;
}

export const ANSWER_LIMITS: AnswerLimits = {
  maxAnswerBytes: 4 * 1024 * 1024,
  maxAnswerToolCalls: 256,
  maxToolResultBytes: 1024 * 1024,
};

/** An agent's budget for a day (UTC), over all its sessions. A call that does not fit is not made. */
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
  /** Key patterns with `*`; absent: every session. */
  readonly sessions?: readonly string[];
}

export interface StoreSettings {
  /** Absolute path. With PostgreSQL: what belongs to this machine alone, such as a generated token. */
  readonly dir: string;
  readonly durability: "full" | "normal";
  /** All state is in this database, which other gateways may share. Absent: in `dir`. Holds a password. */
  readonly postgresUrl?: string;
}

/** Where the state is, in words that hold no secret; the same for all gateways that share it. */
export function storePlace({ dir, postgresUrl }: StoreSettings): string {
  if (postgresUrl === undefined) return dir;
  const { host, pathname, searchParams } = new URL(postgresUrl);
  const schema = searchParams.get("schema");
  return `postgres://${host}${pathname}${schema === null ? "" : `?schema=${schema}`}`;
}

/** What programs elsewhere can be told of. */
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

/** A program elsewhere that is told of events. */
export interface OutgoingHook {
  /** What the outbox calls it. */
  readonly name: string;
  /** May be a secret itself. */
  readonly url: string;
  readonly events: readonly HookEventType[];
  readonly secret: string;
  /** Key patterns with `*`; absent: every session. */
  readonly sessions?: readonly string[];
}

/** A program of somebody else whose tools agents use, over the Model Context Protocol. */
export interface McpServerSettings {
  /** Small letters, digits, `-` and single `_`: no name is the beginning of another one's tool names. */
  readonly name: string;
  readonly reach:
    | {
        readonly kind: "stdio";
        readonly command: string;
        readonly args: readonly string[];
        /** Besides the little that every outside program gets. May hold secrets. */
        readonly env: Readonly<Record<string, string>>;
        /** Absolute path. */
        readonly cwd: string;
      }
    /** Address and headers may hold secrets. */
    | { readonly kind: "http"; readonly url: string; readonly headers: Readonly<Record<string, string>> };
  /** Agent id patterns with `*`. Empty: every agent. */
  readonly agents: readonly string[];
  /** Patterns of the server's own tool names. Empty: all of them. */
  readonly tools: readonly string[];
  /** Whether sandboxed sessions may use it, although it runs outside of their sandbox. */
  readonly allowSandboxed: boolean;
  /** Of one call. */
  readonly timeoutSeconds: number;
  /** Until a start is given up. */
  readonly startTimeoutSeconds: number;
}

export interface McpSettings {
  /** Those that are enabled. */
  readonly servers: readonly McpServerSettings[];
  /** The longest that a run waits for servers that are not ready. */
  readonly waitSeconds: number;
  /** Of the text of one result. */
  readonly maxResultBytes: number;
}

/** What devices elsewhere may do, and may be asked. */
export interface NodeSettings {
  /** False: no node connects, and no agent has the tool. */
  readonly enabled: boolean;
  /** Patterns with `*` of commands that may be asked of nodes. */
  readonly allowCommands: readonly string[];
  /** Patterns with `*` of the keys that a node may name besides its own session. */
  readonly allowedSessionKeys: readonly string[];
  /** Whether sandboxed sessions have the tool, although nodes are outside of every sandbox. */
  readonly allowSandboxed: boolean;
}

export interface Settings {
  readonly gateway: {
    readonly host: string;
    readonly port: number;
    /** Unset: one is generated at first start and kept in the store directory. */
    readonly token?: string;
    readonly tokens: readonly TokenSettings[];
    readonly allowedOrigins: readonly string[];
    readonly allowedHosts: readonly string[];
    /** Bytes of unsent data after which a slow client is closed. */
    readonly maxBufferedBytes: number;
    readonly tickIntervalMs: number;
  };
  readonly store: StoreSettings;
  readonly providers: readonly ProviderSettings[];
  /** Never empty; exactly one has `default: true`. */
  readonly agents: readonly AgentSettings[];
  /** Runs that execute at once. */
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
      /** Tokens of all runs of a chain together; absent: no limit. */
      readonly maxChainTokens?: number;
      /** USD of all runs of a chain together; absent: no limit. */
      readonly maxChainCost?: number;
    };
  };
  readonly tools: {
    readonly filter: ToolFilter;
    readonly visibility: VisibilityMode;
    readonly agentToAgent: AgentToAgentSettings;
    /** Of sub-agents, besides what holds for all. A non-empty `allow` replaces the rule for session tools. */
    readonly subagents: ToolFilter;
    /** Of sandboxed sessions, besides what holds for all. */
    readonly sandbox: ToolFilter;
    readonly sessionsSpawn: { readonly attachments: AttachmentSettings };
    readonly history: { readonly maxTextChars: number; readonly maxBytes: number };
    readonly exec: {
      /** The longest that one command may run. */
      readonly timeoutSeconds: number;
      /** What of a command's output the model gets, head and tail together. */
      readonly maxOutputBytes: number;
      /** Where commands are found (`PATH`); unset: the system's usual places. */
      readonly searchPath?: string;
    };
    readonly mcp: McpSettings;
  };
  /** Who is an owner on a channel, like `telegram:123`. */
  readonly owners: readonly string[];
  /** The accounts at channels that are enabled. */
  readonly channels: readonly ChannelAccount[];
  readonly cron: {
    /** Whether jobs are fired when they fall due. */
    readonly enabled: boolean;
  };
  /** Devices elsewhere that offer commands. */
  readonly nodes: NodeSettings;
  /** Web hooks that come in. */
  readonly hooks: IncomingHooks;
  /** Those that are enabled. */
  readonly outgoingHooks: readonly OutgoingHook[];
  readonly logging: LoggingSettings;
  /** Absent: traces are off. */
  readonly traces?: TraceSettings;
}

/** The agent that gets what names no agent. */
export function defaultAgent(settings: Settings): AgentSettings {
  const found = settings.agents.find((agent) => agent.default) ?? settings.agents[0];
  if (found === undefined) throw new Error("settings without an agent");
  return found;
}

/** For whatever belongs to an agent that was taken out of the configuration. */
export function notConfigured(agentId: string): string {
  return `agent "${agentId}" is no longer configured (agents.list)`;
}

export function findAgent(settings: Settings, agentId: string): AgentSettings | undefined {
  return settings.agents.find((agent) => agent.id === agentId);
}

/** The agent whose settings a session has; the default one where its own is not configured any more. */
export function agentOf(settings: Settings, session: Pick<Session, "agentId">): AgentSettings {
  return findAgent(settings, session.agentId) ?? defaultAgent(settings);
}

/** The built-in model that answers without a provider. */
export const OFFLINE_MODEL = "offline/rehearsal";
export const OFFLINE_WINDOW = 200_000;

/** Every `<provider>/<model>` that may be named. */
export function modelNames(providers: readonly ProviderSettings[]): string[] {
  const configured = providers.flatMap(({ id, models }) => models.map((model) => `${id}/${model.id}`));
  return [...configured, OFFLINE_MODEL];
}

/**
 * The full names that a model's name may mean: one for a name that is known, or for a bare id that one
 * provider has; several for a bare id of several providers; none for anything else.
 */
export function modelsNamed(wanted: string, names: readonly string[]): readonly string[] {
  const name = wanted.trim();
  if (names.includes(name)) return [name];
  return names.filter((full) => full.slice(full.indexOf("/") + 1) === name);
}

/** Spellings of other programs. */
const THINKING_ALIASES: Readonly<Record<string, ThinkingLevel>> = { on: "low", mid: "medium" };

/** The thinking level that a word means, in any case; undefined: none. */
export function thinkingNamed(wanted: string): ThinkingLevel | undefined {
  const word = wanted.trim().toLowerCase();
  return THINKING_LEVELS.find((level) => level === word) ?? THINKING_ALIASES[word];
}

/** The model that a run in this session starts with. An outside program chooses its own. */
export function modelOf(settings: Settings, session: Pick<Session, "agentId" | "model">): string {
  const agent = agentOf(settings, session);
  return agent.runtime === undefined ? (session.model ?? agent.model) : agent.model;
}

/** The size of a model's context window, in tokens. Null: not known, as with an outside program's model. */
export function windowOf({ providers }: Pick<Settings, "providers">, model: string): number | null {
  if (model === OFFLINE_MODEL) return OFFLINE_WINDOW;
  for (const { id, models } of providers) {
    const found = models.find((one) => `${id}/${one.id}` === model);
    if (found !== undefined) return found.contextWindow;
  }
  return null;
}

/** The thinking level that a run in this session starts with. */
export function thinkingOf(settings: Settings, session: Pick<Session, "agentId" | "thinkingLevel">): string {
  return session.thinkingLevel ?? agentOf(settings, session).thinking;
}

/** The daily budgets of those agents that have one. */
export function dailyBudgets({ agents }: Pick<Settings, "agents">): Record<string, AgentBudget> {
  return Object.fromEntries(agents.flatMap(({ id, budget }) => (budget === undefined ? [] : [[id, budget]])));
}
