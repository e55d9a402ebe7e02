// Owns the catalogue of tools, the tools of a session, and tool calls.
// - A tool that the policy denies is not offered; a call of it names the setting that denies it.
// - A call that was accepted before a restart is answered without another check of the policy.
// - Invalid input never causes an exception: every call is answered with one JSON object.
// - The caller passes the MCP tools of the session; no server is started here.

import { acceptedBy, type ToolName, toolSpec } from "../contract/tools.ts";
import type { SpawnChain } from "../core/rules/sandbox-policy.ts";
import { decideTool, filtersFor, mayHaveToolsUnder, outsidePrefix } from "../core/rules/tool-policy.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { ImageBlock } from "../core/shapes/message.ts";
import type { JsonSchema, ToolCallRequest, ToolOutcome, ToolSpec } from "../core/shapes/tool.ts";
import { quoted } from "../core/text/cut.ts";
import { nearestName } from "../core/text/nearest.ts";
import type { FeatureTool, Load, Services } from "../feature.ts";
import { added } from "../features.ts";
import { noteRefusal, shownAnswer } from "../flows/refusals.ts";
import { agentsList } from "./agents-list.ts";
import type { Renewable } from "./approval.ts";
import { readArguments } from "./arguments.ts";
import type { Containable } from "./containment.ts";
import { execTool } from "./exec.ts";
import { fetchTool, fileTools, webSearchTool } from "./files/files.ts";
import { type GuardContext, guarded, noteContent } from "./guidance/guard.ts";
import type { GuidanceFiles } from "./guidance/guidance.ts";
import { memoryTool } from "./guidance/memory.ts";
import { type SkillContext, skillTool } from "./guidance/skill.ts";
import { passGate } from "./labels/gate.ts";
import type { AskingContext } from "./mcp/asking.ts";
import { isOutsideName } from "./mcp/names.ts";
import { type MessageContext, messageTool } from "./message.ts";
import { type SendFileContext, sendFileTool } from "./send-file.ts";
import { sessionsHistory } from "./sessions/history.ts";
import { sessionsList } from "./sessions/list.ts";
import { sessionsSearch } from "./sessions/search.ts";
import { type SendContext, sessionsSend } from "./sessions/send.ts";
import { type SpawnContext, sessionsSpawn } from "./sessions/spawn.ts";
import { sessionStatus } from "./sessions/status.ts";
import { subagents } from "./subagents.ts";
import {
  type CallerContext,
  type OutsideSet,
  type OutsideTools,
  type Tool,
  type ToolAnswered,
  type ToolPolicy,
  type ToolResult,
  toolResult,
  type WritingContext,
} from "./tool.ts";
import { TOOL_RULES } from "./tool-rules.ts";

/** Everything that the tools and this catalogue need for a call. */
export interface ToolContext
  extends CallerContext,
    WritingContext,
    Containable,
    GuardContext,
    Renewable<ToolContext>,
    MessageContext,
    SendContext,
    SendFileContext,
    SkillContext,
    SpawnContext {
  readonly guidance?: GuidanceFiles | undefined;
  readonly ready?: ToolPolicy["ready"];
  /** The session's MCP tools. Absent if there are none. */
  readonly outside?: OutsideSet;
  readonly askAside?: AskingContext["askAside"];
  /** Awaited before a call that must not run twice. If it throws, the tool is not called. */
  readonly begins?: () => Promise<void>;
  /** Called after each call, for metrics. */
  readonly answered?: ToolAnswered | undefined;
}

type AnyTool = Tool<ToolContext>;

const webSearch: AnyTool = webSearchTool();

const ADDED: ReadonlyMap<string, FeatureTool> = new Map(Object.entries(added("tools")));

/** Returns the parts with which tools of features can work now, by tool. */
export async function readyTools(services: Services | undefined): Promise<ReadonlyMap<string, unknown>> {
  const ready = new Map<string, unknown>();
  for (const [name, { needs }] of ADDED) {
    const part = services && (await needs?.part(services));
    if (part !== undefined) ready.set(name, part);
  }
  return ready;
}

/** A tool whose code is loaded by its first call. */
type DeferredTool = AnyTool & { readonly load?: Load<{ readonly tool: AnyTool }> };

