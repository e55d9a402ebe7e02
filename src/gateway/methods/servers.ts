// Owns the methods about MCP servers and the programs of ACP agents.
// SV1: arguments, environment, headers and paths of addresses are never returned; secrets are redacted in
//      errors and names (I14).

import type { AcpAgentRow, McpServerRow, SERVER_METHODS } from "../../contract/methods/servers.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { agentIdInKey } from "../../core/shapes/session-key.ts";
import { type McpServerSettings, programOf } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { newestFailures } from "../../store/queries/agent-work.ts";
import type { OutsideTools } from "../../tools/tool.ts";
import type { BasicDeps, CallContext, Methods } from "../call.ts";
import type { ChannelDeps } from "./channels.ts";

export interface ServerListDeps extends BasicDeps, Pick<ChannelDeps, "programs"> {
  /** MCP servers. Absent if none is configured. */
  readonly outside?: Pick<OutsideTools, "statuses" | "toolsOf" | "test"> | undefined;
}

type Context = CallContext<ServerListDeps>;

function rowOf({ deps }: Context, { name, reach, agents }: McpServerSettings): McpServerRow {
  const { redactor } = deps.world;
  const status = deps.outside?.statuses().find(({ server }) => server === name);
  const { tools = [], leftOut = [] } = deps.outside?.toolsOf(name) ?? {};
  const { state = "idle", connectedSince, backoffUntil, lastError, lastErrorAt } = status ?? {};
  return {
    name,
    transport: reach.kind,
    place: redactor.mask(reach.kind === "stdio" ? reach.command : new URL(reach.url).origin),
    agents,
    state,
    ...redactor.all({ tools, leftOut, ...optional({ lastError }) }),
    ...optional({ connectedSince, backoffUntil, lastErrorAt }),
  };
}

async function agentRows({ deps, access }: Context): Promise<AcpAgentRow[]> {
  const agents = deps.settings.agents.filter((agent) => programOf(agent) !== undefined);
  const running = deps.programs?.() ?? [];
  const mask = (text: string): string => deps.world.redactor.mask(text);
  const failures = agents.length === 0 ? [] : await newestFailures(access.db);
  return agents.map((agent) => {
    const { id } = agent;
    const failed = failures.find(({ agentId }) => agentId === id);
    return {
      agentId: id,
      program: mask(programOf(agent)?.[0] ?? ""),
      sessions: running.filter((key) => agentIdInKey(key) === id),
      ...optional({
        lastFailure: failed && { sessionKey: failed.sessionKey, atMs: failed.at, error: mask(failed.error) },
      }),
    };
  });
}

async function test(ctx: Context, name: string): Promise<Result<McpServerRow>> {
  const { settings, outside } = ctx.deps;
  const { servers } = settings.tools.mcp;
  const server = servers.find((one) => one.name === name);
  if (server === undefined || outside === undefined) {
    const names = servers.map((one) => one.name).join(", ") || "none";
    return fail("invalid_argument", `there is no MCP server ${quoted(name, 80)}; configured: ${names}`);
  }
  const tested = await outside.test(name, ctx.signal);
  return tested.ok ? ok(rowOf(ctx, server)) : fail(tested.code, tested.error);
}

export const serverMethods: Methods<keyof typeof SERVER_METHODS, ServerListDeps> = {
  "servers.list": {
    async handle(ctx) {
      const servers = ctx.deps.settings.tools.mcp.servers.map((one) => rowOf(ctx, one));
      return ok({ ts: ctx.deps.world.clock.now(), servers, agents: await agentRows(ctx) });
    },
  },
  "servers.test": {
    handle: (ctx, { name }) => test(ctx, name),
  },
};
