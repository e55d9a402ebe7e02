// Owns the prompts that an MCP client offers its user as commands, and completes their arguments. A prompt is
// offered only to a client that may call the tools in it.

import { ProtocolError, ProtocolErrorCode, type Server } from "@modelcontextprotocol/server";
import { isObject } from "../../core/json.ts";
import { quoted } from "../../core/text/cut.ts";
import { callAs, type McpDeps, toolsOf } from "./calls.ts";
import type { McpClient } from "./client.ts";
import { INBOX_TOOL } from "./inbox.ts";

/** Maximum number of values of one completion, as MCP defines it. */
const VALUES_MAX = 100;
/** Maximum number of sessions that are searched for a completion. */
const SESSIONS_MAX = 200;

type Completes = "sessions" | "agents";

interface Argument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly completes?: Completes;
}

interface Prompt {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly args: readonly Argument[];
  /** The tools that the text tells the model to use. */
  readonly tools: readonly string[];
  text(given: (name: string) => string): string;
}

const PROMPTS: readonly Prompt[] = [
  {
    name: "ask",
    title: "Ask another session",
    description: "Sends a message to another session and shows its answer.",
    args: [
      { name: "session", description: "Its key or label.", required: true, completes: "sessions" },
      { name: "message", description: "The question or message.", required: true },
    ],
    tools: ["sessions_send"],
    text: (given) =>
      `Send the message below to the session ${JSON.stringify(given("session"))} with sessions_send, wait ` +
      "for the answer, and tell me what it says. sessions_list shows the keys and labels of sessions.\n\n" +
      given("message"),
  },
  {
    name: "inbox",
    title: "Read the inbox",
    description: "Reads new messages of other sessions, and answers those that need it.",
    args: [],
    tools: [INBOX_TOOL.name, "sessions_send"],
    text: () =>
      "Read the new messages with sessions_inbox. Answer each that needs an answer, with sessions_send to " +
      "its replyTo and its id as inReplyTo. Acknowledge those that are done (ack), and tell me in a few " +
      "lines what came.",
  },
  {
    name: "delegate",
    title: "Give a task to a sub-agent",
    description: "Starts a sub-agent, waits for its result and shows it.",
    args: [
      { name: "task", description: "The task, with all that it needs.", required: true },
      {
        name: "agent",
        description: "Id of the agent. Default: this one.",
        required: false,
        completes: "agents",
      },
    ],
    tools: ["sessions_spawn", "subagents"],
    text: (given) => {
      const agent = given("agent");
      const as = agent === "" ? "" : ` as agent ${JSON.stringify(agent)}`;
      return (
        `Start a sub-agent${as} with sessions_spawn for the task below. Then wait for its result with ` +
        `subagents and action "wait", and tell me the result.\n\n${given("task")}`
      );
    },
  },
];

function invalid(text: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, text);
}

function listPrompts(deps: McpDeps, client: McpClient): Prompt[] {
  const usable = new Set(toolsOf(deps, client).map(({ name }) => name));
  return PROMPTS.filter(({ tools }) => tools.every((name) => usable.has(name)));
}

function promptNamed(deps: McpDeps, client: McpClient, name: string): Prompt {
  const all = listPrompts(deps, client);
  const found = all.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = all.map((one) => one.name).join(", ");
  throw invalid(`there is no prompt ${quoted(name, 64)} here; there are: ${names || "none"}`);
}

/** Returns all values that an argument can have for this client. */
async function valuesFor(deps: McpDeps, client: McpClient, what: Completes): Promise<string[]> {
  const [name, list, fields] =
    what === "sessions"
      ? (["sessions_list", "sessions", ["label", "key"]] as const)
      : (["agents_list", "agents", ["id"]] as const);
  const call = {
    callId: `mcp:${deps.world.ids.uuid()}`,
    name,
    arguments: what === "sessions" ? { limit: SESSIONS_MAX } : {},
  };
  const result = await callAs(deps, client, call, new AbortController().signal);
  const rows = (result as Record<string, unknown>)[list];
  if (!Array.isArray(rows)) return [];
  const values = rows.flatMap((row) => (isObject(row) ? fields.map((field) => row[field]) : []));
  return [...new Set(values.filter((one) => typeof one === "string" && one !== ""))] as string[];
}

/** Adds the prompts of one client. */
export function addPrompts(server: Server, deps: McpDeps, client: McpClient): void {
  server.setRequestHandler("prompts/list", () => ({
    prompts: listPrompts(deps, client).map(({ name, title, description, args }) => ({
      ...{ name, title, description },
      arguments: args.map((one) => ({
        name: one.name,
        description: one.description,
        required: one.required,
      })),
    })),
  }));
  server.setRequestHandler("prompts/get", ({ params }) => {
    const prompt = promptNamed(deps, client, params.name);
    const readArgument = (name: string): string => params.arguments?.[name]?.trim() ?? "";
    const missing = prompt.args.find(({ name, required }) => required && readArgument(name) === "");
    if (missing !== undefined) throw invalid(`the argument ${missing.name} of ${prompt.name} is missing`);
    const content = { type: "text" as const, text: prompt.text(readArgument) };
    return { description: prompt.description, messages: [{ role: "user" as const, content }] };
  });
  server.setRequestHandler("completion/complete", async ({ params: { ref, argument } }) => {
    if (ref.type !== "ref/prompt") throw invalid("only arguments of prompts can be completed");
    const { args } = promptNamed(deps, client, ref.name);
    const known = args.find(({ name }) => name === argument.name);
    if (known === undefined) throw invalid(`${ref.name} has no argument ${quoted(argument.name, 64)}`);
    const { completes } = known;
    const all = completes === undefined ? [] : await valuesFor(deps, client, completes);
    // Values that begin with the text come before those that contain it.
    const wanted = argument.value.toLowerCase();
    const rank = (value: string): number => value.toLowerCase().indexOf(wanted);
    const begins = all.filter((value) => rank(value) === 0);
    const values = [...begins, ...all.filter((value) => rank(value) > 0)];
    const page = values.slice(0, VALUES_MAX);
    return { completion: { values: page, total: values.length, hasMore: values.length > page.length } };
  });
}
