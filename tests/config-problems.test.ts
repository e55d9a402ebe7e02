// Problems in a configuration file, and their messages.

import fc from "fast-check";
import { expect, test } from "vitest";
import { useConfigHome } from "./kit/process/config-home.ts";

const config = useConfigHome();

const LOCAL = `models: { providers: { local: { api: "openai-completions", baseUrl: "http://127.0.0.1:11434/v1",
  models: [{ id: "qwen3" }] } } }`;

test.each([
  ["{ a: ", "HOME/.parley/parley.json5 is not valid JSON5: invalid end of input at 1:6"],
  ["[]", "HOME/.parley/parley.json5 must contain one object, { … }"],
  ["7", "HOME/.parley/parley.json5 must contain one object, { … }"],
  [
    "{ tools: { deny: ['exec'] },\n  session: {},\n  'tools': { allow: [] } }",
    "HOME/.parley/parley.json5 has tools twice, in the lines 1 and 3: put both into one",
  ],
  [
    "{ agents: { list: [{ id: 'a' }, { id: 'b',\n id: 'c' }] } }",
    "HOME/.parley/parley.json5 has agents.list[1].id twice, in the lines 1 and 2: put both into one",
  ],
  ["/* open", "HOME/.parley/parley.json5 is not valid JSON5: invalid end of input at 1:8"],
])("a file with the content %j is refused as a whole", (text, error) => {
  expect(config().problems(text)).toEqual([error]);
});

test("a file larger than a megabyte is not read", () => {
  const [problem] = config().problems(`{} // ${"x".repeat(1024 * 1024)}`);
  expect(problem).toBe("HOME/.parley/parley.json5 is 1048582 bytes; the maximum is 1048576");
});

test("all problems are reported together, each with its path and a valid value", () => {
  const text = `{ gatway: {}, gateway: { port: 70000, host: "", auth: { tokens: [{ token: "12345678" }] } },
    agents: { defaults: { thinking: "hihg", maxConcurent: 3 }, list: [{ id: "a b" }, { default: "yes" }] },
    session: { agentToAgent: { maxPingPongTurns: 6 }, queueMax: 1.5, sendPolicy: { rules: {} } },
    tools: { visibility: "all" }, store: { dir: "~bob/x", postgresUrl: "postgres://u:geheim@h/d" },
    models: { providers: { "a/b": {}, x: { baseUrl: "nowhere", models: [{ id: "m", input: ["text"] }] } } } }`;
  expect(config().problems(text)).toEqual([
    "gateway.host: must not be empty",
    "gateway.port: must be at most 65535, got 70000",
    'store.dir: only ~ and ~/… are expanded, not ~user, got "~bob/x"',
    'models.providers["a/b"]: is not a valid name: it must be 1 to 64 letters, digits, ., _ and -',
    'models.providers.x.baseUrl: must be an http or https address, got "nowhere"',
    "models.providers.x.models[0].input: unknown key; the nearest valid key is models.providers.x.models[0].images",
    "agents.defaults.thinking: must be one of off, minimal, low, medium, high, xhigh, max",
    "agents.defaults.maxConcurent: unknown key; the nearest valid key is agents.defaults.maxConcurrent",
    'agents.list[0].id: must be 1 to 64 of a-z, 0-9, _ and -, got "a b"',
    "agents.list[1].id: is missing; must be a string",
    'agents.list[1].default: must be true or false, got "yes"',
    "session.queueMax: must be a whole number, got 1.5",
    "session.sendPolicy.rules: must be a list, [ … ], got an object",
    "session.agentToAgent.maxPingPongTurns: must be at most 5, got 6",
    "tools.visibility: unknown key here; visibility belongs at tools.sessions.visibility",
    "gatway: unknown key; the nearest valid key is gateway",
  ]);
});

