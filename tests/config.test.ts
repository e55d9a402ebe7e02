// The valid keys of a configuration file and their effect. config-problems.test.ts tests invalid files.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeSettings, secretsOf } from "../src/config/describe.ts";
import { configJsonSchema } from "../src/config/schema/schema.ts";
import { processEnvironment } from "../src/config.ts";
import { ANSWER_LIMITS, defaultAgent } from "../src/core/shapes/settings/settings.ts";
import { useConfigHome } from "./kit/process/config-home.ts";

const config = useConfigHome();

const LOCAL = `models: { providers: { local: { api: "openai-completions", baseUrl: "http://127.0.0.1:11434/v1",
  models: [{ id: "qwen3" }] } } }`;

const NODES = {
  enabled: true,
  allowCommands: ["exec", "notify", "device.*"],
  allowedSessionKeys: [],
  allowSandboxed: false,
};
const SANDBOX = {
  mode: "off",
  sessionToolsVisibility: "spawned",
  network: false,
  backend: "auto",
  memoryMb: 1_024,
  processesMax: 128,
  diskMb: 1_024,
  git: "read",
};

const LOGGING = { level: "info", parts: {}, format: "auto" };

test("a file named parley.json is not read, and the error says how to rename it", () => {
  const wrong = join(config().home, ".parley/parley.json");
  config().write("{}", wrong);
  expect(config().good().warnings).toEqual([`${wrong} is not read. Rename it to parley.json5.`]);
  expect(config().good("{}").warnings).toEqual([]);
});

const ATTACHMENTS = {
  enabled: true,
  maxFiles: 50,
  maxFileBytes: 1024 ** 2,
  maxTotalBytes: 5 * 1024 ** 2,
  retainOnSessionKeep: false,
};

test("without a file every setting has its default, and the default model is the offline model", () => {
  expect(config().good()).toMatchObject({ warnings: [], path: config().defaultPath, exists: false });
  expect(config().good().settings).toEqual({
    gateway: {
      host: "127.0.0.1",
      port: 7275,
      tokens: [],
      allowedOrigins: [],
      allowedHosts: [],
      maxBufferedBytes: 8 * 1024 * 1024,
      tickIntervalMs: 15_000,
    },
    store: { dir: join(config().home, ".parley/state"), durability: "full", recordDays: 30, retention: 90 },
    providers: [],
    agents: [
      {
        id: "main",
        default: true,
        model: "offline/rehearsal",
        thinking: "off",
        workspace: join(config().home, ".parley/workspace"),
        tools: { allow: [], deny: [] },
        subagents: { allowAgents: [] },
        sandbox: SANDBOX,
        ...{
          fallbackModels: [],
          instructionFiles: true,
          skills: true,
          memory: true,
          maxModelCalls: 400,
          ...ANSWER_LIMITS,
        },
      },
    ],
    channels: [],
    ...{ maxConcurrent: 8, titles: "words", a2a: { expose: [], notifyHosts: [], descriptions: {} } },
    subagents: {
      maxConcurrent: 8,
      maxChildren: 20,
      maxSpawnDepth: 1,
      runTimeoutSeconds: 0,
      archiveAfterMinutes: 60,
      announce: "post",
    },
    push: {
      contact: "https://parley-gateway.github.io/parley/",
      needs: ["permission", "failure", "question"],
      services: [],
    },
    session: {
      scope: "per-sender",
      mainKey: "main",
      dmScope: "main",
      queueMax: 200,
      sendPolicy: { rules: [], default: "allow" },
      agentToAgent: { maxPingPongTurns: 5, maxHops: 16, maxChainRuns: 200 },
    },
    tools: {
      filter: { allow: [], deny: [] },
      visibility: "tree",
      agentToAgent: { enabled: false, allow: [] },
      subagents: { allow: [], deny: [] },
      sandbox: { allow: [], deny: [] },
      sessionsSpawn: { attachments: ATTACHMENTS },
      mcp: { servers: [], waitSeconds: 10, maxResultBytes: 65_536 },
      history: { maxTextChars: 4_000, maxBytes: 81_920 },
      exec: { timeoutSeconds: 600, maxOutputBytes: 32_768, askSeconds: 300 },
      fetch: { allowHosts: [] },
      sendFile: { maxBytes: 5 * 1024 * 1024 },
    },
    ...{ owners: [], joined: { wake: "notify" }, cron: { enabled: true }, nodes: NODES },
    hooks: { enabled: false, allowedSessionKeys: ["hook:*"], mappings: [], outgoing: [] },
    labels: {
      ...{ mode: "ask", private: [], public: [], trust: [] },
      sinks: { hosts: [], tools: [], places: [] },
    },
    logging: LOGGING,
  });
});

