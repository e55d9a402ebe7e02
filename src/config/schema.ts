// Owns the shape of the configuration file: every key, its type, its bounds, its default and its meaning.
// G1: an unknown key is an error. G2: everything has a default; an empty file is a whole configuration.

import { z } from "zod";
import { ANSWER_LIMITS, PROVIDER_APIS, THINKING_LEVELS, VISIBILITY_MODES } from "../core/settings.ts";
import { channels, inbound, threadBindings } from "./channels-schema.ts";
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
import { hooks } from "./hooks-schema.ts";
import { logging } from "./logging.ts";
import { mcp } from "./mcp.ts";
import { runtime } from "./runtime-schema.ts";
import {
  agentSandbox,
  agentSubagents,
  budget,
  moreTools,
  sandbox,
  spawnTool,
  subagents,
} from "./subagents-schema.ts";
import { telemetry } from "./telemetry.ts";

const price = z.number().min(0).default(0);

const cost = z
  .strictObject({
    input: price.describe("Of what the model reads."),
    output: price.describe("Of what it writes, thinking included."),
    cacheRead: price.describe("Of what it reads from its provider's cache."),
    cacheWrite: price.describe("Of what it puts there."),
  })
  .describe("USD a million tokens. Unset: 0, or what is known of the model.");

const model = z.strictObject({
  id: text.describe("The name that the provider's API knows."),
  name: text.optional().describe("The name that people see. Default: the id."),
  contextWindow: limit(1_000, MAX)
    .optional()
    .describe("Tokens. Default 128000, or what is known of the model."),
  maxOutputTokens: limit(1, MAX).optional().describe("Tokens. Default 8192, or what is known of the model."),
  reasoning: z.boolean().optional().describe("Whether thinking levels apply. Default false."),
  images: z.boolean().optional().describe("Whether it sees pictures. Default false."),
  cost: cost.optional(),
});

const PROVIDER_ID = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;

const provider = z.strictObject({
  api: z.enum(PROVIDER_APIS).optional().describe("Not needed for anthropic, openai and google."),
  baseUrl: httpAddress("apiKey or headers")
    .optional()
    .describe("Not needed for anthropic, openai and google."),
  apiKey: optionalText.describe(
    "Default: of anthropic, openai and google that of the environment, like ANTHROPIC_API_KEY.",
  ),
  headers: z.record(text, z.string()).default({}).describe("Sent with every request."),
  connectTimeoutSeconds: limit(1, 300)
    .default(10)
    .describe("Fails a try whose connection, TLS included, is not made within this time."),
  idleTimeoutSeconds: limit(1, 3_600)
    .default(90)
    .describe(
      "Gives a request up after this long without a byte. Raise it for a local model that loads slowly.",
    ),
  maxRetries: limit(0, 20)
    .default(3)
    .describe("Further tries of a request that failed for a passing reason."),
  models: z.array(model).default([]).describe("Not needed for anthropic, openai and google."),
});

/** Of the default agent; others have `-<id>` behind it. */
export const WORKSPACE_DEFAULT = "~/.parley/workspace";

const AGENT_ID = /^[a-zA-Z0-9_-]{1,64}$/;

const maxModelCalls = limit(1, 100_000);
const maxAnswerBytes = limit(1_024, 64 * 1024 * 1024);
const maxAnswerToolCalls = limit(1, 10_000);
const maxToolResultBytes = limit(1_024, 64 * 1024 * 1024);

const agent = z.strictObject({
  id: z.string().regex(AGENT_ID, "must be 1 to 64 of a-z, 0-9, _ and -").describe("Lower-cased."),
  default: z.boolean().default(false).describe("Gets what names no agent. Default: the first of the list."),
  name: text.optional().describe("The name that people see."),
  model: modelName.nullish().describe("Default: agents.defaults.model."),
  fallbackModels: z.array(modelName).optional().describe("Default: agents.defaults.fallbackModels."),
  thinking: z.enum(THINKING_LEVELS).optional().describe("Default: agents.defaults.thinking."),
  workspace: path
    .optional()
    .describe("Default: <agents.defaults.workspace>-<id>, for the default agent without -<id>."),
  instructions: text.optional().describe("Put behind the runtime's own system prompt."),
  tools: toolFilter,
  runtime: runtime.optional(),
  sandbox: agentSandbox.optional(),
  subagents: agentSubagents.optional(),
  maxModelCalls: maxModelCalls.optional().describe("Default: agents.defaults.maxModelCalls."),
  maxAnswerBytes: maxAnswerBytes.optional().describe("Default: agents.defaults.maxAnswerBytes."),
  maxAnswerToolCalls: maxAnswerToolCalls.optional().describe("Default: agents.defaults.maxAnswerToolCalls."),
  maxToolResultBytes: maxToolResultBytes.optional().describe("Default: agents.defaults.maxToolResultBytes."),
  budget: budget.optional().describe("Default: agents.defaults.budget; null in a key: none."),
});

