// Owns the tool `agents_list`: the agents that the calling session may name when it starts another session.

import { type AgentSettings, modelOf } from "../core/settings.ts";
import { shownKey } from "../flows/access.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";

export const agentsList: Tool = {
  spec: {
    name: "agents_list",
    description: "List the agents that you may name as agentId when you start a session of another agent.",
    parameters: { type: "object", properties: {} },
    parallel: true,
    idempotent: true,
  },
  async execute(ctx) {
    const allowed = ctx.agent.subagents.allowAgents;
    const allowAny = allowed.includes("*");
    const mayName = (agent: AgentSettings): boolean =>
      allowAny || agent.id === ctx.agent.id || allowed.includes(agent.id);
    return {
      requester: shownKey(ctx, ctx.viewer, ctx.session.key),
      allowAny,
      agents: ctx.settings.agents.filter(mayName).map((agent) => agentRow(ctx, agent)),
    };
  },
};

function agentRow(ctx: ToolContext, agent: AgentSettings): ToolResult {
  return {
    id: agent.id,
    ...(agent.name === undefined ? {} : { name: agent.name }),
    model: modelOf(ctx.settings, { agentId: agent.id }),
    runtime: "builtin",
    sandboxed: false,
    self: agent.id === ctx.agent.id,
  };
}