test.each(["", "  \n", "// nothing yet\n", "/* a */ // b", "{}", "\uFEFF{}"])(
  "an empty file (%j) is a valid configuration",
  (text) => {
    const { settings, exists } = config().good(text);
    expect(exists).toBe(true);
    rmSync(config().defaultPath);
    expect(settings).toEqual(config().good().settings);
  },
);

test("a file that uses every section can be loaded", () => {
  const { settings, warnings } = config().good(SPEC_EXAMPLE, { env: { PARLEY_TOKEN: "", LOCAL_KEY: "k" } });
  expect(warnings).toEqual([]);
  expect(settings.channels).toMatchObject([
    { channel: "telegram", accountId: "default", botToken: "x", dmPolicy: "pairing" },
    { channel: "discord", accountId: "default", token: "y", groupPolicy: "allowlist" },
  ]);
  expect(settings.agents.map(({ id, model, workspace }) => ({ id, model, workspace }))).toEqual([
    { id: "main", model: "local/qwen3", workspace: join(config().home, ".parley/workspace") },
    {
      id: "research",
      model: "offline/rehearsal",
      workspace: join(config().home, ".parley/workspace-research"),
    },
  ]);
  expect(settings.agents[1]?.subagents.allowAgents).toEqual(["*"]);
  expect(settings.gateway).not.toHaveProperty("token");
  expect(settings.providers[0]).toMatchObject({ apiKey: "k", models: [{ contextWindow: 128_000 }] });
});

const SPEC_EXAMPLE = `{
  gateway: { host: "127.0.0.1", port: 7275, auth: { token: "\${PARLEY_TOKEN:-}" } },
  store: { dir: "~/.parley/state", durability: "full", postgresUrl: null },
  models: { providers: { local: { api: "openai-completions", baseUrl: "http://127.0.0.1:11434/v1",
    apiKey: "\${LOCAL_KEY}",
    models: [{ id: "qwen3", contextWindow: 128000, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }] } } },
  agents: {
    defaults: { model: "local/qwen3", thinking: "off", workspace: "~/.parley/workspace", maxConcurrent: 8,
      sandbox: { mode: "off", sessionToolsVisibility: "spawned" },
      subagents: { allowAgents: [], model: null, maxConcurrent: 8, maxChildren: 20, maxSpawnDepth: 1,
        runTimeoutSeconds: 0, archiveAfterMinutes: 60, announce: "post" } },
    list: [{ id: "main", default: true },
      { id: "research", model: "offline/rehearsal", subagents: { allowAgents: ["*"] } }],
  },
  session: { scope: "per-sender", mainKey: "main", dmScope: "main", queueMax: 200,
    sendPolicy: { rules: [], default: "allow" },
    agentToAgent: { maxPingPongTurns: 5, maxHops: 16, maxChainRuns: 200 },
    threadBindings: { enabled: true, idleHours: 24, maxAgeHours: 0 } },
  tools: { allow: [], deny: [], sessions: { visibility: "tree" }, agentToAgent: { enabled: false, allow: [] },
    subagents: { tools: { allow: [], deny: [] } }, sandbox: { tools: { allow: [], deny: [] } },
    sessions_spawn: { attachments: { enabled: true } } },
  channels: { telegram: { botToken: "x" }, discord: { token: "y" } },
  commands: { owners: [] }, hooks: { enabled: false, token: "z", allowedSessionKeys: ["hook:*"] },
  cron: { enabled: true },
}`;

