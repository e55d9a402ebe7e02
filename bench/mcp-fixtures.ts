// Adds the tools, resources and prompts of the official conformance suite to the MCP server of a gateway.
// Loaded into the gateway's process before its own modules (`--import`). Transport, streams, sessions, tasks,
// questions, refusals and checks of headers stay those of the gateway: tools that take long or ask a person
// are sends to an agent of their own, which calls tools of an MCP server (mcp-questions.ts).

import { createHmac } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { fieldsOf, isObject } from "../src/core/json.ts";

type Fields = Readonly<Record<string, unknown>>;
type Handler = (request: { readonly params?: Fields }, ctx: ServerContext) => Promise<object>;
/** The parts of the library's server that are replaced. */
interface Inner {
  readonly _requestHandlers: Map<string, Handler>;
  fallbackRequestHandler?: Handler;
}

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV = Buffer.from(
  "RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\0\0\0",
);
const STEP_MS = 50;
/** A send becomes a task after three seconds without a reply. */
const TASK_AFTER_SECONDS = 4;
const TASKS = "io.modelcontextprotocol/tasks";

const words = (text: string) => ({ type: "text", text });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri: string, mimeType: string, text: string) => ({
  type: "resource",
  resource: { uri, mimeType, text },
});
const content = (...parts: object[]) => ({ content: parts });

const CONTENT: Readonly<Record<string, object>> = {
  test_simple_text: content(words("This is a simple text response for testing.")),
  test_image_content: content(image),
  test_audio_content: content({ type: "audio", data: WAV.toString("base64"), mimeType: "audio/wav" }),
  test_embedded_resource: content(
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ),
  test_multiple_content_types: content(
    words("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ),
  test_error_handling: {
    isError: true,
    ...content(words("This tool intentionally returns an error for testing")),
  },
  test_logging_tool: content(words("done")),
  test_reconnection: content(words("done")),
  test_trigger_tool_change: content(words("done")),
  json_schema_2020_12_tool: content(words("done")),
  test_headers: content(words("done")),
};

const SCHEMAS: Readonly<Record<string, object>> = {
  json_schema_2020_12_tool: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $defs: {
      address: {
        $anchor: "addressDef",
        type: "object",
        properties: { street: { type: "string" }, city: { type: "string" } },
      },
    },
    properties: {
      name: { type: "string" },
      address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: { type: "string" },
      email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  },
  test_headers: { properties: { region: { type: "string", "x-mcp-header": "Region" } } },
};

const elicit = (message: string, field: string, type = "string") => ({
  method: "elicitation/create",
  params: {
    message,
    requestedSchema: { type: "object", properties: { [field]: { type } }, required: [field] },
  },
});
const sample = (text: string) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: words(text) }], maxTokens: 100 },
});
const NAME = { user_name: elicit("What is your name?", "name") };
const ROOTS = { client_roots: { method: "roots/list", params: {} } };
const OK = { confirm: elicit("Please confirm", "ok", "boolean") };

/** Rounds of questions, by tool or prompt. */
const QUESTIONS: Readonly<Record<string, readonly Fields[]>> = {
  test_input_required_result_elicitation: [NAME],
  test_input_required_result_sampling: [{ capital_question: sample("What is the capital of France?") }],
  test_input_required_result_list_roots: [ROOTS],
  test_input_required_result_request_state: [OK],
  test_input_required_result_tampered_state: [OK],
  test_input_required_result_multiple_inputs: [
    { ...NAME, greeting: sample("Generate a greeting"), ...ROOTS },
  ],
  test_input_required_result_multi_round: [
    { step1: elicit("Step 1: What is your name?", "name") },
    { step2: elicit("Step 2: What is your favorite color?", "color") },
  ],
  test_input_required_result_capabilities: [{ ...NAME, greeting: sample("Generate a greeting") }],
  test_streaming_elicitation: [NAME],
  test_tool_with_task: [NAME],
  test_input_required_result_prompt: [
    { user_context: elicit("What context should the prompt use?", "context") },
  ],
};
const sign = (round: number): string =>
  `${round}.${createHmac("sha256", "a key of the bench").update(String(round)).digest("hex")}`;

function isAnswered(question: unknown, answer: unknown): boolean {
  const { method, params } = fieldsOf(question);
  const { action, content: given, roots } = fieldsOf(answer);
  if (method === "roots/list") return Array.isArray(roots);
  if (method === "sampling/createMessage") return given !== undefined;
  const [field = ""] = fieldsOf(fieldsOf(params).requestedSchema).required as string[];
  return action === "accept" && isObject(given) && given[field] !== undefined;
}

const declared = ({ mcpReq }: ServerContext): Fields =>
  fieldsOf(fieldsOf(mcpReq.envelope)[CLIENT_CAPABILITIES_META_KEY]);

