// The configuration file and the environment. The result must be a complete configuration, or an error that
// names the position.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc, { type Arbitrary } from "fast-check";
import JSON5 from "json5";
import { Compile } from "typebox/schema";
import { describeSettings } from "../../../src/config/describe.ts";
import { configJsonSchema } from "../../../src/config/schema/schema.ts";
import { loadSettings } from "../../../src/config.ts";
import { modelNames, type Settings } from "../../../src/core/shapes/settings/settings.ts";
import { damagedText, damagedTree } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

/** A secret in the configuration files. No message may contain it, even if a mutation has moved it. */
const SECRET = `sk-ant-${"0123456789abcdef".repeat(2)}`;
/** A secret in the environment, which no message may contain. */
const FROM_ENV = "value-of-the-environment";
const ENV = {
  KEY: FROM_ENV,
  EMPTY: "",
  PORT: "8123",
  FLAG: "true",
  NASTY: `${FROM_ENV}\u0000\n$\{KEY}`,
  PARLEY_TOKEN: FROM_ENV,
};

const VALID: readonly Record<string, unknown>[] = [
  {},
  {
    gateway: {
      host: "127.0.0.1",
      port: "${PORT}",
      auth: { token: SECRET, tokens: [{ token: "${KEY}2", scopes: ["operator.read"] }] },
    },
    store: { dir: "./state", durability: "normal" },
    models: {
      providers: {
        local: {
          api: "openai-completions",
          baseUrl: "http://127.0.0.1:1/v1",
          apiKey: SECRET,
          headers: { "x-key": SECRET },
          models: [{ id: "m" }],
        },
      },
    },
    agents: {
      defaults: { model: "local/m", thinking: "low" },
      list: [{ id: "Main" }, { id: "ops", subagents: { allowAgents: ["main"] } }],
    },
  },
  {
    agents: {
      list: [
        {
          id: "a",
          default: true,
          model: "offline/rehearsal",
          instructions: "be ${NAME:-kind} $${x}",
          tools: { deny: ["exec"] },
        },
        {
          id: "b",
          sandbox: { mode: "all", network: false },
          subagents: { allowAgents: ["*"], model: "offline/rehearsal" },
        },
      ],
    },
    session: {
      scope: "global",
      sendPolicy: {
        rules: [{ match: { channel: "telegram", chatType: "group" }, action: "deny" }],
        default: "allow",
      },
      agentToAgent: { maxPingPongTurns: 3, maxChainTokens: 100, maxChainCost: 0.5 },
    },
    tools: {
      sessions: { visibility: "all" },
      agentToAgent: { enabled: true, allow: ["*"] },
      exec: { timeoutSeconds: 5 },
    },
    commands: { owners: ["telegram:1"] },
  },
  {
    agent: { model: "offline/rehearsal", subagents: { tools: { deny: ["exec"] } } },
    routing: { agentToAgent: { enabled: "${FLAG}" } },
    session: { sendPolicy: { rules: [{ match: { provider: "x", chatType: "channel" }, action: "deny" }] } },
    hooks: { enabled: true, token: SECRET },
    channels: { telegram: { botToken: SECRET } },
  },
];

function namesIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(Array.isArray(value) ? [] : [name]),
    ...namesIn(inner),
  ]);
}

const NAMES = [
  ...new Set([...VALID.flatMap(namesIn), ..."list defaults provider surface postgresUrl $schema".split(" ")]),
];
const PIECES = [
  "${KEY}",
  "${EMPTY}",
  "${EMPTY:-}",
  "${EMPTY:-full}",
  "${NONE:-fallback}",
  "${NONE}",
  "$${",
  "$",
  "{",
  "}",
  "${",
  "${a b}",
  "${KEY:-${PORT}}",
  "${__proto__}",
  "${constructor}",
  "x",
];
const template = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), nastyText(30)), { maxLength: 5 })
  .map((all) => all.join(""));

const text: Arbitrary<string> = fc.oneof(
  {
    weight: 6,
    arbitrary: damagedTree(fc.constantFrom(...VALID), NAMES).map((tree) => JSON.stringify(tree) ?? ""),
  },
  {
    weight: 3,
    arbitrary: damagedText(fc.constantFrom(...VALID).map((tree) => JSON5.stringify(tree, null, 2))),
  },
  { weight: 1, arbitrary: nastyText(1 << 21) },
);

interface ConfigInput {
  readonly text: string;
  readonly template: string;
}

/**
 * A second implementation of the rule for variables, character by character. Returns undefined if the text
 * must be refused.
 */
function filledIn(source: string): string | undefined {
  let made = "";
  for (let at = 0; at < source.length; ) {
    if (source.startsWith("$${", at)) {
      made += "${";
      at += 3;
      continue;
    }
    if (!source.startsWith("${", at)) {
      made += source.charAt(at);
      at += 1;
      continue;
    }
    const end = source.indexOf("}", at);
    const inside = end < 0 ? "" : source.slice(at + 2, end);
    const [name = "", ...rest] = inside.split(":-");
    const fallback = rest.length === 0 ? undefined : rest.join(":-");
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || /\$\{\w/.test(fallback ?? "")) return undefined;
    const value = Object.entries(ENV).find(([known]) => known === name)?.[1];
    if (value === undefined && fallback === undefined) return undefined;
    made += fallback === undefined ? (value ?? "") : value || fallback;
    at = end + 1;
  }
  return made;
}