test("settings in the file and on the command line take effect", () => {
  const text = `{ gateway: { port: 1, auth: { tokens: [{ token: "123456789012345678901234", scopes: ["operator.read"] }] } },
    agents: { defaults: { workspace: "~/w", maxConcurrent: 3 }, list: [{ id: "A" }, { id: "B", default: true,
      name: "Bee", thinking: "high", workspace: "rel", instructions: "Be brief.", tools: { deny: ["exec"] } }] },
    session: { sendPolicy: { rules: [{ match: { chatType: "group" }, action: "deny" }, { match: {}, action: "allow" }] } },
    tools: { deny: ["exec"], sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow: ["a*"] } },
    commands: { owners: ["telegram:1"] } }`;
  const overrides = { host: "::1", port: 0, storeDir: "/s" };
  const { settings } = config().good(text, {
    overrides,
    env: { PARLEY_TOKEN: "from-the-environment-and-long", PATH: "/p" },
  });
  expect(settings.gateway).toMatchObject({ host: "::1", port: 0, token: "from-the-environment-and-long" });
  expect(settings.gateway.tokens).toEqual([
    { token: "123456789012345678901234", role: "operator", scopes: ["operator.read"] },
  ]);
  expect(settings.store.dir).toBe("/s");
  expect(settings.maxConcurrent).toBe(3);
  expect(defaultAgent(settings)).toEqual({
    id: "b",
    name: "Bee",
    default: true,
    model: "offline/rehearsal",
    thinking: "high",
    workspace: join(config().home, ".parley/rel"),
    instructions: "Be brief.",
    tools: { allow: [], deny: ["exec"] },
    subagents: { allowAgents: [] },
    sandbox: SANDBOX,
    ...{
      fallbackModels: [],
      instructionFiles: true,
      skills: true,
      memory: true,
      maxModelCalls: 400,
      ...ANSWER_LIMITS,
    },
  });
  expect(settings.agents[0]).toMatchObject({
    id: "a",
    default: false,
    workspace: join(config().home, "w-a"),
  });
  expect(settings.session.sendPolicy.rules).toEqual([
    { match: { chatType: "group" }, action: "deny" },
    { match: {}, action: "allow" },
  ]);
  expect(settings.tools).toMatchObject({
    filter: { allow: [], deny: ["exec"] },
    visibility: "all",
    agentToAgent: { enabled: true, allow: ["a*"] },
    exec: { searchPath: "/p" },
  });
  expect(settings.owners).toEqual(["telegram:1"]);
});

test("an agent's own maxModelCalls replaces the default value", () => {
  const text = `{ agents: { defaults: { maxModelCalls: 7 }, list: [{ id: "a", maxModelCalls: 3 }, { id: "b" }] } }`;
  expect(
    config()
      .good(text)
      .settings.agents.map((agent) => agent.maxModelCalls),
  ).toEqual([3, 7]);
});