const agents = z
  .strictObject({
    defaults: z
      .strictObject({
        model: modelName.nullish().describe("Default: the first model of the first provider."),
        fallbackModels: z
          .array(modelName)
          .default([])
          .describe("Asked in this order when the model has failed for good."),
        thinking: z.enum(THINKING_LEVELS).default("off").describe("How long a model thinks that can."),
        workspace: path
          .default(WORKSPACE_DEFAULT)
          .describe("The default agent's folder; of another agent with -<id> behind it."),
        maxConcurrent: limit(1, 1_000)
          .default(8)
          .describe("Runs that execute at once; waiting ones don't count."),
        maxModelCalls: maxModelCalls.default(400).describe("Model calls of one run; over it, the run fails."),
        maxAnswerBytes: maxAnswerBytes
          .default(ANSWER_LIMITS.maxAnswerBytes)
          .describe("Bytes of one answer of a model; past it, the run keeps what came and fails."),
        maxAnswerToolCalls: maxAnswerToolCalls
          .default(ANSWER_LIMITS.maxAnswerToolCalls)
          .describe("Tool calls in one answer of a model; past it, the run keeps its text and fails."),
        maxToolResultBytes: maxToolResultBytes
          .default(ANSWER_LIMITS.maxToolResultBytes)
          .describe("Bytes of one tool result; what is beyond is cut, and the model is told."),
        sandbox,
        subagents,
        budget: budget.optional().describe("Of each agent for itself."),
      })
      .prefault({}),
    list: z.array(agent).default([]).describe("Empty: one agent, main."),
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
          "Opens everything. At least 24 characters. Unset: PARLEY_TOKEN, else one is generated.",
        ),
        tokens: z
          .array(
            z.strictObject({
              token: z.string().describe("What a client shows, as a password. At least 24 characters."),
              role: z
                .enum(["operator", "node"])
                .default("operator")
                .describe("node: for paired devices, which have no scopes."),
              scopes: z.array(scope).default([]).describe("Each contains the one before it."),
              sessions: texts.optional().describe("Key patterns with `*`. Unset: every session."),
            }),
          )
          .default([])
          .describe("Tokens with fewer rights."),
      })
      .prefault({}),
    allowedOrigins: texts.default([]).describe("Browser origins besides the gateway's own."),
    allowedHosts: texts.default([]).describe("Host header values besides loopback."),
    maxBufferedBytes: limit(64 * 1024, 1024 ** 3)
      .default(8 * 1024 * 1024)
      .describe("A client that has this much unread is closed."),
    tickIntervalMs: limit(1_000, 600_000)
      .default(15_000)
      .describe("Milliseconds between two events `tick`, by which clients notice a dead connection."),
  })
  .prefault({});

