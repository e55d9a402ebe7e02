// Defines the schema of the configuration file: every key with type, limits, default and meaning.
// An unknown key is an error.
// Everything has a default; an empty file is a complete configuration.

import { z } from "zod";
import { SENT_FILE_BYTES, SENT_FILE_MAX_BYTES } from "../../core/sent-file.ts";
import {
  ANSWER_LIMITS,
  APPROVAL_MODES,
  PROVIDER_APIS,
  SEARCH_PROVIDERS,
  THINKING_LEVELS,
  VISIBILITY_MODES,
  WAKES,
} from "../../core/shapes/settings/settings.ts";
import { a2a } from "../a2a.ts";
import { logging } from "../logging.ts";
import { mcp } from "../mcp.ts";
import { telemetry } from "../telemetry.ts";
import { channels, inbound, threadBindings } from "./channels.ts";
import {
  DAY_SECONDS,
  httpAddress,
  limit,
  MAX,
  modelName,
  optionalText,
  path,
  text,
  texts,
  toolFilter,
} from "./fields.ts";
import { hooks } from "./hooks.ts";
import { runtime } from "./runtime.ts";
import {
  agentSandbox,
  agentSubagents,
  budget,
  moreTools,
  sandbox,
  spawnTool,
  subagents,
} from "./subagents.ts";

const price = z.number().min(0).default(0);

const cost = z
  .strictObject({
    input: price.describe("Price of input."),
    output: price.describe("Price of output, including thinking."),
    cacheRead: price.describe("Price of cache reads."),
    cacheWrite: price.describe("Price of cache writes."),
  })
  .describe("Prices in USD per million tokens. Default 0, or the known prices of the model.");

const model = z.strictObject({
  id: text.describe("Model name in the provider's API."),
  name: text.optional().describe("Display name. Default: the id."),
  contextWindow: limit(1_000, MAX)
    .optional()
    .describe("Size of the context in tokens. Default 128000, or the known value of the model."),
  maxOutputTokens: limit(1, MAX)
    .optional()
    .describe("Maximum tokens of an answer. Default 8192, or the known value of the model."),
  reasoning: z.boolean().optional().describe("Whether thinking levels apply. Default false."),
  images: z.boolean().optional().describe("Whether it accepts pictures. Default false."),
  cost: cost.optional(),
});

const PROVIDER_ID = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;

const provider = z.strictObject({
  api: z
    .enum(PROVIDER_APIS)
    .optional()
    .describe("Format of the API. Not needed for anthropic, openai and google."),
  baseUrl: httpAddress("apiKey or headers")
    .optional()
    .describe("Not needed for anthropic, openai and google."),
  apiKey: optionalText.describe(
    "Default for anthropic, openai and google: from the environment, for example ANTHROPIC_API_KEY.",
  ),
  headers: z.record(text, z.string()).default({}).describe("HTTP headers of every request."),
  connectTimeoutSeconds: limit(1, 300)
    .default(10)
    .describe("Time limit of a connection attempt, including TLS."),
  idleTimeoutSeconds: limit(1, 3_600)
    .default(90)
    .describe(
      "A request fails after this time without a byte. Increase it for a local model that loads slowly.",
    ),
  maxRetries: limit(0, 20).default(3).describe("Retries of a request that failed for a temporary reason."),
  models: z
    .array(model)
    .default([])
    .describe("The provider's models. Not needed for anthropic, openai and google."),
});

/** Workspace of the default agent; other agents add `-<id>`. */
export const WORKSPACE_DEFAULT = "~/.parley/workspace";

const AGENT_ID = /^[a-zA-Z0-9_-]{1,64}$/;

const maxModelCalls = limit(1, 100_000);
const maxAnswerBytes = limit(1_024, 64 * 1024 * 1024);
const maxAnswerToolCalls = limit(1, 10_000);
const maxToolResultBytes = limit(1_024, 64 * 1024 * 1024);

const approval = z.enum(APPROVAL_MODES);

const agentTools = z
  .strictObject({
    ...toolFilter.unwrap().shape,
    exec: z
      .strictObject({ approval: approval.optional().describe("Default: tools.exec.approval.") })
      .optional(),
  })
  .prefault({});