/** Returns the tool of a feature. */
function deferTool(name: string, { load, isInternal, needs }: FeatureTool): DeferredTool {
  return {
    spec: toolSpec(name as ToolName),
    accepts: acceptedBy(name as ToolName),
    load,
    isUsable: ({ external, ready }) => !(external && isInternal) && (!needs || ready?.has(name) === true),
    execute: async (ctx, args, call) => (await load()).tool.execute(ctx, args, call),
  };
}

/** Every built-in tool. */
const TOOLS: readonly DeferredTool[] = [
  sessionsList,
  sessionsHistory,
  sessionsSend,
  sessionsSpawn,
  agentsList,
  sessionStatus,
  sessionsSearch,
  subagents,
  messageTool,
  sendFileTool,
  ...fileTools,
  fetchTool,
  webSearch,
  execTool,
  skillTool,
  memoryTool,
  ...[...ADDED].map(([name, entry]) => deferTool(name, entry)),
];

const NAME_SHOWN_MAX_CHARS = 80;

type Policy = ToolPolicy & {
  readonly chain: SpawnChain;
  readonly outside?: OutsideSet | undefined;
};

/** Returns the built-in tools that have something to work with, and the session's MCP tools. */
function toolsIn(policy: Omit<Policy, "chain">): readonly DeferredTool[] {
  const ours = TOOLS.filter(({ isUsable }) => isUsable?.(policy) ?? true);
  return [...ours, ...(policy.outside?.tools ?? [])];
}

/** Returns the filters of all tools, by the settings and by the tools' own rules. */
const filtersOf = ({ chain, settings }: Policy) => filtersFor(chain, settings, TOOL_RULES);

/** Returns the names of all tools, including denied ones. For MCP servers, returns the names known so far. */
export function toolNames(outside?: Pick<OutsideTools, "knownNames">): string[] {
  return [...TOOLS.map((tool) => tool.spec.name), ...(outside?.knownNames() ?? [])];
}

/**
 * Returns the specs of all tools. `called`: names of tools that were called in the transcript. If one of them
 * is an MCP tool that is missing now, adds a spec for it, which says that its calls can't be repeated.
 */
export function toolSpecs(outside?: OutsideSet, called: Iterable<string> = []): ToolSpec[] {
  const specs = [...TOOLS, ...(outside?.tools ?? [])].map((tool) => tool.spec);
  const known = new Set(specs.map(({ name }) => name));
  const lost = [...new Set(called)].filter((name) => isOutsideName(name) && !known.has(name));
  const assumed = { description: "", parameters: { type: "object" }, parallel: false, idempotent: false };
  return [...specs, ...lost.map((name) => ({ name, ...assumed }))];
}

/** Returns the tools that the policy allows. */
export function toolsFor(policy: Policy): AnyTool[] {
  const filters = filtersOf(policy);
  return toolsIn(policy)
    .filter((tool) => decideTool(tool.spec.name, filters).allowed)
    .map((tool) => ({ ...tool, spec: specFor(policy, tool) }));
}

/** Returns the spec of a tool for one session. */
function specFor({ settings, chain, external = false }: Policy, { spec, describe }: AnyTool): ToolSpec {
  return { ...spec, ...describe?.({ settings, chain, external }) };
}

interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly allowed: boolean;
  /** Explains why the tool is allowed or denied, and names the setting that decides. */
  readonly reason: string;
}

/** Returns every tool with the policy's verdict. */
export function describeTools(policy: Policy): ToolDescription[] {
  const filters = filtersOf(policy);
  return toolsIn(policy).map((tool) => {
    const { name, description, parameters } = specFor(policy, tool);
    const verdict = decideTool(name, filters);
    const reason = verdict.allowed ? verdict.reason : verdict.error;
    return { name, description, parameters, allowed: verdict.allowed, reason };
  });
}

/**
 * Returns the MCP tools that the policy denies to a session, with the reasons. `mcp__<server>__*` stands for
 * the tools of a server if all of them are denied and their names are unknown.
 */
