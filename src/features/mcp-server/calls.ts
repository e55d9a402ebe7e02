// Lists the tools of an MCP client and executes its calls.
// A call is handled like an agent's call, with the same tools, checks and results. The only additional tools
// are the inbox and, for operators, the fork. A client has no tools for files or programs.
// The caller's token needs the scope for the call. If a client disconnects, its run continues; the result is
// then written into the client's session.

import { ProtocolErrorCode } from "@modelcontextprotocol/server";
import { openGate } from "../../access/access.ts";
import { SESSION_TOOLS } from "../../core/rules/tool-policy.ts";
import type { Access } from "../../core/rules/visibility.ts";
import { fail, toolFailure } from "../../core/shapes/errors.ts";
import type { ToolSpec } from "../../core/shapes/tool.ts";
import { quoted } from "../../core/text/cut.ts";
import { throughDoubt } from "../../engine/run/until-stored.ts";
import type { SendOutcome } from "../../flows/conversation/send.ts";
import { thrown } from "../../gateway/answer.ts";
import type { BasicDeps } from "../../gateway/call.ts";
import type { HttpParts } from "../../gateway/http/http.ts";
import { callInRun, runOfPass } from "../../gateway/pass.ts";
import { describeTools, type ToolContext, toolNames } from "../../tools/catalog.ts";
import { markRead } from "../../tools/guidance/guard.ts";
import { sendResult } from "../../tools/sessions/send.ts";
import { type ToolResult, toolResult } from "../../tools/tool.ts";
import type { McpClient } from "./client.ts";
import { FORK_TOOL, forkAs, mayFork } from "./fork.ts";
import { INBOX_TOOL, inboxOf } from "./inbox.ts";

export interface ToolCall {
  /** Stable id, by which the run that the call started is found. */
  readonly callId: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export type McpDeps = BasicDeps & Pick<HttpParts["deps"], "watch" | "passes" | "version">;

type Described = Pick<ToolSpec, "name" | "description" | "parameters">;

function inThisDoor(name: string): boolean {
  return SESSION_TOOLS.some((known) => known === name);
}

/** Returns the tools that the client's session has over MCP. */
export function toolsOf({ settings }: Pick<McpDeps, "settings">, client: McpClient): Described[] {
  const allowed = describeTools({ settings, chain: client.chain, external: client.session.external }).filter(
    (tool) => tool.allowed && inThisDoor(tool.name),
  );
  return [
    ...allowed,
    ...(client.session.external ? [INBOX_TOOL] : []),
    ...(mayFork(client) ? [FORK_TOOL] : []),
  ];
}

function accessOf({ name, arguments: args }: ToolCall): Access {
  if (name === "sessions_send" || name === "message") return "send";
  const spawns = name === "sessions_spawn" || (name === "subagents" && args.action === "cancel");
  return spawns ? "spawn" : "read";
}

function contextOf(deps: McpDeps, client: McpClient, signal: AbortSignal): ToolContext {
  const { settings, engine } = deps;
  const { viewer, session, agent, chain } = client;
  return {
    settings,
    db: engine.store.db,
    engine,
    viewer,
    session,
    agent,
    chain,
    toolNames: toolNames(),
    signal,
    confirmsAnswers: true,
    answered: deps.watch.toolAnswered,
  };
}

/**
 * Registers an action for the end of an exchange. `written`: the client's connection got the whole answer.
 */
export type AtEnd = (action: (written: boolean) => void) => void;

/** Executes a call and returns its result object, errors included. Throws only when `signal` was aborted. */
export async function callAs(
  deps: McpDeps,
  client: McpClient,
  call: ToolCall,
  signal: AbortSignal,
  atEnd: AtEnd = () => {},
): Promise<ToolResult> {
  try {
    if (call.name === INBOX_TOOL.name)
      return toolResult(await inboxOf(deps, client, call.arguments, { signal, atEnd }));
    if (call.name === FORK_TOOL.name) return toolResult(await forkAs(deps, client, call, signal));
    if (!inThisDoor(call.name)) {
      const names = toolsOf(deps, client).map((tool) => tool.name);
      const error = `there is no tool ${quoted(call.name, 80)} here`;
      return toolFailure(fail("unknown_tool", error, { hint: `There are: ${names.join(", ")}.` }));
    }
    const { settings, engine } = deps;
    const { viewer, session } = client;
    const access = accessOf(call);
    const gate = openGate({ db: engine.store.db, settings }, viewer);
    const verdict = await gate.decide(access, session);
    if (!verdict.allowed) return toolFailure(fail(verdict.code, verdict.error));
    const inHand = runOfPass(deps.passes, client.caller);
    if (!inHand.ok) return toolFailure(inHand);
    const [context, request] = [contextOf(deps, client, signal), { ...call, attempt: 1 }];
    // A repeated call finds its result by its id.
    return await throughDoubt(deps.world, signal, () => callInRun(context, request, inHand.value));
  } catch (error) {
    if (signal.aborted) throw error;
    return toolFailure(thrown(deps.world, error, `the tool ${call.name.slice(0, 80)} over MCP`));
  }
}

/** Converts a tool's result to the protocol's form. Only errors need not fit the tool's `outputSchema`. */
export function answerWith(result: ToolResult) {
  const isError = result.status === "error" || result.status === "forbidden";
  const content = [{ type: "text" as const, text: JSON.stringify(result) }];
  return isError ? { content, isError } : { content, structuredContent: result };
}

/** Returns the result of a send for a client that reads it later, and marks its session as its call would. */
export async function resultLater(
  { settings, engine }: McpDeps,
  { session, agent }: McpClient,
  callId: string,
  outcome: SendOutcome,
): Promise<ToolResult> {
  await markRead({ db: engine.store.db, settings, session, agent, engine }, callId, outcome.labels);
  return sendResult(settings, session, outcome);
}

/**
 * Returns the answer to a call: its result or, if the work killed its process again and again, an error of
 * the protocol.
 */
export function replyWith(
  result: ToolResult,
): { result: ReturnType<typeof answerWith> } | { error: { code: number; message: string } } {
  if (result.code !== "run_crashed") return { result: answerWith(result) };
  return { error: { code: ProtocolErrorCode.InternalError, message: String(result.error) } };
}