const sendRule = z.strictObject({
  match: z
    .strictObject({
      channel: text.optional().describe("Like telegram. Unset: every channel."),
      chatType: z
        .enum(["direct", "group", "room", "thread"])
        .optional()
        .describe("A thread is also of the type it stands in. Unset: every type."),
      keyPrefix: text.optional().describe("What the session's key begins with. Unset: every session."),
    })
    .describe("Empty: every send."),
  action: z.enum(["allow", "deny"]).describe("Of what matches; a deny always wins."),
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
      .describe("per-peer: a session for each direct chat."),
    queueMax: limit(1, 100_000).default(200).describe("Runs that wait for one session."),
    sendPolicy: z
      .strictObject({
        rules: z
          .array(sendRule)
          .default([])
          .describe("A matching deny wins, else a matching allow, else default."),
        default: z.enum(["allow", "deny"]).default("allow").describe("Where no rule matches."),
      })
      .prefault({}),
    agentToAgent: z
      .strictObject({
        maxPingPongTurns: limit(0, 5).default(5).describe("Reply turns after the first answer."),
        maxHops: limit(1, 1_000).default(16).describe("Sends and spawns in a row in one chain."),
        maxChainRuns: limit(1, 100_000).default(200).describe("Runs of one chain, all counted."),
        maxChainTokens: limit(1, MAX)
          .nullish()
          .describe("Tokens of one chain; over it no run of it starts. Unset: none."),
        maxChainCost: z
          .number()
          .positive("must be more than 0")
          .nullish()
          .describe("USD of one chain; over it no run of it starts. Unset: none."),
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
        visibility: z.enum(VISIBILITY_MODES).default("tree").describe("Which sessions an agent sees."),
      })
      .prefault({}),
    agentToAgent: z
      .strictObject({
        enabled: z.boolean().default(false).describe("Whether agents reach other agents' sessions."),
        allow: texts.default([]).describe("Agent ids, `*` as a wildcard; both sides must match. Empty: all."),
      })
      .prefault({}),
    history: z
      .strictObject({
        maxTextChars: limit(100, 1_000_000)
          .default(4_000)
          .describe("A text block of sessions_history is cut here."),
        maxBytes: limit(1_000, 16 * 1024 ** 2)
          .default(80 * 1024)
          .describe("A sessions_history result is cut here."),
      })
      .prefault({}),
    exec: z
      .strictObject({
        timeoutSeconds: limit(1, DAY_SECONDS).default(600).describe("The longest that one command may run."),
        maxOutputBytes: limit(1_000, 1024 ** 2)
          .default(32 * 1024)
          .describe("Head and tail of its output together."),
      })
      .prefault({}),
    subagents: moreTools.describe(
      "Of sub-agents, besides the rules that hold for all. A non-empty allow replaces the rule that " +
        "they have no session tools; it never grants sessions_spawn beyond the depth limit.",
    ),
    sandbox: moreTools.describe("Of sandboxed sessions, besides the rules that hold for all."),
    sessions_spawn: spawnTool,
    mcp,
  })
  .prefault({});

const cron = z
  .strictObject({ enabled: z.boolean().default(true).describe("Whether scheduled jobs are fired.") })
  .prefault({});

const nodes = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Whether devices elsewhere may be paired and asked."),
    allowCommands: texts
      .default(["exec", "notify", "device.*"])
      .describe("Commands that may be asked of nodes, `*` as a wildcard. A node has its own list besides."),
    allowedSessionKeys: texts
      .default([])
      .describe("Sessions that a node may write to besides its own, `*` as a wildcard."),
    allowSandboxed: z
      .boolean()
      .default(false)
      .describe("Whether sandboxed sessions may use nodes, although those are outside of every sandbox."),
  })
  .prefault({});

/** The whole configuration file. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe("For editors."),
  gateway,
  store: z
    .strictObject({
      dir: path.default("~/.parley/state").describe("Where everything is kept."),
      durability: z
        .enum(["full", "normal"])
        .default("full")
        .describe("normal: a power cut may lose the last moments."),
      postgresUrl: optionalText.describe(
        "For many gateways over one database, like postgres://user:password@host:5432/database. " +
          "Default: PARLEY_DATABASE_URL; null: the embedded store, whatever that says.",
      ),
    })
    .prefault({}),
  models: z
    .strictObject({
      providers: z
        .record(z.string().regex(PROVIDER_ID, "must be 1 to 64 letters, digits, ., _ and -"), provider)
        .default({})
        .describe(
          "Empty: by ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY; else the offline model answers.",
        ),
    })
    .prefault({}),
  agents,
  session,
  tools,
  channels,
  inbound,
  commands: z.strictObject({ owners: texts.default([]).describe("Like telegram:123.") }).prefault({}),
  hooks: hooks.optional(),
  cron,
  nodes,
  logging,
  telemetry,
});

export type ConfigFile = z.output<typeof configSchema>;
export type ProviderInFile = ConfigFile["models"]["providers"][string];
export type AgentInFile = ConfigFile["agents"]["list"][number];

/** The published JSON Schema of the configuration file. */
export function configJsonSchema(): Record<string, unknown> {
  return {
    title: "Parley configuration (parley.json5)",
    ...z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" }),
  };
}
