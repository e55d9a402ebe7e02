// The shape of the settings for all parts: complete, validated and frozen. `config.ts` reads them from the
// file and the environment, and fills in the defaults.

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
    /** The rule matches sessions whose key starts with this text. */
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
  /**
   * Patterns with `*` for agent ids, in lower case. Both agents must match. If it is empty and `enabled` is
   * true, all agents match.
   */
  readonly allow: readonly string[];
}

export interface ToolFilter {
  /** If empty, every tool is allowed. */
  readonly allow: readonly string[];
  /** Takes precedence over `allow`. */
  readonly deny: readonly string[];
}

/** The commands of `exec` that an owner approves before they run. */
export const APPROVAL_MODES = ["always", "risky", "never"] as const;
export type ApprovalMode = (typeof APPROVAL_MODES)[number];

/** The tools of an agent. */
export interface AgentTools extends ToolFilter {
  /** Absent approval: that of `tools.exec`. */
  readonly exec?: { readonly approval?: ApprovalMode | undefined } | undefined;
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
  /** Price in USD per million tokens. */
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
  /** Maximum number of retries after a temporary failure. */
  readonly maxRetries: number;
  readonly models: readonly ModelSettings[];
}

export const SANDBOX_MODES = ["off", "non-main", "all"] as const;
export type SandboxMode = (typeof SANDBOX_MODES)[number];

export const SANDBOX_BACKENDS = ["auto", "bubblewrap", "docker"] as const;
export type SandboxBackend = (typeof SANDBOX_BACKENDS)[number];
export const SANDBOX_GIT = ["read", "write"] as const;
type SandboxGit = (typeof SANDBOX_GIT)[number];

/** Sandbox settings for the sessions of an agent. */
export interface SandboxSettings {
  /** `non-main` means all sessions except main sessions. */
  readonly mode: SandboxMode;
  /** Widest visibility for a sandboxed session: its own tree, or the value of `tools.sessions.visibility`. */
  readonly sessionToolsVisibility: "spawned" | "all";
  /** Whether sandboxed commands have network access. */
  readonly network: boolean;
  /** `auto` selects the first backend that works on this machine. */
  readonly backend: SandboxBackend;
  /** Memory limit for all processes of one call together. */
  readonly memoryMb: number;
  readonly processesMax: number;
  /** Size limit for the workspace, and for temporary files. */
  readonly diskMb: number;
  /** Access of sandboxed commands to the git repository of their workspace. */
  readonly git: SandboxGit;
  /** Image for docker. */
  readonly image?: string;
}

/** Settings of all sub-agents. */
export interface SubagentSettings {
  /** `<provider>/<model>`. Used if the target agent does not set a model for its sub-agents. */
  readonly model?: string;
  /** Maximum number of sub-agents that execute at the same time. */
  readonly maxConcurrent: number;
  /** Maximum number of unfinished sub-agents per session. */
  readonly maxChildren: number;
  /** If it is 1, a sub-agent cannot spawn. */
  readonly maxSpawnDepth: number;
  /** Time limit from the start of execution. 0: no limit. */
  readonly runTimeoutSeconds: number;
  /** Minutes between the end of the last run and the archiving of the session. 0: never. */
  readonly archiveAfterMinutes: number;
  readonly announce: "post" | "wake";
}

export const SEARCH_PROVIDERS = ["brave", "searxng"] as const;
export type SearchProvider = (typeof SEARCH_PROVIDERS)[number];

