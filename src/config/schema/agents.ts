// Defines the schema of agents in the configuration file, with their runtimes, sandboxes and sub-agents.

import {
  AGENT_COLORS,
  ANSWER_LIMITS,
  APPROVAL_MODES,
  LABEL_MODES,
  SANDBOX_GIT,
  SANDBOX_MODES,
  THINKING_LEVELS,
} from "../../core/shapes/settings/settings.ts";
import type { FeatureRuntime } from "../../feature.ts";
import { added } from "../../features.ts";
import {
  choice,
  DAY_SECONDS,
  flag,
  integer,
  list,
  MAX,
  modelName,
  nullable,
  number,
  object,
  optionalText,
  path,
  section,
  text,
  texts,
  withoutDefaults,
} from "./setting.ts";

/** Workspace of the default agent; other agents add `-<id>`. */
export const WORKSPACE_DEFAULT = "~/.parley/workspace";

const RUNTIMES: Readonly<Record<string, FeatureRuntime>> = added("runtimes");
const ofFeatures = Object.values(RUNTIMES).flatMap(({ settings }) => settings ?? []);

const runtime = object(
  {
    type: choice(
      ["builtin", "subagent", ...(["acp", "a2a"] as const).filter((type) => type in RUNTIMES)],
      `${ofFeatures.map(({ summary }) => `${summary} `).join("")}subagent: the same as builtin.`,
      { default: "builtin" },
    ),
    ...(Object.assign({}, ...ofFeatures.map(({ fields }) => fields)) as Record<never, never>),
  },
  "The runtime of the agent.",
);

const sandbox = {
  mode: choice(
    SANDBOX_MODES,
    "Sessions whose tool calls run in a sandbox; non-main: all but main sessions.",
    { default: "off" },
  ),
  sessionToolsVisibility: choice(
    ["spawned", "all"],
    "Widest visibility of a sandboxed session: its own tree (spawned), or tools.sessions.visibility (all).",
    { default: "spawned" },
  ),
  network: flag("Whether sandboxed commands have network access.", { default: false }),
  backend: choice(["auto", "bubblewrap", "docker"], "auto: bubblewrap if it works, else docker.", {
    default: "auto",
  }),
  memoryMb: integer("Maximum memory of one call, for all its processes together.", [64, 1024 ** 2], {
    default: 1_024,
  }),
  processesMax: integer("Maximum number of processes and threads of one call.", [8, 32_768], {
    default: 128,
  }),
  diskMb: integer("Maximum size of the workspace, and separately of temporary files.", [16, 1024 ** 2], {
    default: 1_024,
  }),
  git: choice(
    SANDBOX_GIT,
    "Access of sandboxed commands to the workspace's .git. Default: read; " +
      "write if mode is all and no workspace is configured.",
  ),
  image: optionalText("For docker: the image in which commands run. Default: a small Linux.", {
    shown: "show",
  }),
};

const subagents = {
  allowAgents: texts('Agents it may spawn besides itself; `"*"`: any.', { default: [] }),
  model: nullable(modelName("Thinking level of sub-agents. Default: the agent's own."), undefined),
  maxConcurrent: integer(
    "Maximum number of sub-agents that execute at the same time; others wait in order.",
    [1, 1_000],
    { default: 8 },
  ),
  maxChildren: integer(
    "Maximum number of unfinished sub-agents of one session; above it, a spawn fails.",
    [1, 10_000],
    { default: 20 },
  ),
  maxSpawnDepth: integer(
    "Maximum depth of spawns. 1: a sub-agent can't spawn; 2: its children can't; …",
    [1, 5],
    { default: 1 },
  ),
  runTimeoutSeconds: integer(
    "Time limit of a sub-agent, from the start of its execution; 0: none.",
    [0, 30 * DAY_SECONDS],
    { default: 0 },
  ),
  archiveAfterMinutes: integer(
    "Archives a sub-agent this long after its last run ended; 0: never.",
    [0, 525_600],
    { default: 60 },
  ),
  announce: choice(
    ["post", "wake"],
    "post: a result is posted unchanged. wake: the requester's agent runs with it instead.",
    { default: "post" },
  ),
};

/** The daily budget. `null` in a key: no limit. */
const budget = {
  dailyTokens: nullable(
    integer("Maximum tokens of an agent per day (UTC); above it, model calls are refused. Unset: no limit.", [
      1,
      MAX,
    ]),
    null,
  ),
  dailyCost: nullable(
    number(
      "Maximum cost of an agent per day (UTC), in USD; above it, model calls are refused. Unset: no limit.",
      { exclusiveMinimum: 0 },
    ),
    null,
  ),
};

