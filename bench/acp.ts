// Tests Parley by hand with ACP agents of other projects. F is an empty folder:
//
//   npm install --prefix F @agentclientprotocol/sdk@1.0.0
//   node bench/acp.ts example F                the protocol's own example agent
//   node bench/acp.ts qwen F [--no-tools]      Qwen Code (installed if missing), with a scripted model server
//
// Starts a gateway with the agent in a temporary home. Each printed line names a check and its result.
// With `--no-tools` the agent gets no session tools. Use this for a source tree that does not have `parley
// mcp`.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { type Message, textOf, toolCallsOf } from "../src/core/shapes/message.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../tests/kit/model-server/server.ts";
import { call, hang, text, usage } from "../tests/kit/model-server/steps.ts";
import { CODING_AGENTS, installAgent, runtimeOf } from "./coding-agents.ts";
import { withGateway } from "./with-gateway.ts";

const [which = "", folder = "", flag] = process.argv.slice(2);
const modules = join(resolve(folder), "node_modules");
const home = mkdtempSync(join(tmpdir(), "parley-acp-"));
let failures = 0;

function check(what: string, holds: boolean, seen: unknown): void {
  if (!holds) failures += 1;
  console.log(
    `${holds ? "ok  " : "FAIL"}  ${what}${holds ? "" : `\n      ${JSON.stringify(seen)?.slice(0, 1_500)}`}`,
  );
}

interface Turn {
  readonly status: string;
  readonly runStatus: string;
  readonly error?: string;
  readonly messages: Message[];
}

async function history(client: GatewayClient, sessionKey: string): Promise<Message[]> {
  return (await client.call<{ messages: Message[] }>("chat.history", { sessionKey, limit: 200 })).messages;
}

async function turn(client: GatewayClient, message: string, sessionKey = "main"): Promise<Turn> {
  const idempotencyKey = crypto.randomUUID();
  const before = (await history(client, sessionKey)).length;
  await client.call("chat.send", { sessionKey, message, idempotencyKey });
  const end = await client.call<Omit<Turn, "messages">>("agent.wait", {
    runId: idempotencyKey,
    timeoutMs: 120_000,
  });
  return { ...end, messages: (await history(client, sessionKey)).slice(before) };
}

/** Returns whether the result of each tool call directly follows the message with the call, once. */
function isValid(messages: readonly Message[]): boolean {
  const open: string[] = [];
  for (const message of messages) {
    if (message.role === "toolResult" && open.shift() !== message.toolCallId) return false;
    if (message.role !== "toolResult" && open.length > 0) return false;
    open.push(...toolCallsOf(message).map(({ id }) => id));
  }
  return open.length === 0;
}

async function withAgent(
  runtime: Record<string, unknown>,
  work: (client: GatewayClient) => Promise<void>,
): Promise<void> {
  const agents = { list: [{ id: "main", runtime: { type: "acp", ...runtime } }, { id: "other" }] };
  const tools = { sessions: { visibility: "all" }, agentToAgent: { enabled: true } };
  await withGateway(home, { agents, tools }, ({ client }) => work(client));
}

async function exampleAgent(): Promise<void> {
  const command = [process.execPath, join(modules, "@agentclientprotocol/sdk/dist/examples/agent.js")];
  await withAgent({ command, permissions: "allow" }, async (client) => {
    const { status, messages, error } = await turn(client, "please help");
    check("the example agent's turn ends ok", status === "ok", error);
    check("its calls and results are a valid transcript", isValid(messages), messages);
    const names = messages.flatMap(toolCallsOf).map(({ name }) => name);
    check("a read, and an edit that it asked permission for", names.join() === "read,edit", names);
    const last = messages.at(-1);
    const said = last === undefined ? "" : textOf(last);
    check("it was allowed, and says so", /successfully updated the configuration/.test(said), said);
  });
  await withAgent({ command, permissions: "deny" }, async (client) => {
    const { messages } = await turn(client, "please help");
    const last = messages.at(-1);
    check(
      "denied, it skips the change",
      last !== undefined && /skip the configuration/.test(textOf(last)),
      messages,
    );
    const sessionKey = "main";
    const idempotencyKey = crypto.randomUUID();
    await client.call("chat.send", { sessionKey, message: "again", idempotencyKey });
    await new Promise<void>((done) => {
      client.on(
        "chat",
        (event) => void (event.runId === idempotencyKey && event.state === "delta" && done()),
      );
    });
    await client.call("chat.abort", { sessionKey });
    const after = await turn(client, "once more");
    check("after an abort the next turn is whole", after.status === "ok" && isValid(after.messages), after);
  });
}

