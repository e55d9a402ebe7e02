// The tool `agents_list`: the agents whose sessions the calling session may start.

import { optional } from "../core/optional.ts";
import { containsSubagents } from "../core/rules/sandbox-policy.ts";
import { spawnableAgents } from "../core/rules/spawn-policy.ts";
import { ok } from "../core/shapes/errors.ts";
import { type AgentSettings, modelOf } from "../core/shapes/settings/settings.ts";
import type { CallerContext, ReadingContext, Tool } from "./tool.ts";

type Context = Pick<ReadingContext, "settings"> & Pick<CallerContext, "agent">;

/** An agent whose sessions the caller may start. */
interface AgentRow {
  readonly id: string;
  readonly name?: string;
  readonly model: string;
  readonly runtime: string;
  /** True if its sub-agents run contained. */
  readonly sandboxed: boolean;
  /** True for the agent of the calling session. */
  readonly self: boolean;
}

type AgentsListResult = {
  /** The agent of the calling session. */
  readonly requester: string;
  readonly allowAny: boolean;
  readonly agents: readonly AgentRow[];
};

export const agentsList: Tool<Context, AgentsListResult> = {
  spec: {
    name: "agents_list",
    description: "List the agents that you may name as agentId when you start a session of another agent.",
    parameters: { type: "object", properties: {} },
    parallel: true,
    idempotent: true,
  },
  async execute(ctx) {
    return ok({
      requester: ctx.agent.id,
      allowAny: ctx.agent.subagents.allowAgents.includes("*"),
      agents: spawnableAgents(ctx.agent, ctx.settings)
        .toSorted((left, right) => Number(right.id === ctx.agent.id) - Number(left.id === ctx.agent.id))
        .map((agent) => agentRow(ctx, agent)),
    });
  },
};

function agentRow(ctx: Context, agent: AgentSettings): AgentRow {
  return {
    id: agent.id,
    ...optional({ name: agent.name }),
    model: modelOf(ctx.settings, { agentId: agent.id }),
    runtime: agent.runtime?.type ?? "builtin",
    sandboxed: containsSubagents(agent),
    self: agent.id === ctx.agent.id,
  };
}