const agent = z.strictObject({
  id: z.string().regex(AGENT_ID, "must be 1 to 64 of a-z, 0-9, _ and -").describe("Lower-cased."),
  default: z
    .boolean()
    .default(false)
    .describe("Whether requests that name no agent go to this one. Default: the first agent of the list."),
  name: text.optional().describe("Display name."),
  model: modelName.nullish().describe("Default: agents.defaults.model."),
  fallbackModels: z.array(modelName).optional().describe("Default: agents.defaults.fallbackModels."),
  thinking: z.enum(THINKING_LEVELS).optional().describe("Default: agents.defaults.thinking."),
  workspace: path
    .optional()
    .describe("Default: <agents.defaults.workspace>-<id>, for the default agent without -<id>."),
  instructions: text.optional().describe("Instructions that are added to the runtime's system prompt."),
  instructionFiles: z.boolean().optional().describe("Default: agents.defaults.instructionFiles."),
  skills: z.boolean().optional().describe("Default: agents.defaults.skills."),
  memory: z.boolean().optional().describe("Default: agents.defaults.memory."),
  tools: agentTools,
  runtime: runtime.optional(),
  sandbox: agentSandbox.optional(),
  subagents: agentSubagents.optional(),
  maxModelCalls: maxModelCalls.optional().describe("Default: agents.defaults.maxModelCalls."),
  maxAnswerBytes: maxAnswerBytes.optional().describe("Default: agents.defaults.maxAnswerBytes."),
  maxAnswerToolCalls: maxAnswerToolCalls.optional().describe("Default: agents.defaults.maxAnswerToolCalls."),
  maxToolResultBytes: maxToolResultBytes.optional().describe("Default: agents.defaults.maxToolResultBytes."),
  budget: budget
    .optional()
    .describe("Daily budget of the agent. Default: agents.defaults.budget. null in a key: no limit."),
});

const agents = z
  .strictObject({
    defaults: z
      .strictObject({
        model: modelName.nullish().describe("Default: the first model of the first provider."),
        fallbackModels: z
          .array(modelName)
          .default([])
          .describe("Models that are tried in this order if the model has failed permanently."),
        thinking: z
          .enum(THINKING_LEVELS)
          .default("off")
          .describe("Thinking level of models that support thinking."),
        workspace: path
          .default(WORKSPACE_DEFAULT)
          .describe("Folder of the default agent; other agents add -<id>."),
        instructionFiles: z
          .boolean()
          .default(true)
          .describe(
            "Whether AGENTS.md files (CLAUDE.md in a folder without one) of the workspace and the folders " +
              "above it, and SOUL.md, IDENTITY.md, USER.md and TOOLS.md of the workspace, are added to the " +
              "system prompt.",
          ),
        skills: z
          .boolean()
          .default(true)
          .describe(
            "Whether an agent can use skills: folders with a SKILL.md in skills, .agents/skills and " +
              ".claude/skills of the workspace, and in ~/.parley/skills.",
          ),
        memory: z
          .boolean()
          .default(true)
          .describe("Whether an agent has a memory, which its private sessions share."),
        maxConcurrent: limit(1, 1_000)
          .default(8)
          .describe("Maximum number of runs that execute at the same time; waiting runs do not count."),
        maxModelCalls: maxModelCalls
          .default(400)
          .describe("Maximum number of model calls of one run; above it, the run fails."),
        maxAnswerBytes: maxAnswerBytes
          .default(ANSWER_LIMITS.maxAnswerBytes)
          .describe(
            "Maximum bytes of one model answer; above it, the run keeps the received part and fails.",
          ),
        maxAnswerToolCalls: maxAnswerToolCalls
          .default(ANSWER_LIMITS.maxAnswerToolCalls)
          .describe(
            "Maximum number of tool calls in one model answer; above it, the run keeps the text and fails.",
          ),
        maxToolResultBytes: maxToolResultBytes
          .default(ANSWER_LIMITS.maxToolResultBytes)
          .describe("Maximum bytes of one tool result; longer results are cut, with a note for the model."),
        titles: z
          .enum(["words", "model"])
          .default("words")
          .describe(
            "model: after the first answer in a conversation without a label, one call of the agent's " +
              "model writes its title, which costs tokens. words: the title is the first message's " +
              "beginning.",
          ),
        sandbox,
        subagents,
        budget: budget.optional().describe("Daily budget of each agent."),
      })
      .prefault({}),
    list: z.array(agent).default([]).describe("The agents. An empty list means one agent with the id main."),
  })
  .prefault({});

const scope = z.enum(["operator.read", "operator.write", "operator.admin"]);