/** The model of the coding agent: its answer depends on the last message. */
function play(request: ServedRequest): Answer {
  const said = request.messages
    .filter(({ role }) => role === "user")
    .flatMap(({ texts }) => texts)
    .join("\n");
  const asked = said.slice(said.lastIndexOf("TASK"));
  const isBack = request.messages.at(-1)?.role === "tool";
  const counted = usage({ input: 100, output: 20 });
  if (asked.startsWith("TASK write")) {
    if (isBack) return [text("The file is there."), counted];
    const file = join(home, ".parley", "workspace", "made.txt");
    return [text("I write it."), call("write_file", { file_path: file, content: "forty-two" }), counted];
  }
  if (asked.startsWith("TASK list")) {
    const results = request.toolResults.join("");
    if (results.includes("agent:other:main")) return [text(`I see: ${results}`), counted];
    const tool = request.toolNames.find((name) => name.endsWith("sessions_list"));
    if (tool !== undefined) return [call(tool, {}), counted];
    // Qwen Code offers tools of MCP servers only after the model has searched for them.
    if (!isBack) return [call("tool_search", { query: "select:mcp__parley__sessions_list" }), counted];
    return `no such tool among ${request.toolNames.join()}; ${results}`;
  }
  if (asked.startsWith("TASK hang")) return [text("I begin"), hang()];
  if (asked.startsWith("TASK recall"))
    return [text(/TASK write/.test(said) ? "I remember." : "I forgot."), counted];
  return "{}";
}

async function qwen(): Promise<void> {
  const server = await startModelServer(play);
  const agent = CODING_AGENTS.find(({ name }) => name === "Qwen Code");
  if (agent === undefined) throw new Error("no Qwen Code");
  await installAgent(agent, resolve(folder));
  const runtime = {
    ...runtimeOf(agent, resolve(folder), server, home),
    sessionTools: flag !== "--no-tools",
  };
  const file = join(home, ".parley", "workspace", "made.txt");
  await withAgent({ ...runtime, permissions: "deny" }, async (client) => {
    const denied = await turn(client, "TASK write a file");
    check("denied, the file is not written", !existsSync(file) && isValid(denied.messages), denied);
  });
  await withAgent({ ...runtime, permissions: "allow" }, async (client) => {
    const { status, messages, error } = await turn(client, "TASK write a file");
    const last = messages.at(-1);
    check("allowed, it is; the turn ends ok", status === "ok" && existsSync(file), { error, messages });
    check(
      "its transcript is valid, with a call and its result",
      isValid(messages) && messages.length === 4,
      messages,
    );
    check(
      "its last words are the reply",
      last !== undefined && textOf(last) === "The file is there.",
      messages,
    );
    const tokens = last?.role === "assistant" ? last.usage.totalTokens : 0;
    check(`its tokens are counted (${tokens})`, tokens > 0, last);
    if (runtime.sessionTools) {
      const listed = await turn(client, "TASK list the sessions");
      check(
        "it calls the session tools",
        JSON.stringify(listed.messages).includes("agent:other:main"),
        listed.messages,
      );
    }
    const runId = crypto.randomUUID();
    await client.call("chat.send", { sessionKey: "main", message: "TASK hang", idempotencyKey: runId });
    await new Promise<void>((done) => {
      client.on("chat", (event) => void (event.runId === runId && event.state === "delta" && done()));
    });
    await client.call("chat.abort", { sessionKey: "main" });
    const ended = await client.call<Turn>("agent.wait", { runId, timeoutMs: 20_000 });
    check("a hanging turn is aborted", ended.runStatus === "aborted", ended);
    const recalled = await turn(client, "TASK recall");
    check(
      "the program goes on with its memory",
      JSON.stringify(recalled.messages).includes("I remember"),
      recalled,
    );
  });
  await withAgent({ ...runtime, permissions: "allow" }, async (client) => {
    const recalled = await turn(client, "TASK recall");
    check(
      "after a restart it finds its session",
      JSON.stringify(recalled.messages).includes("I remember"),
      recalled,
    );
  });
  await server.close();
}

try {
  if (which === "example") await exampleAgent();
  else if (which === "qwen") await qwen();
  else throw new Error("say which agent: node bench/acp.ts example|qwen FOLDER");
} finally {
  rmSync(home, { recursive: true, force: true });
}
console.log(failures === 0 ? "all passed" : `${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
