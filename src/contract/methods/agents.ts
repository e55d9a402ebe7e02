// Defines the methods for the settings of agents, and for the test of a model.

import { MEMORY_MAX_BYTES } from "../../core/rules/prompt/memory.ts";
import { APPROVAL_MODES } from "../../core/shapes/settings/settings.ts";
import { VALUE_SOURCES } from "../../core/shapes/settings/sources.ts";
import { about, flag, integer, list, mapOf, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { ADMIN, idempotencyKey, type MethodSpec, NOTHING, name, READ, WRITE } from "./parts.ts";

const AGENT_SETTINGS = named(
  "AgentDetails",
  "A configured agent with its effective settings.",
  object(
    {
      id: text(),
      default: flag(),
      model: text("`<provider>/<model>`; `acp/<id>` or `a2a/<id>` for an agent that chooses its own model."),
      fallbackModels: list(
        text(),
        "Models that are tried in order after all attempts with `model` have failed.",
      ),
      thinking: text(),
      maxModelCalls: number("Maximum number of model calls of one run."),
      sandbox: about(
        object({
          mode: text(),
          backend: text("Program that isolates commands, or `auto`."),
          network: flag("Whether sandboxed commands have network access."),
        }),
        "Sandbox settings of the agent.",
      ),
      spawns: list(text(), "Other agents that this agent may spawn. `*` means all."),
      runtime: about(
        oneOf("built-in", "acp", "a2a"),
        "`acp`: an outside program that speaks ACP. `a2a`: an agent elsewhere.",
      ),
    },
    {
      name: text(),
      purpose: text(
        "First sentence of the agent's instructions, redacted. Only for tokens that cover every session.",
      ),
      approval: about(oneOf(...APPROVAL_MODES), "Commands that need a person's approval."),
      tools: list(
        text(),
        "Tools of the agent's main session, if the token covers it; MCP tools once they are known.",
      ),
      withheld: list(
        object({ name: text(), reason: text() }),
        "Tools that the main session does not have, with the setting that decides.",
      ),
      subagentModel: text("Model of sub-agents that run as this agent."),
      budget: about(
        object({}, { dailyTokens: number(), dailyCost: number() }),
        "Daily limits (UTC), if any. Only for tokens that cover every session.",
      ),
      workspace: text("Folder of the agent. Only for tokens that cover every session."),
      program: text("Program of an ACP agent. Only for tokens that cover every session."),
      today: about(
        object({
          totalTokens: number(),
          cost: number(),
          failed: number("Failed runs among the newest 5000 ended runs of all agents."),
        }),
        "Usage and failures since the beginning of the day in UTC. Only for tokens that cover every session.",
      ),
      work: about(
        object({ running: number(), waiting: number(), queued: number() }),
        "Number of unfinished runs by state. Only for tokens that cover every session.",
      ),
      sources: about(
        mapOf(oneOf(...VALUE_SOURCES)),
        "Source of each value: `agents.list`, `agents.defaults`, or neither.",
      ),
    },
  ),
);
export type AgentDetails = Of<typeof AGENT_SETTINGS>;

const SIZE = { bytes: number(), tokens: number("Estimated number of tokens.") };

const AGENT_PROMPT = named(
  "AgentPrompt",
  "The system prompt of an agent's main session, as its next run would get it. Secrets are redacted.",
  object({
    agentId: text(),
    sessionKey: text(),
    parts: list(
      object(
        { title: text(), text: text(), ...SIZE },
        { file: text("Path of the file that the text is from.") },
      ),
      "In their order. Empty for an ACP or A2A agent, which has its own prompt.",
    ),
    tools: about(
      object({ count: number(), ...SIZE }),
      "Built-in tools, whose descriptions the model gets beside the prompt.",
    ),
    skills: list(
      object({ name: text(), description: text(), folder: text("Folder of its SKILL.md.") }),
      "Skills that the agent can read.",
    ),
    skipped: list(
      object({ path: text(), why: text() }),
      "Instruction files and skills that are not used, with the reason.",
    ),
  }),
);
export type AgentPrompt = Of<typeof AGENT_PROMPT>;

const AGENT_MEMORY = named(
  "AgentMemory",
  "The memory of an agent, which its private sessions read and change.",
  object({
    agentId: text(),
    text: text("Markdown. Secrets are redacted."),
    revision: number("Increases with each change. 0: the agent has no memory yet."),
    maxBytes: number("Maximum size of the text in bytes of UTF-8."),
  }),
);
export type AgentMemoryText = Of<typeof AGENT_MEMORY>;

const agentId = about(name, "Id of the agent.");

const LOCAL_SERVER = named(
  "LocalServer",
  "A model server on the gateway's machine that speaks the OpenAI API.",
  object({
    id: text("Usual name of the provider in the configuration."),
    title: text(),
    baseUrl: text("Address of the API, up to its version."),
    models: list(text(), "Ids of its models, at most 50."),
  }),
);
export type LocalServer = Of<typeof LOCAL_SERVER>;

const MODEL_TEST = named(
  "ModelTest",
  "Outcome of a test call. Its usage is counted for the agent `models.test`, which does not exist.",
  object(
    {
      model: text("`<provider>/<model>`"),
      ok: flag("Whether the model answered."),
      durationMs: number(),
      totalTokens: number(),
      cost: number("In USD."),
    },
    {
      text: text("Answer of the model, shortened."),
      error: text("Reason why the model did not answer, redacted."),
      hint: text("Advice on how to fix the failure."),
    },
  ),
);
export type ModelTest = Of<typeof MODEL_TEST>;

export const AGENT_METHODS = {
  "agents.describe": {
    scope: READ,
    summary: "Returns the agents with their effective settings, tools and current work.",
    params: NOTHING,
    result: object({ ts: number(), agents: list(AGENT_SETTINGS) }),
  },
  "agents.prompt": {
    scope: READ,
    everySession: true,
    summary: "Returns what the model of an agent is told, part by part.",
    params: object({ agentId }),
    result: AGENT_PROMPT,
    errors: ["agent_not_found"],
  },
  "agents.memory.get": {
    scope: READ,
    everySession: true,
    summary: "Returns the memory of an agent.",
    params: object({ agentId }),
    result: AGENT_MEMORY,
    errors: ["agent_not_found"],
  },
  "agents.memory.set": {
    scope: WRITE,
    everySession: true,
    summary: "Replaces the memory of an agent.",
    params: object(
      {
        agentId,
        text: text("The new memory. An empty text clears it.", { maxLength: MEMORY_MAX_BYTES }),
        revision: integer(
          "`revision` of the memory that was edited; if it has changed, nothing is written.",
          {
            minimum: 0,
          },
        ),
      },
      { idempotencyKey },
    ),
    result: AGENT_MEMORY,
    errors: ["agent_not_found", "memory_changed", "too_large"],
  },
  "models.discover": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary:
      "Finds servers with models on the gateway's machine: Ollama, LM Studio and llama.cpp at their usual " +
      "addresses.",
    params: object({}),
    result: object({ servers: list(LOCAL_SERVER, "Those that answer.") }),
    errors: [],
  },
  "models.test": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary: "Asks a model for one word: returns time and cost, or the error.",
    params: object({ model: about(name, "Model as `<provider>/<model>`.") }),
    result: MODEL_TEST,
    errors: ["invalid_model"],
  },
} as const satisfies Record<string, MethodSpec>;