export interface SearchSettings {
  readonly provider: SearchProvider;
  readonly apiKey?: string;
  /** Always set for SearXNG. It may be private, because the operator chose it. */
  readonly url?: string;
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

/** Settings of an agent that is an external program, controlled over the Agent Client Protocol. */
export interface AcpRuntime {
  readonly type: "acp";
  /** The program and its arguments; never empty. */
  readonly command: readonly string[];
  /** Environment variables in addition to the few variables that every such program gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path. Absent: the agent's workspace. */
  readonly cwd?: string;
  /** How permission requests of the program are answered. */
  readonly permissions: PermissionPolicy;
  /** Only for `ask`: time after which an unanswered request is denied. */
  readonly askSeconds: number;
  /** Whether the program gets the session tools, which an MCP server provides. */
  readonly sessionTools: boolean;
  /** An idle program is stopped after this time. */
  readonly idleMinutes: number;
}

/** Settings of an agent that is reached over A2A. */
export interface A2aRuntime {
  readonly type: "a2a";
  /** Address of the agent's card. No other host is reached. */
  readonly card: string;
  /** Bearer token for the agent. */
  readonly token?: string;
  /** Thumbprint of the key that signs the card. Absent only with `allowUnsigned`. */
  readonly key?: string;
  /** True if a card without this key's signature is used. */
  readonly allowUnsigned: boolean;
}

export interface AgentSettings extends AnswerLimits {
  readonly id: string;
  readonly name?: string;
  readonly default: boolean;
  /** `<provider>/<model>`. */
  readonly model: string;
  /** Models that are tried, in this order, after all attempts with the main model have failed. */
  readonly fallbackModels: readonly string[];
  readonly thinking: ThinkingLevel;
  /** Absolute path. */
  readonly workspace: string;
  /** Text that is added after the system prompt of the runtime. */
  readonly instructions?: string;
  /** Whether AGENTS.md, CLAUDE.md and a workspace's further files are added to the system prompt. */
  readonly instructionFiles: boolean;
  /** Whether the agent can use skills. */
  readonly skills: boolean;
  /** Whether the agent has a memory. */
  readonly memory: boolean;
  readonly tools: AgentTools;
  readonly subagents: {
    /**
     * Agents that this agent may spawn in addition to itself; `*` means any. From its own
     * `subagents.allowAgents`, or else the defaults.
     */
    readonly allowAgents: readonly string[];
    /** `<provider>/<model>` for sub-agents that use this agent. */
    readonly model?: string;
  };
  /** The agent's own settings, or else the defaults. */
  readonly sandbox: SandboxSettings;
  /** Absent if the agent uses the built-in agent loop. */
  readonly runtime?: AcpRuntime | A2aRuntime;
  /** Maximum number of model calls per run. */
  readonly maxModelCalls: number;
  /** Absent: no limit. */
  readonly budget?: AgentBudget;
}

/** Limits for one model answer and for one tool result. An answer that exceeds its limit ends the run. */
export interface AnswerLimits {
  /** Maximum size of text, thinking and call arguments together, in bytes of UTF-8. */
  readonly maxAnswerBytes: number;
  readonly maxAnswerToolCalls: number;
  /** Maximum size in bytes of UTF-8. Longer results are cut. */
  readonly maxToolResultBytes: number;
}

export const ANSWER_LIMITS: AnswerLimits = {
  maxAnswerBytes: 4 * 1024 * 1024,
  maxAnswerToolCalls: 256,
  maxToolResultBytes: 1024 * 1024,
};

/** Settings of the A2A door. */
export interface A2aSettings {
  /** Ids of the agents that A2A clients can reach. Empty: none. */
  readonly expose: readonly string[];
  /** Hosts that may be notified of the end of a task, with their port if it is not the usual one. */
  readonly notifyHosts: readonly string[];
  /** Descriptions for the cards of exposed agents, by agent id. */
  readonly descriptions: Readonly<Record<string, string>>;
}

/** Daily budget (UTC) of an agent for all its sessions together. Calls that exceed it are refused. */
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
  /** Absolute path. With PostgreSQL it only contains data of this machine, for example a generated token. */
  readonly dir: string;
  readonly durability: "full" | "normal";
  /**
   * URL of the database that contains all state and can be shared with other gateways. It may contain a
   * password. Absent: the state is in `dir`.
   */
  readonly postgresUrl?: string;
  /** Absolute path of the folder for the gateway's backups. Absent: `backups` in `dir`. */
  readonly backupDir?: string;
  /** Days for which the inputs of runs are kept after their last use. Absent or 0: they are not kept. */
  readonly recordDays?: number;
  /** Days for which the records of finished chains are kept after their end. Absent or 0: for ever. */
  readonly retention?: number;
}

