// Builds the MCP server that answers one exchange or one stream: tools, prompts, the inbox as a resource,
// tasks. The client was identified before.
// A tool's failure is a result that the model reads; a protocol error is only for requests that are not valid
// calls. This file is loaded by the first client.

import {
  CLIENT_CAPABILITIES_META_KEY,
  McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  type StandardSchemaV1,
} from "@modelcontextprotocol/server";
import { shownKey } from "../../access/access.ts";
import { fieldsOf, isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, toolFailure } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { sentSoFar } from "../../flows/conversation/send.ts";
import { isOutcome } from "../../tools/sessions/send.ts";
import { type ToolResult, toolResult } from "../../tools/tool.ts";
import { type AtEnd, answerWith, callAs, type McpDeps, replyWith, type ToolCall, toolsOf } from "./calls.ts";
import type { McpClient } from "./client.ts";
import { INBOX_TOOL, INBOX_URI, inboxOf, waitsForNews } from "./inbox.ts";
import type { LogLevels } from "./log-levels.ts";
import { outputSchemaOf } from "./output-schema.ts";
import { addPrompts } from "./prompts.ts";
import { readAskable } from "./questions.ts";
import {
  cancelTask,
  type Progress,
  readTask,
  sendAsTask,
  TASKS_EXTENSION,
  type Task,
  type TaskParts,
  updateTask,
  withProgress,
} from "./tasks.ts";

const READ_ONLY: readonly string[] = [
  "sessions_list",
  "sessions_history",
  "sessions_search",
  "sessions_inbox",
  "session_status",
  "agents_list",
];
const TASK_ID_CHARS_MAX = 200;

type Params = Readonly<Record<string, unknown>>;

/** Accepts any params: the handlers of the tasks methods check them themselves. */
const ANY_PARAMS: StandardSchemaV1<unknown, Params> = {
  "~standard": {
    version: 1,
    vendor: "parley",
    validate: (value: unknown) => ({ value: fieldsOf(value) }),
  },
};

function instructionsFor(deps: McpDeps, client: McpClient): string {
  const key = shownKey(
    { db: deps.engine.store.db, settings: deps.settings },
    client.viewer,
    client.session.key,
  );
  const own = client.session.external
    ? "Other sessions can list you under this key, read what you sent, and write to you; what they wrote " +
      "waits in sessions_inbox. To answer, set inReplyTo of sessions_send to the message's id."
    : "You act in its name.";
  return (
    `You are the session ${key} of a Parley gateway, in which AI agents hold sessions. ${own} ` +
    "sessions_list shows whom you can write to with sessions_send. A send that times out continues: don't " +
    "repeat it."
  );
}

/** Returns the capabilities that the request declares. */
const readCapabilities = (ctx: ServerContext): Params =>
  fieldsOf((ctx.mcpReq.envelope as Params | undefined)?.[CLIENT_CAPABILITIES_META_KEY]);

/** Returns whether the request declares that its sender supports tasks. */
const takesTasks = (ctx: ServerContext): boolean =>
  TASKS_EXTENSION in fieldsOf(readCapabilities(ctx).extensions);

export const newCallId = ({ world }: McpDeps): string => `mcp:${world.ids.uuid()}`;

function readCall({ deps, callId }: Exchange, params: unknown): ToolCall {
  const { name, arguments: given } = fieldsOf(params);
  // Some clients send null for a tool without arguments.
  const args = given ?? {};
  if (typeof name !== "string" || name === "")
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "tools/call needs the name of a tool");
  if (!isObject(args))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "arguments must be one JSON object");
  return { callId: callId ?? newCallId(deps), name, arguments: args };
}

/**
 * Returns the event that a call waits for: the reply to a send, the end of sub-agents, or new messages in its
 * inbox. Returns undefined if the call does not wait.
 */
function waitsFor({
  name,
  arguments: args,
}: Omit<ToolCall, "callId">): "reply" | "jobs" | "news" | undefined {
  const { timeoutSeconds, action } = args;
  if (name === INBOX_TOOL.name) return waitsForNews(args) ? "news" : undefined;
  if (timeoutSeconds === 0) return undefined;
  if (name === "sessions_send") return "reply";
  return name === "subagents" && action === "wait" ? "jobs" : undefined;
}

/**
 * Returns whether the answer to a message may take long: of a call that waits, and of each call of a program
 * that works for a session, because it may need an owner's consent.
 */
