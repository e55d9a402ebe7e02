// Defines the schema of the configuration file: every key with type, limits, default and meaning.
// An unknown key is an error.
// Everything has a default; an empty file is a complete configuration.

import type { Static } from "typebox";
import { LOG_FORMATS, LOG_LEVELS, LOG_PARTS, LOGGING } from "../../core/shapes/settings/logging.ts";
import { LABEL_MODES, PROVIDER_APIS, TOKEN_SCOPES } from "../../core/shapes/settings/settings.ts";
import { added } from "../../features.ts";
import { agents } from "./agents.ts";
import { channels, inbound, threadBindings } from "./channels.ts";
import {
  address,
  choice,
  flag,
  integer,
  list,
  MAX,
  map,
  nullable,
  number,
  object,
  optionalText,
  path,
  type Schema,
  secret,
  section,
  text,
  texts,
  withoutDefaults,
} from "./setting.ts";
import { tools } from "./tools.ts";

const price = (description: string) => number(description, { minimum: 0 }, { default: 0 });

/** Keys of a model. The defaults apply to models that are not predefined. */
export const modelKeys = {
  id: text("Model name in the provider's API.", { required: true }),
  name: text("Display name. Default: the id."),
  contextWindow: integer(
    "Size of the context in tokens. Default 128000, or the known value of the model.",
    [1_000, MAX],
    { default: 128_000 },
  ),
  maxOutputTokens: integer(
    "Maximum tokens of an answer. Default 8192, or the known value of the model.",
    [1, MAX],
    { default: 8_192 },
  ),
  reasoning: flag("Whether thinking levels apply. Default false.", { default: false }),
  images: flag("Whether it accepts pictures. Default false.", { default: false }),
  cost: object(
    {
      input: price("Price of input."),
      output: price("Price of output, including thinking."),
      cacheRead: price("Price of cache reads."),
      cacheWrite: price("Price of cache writes."),
    },
    "Prices in USD per million tokens. Default 0, or the known prices of the model.",
    { default: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } },
  ),
};

const model = object({ ...withoutDefaults(modelKeys), id: modelKeys.id });

/** The limits of requests to a provider. */
export const patience = {
  connectTimeoutSeconds: integer("Time limit of a connection attempt, including TLS.", [1, 300], {
    default: 10,
  }),
  idleTimeoutSeconds: integer(
    "A request fails after this time without a byte. Increase it for a local model that loads slowly.",
    [1, 3_600],
    { default: 90 },
  ),
  maxRetries: integer("Retries of a request that failed for a temporary reason.", [0, 20], { default: 3 }),
};

const provider = object({
  api: choice(PROVIDER_APIS, "Format of the API. Not needed for anthropic, openai and google."),
  baseUrl: address("Not needed for anthropic, openai and google.", { instead: "apiKey or headers" }),
  apiKey: optionalText(
    "Default for anthropic, openai and google: from the environment, for example ANTHROPIC_API_KEY.",
  ),
  headers: map(text(), text("", { minLength: 0 }), "HTTP headers of every request.", { default: {} }),
  ...patience,
  models: list(model, "The provider's models. Not needed for anthropic, openai and google.", { default: [] }),
});

const gateway = section(
  {
    host: text("Address to listen on.", { default: "127.0.0.1" }),
    port: integer("0: any free port.", [0, 65_535], { default: 7275 }),
    auth: section({
      token: optionalText(
        "Grants full access. At least 24 characters. Default: PARLEY_TOKEN, else one is generated.",
      ),
      tokens: list(
        object({
          token: secret("Secret that a client presents. At least 24 characters.", {
            minLength: 0,
            required: true,
          }),
          role: choice(["operator", "node"], "node: for paired devices, which have no scopes.", {
            default: "operator",
          }),
          scopes: list(choice(TOKEN_SCOPES), "Each scope includes the previous one.", { default: [] }),
          sessions: texts("Session key patterns with `*`. Unset: every session."),
        }),
        "Additional tokens, each with fewer rights than gateway.auth.token.",
        { default: [] },
      ),
    }),
    allowedOrigins: texts("Allowed browser origins, in addition to the gateway's own.", { default: [] }),
    allowedHosts: texts("Allowed Host header values, in addition to loopback.", { default: [] }),
    maxBufferedBytes: integer(
      "Number of unread bytes above which a client's connection is closed.",
      [64 * 1024, 1024 ** 3],
      { default: 8 * 1024 ** 2 },
    ),
    tickIntervalMs: integer(
      "Milliseconds between `tick` events, by which clients notice a dead connection.",
      [1_000, 600_000],
      { default: 15_000 },
    ),
  },
  { restart: true },
);

