// Implements the tool `agents_list`, which lists the agents that the calling session may spawn. An operator
// gets only its own agent and those that its token covers (I9).

import { coversSubagents } from "../access/access.ts";
import type { ToolResultOf } from "../contract/tools.ts";
import { optional } from "../core/optional.ts";
import { containsSubagents } from "../core/rules/sandbox-policy.ts";
import { spawnableAgents } from "../core/rules/spawn-policy.ts";
import { ok } from "../core/shapes/errors.ts";
import { modelOf } from "../core/shapes/settings/settings.ts";
import { type CallerContext, type ReadingContext, type Tool, tool } from "./tool.ts";

type Context = Pick<ReadingContext, "settings" | "viewer"> & Pick<CallerContext, "agent">;

type AgentRow = ToolResultOf<"agents_list">["agents"][number];

export const agentsList: Tool<Context> = tool("agents_list", {
  async execute(ctx) {
    return ok({
      requester: ctx.agent.id,
      allowAny: ctx.agent.subagents.allowAgents.includes("*"),
      agents: spawnableAgents(ctx.agent, ctx.settings)
        .filter(({ id }) => id === ctx.agent.id || coversSubagents(ctx, ctx.viewer, "list", id))
        .toSorted((left, right) => Number(right.id === ctx.agent.id) - Number(left.id === ctx.agent.id))
        .map(
          (agent): AgentRow => ({
            id: agent.id,
            ...optional({ name: agent.name }),
            model: modelOf(ctx.settings, { agentId: agent.id }),
            runtime: agent.runtime?.type ?? "builtin",
            sandboxed: containsSubagents(agent),
            self: agent.id === ctx.agent.id,
          }),
        ),
    });
  },
});
