// Owns the methods about tools: list a session's tools, and call one as the session.
// A call has only the rights that both the session and the token have, and takes the same path as an agent's
// call. A call that must not be repeated reserves its key first.
// A call with a session's pass counts as that session's own call, as part of its current run.

import { resolveSession } from "../../access/resolve.ts";
import { spawnChainOf } from "../../access/spawn-chain.ts";
import { threadsOf } from "../../channels/threads.ts";
import { optional } from "../../core/optional.ts";
import { guidanceReach } from "../../core/rules/prompt/guidance.ts";
import type { SpawnChain } from "../../core/rules/sandbox-policy.ts";
import { fail, ok, type Result, toolFailure } from "../../core/shapes/errors.ts";
import { agentOf, findAgent, notConfigured } from "../../core/shapes/settings/settings.ts";
import type { Services, Watch } from "../../feature.ts";
import { describeTools, readyTools, toolNames, withheldOutside } from "../../tools/catalog.ts";
import type { Containable } from "../../tools/containment.ts";
import type { GuidanceFiles } from "../../tools/guidance/guidance.ts";
import type { SkillContext } from "../../tools/guidance/skill.ts";
import type { Passes } from "../../tools/passes.ts";
import type { CallerContext, OutsideTools, ToolResult } from "../../tools/tool.ts";
import type { BasicDeps, CallContext, Methods } from "../call.ts";
import { callInRun, runOfPass, sessionOfPass, viewerAs } from "../pass.ts";
import type { ChannelDeps } from "./channels.ts";

export interface ToolDeps extends BasicDeps, Pick<ChannelDeps, "channels"> {
  /**
   * Returns the sandbox of a session's tools: undefined if they run without one, a failure if no backend
   * works.
   */
  sandboxFor(chain: SpawnChain): Promise<Result<Containable["sandbox"]>>;
  /** Tools of MCP servers. Absent if none is configured. */
  readonly outside?: OutsideTools | undefined;
  /** Passes: temporary tokens of the programs of ACP agents. Absent if there are no ACP agents. */
  readonly passes?: Pick<Passes, "runOf" | "noteListed">;
  readonly services?: Services | undefined;
  /** Reads instruction files and skills. Absent: sessions get none. */
  readonly guidance?: GuidanceFiles | undefined;
  readonly watch: Pick<Watch, "toolAnswered">;
}

const OUTCOME_UNKNOWN = fail(
  "outcome_unknown",
  "outcome unknown: the gateway stopped during this call, so it may or may not have taken effect",
  {
    hint: "This idempotencyKey never runs the call again. Check its effects before you use a new key.",
  },
);

async function actor(ctx: CallContext<ToolDeps>, sessionKey: string | undefined, access: "list" | "send") {
  const { actsAs } = ctx.caller;
  const found =
    actsAs === undefined
      ? await resolveSession(ctx.access, ctx.viewer, access, { sessionKey: sessionKey ?? "main" })
      : await sessionOfPass(ctx.access.db, actsAs, sessionKey);
  if (!found.ok) return found;
  const { settings } = ctx.deps;
  const chain = await spawnChainOf(ctx.access.db, found.value);
  return ok({ session: found.value, agent: agentOf(settings, found.value), settings, chain });
}

async function skillsOf(
  { deps }: CallContext<ToolDeps>,
  { agent, chain }: Pick<CallerContext, "agent" | "chain">,
): Promise<SkillContext["skills"]> {
  return (await deps.guidance?.forAgent(agent, guidanceReach(chain, deps.settings)))?.skills;
}

/** Calls the tool, and returns the same result that the session itself would get. */
async function invoke(
  ctx: CallContext<ToolDeps>,
  call: { name: string; args: Record<string, unknown>; sessionKey?: string | undefined },
): Promise<Result<ToolResult>> {
  const found = await actor(ctx, call.sessionKey, "send");
  if (!found.ok) return found;
  const { session, agent, settings, chain } = found.value;
  // A session of a removed agent has no rights and no sandbox. The settings of another agent must not apply
  // to it.
  if (findAgent(settings, session.agentId) === undefined)
    return fail("agent_not_found", notConfigured(session.agentId));
  const sandbox = await ctx.deps.sandboxFor(chain);
  if (!sandbox.ok) return sandbox;
  const outside = await ctx.deps.outside?.forSession(chain, ctx.signal, call.name);
  const tool = {
    ...optional({ outside, sandbox: sandbox.value }),
    settings,
    db: ctx.access.db,
    engine: ctx.deps.engine,
    viewer: viewerAs(ctx.caller, ctx.viewer, chain, settings),
    session,
    agent,
    chain,
    ready: await readyTools(ctx.deps.services),
    skills: await skillsOf(ctx, found.value),
    guidance: ctx.deps.guidance,
    toolNames: toolNames(ctx.deps.outside),
    signal: ctx.signal,
    begins: () => ctx.reserve(toolFailure(OUTCOME_UNKNOWN)),
    answered: ctx.deps.watch.toolAnswered,
    threads: threadsOf(ctx.deps.channels, ctx.deps.world),
  };
  const { callId } = ctx;
  const inHand = runOfPass(ctx.deps.passes, ctx.caller);
  if (!inHand.ok) return inHand;
  try {
    const request = { callId, attempt: 1, name: call.name, arguments: call.args };
    return ok(await callInRun(tool, request, inHand.value));
  } catch (error) {
    if (!ctx.signal.aborted && inHand.value?.signal.aborted !== true) throw error;
    return fail("run_aborted", "the caller, its run or the gateway ended before the tool answered");
  }
}

export const toolMethods: Methods<"tools.catalog" | "tools.invoke", ToolDeps> = {
  "tools.catalog": {
    async handle(ctx, { sessionKey }) {
      const found = await actor(ctx, sessionKey, "list");
      if (!found.ok) return found;
      const { chain, session } = found.value;
      const outside = await ctx.deps.outside?.forSession(chain, ctx.signal);
      const all = describeTools({
        ...found.value,
        external: session.external,
        outside,
        ready: await readyTools(ctx.deps.services),
        skills: await skillsOf(ctx, found.value),
      });
      const tools = all
        .filter((tool) => tool.allowed)
        .map(({ name, description, parameters, reason }) => ({ name, description, parameters, reason }));
      const ours = all.filter((tool) => !tool.allowed).map(({ name, reason }) => ({ name, reason }));
      const theirs = withheldOutside(found.value, ctx.deps.outside?.knownNames() ?? []);
      const missing = (outside?.missing ?? []).map(({ server, why }) => ({
        server,
        why: ctx.deps.world.redactor.mask(why),
      }));
      const { key } = session;
      return ok({ sessionKey: key, tools, withheld: [...ours, ...theirs], missing });
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