const gateway = z
  .strictObject({
    host: text.default("127.0.0.1").describe("Address to listen on."),
    port: limit(0, 65_535).default(7275).describe("0: any free port."),
    auth: z
      .strictObject({
        token: optionalText.describe(
          "Grants full access. At least 24 characters. Default: PARLEY_TOKEN, else one is generated.",
        ),
        tokens: z
          .array(
            z.strictObject({
              token: z.string().describe("Secret that a client presents. At least 24 characters."),
              role: z
                .enum(["operator", "node"])
                .default("operator")
                .describe("node: for paired devices, which have no scopes."),
              scopes: z.array(scope).default([]).describe("Each scope includes the previous one."),
              sessions: texts.optional().describe("Session key patterns with `*`. Unset: every session."),
            }),
          )
          .default([])
          .describe("Additional tokens, each with fewer rights than gateway.auth.token."),
      })
      .prefault({}),
    allowedOrigins: texts.default([]).describe("Allowed browser origins, in addition to the gateway's own."),
    allowedHosts: texts.default([]).describe("Allowed Host header values, in addition to loopback."),
    maxBufferedBytes: limit(64 * 1024, 1024 ** 3)
      .default(8 * 1024 * 1024)
      .describe("Number of unread bytes above which a client's connection is closed."),
    tickIntervalMs: limit(1_000, 600_000)
      .default(15_000)
      .describe("Milliseconds between `tick` events, by which clients notice a dead connection."),
  })
  .prefault({});

const sendRule = z.strictObject({
  match: z
    .strictObject({
      channel: text.optional().describe("The channel, for example telegram. Unset: every channel."),
      chatType: z
        .enum(["direct", "group", "room", "thread"])
        .optional()
        .describe("The type of chat. A thread also has the type of its parent. Unset: every type."),
      keyPrefix: text.optional().describe("Prefix of the session key. Unset: every session."),
    })
    .describe("Conditions of the rule. An empty object matches every send."),
  action: z.enum(["allow", "deny"]).describe("Effect on matching sessions; `deny` always has priority."),
});

const session = z
  .strictObject({
    scope: z
      .enum(["per-sender", "global"])
      .default("per-sender")
      .describe("global: one session for every chat."),
    mainKey: z
      .string()
      .regex(
        /^(?!global$|unknown$|node-)[a-z0-9_-]{1,64}$/,
        "must be 1 to 64 of a-z, 0-9, _ and -, not global or unknown, and not beginning with node-",
      )
      .default("main")
      .describe("The last part of the key of every agent's main session."),
    dmScope: z
      .enum(["main", "per-peer"])
      .default("main")
      .describe("main: one session for all direct chats. per-peer: a session for each direct chat."),
    queueMax: limit(1, 100_000).default(200).describe("Maximum number of runs that wait for one session."),
    sendPolicy: z
      .strictObject({
        rules: z
          .array(sendRule)
          .default([])
          .describe("Rules about sends. A matching deny wins, else a matching allow, else default."),
        default: z.enum(["allow", "deny"]).default("allow").describe("Effect if no rule matches."),
      })
      .prefault({}),
    agentToAgent: z
      .strictObject({
        maxPingPongTurns: limit(0, 5)
          .default(5)
          .describe("Maximum number of reply turns after the first answer."),
        maxHops: limit(1, 1_000)
          .default(16)
          .describe("Maximum number of consecutive sends and spawns in one chain."),
        maxChainRuns: limit(1, 100_000).default(200).describe("Maximum number of runs of one chain."),
        maxChainTokens: limit(1, MAX)
          .nullish()
          .describe("Maximum tokens of one chain; above it, no run of the chain starts. Unset: no limit."),
        maxChainCost: z
          .number()
          .positive("must be more than 0")
          .nullish()
          .describe(
            "Maximum cost of one chain in USD; above it, no run of the chain starts. Unset: no limit.",
          ),
      })
      .prefault({}),
    threadBindings,
  })
  .prefault({});

const tools = z
  .strictObject({
    ...toolFilter.unwrap().shape,
    sessions: z
      .strictObject({
        visibility: z.enum(VISIBILITY_MODES).default("tree").describe("Sessions that an agent can see."),
      })
      .prefault({}),
    agentToAgent: z
      .strictObject({
        enabled: z.boolean().default(false).describe("Whether agents can use sessions of other agents."),
        allow: texts
          .default([])
          .describe(
            "Agent ids, with `*` as a wildcard. Both the asking and the asked agent must match. Empty: all.",
          ),
      })
      .prefault({}),
    history: z
      .strictObject({
        maxTextChars: limit(100, 1_000_000)
          .default(4_000)
          .describe("Maximum characters of a text block in sessions_history."),
        maxBytes: limit(1_000, 16 * 1024 ** 2)
          .default(80 * 1024)
          .describe("Maximum bytes of a sessions_history result."),
      })
      .prefault({}),
    exec: z
      .strictObject({
        timeoutSeconds: limit(1, DAY_SECONDS).default(600).describe("Time limit of one command."),
        maxOutputBytes: limit(1_000, 1024 ** 2)
          .default(32 * 1024)
          .describe("Maximum bytes of a command's output. Its beginning and its end are kept."),
        approval: approval
          .optional()
          .describe(
            "Commands that an owner approves before they run; risky: all that may do more than read in the " +
              "workspace. Default: never in a sandbox, risky elsewhere.",
          ),
        askSeconds: limit(1, DAY_SECONDS)
          .default(300)
          .describe("A command that nobody approves in this time is denied."),
      })
      .prefault({}),
    fetch: z
      .strictObject({
        allowHosts: texts
          .default([])
          .describe(
            "Hosts that fetch may read although they are not public, e.g. `wiki.lan` or `127.0.0.1:8080`.",
          ),
      })
      .prefault({}),
    send_file: z
      .strictObject({
        maxBytes: limit(1, SENT_FILE_MAX_BYTES)
          .default(SENT_FILE_BYTES)
          .describe("Maximum bytes of a file that send_file sends."),
      })
      .prefault({}),
    search: z
      .strictObject({
        provider: z.enum(SEARCH_PROVIDERS).describe("Service that answers the tool search."),
        apiKey: optionalText.describe("Required for brave. For searxng: a bearer token, if it needs one."),
        url: httpAddress("apiKey").optional().describe("Required for searxng; may be private."),
      })
      .optional(),
    subagents: moreTools.describe(
      "Rules for sub-agents, in addition to the general ones. A non-empty allow replaces the rule that " +
        "they have no session tools; it never grants sessions_spawn beyond the depth limit.",
    ),
    sandbox: moreTools.describe("Rules for sandboxed sessions, in addition to the general ones."),
    sessions_spawn: spawnTool,
    mcp,
  })
  .prefault({});

