import { expect, test } from "vitest";
import type { ChainLink } from "../../../src/core/rules/sandbox-policy.ts";
import {
  decideSpawn,
  type SpawnCall,
  type SpawnQuestion,
  spawnableAgents,
} from "../../../src/core/rules/spawn-policy.ts";
import type { AgentSettings, SandboxMode } from "../../../src/core/shapes/settings/settings.ts";
import { agentSettings, type Choices, settingsWith } from "../../tools/app.ts";

const boxed = (mode: SandboxMode): Partial<AgentSettings> => ({
  sandbox: { ...agentSettings("x").sandbox, mode },
});
const link = (more: Partial<ChainLink> = {}): ChainLink => ({
  key: "agent:main:main",
  agentId: "main",
  kind: "main",
  spawnDepth: 0,
  ...more,
});
const child = (more: Partial<ChainLink> = {}): ChainLink =>
  link({ key: "agent:main:subagent:1", kind: "other", spawnDepth: 1, spawnedBy: "agent:main:main", ...more });

const AGENTS = [
  agentSettings("main", { subagents: { allowAgents: ["research"] } }),
  agentSettings("research", { subagents: { allowAgents: ["*"], model: "local/small" } }),
  agentSettings("boxed", boxed("all")),
];
const PROVIDERS = [
  {
    id: "local",
    api: "openai-completions" as const,
    baseUrl: "http://127.0.0.1",
    headers: {},
    connectTimeoutSeconds: 10,
    idleTimeoutSeconds: 90,
    maxRetries: 3,
    models: ["big", "small"].map((id) => ({
      id,
      contextWindow: 1000,
      maxOutputTokens: 100,
      reasoning: false,
      images: false,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    })),
  },
];

function decide(call: SpawnCall, more: Partial<SpawnQuestion> = {}, choices: Choices = {}) {
  const settings = { ...settingsWith({ agents: AGENTS, ...choices }), providers: PROVIDERS };
  const chain: SpawnQuestion["chain"] = [link()];
  const question = { call, chain, unfinishedChildren: 0, mayName: () => true, ...more };
  return decideSpawn(question, settings);
}

test("without arguments the child has the requester's agent and default settings, runs once and is kept", () => {
  expect(decide({})).toEqual({
    ok: true,
    value: {
      agent: AGENTS[0],
      model: "offline/rehearsal",
      runTimeoutSeconds: 0,
      thread: false,
      mode: "run",
      cleanup: "keep",
      announce: "post",
      archiveAfterMinutes: 60,
      spawnDepth: 1,
      mayNest: false,
      sandboxed: false,
    },
  });
});

test("the model is that of the call, else that of the agent's sub-agents, else that of the defaults, else the agent's own", () => {
  const model = (call: SpawnCall, defaults?: string): unknown => {
    const plan = decide(call, {}, defaults === undefined ? {} : { subagents: { model: defaults } });
    return plan.ok ? plan.value.model : plan.error;
  };
  expect(model({ model: "local/big", agentId: "research" }, "local/small")).toBe("local/big");
  expect(model({ agentId: "research" }, "local/big")).toBe("local/small");
  expect(model({}, "local/small")).toBe("local/small");
  expect(model({})).toBe("offline/rehearsal");
});