const store = section(
  {
    dir: path("Folder of the store.", { default: "~/.parley/state" }),
    durability: choice(
      ["full", "normal"],
      "full: changes survive a power cut. normal: a power cut may lose the last ones.",
      { default: "full" },
    ),
    postgresUrl: optionalText(
      "For several gateways with one database: postgres://user:password@host:5432/database. " +
        "Default: PARLEY_DATABASE_URL; null: the embedded store.",
      { shown: "secret" },
    ),
    backupDir: path("Folder of the backups that are made on the page. Default: `backups` in `dir`."),
    recordDays: integer(
      "Time for which prompts, tools and settings of runs are kept after their last use, so that " +
        "a chain can be run again. 0: they are not kept.",
      [0, 36_500],
      { default: 30 },
    ),
    retention: nullable(
      integer(
        "Days for which the records of finished chains are kept: runs, flows, waits and deliveries. " +
          "Transcripts and usage are kept longer. 0 or null: for ever.",
        [0, 36_500],
        { default: 90 },
      ),
      0,
    ),
  },
  { restart: true },
);

const sendRule = object({
  match: object(
    {
      channel: text("The channel, for example telegram. Unset: every channel."),
      chatType: choice(
        ["direct", "group", "room", "thread"],
        "The type of chat. A thread also has the type of its parent. Unset: every type.",
      ),
      keyPrefix: text("Prefix of the session key. Unset: every session."),
    },
    "Conditions of the rule. An empty object matches every send.",
    { required: true },
  ),
  action: choice(["allow", "deny"], "Effect on matching sessions; `deny` always has priority.", {
    required: true,
  }),
});

const session = section({
  scope: choice(["per-sender", "global"], "global: one session for every chat.", {
    default: "per-sender",
    restart: true,
  }),
  mainKey: text("The last part of the key of every agent's main session.", {
    pattern: [
      /^(?!global$|unknown$|node-)[a-z0-9_-]{1,64}$/,
      "must be 1 to 64 of a-z, 0-9, _ and -, not global or unknown, and not beginning with node-",
    ],
    default: "main",
    restart: true,
  }),
  dmScope: choice(
    ["main", "per-peer"],
    "main: one session for all direct chats. per-peer: a session for each direct chat.",
    { default: "main", restart: true },
  ),
  queueMax: integer("Maximum number of runs that wait for one session.", [1, 100_000], { default: 200 }),
  sendPolicy: section({
    rules: list(sendRule, "Rules about sends. A matching deny wins, else a matching allow, else default.", {
      default: [],
    }),
    default: choice(["allow", "deny"], "Effect if no rule matches.", { default: "allow" }),
  }),
  agentToAgent: section({
    maxPingPongTurns: integer("Maximum number of reply turns after the first answer.", [0, 5], {
      default: 5,
    }),
    maxHops: integer("Maximum number of consecutive sends and spawns in one chain.", [1, 1_000], {
      default: 16,
    }),
    maxChainRuns: integer("Maximum number of runs of one chain.", [1, 100_000], { default: 200 }),
    maxChainTokens: nullable(
      integer("Maximum tokens of one chain; above it, no run of the chain starts. Unset: no limit.", [
        1,
        MAX,
      ]),
      undefined,
    ),
    maxChainCost: nullable(
      number("Maximum cost of one chain in USD; above it, no run of the chain starts. Unset: no limit.", {
        exclusiveMinimum: 0,
      }),
      undefined,
    ),
  }),
  threadBindings,
});