const cron = z
  .strictObject({ enabled: z.boolean().default(true).describe("Whether scheduled jobs run.") })
  .prefault({});

const joined = z
  .strictObject({
    wake: z
      .enum(WAKES)
      .default("notify")
      .describe(
        "For a message to a window that cannot be woken: `notify` tells you; `resume` also continues the " +
          "conversation without a window, as your user. `npx parley-gateway join --wake` overrides it.",
      ),
    notify: z
      .string()
      .regex(/^[a-z]+:.+$/, "must be like telegram:123")
      .optional()
      .describe(
        "Chat that gets notices, like telegram:123. Default: the desktop, else the first of commands.owners.",
      ),
  })
  .prefault({});

const nodes = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Whether devices can be paired and used."),
    allowCommands: texts
      .default(["exec", "notify", "device.*"])
      .describe("Commands that may be sent to nodes, `*` as a wildcard. Each node also has its own list."),
    allowedSessionKeys: texts
      .default([])
      .describe("Sessions that a node may write to, besides its own; `*` as a wildcard."),
    allowSandboxed: z
      .boolean()
      .default(false)
      .describe("Whether sandboxed sessions may use nodes, although nodes are outside of every sandbox."),
  })
  .prefault({});

/** The complete configuration file. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe("The file's JSON Schema, for editors."),
  gateway,
  store: z
    .strictObject({
      dir: path.default("~/.parley/state").describe("Folder of the store."),
      durability: z
        .enum(["full", "normal"])
        .default("full")
        .describe("full: changes survive a power cut. normal: a power cut may lose the last ones."),
      postgresUrl: optionalText.describe(
        "For several gateways with one database: postgres://user:password@host:5432/database. " +
          "Default: PARLEY_DATABASE_URL; null: the embedded store.",
      ),
      backupDir: path
        .optional()
        .describe("Folder of the backups that are made on the page. Default: `backups` in `dir`."),
      recordDays: limit(0, 36_500)
        .default(30)
        .describe(
          "Time for which prompts, tools and settings of runs are kept after their last use, so that " +
            "a chain can be run again. 0: they are not kept.",
        ),
      retention: limit(0, 36_500)
        .nullable()
        .default(90)
        .describe(
          "Days for which the records of finished chains are kept: runs, flows, waits and deliveries. " +
            "Transcripts and usage are kept longer. 0 or null: for ever.",
        ),
    })
    .prefault({}),
  models: z
    .strictObject({
      providers: z
        .record(z.string().regex(PROVIDER_ID, "must be 1 to 64 letters, digits, ., _ and -"), provider)
        .default({})
        .describe("Default: from ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY; else the offline model."),
    })
    .prefault({}),
  agents,
  session,
  tools,
  channels,
  inbound,
  commands: z
    .strictObject({ owners: texts.default([]).describe("An owner, like telegram:123.") })
    .prefault({}),
  joined,
  hooks: hooks.optional(),
  a2a,
  cron,
  nodes,
  logging,
  telemetry,
});

export type ConfigFile = z.output<typeof configSchema>;
export type ProviderInFile = ConfigFile["models"]["providers"][string];
export type AgentInFile = ConfigFile["agents"]["list"][number];

/** Returns the published JSON Schema of the configuration file. */
export function configJsonSchema(): Record<string, unknown> {
  return {
    title: "Parley configuration (parley.json5)",
    ...z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" }),
  };
}