/** Asks the next round of questions, or returns the answers as a text. */
function ask(name: string, ctx: ServerContext): string | ReturnType<typeof inputRequired> {
  const { mcpReq } = ctx;
  const state = mcpReq.requestState() as string | undefined;
  const rounds = QUESTIONS[name] ?? [];
  const round = Number(state?.split(".")[0] ?? 0);
  if (state !== undefined && state !== sign(round))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "the state was changed");
  const capability = (question: unknown): string => String(fieldsOf(question).method).split("/")[0] ?? "";
  const chosen = Object.entries(rounds[round] ?? {}).filter(
    ([, question]) =>
      name !== "test_input_required_result_capabilities" || capability(question) in declared(ctx),
  );
  const answers = fieldsOf(mcpReq.inputResponses);
  const isOver = chosen.every(([key, question]) => isAnswered(question, answers[key]));
  const next = isOver ? round + 1 : round;
  const asked = isOver ? rounds[next] : Object.fromEntries(chosen);
  if (asked === undefined) return `Hello! state-ok ${JSON.stringify(answers)}`;
  return inputRequired({ inputRequests: asked as never, requestState: sign(next) });
}

/** An order to the agent of a send: what its model does, and after how long. */
export interface Order {
  readonly afterSeconds?: number;
  readonly say?: string;
  readonly calls?: readonly { readonly name: string; readonly args?: Fields }[];
  readonly fails?: true;
}

const calling = (name: string): Order => ({ calls: [{ name: `mcp__suite__${name}` }] });
/** Number of sends: each goes to an agent of its own, which does not wait for earlier ones. */
let sends = 0;

function sendTo(order: Order) {
  sends += 1;
  return { sessionKey: `agent:worker${sends}:main`, message: JSON.stringify(order), timeoutSeconds: 120 };
}

const slow = { afterSeconds: TASK_AFTER_SECONDS };
/** The deaths of its process that end a run. */
const DEATHS_MAX = 5;

/**
 * Sends to an agent that is busy, and stores of the waiting run that its process died again and again. So the
 * gateway does not start it.
 */
async function crash(call: (args: object) => Promise<object>): Promise<object> {
  const busy = sendTo({ afterSeconds: TASK_AFTER_SECONDS + 1, say: "done" });
  await call({ ...busy, timeoutSeconds: 0 });
  const answer = await call({ ...busy, message: "{}" });
  const store = new DatabaseSync(join(homedir(), ".parley", "state", "parley.sqlite"), { timeout: 5_000 });
  store
    .prepare("update runs set crashes = ? where session_key = ? and state = 'queued'")
    .run(DEATHS_MAX, busy.sessionKey);
  store.close();
  return answer;
}

/** Tools that are sends to an agent. */
const WORK: Readonly<Record<string, (args: Fields, answers: string) => Order>> = {
  slow_compute: ({ seconds }) => {
    const more = Number(seconds) > 0 ? { afterSeconds: Number(seconds) + TASK_AFTER_SECONDS } : {};
    return { say: "computed", ...more };
  },
  failing_job: () => ({ ...slow, fails: true }),
  test_tool_with_task: (_, answers) => ({ ...slow, say: answers }),
  // Two agents ask at the same time.
  multi_input: () => ({
    calls: [1, 2].map(() => ({ name: "sessions_send", args: sendTo(calling("multi_input")) })),
  }),
  ...Object.fromEntries(
    [
      "confirm_delete",
      "test_sampling",
      "test_elicitation",
      "test_elicitation_sep1034_defaults",
      "test_elicitation_sep1330_enums",
    ].map((name) => [name, () => calling(name)]),
  ),
};

/** Calls a tool of the suite. Returns undefined for a tool of the gateway. */
async function call(name: string, args: Fields, ctx: ServerContext): Promise<object | undefined> {
  const { mcpReq } = ctx;
  const notify = (method: string, params: object) =>
    mcpReq.notify({ method: `notifications/${method}`, params } as never);
  if (name in QUESTIONS && !(name in WORK)) {
    const asked = ask(name, ctx);
    return typeof asked === "string" ? content(words(asked)) : asked;
  }
  if (name === "greet") return content(words(`Hello, ${String(args.name)}!`));
  if (name === "test_missing_capability")
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
  if (name === "test_tool_with_progress" || name === "test_tool_with_logging") {
    const { progressToken } = mcpReq._meta ?? {};
    for (const progress of [0, 50, 100]) {
      if (name === "test_tool_with_logging")
        await notify("message", { level: "info", data: `at ${progress}` });
      else if (progressToken !== undefined) await notify("progress", { progressToken, progress, total: 100 });
      await pause(STEP_MS);
    }
    return content(words("done"));
  }
  return CONTENT[name];
}

const TOOLS = [
  ...Object.keys(CONTENT),
  ...Object.keys(QUESTIONS).filter((name) => name !== "test_input_required_result_prompt"),
  ...Object.keys(WORK).filter((name) => !(name in QUESTIONS)),
  ...["greet", "protocol_error_job", "test_missing_capability"],
  ...["test_tool_with_progress", "test_tool_with_logging"],
].map((name) => ({
  name,
  description: "A tool of the conformance suite.",
  inputSchema: { type: "object", ...SCHEMAS[name] },
}));

