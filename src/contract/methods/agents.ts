// Defines the methods for the settings of agents, and for the test of a model.

import { VALUE_SOURCES } from "../../core/shapes/settings/sources.ts";
import { about, flag, list, mapOf, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { ADMIN, type MethodSpec, NOTHING, name, READ } from "./parts.ts";

const AGENT_SETTINGS = named(
  "AgentDetails",
  "A configured agent with its effective settings.",
  object(
    {
      id: text(),
      default: flag(),
      model: text("`<provider>/<model>`; `acp/<id>` for an ACP agent, which chooses its own model."),
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
      runtime: about(oneOf("built-in", "acp"), "`acp`: an outside program that speaks ACP."),
    },
    {
      name: text(),
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
        object({ totalTokens: number(), cost: number() }),
        "Usage since the beginning of the day in UTC. Only for tokens that cover every session.",
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
  "models.test": {
    scope: ADMIN,
    takesLong: true,
    summary:
      "Asks a model for one word: returns time and cost, or the error. Needs a token for every session.",
    params: object({ model: about(name, "Model as `<provider>/<model>`.") }),
    result: MODEL_TEST,
    errors: ["invalid_model"],
  },
} as const satisfies Record<string, MethodSpec>;