export const backupFolder = ({ dir, backupDir = `${dir}/backups` }: StoreSettings): string => backupDir;

/** Returns a name of the store without secrets. All gateways that share the store use the same name. */
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

/** Settings of a program that receives events. */
export interface OutgoingHook {
  /** Name of the program in the outbox. */
  readonly name: string;
  /** The URL may itself be a secret. */
  readonly url: string;
  readonly events: readonly HookEventType[];
  readonly secret: string;
  /** Key patterns with `*`. Absent: every session. */
  readonly sessions?: readonly string[];
}

/** Settings of an MCP server, an external program whose tools agents use. */
export interface McpServerSettings {
  /**
   * Lower-case letters, digits, `-` and single `_`. With this rule no server name is a prefix of another
   * server's tool names.
   */
  readonly name: string;
  readonly reach:
    | {
        readonly kind: "stdio";
        readonly command: string;
        readonly args: readonly string[];
        /**
         * Environment variables in addition to the few variables that every external program gets. May
         * contain secrets.
         */
        readonly env: Readonly<Record<string, string>>;
        /** Absolute path. */
        readonly cwd: string;
      }
    /** URL and headers may contain secrets. */
    | { readonly kind: "http"; readonly url: string; readonly headers: Readonly<Record<string, string>> };
  /** Patterns with `*` for the ids of agents that may use the server. Empty: every agent. */
  readonly agents: readonly string[];
  /** Patterns for the tools to use, by the names that the server gives them. Empty: all tools. */
  readonly tools: readonly string[];
  /** Whether sandboxed sessions may use the server, although it runs outside their sandbox. */
  readonly allowSandboxed: boolean;
  /** Time limit of one call. */
  readonly timeoutSeconds: number;
  /** Time limit for the start of the server. */
  readonly startTimeoutSeconds: number;
}

export interface McpSettings {
  /** Enabled servers. */
  readonly servers: readonly McpServerSettings[];
  /** Maximum time that a run waits for servers that are not ready. */
  readonly waitSeconds: number;
  /** Maximum size of the text of one result. */
  readonly maxResultBytes: number;
}

/**
 * Reactions if a message waits for a joined window of a coding agent, and the window cannot be woken.
 * `notify`: the owner is notified. `resume`: the conversation is continued without a window; if that fails,
 * the owner is notified.
 */
export const WAKES = ["notify", "resume"] as const;
export type Wake = (typeof WAKES)[number];

/** Settings of nodes: commands and sessions that are allowed. */
export interface NodeSettings {
  /** If false, no node can connect, and no agent has the tool `nodes`. */
  readonly enabled: boolean;
  /** Patterns with `*` for the commands that may be sent to nodes. */
  readonly allowCommands: readonly string[];
  /** Patterns with `*` for session keys that a node may use in addition to its own session. */
  readonly allowedSessionKeys: readonly string[];
  /** Whether sandboxed sessions have the tool `nodes`, although nodes are outside every sandbox. */
  readonly allowSandboxed: boolean;
}