test("sub-agents, sandbox and budgets: each key that an agent sets replaces the default of that key", () => {
  const text = `{ agents: { defaults: {
      subagents: { model: "offline/rehearsal", maxConcurrent: 2, maxChildren: 50, maxSpawnDepth: 5,
        runTimeoutSeconds: 9, archiveAfterMinutes: 0, announce: "wake", allowAgents: ["B"] },
      sandbox: { mode: "non-main", network: true, backend: "docker", memoryMb: "\${MB}", image: "debian:13" } },
      list: [{ id: "a", sandbox: { mode: "all", network: false, sessionToolsVisibility: "all" } },
        { id: "b", subagents: { allowAgents: [], model: "offline/rehearsal" }, sandbox: { image: "\${NONE:-}" } }] },
    session: { agentToAgent: { maxChainTokens: 1000, maxChainCost: 0.5 } },
    tools: { subagents: { tools: { allow: ["read"] } }, sandbox: { tools: { deny: ["exec"] } },
      sessions_spawn: { attachments: { enabled: false, maxFiles: 1, retainOnSessionKeep: true } } } }`;
  const { settings, warnings } = config().good(text, { env: { MB: "512" } });
  expect(warnings).toEqual([]);
  expect(settings.subagents).toEqual({
    model: "offline/rehearsal",
    maxConcurrent: 2,
    maxChildren: 50,
    maxSpawnDepth: 5,
    runTimeoutSeconds: 9,
    archiveAfterMinutes: 0,
    announce: "wake",
  });
  const base = {
    ...SANDBOX,
    mode: "non-main",
    network: true,
    backend: "docker",
    memoryMb: 512,
    image: "debian:13",
  };
  expect(settings.agents.map(({ sandbox }) => sandbox)).toEqual([
    { ...base, mode: "all", network: false, sessionToolsVisibility: "all", git: "write" },
    base,
  ]);
  expect(settings.agents.map(({ subagents }) => subagents)).toEqual([
    { allowAgents: ["b"] },
    { allowAgents: [], model: "offline/rehearsal" },
  ]);
  expect(settings.session.agentToAgent).toMatchObject({ maxChainTokens: 1000, maxChainCost: 0.5 });
  expect(settings.tools).toMatchObject({
    subagents: { allow: ["read"], deny: [] },
    sandbox: { allow: [], deny: ["exec"] },
    sessionsSpawn: {
      attachments: { enabled: false, maxFiles: 1, maxFileBytes: 1024 ** 2, retainOnSessionKeep: true },
    },
  });
});

test("settings are deeply frozen", () => {
  const frozen = (value: unknown): boolean =>
    typeof value !== "object" ||
    value === null ||
    (Object.isFrozen(value) && Object.values(value).every(frozen));
  expect(frozen(config().good(SPEC_EXAMPLE, { env: { LOCAL_KEY: "k" } }).settings)).toBe(true);
});

test("the file given on the command line is read, else that of PARLEY_CONFIG, else the default one; a given file must exist", () => {
  config().write("{ gateway: { port: 1 } }");
  config().write("{ gateway: { port: 2 } }", join(config().home, "env.json5"));
  config().write("{ gateway: { port: 3 } }", join(config().home, "named.json5"));
  const env = { PARLEY_CONFIG: "~/env.json5" };
  expect(config().good().settings.gateway.port).toBe(1);
  expect(config().good(undefined, { env }).settings.gateway.port).toBe(2);
  expect(config().good(undefined, { env, configPath: join(config().home, "named.json5") })).toMatchObject({
    path: join(config().home, "named.json5"),
    settings: { gateway: { port: 3 } },
  });
  expect(config().load(undefined, { configPath: join(config().home, "no.json5") })).toMatchObject({
    error: `${join(config().home, "no.json5")} does not exist`,
  });
  expect(config().load(undefined, { env: { PARLEY_CONFIG: config().home } })).toMatchObject({ ok: false });
});

test("variables are inserted and converted to the expected type; they can have default values and can be escaped", () => {
  const text = `{ gateway: { port: "\${PORT}", host: "\${HOST:-0.0.0.0}", auth: { token: "a-long-token-\${T}b\${T:-c}" } },
    tools: { agentToAgent: { enabled: "\${ON}" } }, agents: { list: [{ id: "x", name: "$\${T} $ \${EMPTY:-e\${}" }] } }`;
  const { settings } = config().good(text, { env: { PORT: "81", T: "${PORT}", ON: "true", EMPTY: "" } });
  expect(settings.gateway).toMatchObject({
    port: 81,
    host: "0.0.0.0",
    token: "a-long-token-${PORT}b${PORT}",
  });
  expect(settings.tools.agentToAgent.enabled).toBe(true);
  expect(settings.agents[0]?.name).toBe("${T} $ e${");
});