export function withheldOutside(
  policy: Policy,
  knownNames: readonly string[],
): { readonly name: string; readonly reason: string }[] {
  const servers = policy.settings.tools.mcp.servers.map(({ name }) => outsidePrefix(name));
  const unknown = servers.filter((prefix) => !knownNames.some((name) => name.startsWith(prefix)));
  const filters = filtersFor(policy.chain, policy.settings);
  const whole = unknown.filter((prefix) => !mayHaveToolsUnder(prefix, filters)).map((prefix) => `${prefix}*`);
  return [...knownNames, ...whole].flatMap((name) => {
    const verdict = decideTool(name, filters);
    return verdict.allowed ? [] : [{ name, reason: verdict.error }];
  });
}

function findTool(policy: Policy, name: string): Result<DeferredTool> {
  const tool = toolsIn(policy).find((candidate) => candidate.spec.name === name);
  const verdict = decideTool(name, filtersOf(policy));
  if (tool !== undefined && verdict.allowed) return ok(tool);
  const names = toolsFor(policy).map((candidate) => candidate.spec.name);
  const hint = names.length === 0 ? "You have no tools here." : `You have: ${names.join(", ")}.`;
  const unready = ADDED.get(name)?.needs?.otherwise;
  // The tool list of a denied server is never requested, so any name of an MCP tool counts as known.
  const isThere = tool !== undefined || isOutsideName(name) || unready !== undefined;
  if (isThere && !verdict.allowed) return fail("tool_denied", verdict.error, { hint });
  if (unready !== undefined) return { ...unready, hint };
  const missing = policy.outside?.missing.find(({ server }) => name.startsWith(outsidePrefix(server)));
  if (missing !== undefined) {
    const { server, why } = missing;
    return fail("mcp_unavailable", `the tools of the MCP server "${server}" are missing: ${why}`, { hint });
  }
  const nearest = nearestName(name, names);
  const meant = nearest === undefined ? "" : `; did you mean ${nearest}?`;
  const shown = quoted(name, NAME_SHOWN_MAX_CHARS);
  return fail("unknown_tool", `there is no tool ${shown}${meant}`, { hint });
}

/**
 * Returns the result object of a call, including failures. Throws only if there is a bug or the call was
 * aborted.
 */
export async function callTool(ctx: ToolContext, call: ToolCallRequest): Promise<ToolResult> {
  const answer = await answerCall(ctx, call);
  const result = toolResult(await shownAnswer(ctx, answer));
  ctx.answered?.(call.name, result);
  if (!answer.ok && ctx.run !== undefined) await noteRefusal({ ...ctx, run: ctx.run }, call, answer);
  return result;
}

async function answerCall(ctx: ToolContext, call: ToolCallRequest): Promise<Result<ToolResult>> {
  // Also finds a tool that is no longer offered, because the call may have been accepted before a restart.
  const found = [...toolsIn(ctx), ...TOOLS].find((candidate) => candidate.spec.name === call.name);
  const known = (await found?.load?.())?.tool ?? found;
  const args = await readArguments(known?.accepts ?? {}, call.arguments, known?.limits);
  const before = args.ok ? await known?.before?.(ctx, args.value, call) : undefined;
  if (known !== undefined && args.ok && before !== undefined) {
    await noteContent(ctx, { call, tool: known, args: args.value }, { result: before });
    return ok(before);
  }
  const tool = findTool(ctx, call.name);
  if (!tool.ok) return tool;
  if (!args.ok) return args;
  const checked = { call, tool: known ?? tool.value, args: args.value };
  const passed = await passGate(ctx, call, checked.tool, args.value);
  if (!passed.ok) return passed;
  // The rights may have changed meanwhile.
  const now = passed.value.waited ? ((await ctx.renewed?.()) ?? ok(ctx)) : ok(ctx);
  if (!now.ok) return now;
  const still = findTool(now.value, call.name);
  if (!still.ok) return still;
  if (!tool.value.spec.idempotent) await ctx.begins?.();
  return guarded(now.value, checked, () => still.value.execute(now.value, args.value, call));
}

/** Runs a call of the agent loop. Returns the result as the text that the model reads. */
export async function invokeTool(ctx: ToolContext, call: ToolCallRequest): Promise<ToolOutcome> {
  const { images, ...result } = await callTool(ctx, call);
  const isError = result.status === "error" || result.status === "forbidden";
  const shown = Array.isArray(images) && images.length > 0 ? { images: images as ImageBlock[] } : {};
  return { text: JSON.stringify(result), isError, ...shown };
}
