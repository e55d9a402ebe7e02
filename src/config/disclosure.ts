// Decides for each setting whether it may be shown, and whether it is a secret.
// DC1: this is an allow list: a setting without a rule is never shown, and a new setting without a rule does
// not compile.
// DC2: secrets are redacted in every line of the log, in any form (I14).

import type { ChannelAccount } from "../core/shapes/settings/channels.ts";
import { LOG_PARTS } from "../core/shapes/settings/logging.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";

type Leaf = string | number | boolean | null | undefined;
type Values = Readonly<Record<string, string>>;

/** How to show a text that is a secret, or may contain one. */
export type TextRule =
  /** A required secret: shows that it is set. */
  | "secret"
  /** An optional secret: shows whether it is set. */
  | "optional secret"
  /** Shows an address without user, password and query. */
  | "place"
  /** Shows only the origin of an address, because the rest may be a secret. */
  | "origin";

/** How to show a list of words of which one may contain a secret. */
export type ListRule =
  /** Shows the first word of a command and the number of its arguments. */
  | "program"
  /** Shows only the number of entries. */
  | "count";

type KeyOf<T> = T extends unknown ? keyof T : never;
type At<T, K> = T extends unknown ? (K extends keyof T ? T[K] : never) : never;

type ObjectRule<T> =
  string extends KeyOf<T>
    ? { readonly each: Rule<At<T, string>> } | ([T] extends [Values] ? "names" : never)
    : { readonly [K in KeyOf<T>]-?: Rule<At<T, K>> };

/**
 * The form of a rule for a value of type `T`. `names`: shows only the names of the fields, because the values
 * may be secrets.
 */
export type Rule<T> = [T] extends [Leaf]
  ? "show" | ([T] extends [string | undefined] ? TextRule : never)
  : [T] extends [readonly Leaf[] | undefined]
    ? "show" | ListRule
    : [T] extends [readonly (infer E)[] | undefined]
      ? { readonly each: Rule<E> }
      : ObjectRule<NonNullable<T>>;

const FILTER = { allow: "show", deny: "show" } as const;

const ACCOUNT: Rule<ChannelAccount> = {
  channel: "show",
  accountId: "show",
  agentId: "show",
  dmPolicy: "show",
  steps: "show",
  allowFrom: "show",
  groupPolicy: "show",
  groupAllowFrom: "show",
  requireMention: "show",
  groups: { each: { enabled: "show", requireMention: "show", allowFrom: "show", agentId: "show" } },
  inbound: { debounceMs: "show", queue: "show", mediaMaxBytes: "show" },
  threadBindings: { enabled: "show", idleHours: "show", maxAgeHours: "show" },
  botToken: "secret",
  apiRoot: "place",
  token: "secret",
  restUrl: "place",
  phoneNumberId: "show",
  accessToken: "secret",
  appSecret: "secret",
  verifyToken: "secret",
  graphUrl: "place",
  number: "show",
  url: "place",
  command: "program",
  names: "show",
  attachmentFolders: "show",
};

const AGENT: Rule<Settings["agents"][number]> = {
  id: "show",
  name: "show",
  default: "show",
  model: "show",
  thinking: "show",
  workspace: "show",
  instructions: "show",
  tools: { ...FILTER, exec: { approval: "show" } },
  subagents: { allowAgents: "show", model: "show" },
  sandbox: {
    mode: "show",
    sessionToolsVisibility: "show",
    network: "show",
    git: "show",
    backend: "show",
    memoryMb: "show",
    processesMax: "show",
    diskMb: "show",
    image: "show",
  },
  runtime: {
    type: "show",
    command: "program",
    env: "names",
    cwd: "show",
    permissions: "show",
    askSeconds: "show",
    sessionTools: "show",
    idleMinutes: "show",
    card: "place",
    token: "optional secret",
    key: "show",
    allowUnsigned: "show",
  },
  instructionFiles: "show",
  skills: "show",
  memory: "show",
  fallbackModels: "show",
  maxModelCalls: "show",
  maxAnswerBytes: "show",
  maxAnswerToolCalls: "show",
  maxToolResultBytes: "show",
  budget: { dailyTokens: "show", dailyCost: "show" },
};