/** Settings of `agents.defaults` that an agent may override. */
const overridable = {
  fallbackModels: list(
    modelName(),
    "Models that are tried in this order if the model has failed permanently.",
    { default: [] },
  ),
  thinking: choice(THINKING_LEVELS, "Thinking level of models that support thinking.", { default: "off" }),
  instructionFiles: flag(
    "Whether AGENTS.md files (CLAUDE.md in a folder without one) of the workspace and the folders " +
      "above it, and SOUL.md, IDENTITY.md, USER.md and TOOLS.md of the workspace, are added to the " +
      "system prompt.",
    { default: true },
  ),
  skills: flag(
    "Whether an agent can use skills: folders with a SKILL.md in skills, .agents/skills and " +
      ".claude/skills of the workspace, and in ~/.parley/skills.",
    { default: true },
  ),
  memory: flag("Whether an agent has a memory, which its private sessions share.", { default: true }),
  maxModelCalls: integer("Maximum number of model calls of one run; above it, the run fails.", [1, 100_000], {
    default: 400,
  }),
  maxAnswerBytes: integer(
    "Maximum bytes of one model answer; above it, the run keeps the received part and fails.",
    [1_024, 64 * 1024 ** 2],
    { default: ANSWER_LIMITS.maxAnswerBytes },
  ),
  maxAnswerToolCalls: integer(
    "Maximum number of tool calls in one model answer; above it, the run keeps the text and fails.",
    [1, 10_000],
    { default: ANSWER_LIMITS.maxAnswerToolCalls },
  ),
  maxToolResultBytes: integer(
    "Maximum bytes of one tool result; longer results are cut, with a note for the model.",
    [1_024, 64 * 1024 ** 2],
    { default: ANSWER_LIMITS.maxToolResultBytes },
  ),
};

export const toolFilter = {
  allow: texts("Names of tools, `*` as a wildcard. An empty list means every tool.", { default: [] }),
  deny: texts("Names of tools, `*` as a wildcard. These are denied even if they are allowed.", {
    default: [],
  }),
};

const agent = object({
  id: text("Lower-cased.", {
    pattern: [/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 of a-z, 0-9, _ and -"],
    required: true,
  }),
  default: flag("Whether requests that name no agent go to this one. Default: the first agent of the list.", {
    default: false,
  }),
  name: text("Display name."),
  color: choice(AGENT_COLORS, "Colour of the mark beside its name. Default: follows from the id."),
  icon: text("Emoji or letters in that mark. Default: initials of the name.", {
    pattern: [/^[^\s]{1,16}$/, "must be 1 to 16 characters without spaces"],
  }),
  model: nullable(modelName("Default: agents.defaults.model."), undefined),
  workspace: path("Default: <agents.defaults.workspace>-<id>, for the default agent without -<id>."),
  instructions: text("Instructions that are added to the runtime's system prompt."),
  ...withoutDefaults(overridable, "agents.defaults"),
  tools: section({
    ...toolFilter,
    exec: object({ approval: choice(APPROVAL_MODES, "Default: tools.exec.approval.") }),
  }),
  labels: object({ mode: choice(LABEL_MODES, "Default: labels.mode.") }),
  runtime,
  sandbox: object(withoutDefaults(sandbox), "Default: agents.defaults.sandbox."),
  subagents: object({
    allowAgents: texts("Default: agents.defaults.subagents.allowAgents."),
    model: nullable(
      modelName(
        "Model of sub-agents that run as this agent. Default: agents.defaults.subagents.model, else its own.",
      ),
      undefined,
    ),
  }),
  budget: object(
    budget,
    "Daily budget of the agent. Default: agents.defaults.budget. null in a key: no limit.",
  ),
});

export const agents = section({
  defaults: section({
    model: nullable(modelName("Default: the first model of the first provider."), undefined),
    workspace: path("Folder of the default agent; other agents add -<id>.", { default: WORKSPACE_DEFAULT }),
    ...overridable,
    maxConcurrent: integer(
      "Maximum number of runs that execute at the same time; waiting runs do not count.",
      [1, 1_000],
      { default: 8 },
    ),
    titles: choice(
      ["words", "model"],
      "model: after the first answer in a conversation without a label, one call of the agent's " +
        "model writes its title, which costs tokens. words: the title is the first message's " +
        "beginning.",
      { default: "words" },
    ),
    sandbox: section(sandbox),
    subagents: section(subagents),
    budget: object(budget, "Daily budget of each agent."),
  }),
  list: list(agent, "The agents. An empty list means one agent with the id main.", { default: [] }),
});