function isFrozen(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return Object.isFrozen(value) && Object.values(value).every(isFrozen);
}

/** Checks what must be true for the settings of any file. */
function checkSettings(settings: Settings): void {
  must(isFrozen(settings), "settings can be changed");
  const { agents, gateway, providers, session, maxConcurrent } = settings;
  const ids = agents.map(({ id }) => id);
  must(ids.length > 0 && new Set(ids).size === ids.length, `agents are ${shown(ids)}`);
  must(
    ids.every((id) => /^[a-z0-9_-]{1,64}$/.test(id)),
    `agents are ${shown(ids)}`,
  );
  must(agents.filter((agent) => agent.default).length === 1, "there is not one default agent");
  const models = modelNames(providers);
  must(
    agents.every(({ model }) => models.includes(model)),
    "an agent has a model that does not exist",
  );
  must(Number.isInteger(gateway.port) && gateway.port >= 0 && gateway.port <= 65_535, `port ${gateway.port}`);
  const tokens = [gateway.token, ...gateway.tokens.map(({ token }) => token)].filter(
    (token) => token !== undefined,
  );
  must(new Set(tokens).size === tokens.length && !tokens.includes(""), "a token is empty, or there twice");
  must(
    gateway.tokens.every(({ role, scopes }) => role === "node" || scopes.length > 0),
    "a token without rights",
  );
  must(/^[a-z0-9_-]{1,64}$/.test(session.mainKey), `main key ${shown(session.mainKey)}`);
  must(Number.isInteger(maxConcurrent) && maxConcurrent > 0, `maxConcurrent is ${maxConcurrent}`);
  const { maxHops, maxChainRuns, maxPingPongTurns } = session.agentToAgent;
  must(maxHops >= 1 && maxChainRuns >= 1 && maxPingPongTurns <= 5, "a conversation without bounds");
}

/** Old spellings and variables, which are resolved before the published schema is applied. */
const NOT_AS_PUBLISHED = /\$\{|"?(agent|routing|provider|surface)"?\s*:|"?chatType"?\s*:\s*["']channel/;

/** Parses a file. A file of blanks and comments counts as empty. */
function treeIn(content: string): unknown {
  const body = content.replace(/^\ufeff/, "");
  try {
    return JSON5.parse(body);
  } catch {
    return JSON5.parse(`${body}\n{}`);
  }
}

export const configuration: FuzzTarget<ConfigInput> = {
  name: "configuration",
  proves:
    "whole settings as the published schema allows them, or a refusal that says where; no secret in any text",
  inputs: fc.record({ text, template }),
  roundRuns: 1_000,
  ciRuns: 600,
  open() {
    const home = mkdtempSync(join(tmpdir(), "parley-fuzz-config-"));
    const file = join(home, ".parley", "parley.json5");
    mkdirSync(join(home, ".parley"));
    const published = Compile(configJsonSchema);
    const load = (content: string) => {
      // The JSON5 parser prints a warning about these two characters, so they are escaped, which does not
      // change a text.
      const quiet = content.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
      writeFileSync(file, quiet, { mode: 0o600 });
      return loadSettings({ env: ENV, home });
    };
    const checkText = (content: string): void => {
      const loaded = load(content);
      const told = loaded.ok
        ? [...loaded.value.warnings, JSON.stringify(describeSettings(loaded.value.settings))]
        : [JSON.stringify(loaded)];
      for (const one of told) must(!one.includes(SECRET), `a secret is told: ${shown(one)}`);
      if (!loaded.ok) {
        must(
          loaded.code === "invalid_config" && loaded.error.includes(file),
          `refused with ${shown(loaded)}`,
        );
        must(!loaded.error.includes(FROM_ENV), `the environment is told: ${shown(loaded.error)}`);
        must(loaded.error.length < 200_000, `a refusal of ${loaded.error.length} characters`);
        return;
      }
      checkSettings(loaded.value.settings);
      const tree = treeIn(readFileSync(file, "utf8"));
      if (!NOT_AS_PUBLISHED.test(JSON.stringify(tree)))
        must(published.Check(tree), `accepted against the schema: ${shown(tree)}`);
    };
    return {
      check(input) {
        checkText(input.text);
        const expected = filledIn(input.template);
        const loaded = load(
          JSON.stringify({ agents: { list: [{ id: "a", instructions: input.template }] } }),
        );
        if (expected === undefined || expected === "")
          must(!loaded.ok, `${shown(input.template)} is accepted`);
        else {
          must(loaded.ok, () => `${shown(input.template)} is refused: ${shown(loaded)}`);
          must(
            loaded.value.settings.agents[0]?.instructions === expected,
            `${shown(input.template)} is read as something else`,
          );
        }
        if (!loaded.ok)
          must(
            loaded.error.includes("agents.list[0].instructions"),
            `refused without a path: ${loaded.error}`,
          );
      },
      close: async () => rmSync(home, { recursive: true, force: true }),
    };
  },
};
