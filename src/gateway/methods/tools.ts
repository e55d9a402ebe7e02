// Owns the methods about tools: which a session has, and a call in its name.
// TO1: a call has the rights of the session within those of the token, and takes the way that an agent's call
//      takes.
// TO2: a call with a session's pass is that session's own call, in the run that it has under way.

import { fail, ok, type Result } from "../../core/errors.ts";
import type { SpawnChain } from "../../core/sandbox-policy.ts";
import type { Session } from "../../core/session.ts";
import { agentOf, findAgent } from "../../core/settings.ts";
import type { ToolCallRequest } from "../../core/tool.ts";
import { identityOf, type Viewer } from "../../core/visibility.ts";
import { resolveSession, sessionViewer } from "../../flows/access.ts";
import { spawnChainOf } from "../../flows/chain.ts";
import { getSession } from "../../store/sessions.ts";
import { callTool, describeTools, toolNames } from "../../tools/catalog.ts";
import type { RunInHand } from "../../tools/passes.ts";
import type { ToolContext } from "../../tools/tool.ts";
import type { CallContext, Methods } from "../call.ts";

/** The session that is meant: named, or the only one that the caller's pass is good for. */
async function sessionOf(
  ctx: CallContext,
  sessionKey: string | undefined,
  access: "list" | "send",
): Promise<Result<Session>> {
  const { actsAs } = ctx.caller;
  if (actsAs === undefined) {
    return resolveSession(ctx.access, ctx.viewer, access, { sessionKey: sessionKey ?? "main" });
  }
  const session = await getSession(ctx.access.db, actsAs);
  if (session === undefined) return fail("session_not_found", `session ${actsAs} does not exist any more`);
  if (sessionKey === undefined || sessionKey === actsAs || sessionKey === session.sessionId)
    return ok(session);
  return fail("not_visible", `this token is the pass of session ${actsAs} and of no other`);
}

async function actor(ctx: CallContext, sessionKey: string | undefined, access: "list" | "send") {
  const found = await sessionOf(ctx, sessionKey, access);
  if (!found.ok) return found;
  const { settings } = ctx.deps;
  const chain = await spawnChainOf(ctx.access.db, found.value);
  return ok({ session: found.value, agent: agentOf(settings, found.value), settings, chain });
}

/** Both must be allowed, the operator and the session; a pass is the session itself. */
function actingAs(ctx: CallContext, chain: SpawnChain): Viewer {
  const { viewer, caller, deps } = ctx;
  if (caller.actsAs !== undefined) return sessionViewer(chain, deps.settings);
  return viewer.kind === "operator" ? { ...viewer, as: identityOf(chain, deps.settings) } : viewer;
}

/** The run that a call with a pass belongs to; undefined: an operator calls, and it belongs to none. */
function runOf({ caller, deps }: CallContext): Result<RunInHand | undefined> {
  if (caller.actsAs === undefined) return ok(undefined);
  const run = deps.passes?.runOf(caller.actsAs);
  if (run !== undefined) return ok(run);
  return fail("run_aborted", `session ${caller.actsAs} has no run under way: its tools work only in one`);
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
  const tool = {
    ...(sandbox.value === undefined ? {} : { sandbox: sandbox.value }),
    settings,
    db: ctx.access.db,
    engine: ctx.deps.engine,
    viewer: actingAs(ctx, chain),
    session,
    agent,
    chain,
    toolNames: toolNames(),
    signal: ctx.signal,
  };
  const inHand = runOf(ctx);
  if (!inHand.ok) return inHand;
  const request = { callId: ctx.callId, attempt: 1, name: call.name, arguments: call.args };
  if (inHand.value !== undefined) return invokeInRun(tool, request, inHand.value);
  try {
    return ok(await callTool(tool, request));
  } catch (error) {
    if (!ctx.signal.aborted) throw error;
    return fail("run_aborted", "the caller left, or the gateway stopped, before the tool had answered");
  }
}

/** As a call that the run's own model makes: it counts in its chain, and gives its slot back while it waits. */
async function invokeInRun(
  tool: ToolContext,
  request: ToolCallRequest,
  { run, wait, signal: ofRun, duringCall }: RunInHand,
): Promise<Result<Record<string, unknown>>> {
  const signal = AbortSignal.any([tool.signal, ofRun]);
  try {
    return ok(await duringCall(() => callTool({ ...tool, signal, run, wait }, request)));
  } catch (error) {
    if (!signal.aborted) throw error;
    return fail("run_aborted", "the run ended, or the caller left, before the tool had answered");
  }
}

export const toolMethods: Methods<"tools.catalog" | "tools.invoke"> = {
  "tools.catalog": {
    async handle(ctx, { sessionKey }) {
      const found = await actor(ctx, sessionKey, "list");
      if (!found.ok) return found;
      const all = describeTools(found.value);
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