const TEXT = "test://static-text";
const RESOURCES: Readonly<Record<string, object>> = {
  [TEXT]: { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
};
const TEMPLATE = /^test:\/\/template\/(\w+)\/data$/;

function read(uri: string): object | undefined {
  const id = TEMPLATE.exec(uri)?.[1];
  const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  const found = id === undefined ? RESOURCES[uri] : { mimeType: "application/json", text };
  return found && { contents: [{ uri, ...found }] };
}

const says = (...parts: object[]) => ({ messages: parts.map((part) => ({ role: "user", content: part })) });
const PROMPTS: Readonly<Record<string, (args: Fields) => object>> = {
  test_simple_prompt: () => says(words("This is a simple prompt for testing.")),
  test_prompt_with_arguments: ({ arg1, arg2 }) =>
    says(words(`Prompt with arguments: arg1='${String(arg1)}', arg2='${String(arg2)}'`)),
  test_prompt_with_embedded_resource: ({ resourceUri }) =>
    says(
      embedded(String(resourceUri), "text/plain", "Embedded resource content for testing."),
      words("Please process the embedded resource above."),
    ),
  test_prompt_with_image: () => says(image, words("Please analyze the image above.")),
  test_input_required_result_prompt: () => says(words("done")),
};

/** Adds everything to one server of the gateway. */
function extend(server: Inner): void {
  const change = (method: string, into: (before: Handler) => Handler): void => {
    const before = server._requestHandlers.get(method);
    if (before !== undefined) server._requestHandlers.set(method, into(before));
  };
  const add = (method: string, key: string, more: readonly object[]): void =>
    change(method, (before) => async (...asked) => {
      const result = fieldsOf(await before(...asked));
      return { ...result, [key]: [...(result[key] as object[]), ...more] };
    });
  add("tools/list", "tools", TOOLS);
  const listed = (names: string[]) => names.map((name) => ({ name, description: `${name} of the suite` }));
  add("prompts/list", "prompts", listed(Object.keys(PROMPTS)));
  const resources = Object.keys(RESOURCES).map((uri) => ({ uri, name: uri, description: "Of the suite." }));
  add("resources/list", "resources", resources);
  const template = {
    uriTemplate: "test://template/{id}/data",
    name: "template",
    description: "Of the suite.",
  };
  add("resources/templates/list", "resourceTemplates", [template]);
  change(
    "resources/read",
    (before) => async (request, ctx) => read(String(request.params?.uri)) ?? before(request, ctx),
  );
  for (const method of ["resources/subscribe", "resources/unsubscribe"])
    change(
      method,
      (before) => async (request, ctx) =>
        read(String(request.params?.uri)) === undefined ? before(request, ctx) : {},
    );
  change("prompts/get", (before) => async (request, ctx) => {
    const { name, arguments: args } = fieldsOf(request.params);
    const prompt = PROMPTS[String(name)];
    if (prompt === undefined) return before(request, ctx);
    const asked = String(name) in QUESTIONS ? ask(String(name), ctx) : "";
    return typeof asked === "string" ? prompt(fieldsOf(args)) : asked;
  });
  change("completion/complete", (before) => async (request, ctx) => {
    const { name } = fieldsOf(request.params?.ref);
    return String(name) in PROMPTS ? { completion: { values: ["paris", "park"] } } : before(request, ctx);
  });
  const calls = server.fallbackRequestHandler;
  if (calls === undefined) return;
  server.fallbackRequestHandler = async (request, ctx) => {
    const { arguments: args, ...params } = fieldsOf(request.params);
    const name = String(params.name);
    const send = (sent: object) =>
      calls({ ...request, params: { ...params, name: "sessions_send", arguments: sent } }, ctx);
    if (name === "protocol_error_job") return crash(send);
    const order = WORK[name];
    if (order === undefined) return (await call(name, fieldsOf(args), ctx)) ?? calls(request, ctx);
    if (name === "failing_job" && !(TASKS in fieldsOf(declared(ctx).extensions)))
      throw new MissingRequiredClientCapabilityError({
        requiredCapabilities: { extensions: { [TASKS]: {} } },
      });
    const asked = name in QUESTIONS ? ask(name, ctx) : "";
    if (typeof asked !== "string") return asked;
    return send(sendTo(order(fieldsOf(args), asked)));
  };
}

const { connect } = Server.prototype;
Server.prototype.connect = function connectExtended(this: Server, transport) {
  extend(this as unknown as Inner);
  return connect.call(this, transport);
};

type Schemas = McpServer["toolInputSchemaJson"];
// The gateway names the schemas of its tools to each of its servers.
Object.defineProperty(McpServer.prototype, "toolInputSchemaJson", {
  set(this: McpServer, schemas: Schemas) {
    const value: Schemas = (name) => TOOLS.find((tool) => tool.name === name)?.inputSchema ?? schemas(name);
    Object.defineProperty(this, "toolInputSchemaJson", { value });
  },
});