export function mayTakeLong({ caller }: McpClient, { method, params }: Params): boolean {
  const { name, arguments: args } = fieldsOf(params);
  const waits = (): boolean => waitsFor({ name: String(name), arguments: fieldsOf(args) }) !== undefined;
  return method === "tools/call" && (caller.actsAs !== undefined || waits());
}

/** Signals that end an exchange. */
interface Ends {
  /** Aborted when the gateway stops. */
  readonly stop: AbortSignal;
  readonly atEnd: AtEnd;
  readonly levels: LogLevels;
  /** Whether tools are called. Default: no. */
  readonly calls?: boolean;
  /** The id for the only tool call of the exchange. Default: a new one. */
  readonly callId?: string;
}

type Exchange = TaskParts & Ends;

/** The answer of an exchange: the outcome of a send, its task, or anything else, such as an error. */
type Given = "outcome" | "task" | "no outcome";

/**
 * Records, at the end of the exchange, whether the outcome of this call was written to the client's
 * connection. A client that got the task asks for the outcome later.
 */
function recordAtEnd({ deps: { engine, world }, atEnd }: Exchange, callId: string, given: () => Given): void {
  const { callerWaits } = engine;
  atEnd((written) => {
    const got = written ? given() : "no outcome";
    if (got === "task") return;
    const recorded = got === "outcome" ? callerWaits.confirm(callId) : callerWaits.lose(callId);
    recorded.catch((error: unknown) => {
      world.log.error({ err: error }, "could not record whether an answer was delivered");
    });
  });
}

/** Returns the answer to a call that still waits when the gateway stops. */
async function stoppedResult({ deps, client }: Exchange, { callId }: ToolCall): Promise<ToolResult> {
  const sent = await sentSoFar(deps, client, callId);
  if (sent === undefined) {
    const error = "the gateway stopped before this call had an answer";
    const hint = "Check the effects of the call before you repeat it.";
    return toolFailure(fail("shutting_down", error, { hint }));
  }
  const error = "the gateway stopped before the answer came; the message was accepted, and its run continues";
  const hint = "Do not send it again. The answer comes to your inbox: read it with sessions_inbox.";
  return { runId: sent.run.runId, ...toolFailure(fail("shutting_down", error, { hint })) };
}

async function answerCall(exchange: Exchange, params: unknown, ctx: ServerContext) {
  const call = readCall(exchange, params);
  let given: Given = "no outcome";
  if (waitsFor(call) === "reply") recordAtEnd(exchange, call.callId, () => given);
  try {
    const answer = await resultOf(exchange, call, ctx);
    if ("task" in answer) {
      given = "task";
      return { resultType: "task", ...answer.task };
    }
    if (isOutcome(answer.result)) given = "outcome";
    const reply = replyWith(answer.result);
    if ("error" in reply) throw new ProtocolError(reply.error.code, reply.error.message);
    return reply.result;
  } catch (error) {
    if (!exchange.stop.aborted || ctx.mcpReq.signal.aborted) throw error;
    return answerWith(await stoppedResult(exchange, call));
  }
}

async function resultOf(
  exchange: Exchange,
  call: ToolCall,
  ctx: ServerContext,
): Promise<{ readonly result: ToolResult } | { readonly task: Task }> {
  const { deps, client, stop } = exchange;
  const { signal: request, _meta: meta } = ctx.mcpReq;
  const waited = waitsFor(call);
  const signal = AbortSignal.any([request, stop]);
  if (waited === "reply" && takesTasks(ctx)) return sendAsTask(exchange, call, { request, stop });
  const work = callAs(deps, client, call, signal, exchange.atEnd);
  if (waited === undefined) return { result: await work };
  const progressToken = meta?.progressToken;
  // A request of a revision before 2026-07-28 does not declare its sender.
  const logs = ctx.mcpReq.envelope === undefined && exchange.levels.wantsReports(client.session.key);
  if (progressToken === undefined && !logs) return { result: await work };
  const notify = (method: string, params: object): Promise<void> =>
    ctx.mcpReq.notify({ method: `notifications/${method}`, params } as never);
  const tell = async (progress: Progress): Promise<void> => {
    if (progressToken !== undefined) await notify("progress", { ...progress, progressToken });
    if (logs) await notify("message", { level: "info", logger: call.name, data: progress.message });
  };
  return { result: await withProgress(exchange, call, tell, work) };
}

/** Records, at the end of the exchange, that the program with this pass has received the list of tools. */
function noteListed({ deps: { passes }, client: { caller }, atEnd }: Exchange): void {
  const { actsAs } = caller;
  if (actsAs !== undefined) atEnd((written) => written && passes?.noteListed(actsAs));
}

