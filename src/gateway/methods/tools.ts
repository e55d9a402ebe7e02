// Owns the methods about tools: which a session has, and a call in its name.
// TO1: a call has the rights of the session within those of the token, and takes the way that an agent's call
//      takes.

import { fail, ok, type Result } from "../../core/errors.ts";
import type { SpawnChain } from "../../core/sandbox-policy.ts";
import { agentOf, findAgent, type Settings } from "../../core/settings.ts";
import { identityOf, type Viewer } from "../../core/visibility.ts";
import { resolveSession } from "../../flows/access.ts";
import { spawnChainOf } from "../../flows/chain.ts";
import { callTool, describeTools, toolNames } from "../../tools/catalog.ts";
import type { CallContext, Methods } from "../call.ts";

async function actor(ctx: CallContext, sessionKey: string | undefined, access: "list" | "send") {
  const found = await resolveSession(ctx.access, ctx.viewer, access, { sessionKey: sessionKey ?? "main" });
  if (!found.ok) return found;
  const { settings } = ctx.deps;
  const chain = await spawnChainOf(ctx.access.db, found.value);
  return ok({ session: found.value, agent: agentOf(settings, found.value), settings, chain });
}

function actingAs(viewer: Viewer, chain: SpawnChain, settings: Settings): Viewer {
  const as = identityOf(chain, settings);
  return viewer.kind === "operator" ? { ...viewer, as } : viewer;
}

/** The tool's own result, as that session would get it. */
async function invoke(
  ctx: CallContext,
  call: { name: string; args: Record<string, unknown>; sessionKey?: string | undefined },
): Promise<Result<Record<string, unknown>>> {
  const found = await actor(ctx, call.sessionKey, "send");
  if (!found.ok) return found;
  const { session, agent, settings, chain } = found.value;
  // Its rights, and whether it is contained, stood in its agent's settings: nobody else's are in their place.
  if (findAgent(settings, session.agentId) === undefined)
    return fail("agent_not_found", `agent "${session.agentId}" is no longer configured (agents.list)`);
  const sandbox = await ctx.deps.sandboxFor(chain);
  if (!sandbox.ok) return sandbox;
  const outside = await ctx.deps.outside?.forSession(chain, ctx.signal, call.name);
  const tool = {
    ...(outside === undefined ? {} : { outside }),
    ...(sandbox.value === undefined ? {} : { sandbox: sandbox.value }),
    settings,
    db: ctx.access.db,
    engine: ctx.deps.engine,
    viewer: actingAs(ctx.viewer, chain, settings),
    session,
    agent,
    chain,
    toolNames: toolNames(ctx.deps.outside),
    signal: ctx.signal,
  };
  const { callId } = ctx;
  try {
    return ok(await callTool(tool, { callId, attempt: 1, name: call.name, arguments: call.args }));
  } catch (error) {
    if (!ctx.signal.aborted) throw error;
    return fail("run_aborted", "the caller left, or the gateway stopped, before the tool had answered");
  }
}

export const toolMethods: Methods<"tools.catalog" | "tools.invoke"> = {
  "tools.catalog": {
    async handle(ctx, { sessionKey }) {
      const found = await actor(ctx, sessionKey, "list");
      if (!found.ok) return found;
      const { chain } = found.value;
      const outside = await ctx.deps.outside?.forSession(chain, ctx.signal);
      const all = describeTools({ ...found.value, outside });
      const tools = all
        .filter((tool) => tool.allowed)
        .map(({ name, description, parameters }) => ({ name, description, parameters }));
      const withheld = all.filter((tool) => !tool.allowed).map(({ name, reason }) => ({ name, reason }));
      return ok({ sessionKey: found.value.session.key, tools, withheld });
    },
  },
  "tools.invoke": {
    handle: (ctx, params) =>
      invoke(ctx, {
        name: params.name,
        args: (params.arguments ?? params.args ?? {}) as Record<string, unknown>,
        sessionKey: params.sessionKey,
      }),
  },
};