/** Each refusal: the call, its error code, and words in its message. */
test.each<[string, SpawnCall, Partial<SpawnQuestion>, string, string[]]>([
  [
    "an agent outside the allow list",
    { agentId: "boxed" },
    {},
    "spawn_denied",
    ['agent "boxed" is not in agents.list[main].subagents.allowAgents', "Allowed: main, research."],
  ],
  [
    "an agent that is not configured",
    { agentId: "nobody" },
    { chain: [link({ key: "agent:research:main", agentId: "research" })] },
    "agent_not_found",
    ['there is no agent "nobody" in agents.list', "Allowed: main, research, boxed."],
  ],
  ["an agent id that is none", { agentId: "a b" }, {}, "invalid_argument", ["agentId must be"]],
  [
    "a sub-agent at the depth limit",
    {},
    { chain: [child(), link()] },
    "spawn_denied",
    ["1 deep", "agents.defaults.subagents.maxSpawnDepth is 1; it may be raised to 5"],
  ],
  [
    "more children than allowed",
    {},
    { unfinishedChildren: 20 },
    "too_many_children",
    ["20 sub-agents", "agents.defaults.subagents.maxChildren is 20"],
  ],
  [
    "an unknown model",
    { model: "local/bgi" },
    {},
    "invalid_model",
    ['"local/bgi"', "local/big", "offline/rehearsal"],
  ],
  [
    "an unknown thinking level",
    { thinking: "hard" },
    {},
    "invalid_thinking",
    ['"hard"', "off, minimal, low"],
  ],
  ["an unknown mode", { mode: "forever" }, {}, "invalid_argument", ["mode must be one of run, session"]],
  [
    "an unknown cleanup",
    { cleanup: "burn" },
    {},
    "invalid_argument",
    ["cleanup must be one of keep, delete"],
  ],
  [
    "an unknown sandbox",
    { sandbox: "none" },
    {},
    "invalid_argument",
    ["sandbox must be one of inherit, require"],
  ],
  ["mode session without a thread", { mode: "session" }, {}, "invalid_argument", ["needs thread: true"]],
  ["a thread without a channel", { thread: true }, {}, "spawn_denied", ["this session has none"]],
  [
    "a thread on a channel without threads",
    { thread: true },
    { channel: { id: "webchat", threads: "none" } },
    "spawn_denied",
    ["needs a channel with threads, and webchat has none"],
  ],
  [
    "a thread where the settings forbid it",
    { thread: true },
    { channel: { id: "discord", threads: "off" } },
    "spawn_denied",
    ["session.threadBindings.enabled, or channels.discord.threadBindings.enabled is false"],
  ],
  [
    "both spellings of the time limit",
    { runTimeoutSeconds: 1, timeoutSeconds: 2 },
    {},
    "invalid_argument",
    ["earlier spelling of runTimeoutSeconds", "their values differ"],
  ],
  [
    "a negative time limit",
    { timeoutSeconds: -1 },
    {},
    "invalid_argument",
    ["must be 0 (no limit) to 2592000"],
  ],
  [
    "a time limit that is no number",
    { runTimeoutSeconds: Number.NaN },
    {},
    "invalid_argument",
    ["must be 0"],
  ],
  [
    "require, where the child would run bare",
    { sandbox: "require" },
    {},
    "spawn_denied",
    ['agent "main" would run unsandboxed', 'sandbox: "require"', "agents.list[main].sandbox.mode"],
  ],
  [
    "a bare child of a sandboxed requester",
    { agentId: "main" },
    {
      chain: [
        child({ agentId: "research", spawnDepth: 0, spawn: { sandboxed: true } }),
        link({ key: "agent:research:main", agentId: "research" }),
      ],
    },
    "spawn_denied",
    ["this session is sandboxed", "agents.list[main].sandbox.mode", "Sandboxed are: boxed."],
  ],
])("SPN1: %s is refused, each with its own sentence", (_, call, question, code, words) => {
  const plan = decide(call, question);
  if (plan.ok) throw new Error("allowed");
  expect(plan.code).toBe(code);
  for (const word of words) expect(`${plan.error} ${plan.hint}`).toContain(word);
});

test("a sub-agent in a thread is kept and never archived automatically; mode run is allowed", () => {
  const channel = { id: "discord", threads: "on" as const };
  expect(decide({ thread: true, cleanup: "delete" }, { channel })).toMatchObject({
    value: { thread: true, mode: "session", cleanup: "keep", archiveAfterMinutes: 0 },
  });
  expect(decide({ thread: true, mode: "run", cleanup: "delete" }, { channel })).toMatchObject({
    value: { thread: true, mode: "run", cleanup: "delete", archiveAfterMinutes: 60 },
  });
});

test("a child below the depth limit may spawn, and its context says so", () => {
  const at = (maxSpawnDepth: number) =>
    decide({}, { chain: [child(), link()] }, { subagents: { maxSpawnDepth } });
  expect(at(2)).toMatchObject({ value: { spawnDepth: 2, mayNest: false } });
  expect(at(3)).toMatchObject({ value: { spawnDepth: 2, mayNest: true } });
  const deepest = decide(
    {},
    { chain: [child({ spawnDepth: 5 }), link()] },
    { subagents: { maxSpawnDepth: 5 } },
  );
  expect(deepest).toMatchObject({
    code: "spawn_denied",
    error: expect.stringContaining("the maximum"),
  });
});

test("the time limit is that of the call, with either spelling, else that of the defaults", () => {
  const seconds = (call: SpawnCall) => decide(call, {}, { subagents: { runTimeoutSeconds: 9 } });
  expect(seconds({})).toMatchObject({ value: { runTimeoutSeconds: 9 } });
  expect(seconds({ runTimeoutSeconds: 0 })).toMatchObject({ value: { runTimeoutSeconds: 0 } });
  expect(seconds({ timeoutSeconds: 3 })).toMatchObject({ value: { runTimeoutSeconds: 3 } });
});

test("I13: a sub-agent is always sandboxed if its requester is, or if the call asks for a sandbox", () => {
  const chain = [link({ key: "agent:research:main", agentId: "research" })] as const;
  expect(decide({ agentId: "boxed" }, { chain })).toMatchObject({ value: { sandboxed: false } });
  expect(decide({ agentId: "boxed", sandbox: "require" }, { chain })).toMatchObject({
    value: { sandboxed: true },
  });
  const inBox = [link({ key: "agent:boxed:main", agentId: "boxed" })] as const;
  expect(decide({}, { chain: inBox })).toMatchObject({ value: { sandboxed: true } });
});

test("an agent may spawn itself and the agents in its allow list; `*` allows every configured agent", () => {
  const settings = settingsWith({ agents: AGENTS });
  const names = AGENTS.map((agent) => spawnableAgents(agent, settings).map(({ id }) => id));
  expect(names).toEqual([["main", "research"], ["main", "research", "boxed"], ["boxed"]]);
});