function listTools(exchange: Exchange) {
  noteListed(exchange);
  return {
    tools: toolsOf(exchange.deps, exchange.client).map(({ name, description, parameters }) => ({
      name,
      description,
      inputSchema: parameters as { type: "object" },
      ...optional({ outputSchema: outputSchemaOf(name) }),
      annotations: {
        readOnlyHint: READ_ONLY.includes(name),
        destructiveHint: name === "subagents",
        openWorldHint: false,
      },
    })),
  };
}

function addTools(server: Server, exchange: Exchange): void {
  server.setRequestHandler("tools/list", () => listTools(exchange));
  // A fallback handler, because the library's own handler of this method does not allow a task as the answer.
  // Other exchanges have none: the library itself refuses unknown methods, with the status 404.
  if (exchange.calls !== true) return;
  server.fallbackRequestHandler = async (request, ctx) => {
    if (request.method !== "tools/call")
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, "Method not found");
    return answerCall(exchange, request.params, ctx);
  };
}

function addInbox(server: Server, { deps, client, stop, atEnd }: Exchange): void {
  const has = client.session.external;
  const checkResource = (uri: string): void => {
    if (has && uri === INBOX_URI) return;
    const there = has ? `the only resource is ${INBOX_URI}` : "this session has none";
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `no resource ${quoted(uri, 200)}; ${there}`);
  };
  const inbox = {
    uri: INBOX_URI,
    name: "inbox",
    title: "Inbox",
    description: "Messages of other sessions to this one; the tool sessions_inbox pages through them.",
    mimeType: "application/json",
  };
  server.setRequestHandler("resources/list", () => ({ resources: has ? [inbox] : [] }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [] }));
  server.setRequestHandler("resources/read", async ({ params: { uri } }) => {
    checkResource(uri);
    const text = JSON.stringify(toolResult(await inboxOf(deps, client, {}, { signal: stop, atEnd })));
    return { contents: [{ uri, mimeType: inbox.mimeType, text }] };
  });
  // Nothing is stored: in protocol revisions with these methods, each open stream gets the notifications
  // (docs/MCP.md).
  server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
    checkResource(uri);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    checkResource(uri);
    return {};
  });
}

function addTasks(server: Server, exchange: Exchange): void {
  type Answer = (taskId: string, ctx: ServerContext) => Promise<Params | undefined>;
  const on = (method: string, answer: Answer): void =>
    server.setRequestHandler(method, { params: ANY_PARAMS }, async ({ taskId }, ctx) => {
      if (!takesTasks(ctx)) {
        const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
      }
      const isId = typeof taskId === "string" && taskId.length <= TASK_ID_CHARS_MAX;
      const found = isId ? await answer(taskId, ctx) : undefined;
      if (found !== undefined) return found;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "this session has no task of this id");
    });
  on("tasks/get", async (taskId, ctx) => {
    const task = await readTask(exchange, taskId, readAskable(readCapabilities(ctx)));
    if (task?.status === "completed" || task?.status === "failed")
      recordAtEnd(exchange, taskId, () => "outcome");
    return task;
  });
  on("tasks/cancel", async (taskId) => ((await cancelTask(exchange, taskId)) ? {} : undefined));
  // The library has moved the answers from the params to the context.
  on("tasks/update", async (taskId, { mcpReq }) => {
    const updated = await updateTask(exchange, taskId, fieldsOf(mcpReq.inputResponses));
    if (updated?.problem === undefined) return updated && {};
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, updated.problem);
  });
}

/** Creates a server for one client. */
export function buildServer(deps: McpDeps, client: McpClient, ends: Ends): McpServer {
  const exchange: Exchange = { deps, client, ...ends };
  const built = new McpServer(
    { name: "parley", title: "Parley", version: deps.version },
    { instructions: instructionsFor(deps, client) },
  );
  // The library compares the arguments that a schema marks (x-mcp-header) with the headers of a call.
  built.toolInputSchemaJson = (name) => toolsOf(deps, client).find((tool) => tool.name === name)?.parameters;
  const { server } = built;
  // The options of the library's own tools, resources and prompts would add handlers that these replace.
  server.registerCapabilities({
    tools: {},
    logging: {},
    prompts: {},
    completions: {},
    resources: { subscribe: true },
    extensions: { [TASKS_EXTENSION]: {} },
  });
  addTools(server, exchange);
  server.setRequestHandler("logging/setLevel", ({ params }) => {
    ends.levels.set(client.session.key, params.level);
    return {};
  });
  addPrompts(server, deps, client);
  addInbox(server, exchange);
  addTasks(server, exchange);
  return built;
}