const PROVIDER: Rule<Settings["providers"][number]> = {
  id: "show",
  api: "show",
  baseUrl: "place",
  apiKey: "optional secret",
  headers: "names",
  connectTimeoutSeconds: "show",
  idleTimeoutSeconds: "show",
  maxRetries: "show",
  models: {
    each: {
      id: "show",
      name: "show",
      contextWindow: "show",
      maxOutputTokens: "show",
      reasoning: "show",
      images: "show",
      cost: { input: "show", output: "show", cacheRead: "show", cacheWrite: "show" },
    },
  },
};

const HOOKS: Rule<Settings["hooks"]> = {
  enabled: "show",
  token: "optional secret",
  allowedSessionKeys: "show",
  mappings: {
    each: {
      id: "show",
      path: "show",
      proof: { kind: "show", secret: "secret", signatureHeader: "show", deliveryHeader: "show" },
      events: "show",
      message: "show",
      name: "show",
      agentId: "show",
      sessionKey: "show",
      deliver: { channel: "show", to: "show", accountId: "show", threadId: "show" },
      model: "show",
      thinking: "show",
      timeoutSeconds: "show",
    },
  },
};

const TOOLS: Rule<Settings["tools"]> = {
  filter: FILTER,
  visibility: "show",
  agentToAgent: { enabled: "show", allow: "show" },
  subagents: FILTER,
  sandbox: FILTER,
  sessionsSpawn: {
    attachments: {
      enabled: "show",
      maxFiles: "show",
      maxFileBytes: "show",
      maxTotalBytes: "show",
      retainOnSessionKeep: "show",
    },
  },
  history: { maxTextChars: "show", maxBytes: "show" },
  exec: {
    timeoutSeconds: "show",
    maxOutputBytes: "show",
    searchPath: "show",
    approval: "show",
    askSeconds: "show",
  },
  fetch: { allowHosts: "show" },
  sendFile: { maxBytes: "show" },
  search: { provider: "show", apiKey: "optional secret", url: "place" },
  mcp: {
    servers: {
      each: {
        name: "show",
        reach: {
          kind: "show",
          command: "show",
          args: "count",
          env: "names",
          cwd: "show",
          url: "place",
          headers: "names",
        },
        agents: "show",
        tools: "show",
        allowSandboxed: "show",
        timeoutSeconds: "show",
        startTimeoutSeconds: "show",
      },
    },
    waitSeconds: "show",
    maxResultBytes: "show",
  },
};

const LEVELS = Object.fromEntries(LOG_PARTS.map((part) => [part, "show"])) as Rule<
  Settings["logging"]["parts"]
>;

/** The rules of all settings. */
export const DISCLOSURE: Rule<Settings> = {
  gateway: {
    host: "show",
    port: "show",
    token: "optional secret",
    tokens: { each: { token: "secret", role: "show", scopes: "show", sessions: "show" } },
    allowedOrigins: "show",
    allowedHosts: "show",
    maxBufferedBytes: "show",
    tickIntervalMs: "show",
  },
  a2a: { expose: "show", notifyHosts: "show", descriptions: "names" },
  store: {
    dir: "show",
    durability: "show",
    postgresUrl: "secret",
    backupDir: "show",
    recordDays: "show",
    retention: "show",
  },
  providers: { each: PROVIDER },
  agents: { each: AGENT },
  maxConcurrent: "show",
  titles: "show",
  subagents: {
    model: "show",
    maxConcurrent: "show",
    maxChildren: "show",
    maxSpawnDepth: "show",
    runTimeoutSeconds: "show",
    archiveAfterMinutes: "show",
    announce: "show",
  },
  session: {
    scope: "show",
    mainKey: "show",
    dmScope: "show",
    queueMax: "show",
    sendPolicy: {
      rules: { each: { match: { channel: "show", chatType: "show", keyPrefix: "show" }, action: "show" } },
      default: "show",
    },
    agentToAgent: {
      maxPingPongTurns: "show",
      maxHops: "show",
      maxChainRuns: "show",
      maxChainTokens: "show",
      maxChainCost: "show",
    },
  },
  tools: TOOLS,
  owners: "show",
  joined: { wake: "show", notify: "show" },
  channels: { each: ACCOUNT },
  cron: { enabled: "show" },
  nodes: { enabled: "show", allowCommands: "show", allowedSessionKeys: "show", allowSandboxed: "show" },
  hooks: HOOKS,
  outgoingHooks: {
    each: { name: "show", url: "origin", events: "show", secret: "secret", sessions: "show" },
  },
  logging: { level: "show", parts: LEVELS, format: "show" },
  traces: {
    endpoint: "origin",
    headers: "names",
    sampleRatio: "show",
    content: "show",
    serviceName: "show",
  },
};