test("problems that the schema cannot express are reported together with those that it finds", () => {
  const text = `{ ${LOCAL}, agents: { defaults: { model: "local/qwen4", subagents: { allowAgents: ["reserch"] } },
      list: [{ id: "A", default: true }, { id: "a", default: true, model: "gone/x" },
      { id: "research", sandbox: { mode: "all" }, subagents: { model: "gone/y" } }] },
    gateway: { auth: { token: "same-token-of-all-of-them",
      tokens: [{ token: "same-token-of-all-of-them", scopes: ["operator.admin"] },
      { token: "${"7".repeat(24)}" }] } },
    store: { postgresUrl: "mysql://u:geheim@h/d" }, gatway: 1 }`;
  expect(config().problems(text)).toEqual([
    "gatway: unknown key; the nearest valid key is gateway",
    "store.postgresUrl: must be like postgres://user:password@host:5432/database",
    'agents.list[1].id: "a" is listed twice',
    "agents.list[1].default: only one agent can be the default, and agents.list[0] is",
    'agents.defaults.subagents.allowAgents[0]: there is no agent "reserch"; the nearest is research',
    'agents.defaults.model: there is no model "local/qwen4"; valid: local/qwen3, offline/rehearsal',
    'agents.list[1].model: there is no model "gone/x"; valid: offline/rehearsal, local/qwen3',
    'agents.list[2].subagents.model: there is no model "gone/y"; valid: offline/rehearsal, local/qwen3',
    "gateway.auth.tokens[0].token: is the same as another token",
    "gateway.auth.tokens[1].scopes: must name at least one of operator.read, operator.write, operator.admin",
  ]);
});

test.each([
  ["{ models: { providers: { p: {} } } }", ["api: is missing", "baseUrl: is missing", "models: must list"]],
  [
    '{ models: { providers: { offline: { api: "openai-completions", baseUrl: "http://h", models: [{ id: "m" }] } } } }',
    ["name of the built-in provider"],
  ],
  [
    `{ ${LOCAL.replace('[{ id: "qwen3" }]', '[{ id: "m" }, { id: "m" }]')} }`,
    ['models[1].id: "m" is listed twice'],
  ],
  ['{ agents: { defaults: { model: "anthropic/claude-sonnet-5" } } }', ["none of ANTHROPIC_API_KEY"]],
  ['{ session: { mainKey: "global" } }', ["not global or unknown"]],
  [
    '{ models: { providers: { openai: { baseUrl: "https://me:geheim@h/v1" } } } }',
    [
      'openai.baseUrl: must not contain user and password: use apiKey or headers, got "https://me:[redacted]@h/v1"',
    ],
  ],
  ['{ session: { mainKey: "node-1" } }', ["not beginning with node-"]],
  ['{ session: { mainKey: "a:b" } }', ["session.mainKey: must be 1 to 64"]],
  ['{ "__proto__": { x: 1 } }', ["__proto__: unknown key"]],
  ['{ models: { providers: { "__proto__": {} } } }', ["models.providers.__proto__: unknown key"]],
  ["{ channels: { telgram: {} } }", ["channels.telegram"]],
  [
    "{ agents: { defaults: { subagents: { maxSpawnDepth: 6 } } } }",
    ["maxSpawnDepth: must be at most 5, got 6"],
  ],
  [
    "{ agents: { defaults: { subagents: { maxSpawnDepth: 0 } } } }",
    ["maxSpawnDepth: must be at least 1, got 0"],
  ],
  ['{ agents: { defaults: { sandbox: { mode: "main" } } } }', ["mode: must be one of off, non-main, all"]],
  ['{ agents: { list: [{ id: "a", sandbox: { network: 1 } }] } }', ["network: must be true or false, got 1"]],
  ["{ session: { agentToAgent: { maxChainCost: 0 } } }", ["maxChainCost: must be more than 0"]],
  ["{ session: { agentToAgent: { maxChainTokens: 0.5 } } }", ["maxChainTokens: must be a whole number"]],
  ["{ tools: { subagents: { deny: [] } } }", ["tools.subagents.deny: unknown key here"]],
  [
    '{ agent: { "__proto__": { thinking: "high" } }, agents: { defaults: { thinking: "low" } } }',
    ["agents.defaults.__proto__: unknown key"],
  ],
  ['{ store: { dir: "${constructor}" } }', ["store.dir: needs the environment variable constructor"]],
  ['{ store: { dir: "${A:-${B}}" } }', ["store.dir: has a variable in the fallback of A"]],
  ["{ gateway: { port: Infinity } }", ["gateway.port: must be a number, got Infinity"]],
  ["{ gateway: null }", ["gateway: must be an object, { … }, got null"]],
])("%s is refused with a reason", (text, reasons) => {
  const found = config().problems(text).join("\n");
  for (const reason of reasons) expect(found).toContain(reason);
});

