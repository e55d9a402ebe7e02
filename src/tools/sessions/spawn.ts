// Implements the tool `sessions_spawn`: reads the arguments of a spawn and writes its outcome as one JSON
// object. core/rules/spawn-policy.ts decides whether the spawn is allowed, and flows/job/spawn.ts creates the
// sub-agent. Everything is checked before anything is written: a refused call leaves no session and no file.
// An operator whose token covers only some sessions can spawn only sessions that it covers (I9).

import { coversSubagents } from "../../access/access.ts";
import { spawnDescription } from "../../contract/tools/sessions.ts";
import type { ArgumentsOf, ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { contentsWereLeftOut } from "../../core/rules/attachment-rules.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { resultDescription, resultNote, resultRequester } from "../../core/rules/result-delivery.ts";
import { decideSpawn, refuseAttachments, type ThreadSupport } from "../../core/rules/spawn-policy.ts";
import { decideTool, filtersFor, withheldTools } from "../../core/rules/tool-policy.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/session.ts";
import { isSubagentKey } from "../../core/shapes/session-key.ts";
import { thinkingNamed } from "../../core/shapes/settings/settings.ts";
import { checkLabel } from "../../core/text/label.ts";
import { placeOfRun } from "../../flows/conversation/party.ts";
import { bindingSettingsOf, type Threads } from "../../flows/delivery/bindings.ts";
import { type AttachmentPlan, planAttachments } from "../../flows/job/attachments.ts";
import { type SpawnOutcome, type SpawnRequest, spawnedBefore, spawnSession } from "../../flows/job/spawn.ts";
import { openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { agentIdLimit, bodyLimit, textLimit } from "../arguments.ts";
import { agentSink } from "../labels/sinks.ts";
import { type CallerContext, type Tool, tool, type WritingContext } from "../tool.ts";
import { TOOL_RULES } from "../tool-rules.ts";

export interface SpawnContext extends WritingContext, Pick<CallerContext, "chain"> {
  /** The names of all tools, including denied ones. */
  readonly toolNames: readonly string[];
  /** Creates threads for sub-agents. Absent if no channel has threads. */
  readonly threads?: Threads | undefined;
}

const WAIT_TOOL = "subagents";
const TASK_MAX_BYTES = 256 * 1024;
const WORD_CHARS_MAX = 200;

const wordLimit = textLimit(WORD_CHARS_MAX);

/** Returns whether a session has the tool that waits for sub-agents. */
function mayWait({ chain, settings }: Pick<SpawnContext, "chain" | "settings">): boolean {
  return decideTool(WAIT_TOOL, filtersFor(chain, settings)).allowed;
}

export const sessionsSpawn: Tool<SpawnContext> = tool("sessions_spawn", {
  describe({ chain, settings, external }) {
    const requester = { external, isSubagent: isSubagentKey(chain[0].key) };
    const { announce } = settings.subagents;
    const results = resultDescription(requester, { announce, mayWait: mayWait({ chain, settings }) });
    return { description: spawnDescription(results) };
  },
  limits: {
    task: bodyLimit(TASK_MAX_BYTES, "Put long material into attachments."),
    label: (value: unknown) => (typeof value === "string" ? checkLabel(value) : ok(value)),
    agentId: agentIdLimit,
    model: wordLimit,
    // An unknown level is accepted here, and refused later with the other problems of the call.
    thinking: (value: unknown) => ok(typeof value === "string" ? (thinkingNamed(value) ?? value) : undefined),
  },
  sink: ({ settings, session }, { agentId = session.agentId, task }) => agentSink(settings, agentId, task),
  // A call with attachments can't be repeated, because their contents are not stored with the call.
  async before(ctx, _, { callId }) {
    const before = await spawnedBefore(ctx, callId);
    return before && spawnResult(ctx, before);
  },
  async execute(ctx, args, call) {
    const request = await plan(ctx, args, call.callId);
    if (!request.ok) return request;
    const spawned = await spawnSession(ctx, request.value);
    return spawned.ok ? ok(spawnResult(ctx, spawned.value, withheldFrom(ctx, request.value))) : spawned;
  },
});

type SpawnResult = ToolResultOf<"sessions_spawn">;

/** Converts the outcome of a spawn to the result for its requester. */
function spawnResult(
  ctx: SpawnContext,
  outcome: SpawnOutcome,
  withheld: readonly string[] = [],
): SpawnResult {
  const { runId } = outcome;
  switch (outcome.kind) {
    case "spawned": {
      const { key: childSessionKey, model, spawn } = outcome.child;
      const { announce = "post", thread, route, attachments } = spawn ?? {};
      const note = resultNote({
        requester: resultRequester(ctx.session),
        announce,
        thread: thread !== undefined,
        hasPlace: route !== undefined,
        mayWait: mayWait(ctx),
      });
      return {
        status: "accepted",
        runId,
        childSessionKey,
        ...optional({ model, note, thread, attachments }),
        ...(withheld.length === 0 ? {} : { withheldTools: withheld }),
      };
    }
    case "child_deleted": {
      const { childKey: childSessionKey, model } = outcome;
      return { status: "accepted", runId, childSessionKey, ...optional({ model }) };
    }
  }
}

/** Returns the tools that the child does not get because of its requester's limits. */
function withheldFrom(
  { settings, session, chain, toolNames }: SpawnContext,
  { plan }: SpawnRequest,
): string[] {
  const { agent, spawnDepth, sandboxed } = plan;
  const child = { key: "", agentId: agent.id, kind: "other" as const, spawnDepth, spawn: { sandboxed } };
  return withheldTools(toolNames, [{ ...child, spawnedBy: session.key }, ...chain], settings, TOOL_RULES);
}

function readAttachments(ctx: SpawnContext, value: unknown): Result<AttachmentPlan | undefined> {
  if (value === undefined) return ok(undefined);
  if (contentsWereLeftOut(value)) {
    return fail(
      "invalid_argument",
      "the gateway stopped before this call was accepted, and attachments are not kept",
      {
        hint: "Call sessions_spawn again with the contents.",
      },
    );
  }
  return planAttachments(value, ctx.settings.tools.sessionsSpawn.attachments);
}

function threadsAt({ threads, settings }: SpawnContext, route: Route): ThreadSupport {
  if (threads?.has(route.channel) !== true) return "none";
  return bindingSettingsOf(settings, route)?.enabled === false ? "off" : "on";
}

/** Checks a call completely, and returns the spawn to make. */
async function plan(
  ctx: SpawnContext,
  args: ArgumentsOf<"sessions_spawn">,
  callId: string,
): Promise<Result<SpawnRequest>> {
  const { settings, session, chain } = ctx;
  const { task, label, agentId = session.agentId } = args;
  if (!coversSubagents(ctx, ctx.viewer, "spawn", agentId))
    return fail("spawn_denied", `this token does not cover sub-agents of agent "${agentId}"`, {
      hint: `Add "agent:${agentId}:subagent:*" to gateway.auth.tokens[].sessions.`,
    });
  const route = placeOfRun(session, ctx.run);
  const open = await openSpawnsOf(ctx.db, { sessionKey: session.key });
  const decided = decideSpawn(
    {
      call: args,
      chain,
      unfinishedChildren: open.length,
      channel: route === undefined ? undefined : { id: route.channel, threads: threadsAt(ctx, route) },
      mayName: (id) => coversSubagents(ctx, ctx.viewer, "spawn", id),
    },
    settings,
  );
  if (!decided.ok) return decided;
  const attachments = readAttachments(ctx, args.attachments);
  if (!attachments.ok) return attachments;
  const refused = attachments.value && refuseAttachments(decided.value.agent);
  if (refused !== undefined) return refused;
  return ok({
    requester: session,
    callId,
    task,
    plan: decided.value,
    ...optional({
      route,
      requesterRun: ctx.run,
      guest: isGuest(ctx.viewer) || undefined,
      wait: ctx.wait,
      label,
      attachments: attachments.value,
    }),
  });
}
