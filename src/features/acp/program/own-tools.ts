// Recognises an agent's request for permission to call a tool of the MCP server that Parley gave it. Each
// program names the tool differently, so each has its own reader. A request of an unknown program, or an
// unclear one, is treated like any other request.
// OT1: a request is recognised by what the program itself states about server and tool. No text that a model,
//      another server or another tool chooses can make one look like it.

import type { RequestPermissionRequest, ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import { fieldsOf, jsonOf } from "../../../core/json.ts";
import { SESSION_TOOLS } from "../../../core/rules/tool-policy.ts";

/** Returns the tool of this server that the request is for. */
type ReadTool = (request: RequestPermissionRequest, server: string) => string | undefined;

/** Options that Gemini offers for tools of MCP servers only. */
const GEMINI_MCP_OPTIONS = ["proceed_always_server", "proceed_always_tool"];
const GEMINI_OMITTED = /^\[Payload omitted due to length with parameters: (.*)\]$/s;

/** Returns the rest of a text that starts with `beginning`, or undefined for any other text. */
function after(beginning: string, text: unknown): string | undefined {
  return typeof text === "string" && text.startsWith(beginning) ? text.slice(beginning.length) : undefined;
}

/**
 * Claude Code reports the source `dynamic` for a server that came with the session, not from a file of the
 * user or project.
 */
function claudeTool({ toolCall }: RequestPermissionRequest, server: string): string | undefined {
  const { toolName, mcpServer } = fieldsOf(fieldsOf(toolCall._meta).claudeCode);
  const { name, source } = fieldsOf(mcpServer);
  return name === server && source === "dynamic" ? after(`mcp__${server}__`, toolName) : undefined;
}

function qwenTool({ toolCall }: RequestPermissionRequest, server: string): string | undefined {
  const { toolName, workflowApproval } = fieldsOf(toolCall._meta);
  return workflowApproval === undefined ? after(`mcp__${server}__`, toolName) : undefined;
}

/** Returns the names of the arguments as Gemini writes them, or undefined if some can't be read. */
function geminiArguments(content: readonly ToolCallContent[] | null | undefined): string[] | undefined {
  const [part, ...more] = content ?? [];
  if (part?.type !== "content" || part.content.type !== "text" || more.length > 0) return undefined;
  const { text } = part.content;
  const omitted = GEMINI_OMITTED.exec(text)?.[1];
  if (omitted !== undefined) return omitted.endsWith(", ...") ? undefined : omitted.split(", ");
  const given = jsonOf(text);
  return typeof given === "object" && given !== null ? Object.keys(given) : undefined;
}

/**
 * Gemini sends only the title, `TOOL (SERVER MCP Server)`. An argument named `command` would replace the
 * title.
 */
function geminiTool({ toolCall, options }: RequestPermissionRequest, server: string): string | undefined {
  const offered = options.map(({ optionId }) => optionId);
  if (!GEMINI_MCP_OPTIONS.every((id) => offered.includes(id))) return undefined;
  if (geminiArguments(toolCall.content)?.includes("command") !== false) return undefined;
  const end = ` (${server} MCP Server)`;
  const { title } = toolCall;
  return title?.endsWith(end) ? title.slice(0, -end.length) : undefined;
}

/** Readers by the name in a program's `agentInfo`. */
const READERS: ReadonlyMap<string, ReadTool> = new Map([
  ["@agentclientprotocol/claude-agent-acp", claudeTool],
  ["qwen-code", qwenTool],
  ["gemini-cli", geminiTool],
]);

/**
 * Returns whether a request is for a session tool of this server. `program`: the name in the agent's
 * `agentInfo`.
 */
export function isOwnTool(
  program: string | undefined,
  request: RequestPermissionRequest,
  server: string,
): boolean {
  const tool = READERS.get(program ?? "")?.(request, server);
  return SESSION_TOOLS.some((name) => name === tool);
}