export interface Settings {
  readonly gateway: {
    readonly host: string;
    readonly port: number;
    /** Absent: the gateway generates a token at its first start and stores it in the store directory. */
    readonly token?: string;
    readonly tokens: readonly TokenSettings[];
    readonly allowedOrigins: readonly string[];
    readonly allowedHosts: readonly string[];
    /** Number of unsent bytes at which the connection of a slow client is closed. */
    readonly maxBufferedBytes: number;
    readonly tickIntervalMs: number;
  };
  readonly store: StoreSettings;
  readonly providers: readonly ProviderSettings[];
  /** Never empty; exactly one has `default: true`. */
  readonly agents: readonly AgentSettings[];
  /** Maximum number of runs that execute at the same time. */
  readonly maxConcurrent: number;
  /** `model`: the agent's model writes the title of a conversation after its first answer. */
  readonly titles: "words" | "model";
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
      /** Maximum number of tokens for all runs of a chain together. Absent: no limit. */
      readonly maxChainTokens?: number;
      /** Maximum cost in USD for all runs of a chain together. Absent: no limit. */
      readonly maxChainCost?: number;
    };
  };
  readonly tools: {
    readonly filter: ToolFilter;
    readonly visibility: VisibilityMode;
    readonly agentToAgent: AgentToAgentSettings;
    /**
     * Filter for sub-agents, in addition to the general filter. If `allow` is not empty, it replaces the
     * default rule for session tools.
     */
    readonly subagents: ToolFilter;
    /** Filter for sandboxed sessions, in addition to the general filter. */
    readonly sandbox: ToolFilter;
    readonly sessionsSpawn: { readonly attachments: AttachmentSettings };
    readonly history: { readonly maxTextChars: number; readonly maxBytes: number };
    readonly exec: {
      /** Time limit of one command. */
      readonly timeoutSeconds: number;
      /** Maximum size of a command's output that the model sees: its start and end together. */
      readonly maxOutputBytes: number;
      /** `PATH` of commands. Absent: the system's default. */
      readonly searchPath?: string;
      /** Absent: `never` for commands in a sandbox, `risky` for others. */
      readonly approval?: ApprovalMode | undefined;
      /** Time after which an unanswered request counts as denied. */
      readonly askSeconds: number;
    };
    /** `allowHosts`: hosts that `fetch` may read although they are not public, like `127.0.0.1:8080`. */
    readonly fetch: { readonly allowHosts: readonly string[] };
    /** `maxBytes`: maximum size of a file that `send_file` sends. */
    readonly sendFile: { readonly maxBytes: number };
    /** Absent: there is no tool `search`. */
    readonly search?: SearchSettings;
    readonly mcp: McpSettings;
  };
  readonly a2a: A2aSettings;
  /** Owners by channel id, for example `telegram:123`. */
  readonly owners: readonly string[];
  /** Settings for the windows of coding agents that joined on this machine. */
  readonly joined: {
    readonly wake: Wake;
    /** Chat that is notified of waiting messages, for example `telegram:123`. */
    readonly notify?: string;
  };
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

interface AgentIndex {
  readonly byId: ReadonlyMap<string, AgentSettings>;
  readonly default: AgentSettings | undefined;
}

const agentIndexes = new WeakMap<readonly AgentSettings[], AgentIndex>();

/** Returns the agents by id. A run looks its agent up dozens of times, and a gateway can have hundreds. */
function agentIndexOf({ agents }: Settings): AgentIndex {
  const known = agentIndexes.get(agents);
  if (known !== undefined) return known;
  const byId = new Map(agents.map((agent) => [agent.id, agent]));
  const index = { byId, default: agents.find((agent) => agent.default) ?? agents[0] };
  agentIndexes.set(agents, index);
  return index;
}

/** Returns the default agent, which is used wherever no agent is named. */
export function defaultAgent(settings: Settings): AgentSettings {
  const found = agentIndexOf(settings).default;
  if (found === undefined) throw new Error("the settings contain no agent");
  return found;
}

/** Returns an error text for an agent that was removed from the configuration. */
export function notConfigured(agentId: string): string {
  return `agent "${agentId}" is no longer configured (agents.list)`;
}

/** Names the kind of an agent that is outside of this gateway, for errors: `an ACP agent`. */
export function outsideKind({ type }: { readonly type: "acp" | "a2a" }): string {
  return type === "acp" ? "an ACP agent" : "an A2A agent";
}

/** Returns the program of an agent that is one, or undefined for any other agent. */
export function programOf({ runtime }: Pick<AgentSettings, "runtime">): AcpRuntime | undefined {
  return runtime?.type === "acp" ? runtime : undefined;
}

export function findAgent(settings: Settings, agentId: string): AgentSettings | undefined {
  return agentIndexOf(settings).byId.get(agentId);
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