test("old spellings are accepted with a warning that names the current spelling", () => {
  const text = `{ agent: { maxConcurrent: "\${N}", subagents: { tools: { deny: ["exec"] } }, sandbox: { mode: "all" } },
    routing: { agentToAgent: { enabled: true } }, session: { sendPolicy: { rules: [
      { match: { provider: "telegram", chatType: "channel" }, action: "deny" },
      { match: { surface: "discord" }, action: "deny" }] } } }`;
  const { settings, warnings } = config().good(text, { env: { N: "2" } });
  expect(settings.maxConcurrent).toBe(2);
  expect(settings.tools.agentToAgent).toEqual({ enabled: true, allow: [] });
  expect(settings.tools.subagents).toEqual({ allow: [], deny: ["exec"] });
  expect(settings.agents[0]?.sandbox.mode).toBe("all");
  expect(settings.session.sendPolicy.rules).toEqual([
    { match: { channel: "telegram", chatType: "room" }, action: "deny" },
    { match: { channel: "discord" }, action: "deny" },
  ]);
  expect(warnings).toEqual([
    "agent.subagents.tools.deny is an earlier spelling: write tools.subagents.tools.deny instead",
    "agent.maxConcurrent is an earlier spelling: write agents.defaults.maxConcurrent instead",
    "agent.sandbox is an earlier spelling: write agents.defaults.sandbox instead",
    "routing.agentToAgent.enabled is an earlier spelling: write tools.agentToAgent.enabled instead",
    "session.sendPolicy.rules[0].match.provider is an earlier spelling: write channel instead",
    'session.sendPolicy.rules[0].match.chatType is an earlier spelling: write chatType "room" instead',
    "session.sendPolicy.rules[1].match.surface is an earlier spelling: write channel instead",
  ]);
});

test.each([
  [{ ANTHROPIC_API_KEY: "k" }, "anthropic/claude-sonnet-5"],
  [{ OPENAI_API_KEY: "k" }, "openai/gpt-6-sol"],
  [{ GEMINI_API_KEY: "k" }, "google/gemini-3.8-flash"],
  [{ GEMINI_API_KEY: "k", OPENAI_API_KEY: "k" }, "openai/gpt-6-sol"],
  [{ ANTHROPIC_API_KEY: "" }, "offline/rehearsal"],
])("the environment variable %j adds a provider", (env, model) => {
  expect(defaultAgent(config().good("{}", { env }).settings).model).toBe(model);
});

test("a provider in the file replaces keys in the environment; for a known provider its name suffices", () => {
  const env = { ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "o" };
  const local = config().good(`{ ${LOCAL} }`, { env }).settings;
  expect(local.providers.map(({ id }) => id)).toEqual(["local"]);
  expect(defaultAgent(local).model).toBe("local/qwen3");
  const text = `{ models: { providers: { openai: { models: [{ id: "gpt-6-luna", name: "Luna" }] }, google: {} } } }`;
  const { settings, warnings } = config().good(text, { env });
  expect(settings.providers[0]).toMatchObject({
    api: "openai-responses",
    apiKey: "o",
    models: [{ id: "gpt-6-luna", name: "Luna", contextWindow: 272_000, cost: { input: 0.1 } }],
  });
  expect(warnings).toEqual([
    "models.providers.google.apiKey is not set, and neither is GEMINI_API_KEY: its models will not answer",
  ]);
});