const labels = section({
  mode: choice(
    LABEL_MODES,
    "If a session that has read content from outside and private content would let a text leave: " +
      "ask an owner, deny it, or only note it (watch).",
    { default: "ask" },
  ),
  private: texts(
    "Further session keys and MCP servers (`mcp mail`) with private texts, with `*` as a wildcard.",
    { default: [] },
  ),
  public: texts("Session keys and files (`file docs/*`) that are not private, with `*` as a wildcard.", {
    default: [],
  }),
  trust: texts(
    "Sources that do not count as outside, like `web docs.example.com` or `mcp wiki`, with `*` allowed.",
    { default: [] },
  ),
  sinks: section({
    hosts: texts("Hosts from which any session may fetch, with `*` as a wildcard.", { default: [] }),
    tools: texts("Tools of MCP servers that only read, like mcp__wiki__*, which any session may call.", {
      default: [],
    }),
    places: texts(
      "Chats, agents and sessions to which any session may send, like telegram:222 or peer:acme/*.",
      { default: [] },
    ),
  }),
});

const logging = section({
  level: choice(LOG_LEVELS, "Least severe level that is written. PARLEY_LOG overrides it.", {
    default: LOGGING.level,
  }),
  parts: map(
    choice(LOG_PARTS),
    choice(LOG_LEVELS),
    "Levels of single parts of the program. They override `level`.",
    {
      default: {},
    },
  ),
  format: choice(
    LOG_FORMATS,
    "auto: lines for people in a terminal, else JSON. PARLEY_LOG_FORMAT overrides it.",
    { default: LOGGING.format, restart: true },
  ),
});

/** The collector that gets traces if neither the file nor the environment names one. */
export const COLLECTOR_DEFAULT = "http://127.0.0.1:4318/v1/traces";

export const collector = address(
  "Collector that receives OTLP over HTTP (JSON). Default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, " +
    `OTEL_EXPORTER_OTLP_ENDPOINT with /v1/traces, else ${COLLECTOR_DEFAULT}.`,
  { instead: "headers", shown: "origin" },
);

const traces = section(
  {
    enabled: flag("Whether runs are traced.", { default: false }),
    endpoint: collector,
    headers: map(
      text("", { pattern: [/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be the name of a header"] }),
      // A header cannot contain line breaks and some other characters.
      text("", { pattern: [/^[\t\x20-\x7e]{0,8192}$/, "must be plain text on one line"] }),
      "HTTP headers that are sent with every request.",
      { default: {} },
    ),
    sampleRatio: number(
      "Share of chains that are traced; a chain is traced completely or not at all.",
      { minimum: 0, maximum: 1 },
      { default: 1 },
    ),
    content: flag("Whether traces contain messages, arguments and results, with credentials redacted.", {
      default: false,
    }),
    serviceName: text("Name of this deployment in the collector.", { default: "parley" }),
  },
  { restart: true },
);

/** The complete configuration file. */
export const configSchema = object({
  $schema: text("The file's JSON Schema, for editors.", { minLength: 0 }),
  gateway,
  store,
  models: section({
    providers: map(
      text("", {
        pattern: [/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/, "must be 1 to 64 letters, digits, ., _ and -"],
      }),
      provider,
      "Default: from ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY; else the offline model.",
      { default: {} },
    ),
  }),
  agents,
  session,
  tools,
  channels,
  inbound,
  commands: section({ owners: texts("An owner, like telegram:123.", { default: [] }) }),
  labels,
  logging,
  telemetry: section({ traces }),
  ...added("settings"),
});

/** The content of the configuration file, with defaults filled in. */
export type ConfigFile = Static<typeof configSchema>;

/** The published JSON Schema of the configuration file. */
export const configJsonSchema: Schema & { readonly title: string; readonly $schema: string } = {
  title: "Parley configuration (parley.json5)",
  $schema: "https://json-schema.org/draft/2020-12/schema",
  ...configSchema,
};
