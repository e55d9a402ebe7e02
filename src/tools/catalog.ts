// Owns which tools there are, which of them a session has, and how one is called.
// CA1: a tool that the policy denies is not offered; a call of it names the setting that denies it.
// CA2: what was accepted before a restart is not judged again, by whatever policy: its call is answered.
// CA3: bad input never throws: whatever a model or a client sends is answered with one JSON object.

import { fail, ok, type Result, toolFailure } from "../core/errors.ts";
import type { ImageBlock } from "../core/message.ts";
import type { SpawnChain } from "../core/sandbox-policy.ts";
import type { Settings } from "../core/settings.ts";
import type { JsonSchema, ToolCallRequest, ToolOutcome, ToolSpec } from "../core/tool.ts";
import { decideTool, filtersFor, type ToolVerdict } from "../core/tool-policy.ts";
import { agentsList } from "./agents-list.ts";
import { checkArguments, nearestName } from "./arguments.ts";
import { execTool } from "./exec.ts";
import { fileTools } from "./files.ts";
import { sessionStatus } from "./session-status.ts";
import { sessionsHistory } from "./sessions-history.ts";
import { sessionsList } from "./sessions-list.ts";
import { sessionsSearch } from "./sessions-search.ts";
import { sessionsSend } from "./sessions-send.ts";
import { sessionsSpawn } from "./sessions-spawn.ts";
import { subagents } from "./subagents.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";

const TOOLS: readonly Tool[] = [
  sessionsList,
  sessionsHistory,
  sessionsSend,
  sessionsSpawn,
  agentsList,
  sessionStatus,
  sessionsSearch,
  subagents,
  ...fileTools,
  execTool,
];

const NAME_SHOWN_MAX_CHARS = 80;

type Policy = { readonly settings: Settings; readonly chain: SpawnChain };

function verdictOf({ settings, chain }: Policy, name: string): ToolVerdict {
  return decideTool(name, filtersFor(chain, settings));
}

/** Every tool that there is, whoever may use it. */
export function toolNames(): string[] {
  return TOOLS.map((tool) => tool.spec.name);
}

export function toolSpecs(): ToolSpec[] {
  return TOOLS.map((tool) => tool.spec);
}

/** The tools that a session of this agent has. */
export function toolsFor(policy: Policy): Tool[] {
  return TOOLS.filter((tool) => verdictOf(policy, tool.spec.name).allowed);
}

interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly allowed: boolean;
  /** Why it is not allowed, naming the setting. */
  readonly reason?: string;
}

/** Every tool, with what the policy says of it. */
export function describeTools(policy: Policy): ToolDescription[] {
  return TOOLS.map(({ spec: { name, description, parameters } }) => {
    const verdict = verdictOf(policy, name);
    const reason = verdict.allowed ? {} : { reason: verdict.error };
    return { name, description, parameters, allowed: verdict.allowed, ...reason };
  });
}

function findTool(policy: Policy, name: string): Result<Tool> {
  const tool = TOOLS.find((candidate) => candidate.spec.name === name);
  const verdict = verdictOf(policy, name);
  if (tool !== undefined && verdict.allowed) return ok(tool);
  const names = toolsFor(policy).map((candidate) => candidate.spec.name);
  const hint = names.length === 0 ? "You have no tools here." : `You have: ${names.join(", ")}.`;
  if (tool !== undefined && !verdict.allowed) return fail("tool_denied", verdict.error, { hint });
  const nearest = nearestName(name, names);
  const meant = nearest === undefined ? "" : `; did you mean ${nearest}?`;
  const shown = JSON.stringify(name.slice(0, NAME_SHOWN_MAX_CHARS));
  return fail("unknown_tool", `there is no tool ${shown}${meant}`, { hint });
}

/** The result object of a call, whatever the call is. Throws only for a bug, or when the call was aborted. */
export async function callTool(ctx: ToolContext, call: ToolCallRequest): Promise<ToolResult> {
  const known = TOOLS.find((candidate) => candidate.spec.name === call.name);
  const args = checkArguments(known?.spec.parameters ?? {}, call.arguments);
  const before = args.ok ? await known?.before?.(ctx, args.value, call) : undefined;
  if (before !== undefined) return before;
  const tool = findTool(ctx, call.name);
  if (!tool.ok) return toolFailure(tool);
  if (!args.ok) return toolFailure(args);
  return tool.value.execute(ctx, args.value, call);
}

/** A call as the agent loop makes it: the result as the text that the model reads. */
export async function invokeTool(ctx: ToolContext, call: ToolCallRequest): Promise<ToolOutcome> {
  const { images, ...result } = await callTool(ctx, call);
  const isError = result.status === "error" || result.status === "forbidden";
  const shown = Array.isArray(images) && images.length > 0 ? { images: images as ImageBlock[] } : {};
  return { text: JSON.stringify(result), isError, ...shown };
}