test("connectTimeoutSeconds is 10 by default, for all providers, and has limits", () => {
  const withLocal = (more: string) => `{ ${LOCAL.replace("models: [", `${more} models: [`)} }`;
  const patience = { connectTimeoutSeconds: 10, idleTimeoutSeconds: 90, maxRetries: 3 };
  expect(config().good(withLocal("")).settings.providers[0]).toMatchObject(patience);
  const env = { ANTHROPIC_API_KEY: "k" };
  expect(config().good("{}", { env }).settings.providers[0]).toMatchObject(patience);
  const set = config().good(withLocal("connectTimeoutSeconds: 3,")).settings.providers[0];
  expect(set).toMatchObject({ ...patience, connectTimeoutSeconds: 3 });
  for (const wrong of [0, 301, 1.5]) {
    const [problem] = config().problems(withLocal(`connectTimeoutSeconds: ${wrong},`));
    expect(problem).toContain("models.providers.local.connectTimeoutSeconds");
  }
});

test("a file with secrets that other users can read gives a warning; names of variables are no secrets", () => {
  const warned = (text: string, mode: number) => {
    config().write(text, config().defaultPath, mode);
    return config().good(undefined, { env: { T: "t".repeat(24) } }).warnings;
  };
  const secret = '{ gateway: { auth: { token: "abcdefghijklmnopqrstuvwxyz" } } }';
  expect(warned(secret, 0o644)).toEqual([
    `${config().defaultPath} contains secrets, and other users can read it (mode 644). Run chmod 600 on it.`,
  ]);
  expect(
    warned('{ gateway: { auth: { token: "${NONE:-abcdefghijklmnopqrstuvwxyz}" } } }', 0o644),
  ).toHaveLength(1);
  expect(warned('{ gateway: { auth: { token: "${T:-}" } } }', 0o644)).toEqual([]);
  expect(warned(secret, 0o600)).toEqual([]);
  expect(warned('{ gateway: { auth: { token: "${T}" } } }', 0o644)).toEqual([]);
  expect(warned("{ gateway: { port: 1 } }", 0o644)).toEqual([]);
});

test.each(["~/.parley", "/"])(
  "a warning is given if a workspace contains the store or the configuration: %s",
  (workspace) => {
    const { warnings } = config().good(`{ agents: { defaults: { workspace: "${workspace}" } } }`);
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain(
      `contains ${join(config().home, ".parley/state")}, so the agent can change it`,
    );
  },
);

test("a warning is given if a workspace contains the backups or is inside of their folder", () => {
  const { home } = config();
  const warned = (backupDir: string) =>
    config().good(`{ store: { backupDir: "${backupDir}" }, agents: { defaults: { workspace: "~/work" } } }`)
      .warnings;
  const whose = `the workspace of agent main (${join(home, "work")})`;
  expect(warned("~/work/backups")).toEqual([
    `${whose} contains ${join(home, "work/backups")}, so the agent can change it`,
  ]);
  expect(warned("~")).toEqual([
    `${whose} is inside of ${home}, which belongs to the gateway, so no sandbox can use it`,
  ]);
  expect(warned("~/workbench")).toEqual([]);
});

test("I14: the described settings contain everything except secrets", () => {
  const tokens = '[{ token: "geheim-2-and-long-enough-", scopes: ["operator.read"] }]';
  const text = `{ gateway: { auth: { token: "geheim-1-and-long-enough-", tokens: ${tokens} } },
    store: { postgresUrl: "postgres://u:geheim-5@h/d" },
    tools: { search: { provider: "brave", apiKey: "geheim-12" } },
    models: { providers: { p: { api: "openai-completions", baseUrl: "http://h/v1", apiKey: "geheim-3",
      headers: { "x-key": "geheim-4" }, models: [{ id: "m" }] } } },
    channels: { telegram: { botToken: "geheim-6" }, discord: { token: "geheim-7" },
      whatsapp: { phoneNumberId: "12345", accessToken: "geheim-8", appSecret: "geheim-9", verifyToken: "geheim-10" },
      signal: { number: "+4917012345678" }, imessage: { command: ["imsg", "rpc", "--key", "geheim-11"] } } }`;
  const { settings } = config().good(text);
  expect(secretsOf(settings)).toContain("geheim-12");
  const described = describeSettings(settings);
  expect(JSON.stringify(described)).not.toContain("geheim");
  expect(described).toMatchObject({
    gateway: { port: 7275, token: "(set)", tokens: [{ token: "(set)", scopes: ["operator.read"] }] },
    store: { durability: "full", recordDays: 30, retention: 90, postgresUrl: "(set)" },
    tools: { search: { provider: "brave", apiKey: "(set)" } },
    providers: [{ id: "p", apiKey: "(set)", headers: { "x-key": "(set)" } }],
    channels: [
      { channel: "telegram", botToken: "(set)" },
      { channel: "discord", token: "(set)" },
      { channel: "whatsapp", phoneNumberId: "12345", appSecret: "(set)" },
      { channel: "signal", number: "+4917012345678" },
      { channel: "imessage", command: "imsg", args: "(3)" },
    ],
  });
});

test("brave needs a key and searxng an address, and without tools.search there is no provider", () => {
  const searching = (search: string) => `{ tools: { search: ${search} } }`;
  expect(config().good("{}").settings.tools).not.toHaveProperty("search");
  const own = config().good(searching('{ provider: "searxng", url: "http://127.0.0.1:8888/" }')).settings;
  expect(own.tools.search).toEqual({ provider: "searxng", url: "http://127.0.0.1:8888/" });
  const told = (search: string) => config().problems(searching(search)).join();
  expect(told('{ provider: "brave", apiKey: "" }')).toContain("tools.search.apiKey: is missing");
  expect(told('{ provider: "searxng" }')).toContain("tools.search.url: is missing");
  expect(told('{ provider: "searxng", url: "http://me:pass@h/" }')).toContain("use apiKey");
  expect(told('{ provider: "other" }')).toContain("must be one of brave, searxng");
});

test("the environment of the process is used to load the configuration", () => {
  const { env, home: own } = processEnvironment();
  expect(env.PATH).toBe(process.env.PATH);
  expect(own.length).toBeGreaterThan(0);
});

test("docs/config.schema.json is the published schema (vitest -u writes it)", async () => {
  const text = `${JSON.stringify(configJsonSchema, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot("../docs/config.schema.json");
});

test("values from a fixed list are accepted in upper and lower case, and thinking levels with other names, too", () => {
  const text = `{ tools: { sessions: { visibility: "ALL" } }, store: { durability: " Normal " },
    agents: { defaults: { thinking: "on" }, list: [{ id: "main", thinking: "MID" }] } }`;
  const { settings } = config().good(text);
  expect(settings.tools.visibility).toBe("all");
  expect(settings.store.durability).toBe("normal");
  expect(settings.agents[0]?.thinking).toBe("medium");
  expect(config().problems('{ tools: { sessions: { visibility: "some" } } }').join()).toContain("visibility");
});

test("a pattern in agentToAgent ignores upper and lower case; a pattern that matches no agent gives a warning", () => {
  const text = `{ tools: { agentToAgent: { enabled: true, allow: ["Main", "re*", "reserch", "peer:lab/*"] } },
    agents: { list: [{ id: "main" }, { id: "Research" }] } }`;
  const { settings, warnings } = config().good(text);
  expect(settings.tools.agentToAgent.allow).toEqual(["main", "re*", "reserch", "peer:lab/*"]);
  expect(warnings).toEqual([
    'tools.agentToAgent.allow has "reserch", which matches no agent; configured: main, research',
  ]);
});

test("an id without a provider names a model if only one provider has it", () => {
  const providers = `local: { api: "openai-completions", baseUrl: "http://127.0.0.1:1/v1", models: [{ id: "qwen3" }] }`;
  const other = `other: { api: "openai-completions", baseUrl: "http://127.0.0.1:2/v1", models: [{ id: "qwen3" }] }`;
  const text = (more: string) =>
    `{ models: { providers: { ${providers}${more} } }, agents: { defaults: { model: "qwen3" } } }`;
  expect(config().good(text("")).settings.agents[0]?.model).toBe("qwen3");
  expect(
    config()
      .problems(text(`, ${other}`))
      .join(),
  ).toContain('"qwen3" is a model of several providers: write local/qwen3 or other/qwen3');
});

test("a token that could be guessed is refused, with a command that generates a better one", () => {
  const text = (token: string) =>
    `{ gateway: { auth: { token: "${token}", tokens: [{ token: "${token}2", scopes: ["operator.read"] }] } } }`;
  const make = "has fewer than 24 characters and could be guessed; make one with: openssl rand -hex 24";
  expect(config().problems(text("x".repeat(22)))).toEqual([
    `gateway.auth.token: ${make}`,
    `gateway.auth.tokens[0].token: ${make}`,
  ]);
  expect(config().problems("{}", { env: { PARLEY_TOKEN: "short" } })).toEqual([
    `gateway.auth.token: ${make}`,
  ]);
  expect(config().good(text("x".repeat(24))).settings.gateway.token).toHaveLength(24);
});