test("a value of the wrong type is one problem, whatever its length", () => {
  const text = `{ gateway: { host: [] }, agents: { defaults: { model: [] } },
    hooks: { outgoing: [{ url: "https://h/", events: "", secret: [] }] } }`;
  expect(config().problems(text)).toEqual([
    "gateway.host: must be a string, got a list",
    "agents.defaults.model: must be a string, got a list",
    'hooks.outgoing[0].events: must be a list, [ … ], got ""',
    "hooks.outgoing[0].secret: must be a string, got a list",
  ]);
});

test("a file that is nested 100,000 levels deep is refused with a reason", () => {
  const found = config()
    .problems(`{ gateway: ${"[".repeat(100_000)}${"]".repeat(100_000)} }`)
    .join();
  expect(found).toContain("is nested more than 64 levels deep");
});

test("missing, malformed and wrong variables are reported with their path but never with their value", () => {
  const text = `{ gateway: { host: "\${NO_HOST}", port: "\${PORT}", auth: { token: "\${open" } },
    agents: { defaults: { thinking: "\${SECRET}" } }, commands: { owners: ["\${a-b}"] } }`;
  const found = config().problems(text, { env: { PORT: "geheim", SECRET: "geheim" } });
  expect([...found].sort()).toEqual(
    [
      "gateway.host: needs the environment variable NO_HOST, which is not set",
      "gateway.port: must be a number, got a string",
      'gateway.auth.token: has a "${" without a valid variable name; write "$${" for a literal "${"',
      "agents.defaults.thinking: must be one of off, minimal, low, medium, high, xhigh, max",
      'commands.owners[0]: has a "${" without a valid variable name; write "$${" for a literal "${"',
    ].sort(),
  );
  expect(found.join()).not.toContain("geheim");
});

test("if an environment variable contains an unknown name, the error shows the variable, not its value", () => {
  const text = `{ agents: { defaults: { model: "\${SECRET}" }, list: [{ id: "\${NAME}" }, { id: "\${NAME}",
    subagents: { allowAgents: ["x\${SECRET}"] } }] } }`;
  const found = config().problems(text, { env: { SECRET: "geheim.1", NAME: "Verdeckt" } });
  expect(found).toEqual([
    'agents.list[1].id: "${NAME}" is listed twice',
    expect.stringContaining('there is no agent "x${SECRET}"; the nearest is ${NAME}'),
    expect.stringContaining('there is no model "${SECRET}"'),
  ]);
});

test("an old spelling next to the current one is reported, and so is an unknown key inside an old spelling", () => {
  const text = `{ agent: { thinking: "low", foo: 1 }, agents: { defaults: { thinking: "high" } },
    routing: { agentToAgent: {}, rules: [] } }`;
  expect(config().problems(text)).toEqual([
    "agent.thinking: is an earlier spelling of agents.defaults.thinking, and both are set; remove it",
    expect.stringContaining("agents.defaults.foo: unknown key"),
    expect.stringContaining("routing: unknown key"),
  ]);
});

test("any tree of known and unknown keys gives settings or problems, never an exception", () => {
  const key = fc.constantFrom(
    "gateway",
    "port",
    "agents",
    "list",
    "defaults",
    "model",
    "session",
    "tools",
    "agent",
    "x",
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom<unknown>("", "${X}", "${", 0, -1, null, true, [], {}),
      fc.array(tie("tree"), { maxLength: 2 }),
      fc.dictionary(key, tie("tree"), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(fc.dictionary(key, tree, { maxKeys: 5 }), (tree) => {
      const loaded = config().load(JSON.stringify(tree));
      if (!loaded.ok) expect(loaded.details?.problems).not.toHaveLength(0);
    }),
    { numRuns: 200 },
  );
});
