// The session tools of an ACP agent: they are connected before the first prompt and need no permission, and
// no other tool is mistaken for one.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Entry, type Message, textOf, type UserMessage } from "../../../src/core/shapes/message.ts";
import { AcpAgents, type AcpTurnArgs } from "../../../src/features/acp/program/acp.ts";
import { AcpMemories } from "../../../src/features/acp/program/memory.ts";
import { ACP_AGENT } from "../../kit/acp-agent.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { fakeWorld } from "../../kit/world.ts";
import { openStage, type Stage } from "./kit.ts";

type Json = Record<string, unknown>;

const OPTIONS = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const GEMINI_OPTIONS = [
  { optionId: "proceed_always_server", name: "Allow all server tools", kind: "allow_always" },
  { optionId: "proceed_always_tool", name: "Allow tool", kind: "allow_always" },
  ...OPTIONS,
];
const POLICY = { makeCwd: false, mustAsk: true };
const CLAUDE = "@agentclientprotocol/claude-agent-acp";

/** Returns a permission request in the format of Claude's ACP adapter. */
function claude(toolName: string, mcpServer?: Json, more: Json = {}): Json {
  const _meta = { claudeCode: { toolName, ...(mcpServer && { mcpServer }) } };
  return {
    options: OPTIONS,
    toolCall: { toolCallId: "c1", name: toolName, title: toolName, _meta, ...more },
  };
}

function qwen(_meta: Json | undefined, more: Json = {}): Json {
  return {
    options: OPTIONS,
    toolCall: { toolCallId: "q1", title: "{}", rawInput: {}, ...(_meta && { _meta }), ...more },
  };
}

function gemini(title: string, text: string, options: unknown = GEMINI_OPTIONS): Json {
  const content = [{ type: "content", content: { type: "text", text } }];
  return { options, toolCall: { toolCallId: "g1", status: "pending", kind: "other", title, content } };
}

const OWN = { name: "parley", source: "dynamic" };
const GEMINI_SEND = "sessions_send (parley MCP Server)";
const omitted = (names: string) => `[Payload omitted due to length with parameters: ${names}]`;

const GRANTED: readonly (readonly [string, Json])[] = [
  [CLAUDE, claude("mcp__parley__sessions_list", OWN)],
  [CLAUDE, claude("mcp__parley__sessions_send", OWN, { rawInput: { message: "rm -rf /" } })],
  ["qwen-code", qwen({ toolName: "mcp__parley__sessions_send" })],
  ["gemini-cli", gemini(GEMINI_SEND, '{"sessionKey":"main","message":"hi"}')],
  ["gemini-cli", gemini(GEMINI_SEND, omitted("sessionKey, message"))],
  ["gemini-cli", gemini("sessions_list (parley MCP Server)", "{}")],
];

const DENIED: readonly (readonly [string, string, Json])[] = [
  ["a title", CLAUDE, claude("Bash", undefined, { title: "mcp__parley__sessions_list" })],
  ["a name without its server", CLAUDE, claude("mcp__parley__sessions_list")],
  [
    "a server of a project's file",
    CLAUDE,
    claude("mcp__parley__sessions_list", { ...OWN, source: "project" }),
  ],
  ["another server's tool", CLAUDE, claude("mcp__evil__sessions_list", { name: "evil", source: "dynamic" })],
  ["a name of one server, a tool of another", CLAUDE, claude("mcp__evil__sessions_list", OWN)],
  ["a renamed server", CLAUDE, claude("mcp__parley2__sessions_list", { ...OWN, name: "parley2" })],
  ["a tool that Parley has not", CLAUDE, claude("mcp__parley__exec", OWN)],
  ["a longer name", CLAUDE, claude("mcp__parley__sessions_list__x", OWN)],
  [
    "facts that are no objects",
    CLAUDE,
    { options: OPTIONS, toolCall: { toolCallId: "x", _meta: { claudeCode: [OWN] } } },
  ],
  ["a title", "qwen-code", qwen({ toolName: "run_shell_command" }, { title: "mcp__parley__sessions_send" })],
  ["arguments", "qwen-code", qwen(undefined, { rawInput: { toolName: "mcp__parley__sessions_send" } })],
  ["another server", "qwen-code", qwen({ toolName: "mcp__parley_x__sessions_send" })],
  ["a server and a tool that share a name", "qwen-code", qwen({ toolName: "mcp__parley__sessions__send" })],
  [
    "a step of a workflow",
    "qwen-code",
    qwen({ toolName: "mcp__parley__sessions_send", workflowApproval: true }),
  ],
  ["a shell command as title", "gemini-cli", gemini(GEMINI_SEND, "{}", OPTIONS)],
  ["an argument that becomes the title", "gemini-cli", gemini(GEMINI_SEND, `{"command":"${GEMINI_SEND}"}`)],
  ["a long one", "gemini-cli", gemini(GEMINI_SEND, omitted("text, command"))],
  ["arguments that are not all shown", "gemini-cli", gemini(GEMINI_SEND, omitted("a, b, c, d, e, ..."))],
  ["no arguments", "gemini-cli", gemini(GEMINI_SEND, "sent")],
  ["a tool with a hostile name", "gemini-cli", gemini(`${GEMINI_SEND} (evil MCP Server)`, "{}")],
  ["a server with a hostile name", "gemini-cli", gemini("list (x) sessions_send (parley MCP Server)", "{}")],
  ["an unknown program", "another-agent", claude("mcp__parley__sessions_list", OWN)],
  ["another program's form", "gemini-cli", claude("mcp__parley__sessions_list", OWN)],
];

/** Starts one gateway for each of these ACP programs. */
async function stagesOf(names: readonly string[], more: Json = {}): Promise<Map<string, Stage>> {
  const stages = new Map<string, Stage>();
  for (const name of new Set(names)) {
    stages.set(name, await openStage({ env: { ACP_NAME: name }, ...more }));
  }
  return stages;
}

test("a program that starts no MCP servers gets its session tools over HTTP", async () => {
  const stage = await openStage({ env: { ACP_NAME: "Copilot" } });
  expect(await stage.say("mcp sessions_list {}")).toContain("agent:main:main");
  const [server] = JSON.parse(await stage.say("servers")) as Json[];
  const url = `${stage.url.replace("ws", "http")}/mcp`;
  const headers = [{ name: "Authorization", value: "Bearer [redacted]" }];
  expect(server).toEqual({ type: "http", name: "parley", url, headers });
});

test("OT1: session tools are allowed without asking, in every program's request format and for every request", async () => {
  const stages = await stagesOf(GRANTED.map(([name]) => name));
  for (const [name, request] of [...GRANTED, ...GRANTED]) {
    const said = await stages.get(name)?.say(`permit ${JSON.stringify(request)}`);
    expect([request, said]).toEqual([request, "I was told: yes"]);
  }
});

test("OT1: no other tool is mistaken for a session tool", async () => {
  const stages = await stagesOf(DENIED.map(([, name]) => name));
  for (const [what, name, request] of DENIED) {
    const said = await stages.get(name)?.say(`permit ${JSON.stringify(request)}`);
    expect([what, name, said]).toEqual([what, name, "I was told: no"]);
  }
});

test("OT1: if session tools are disabled, a request that names one is denied", async () => {
  const stage = await openStage({ env: { ACP_NAME: CLAUDE }, runtime: { sessionTools: false } });
  const request = claude("mcp__parley__sessions_list", OWN);
  expect(await stage.say(`permit ${JSON.stringify(request)}`)).toBe("I was told: no");
});

test("OT1: with permissions `ask`, session tools run without asking an operator", async () => {
  const stage = await openStage({ env: { ACP_NAME: CLAUDE }, runtime: { permissions: "ask" } });
  const request = claude("mcp__parley__sessions_list", OWN);
  expect(await stage.say(`permit ${JSON.stringify(request)}`)).toBe("I was told: yes");
});

test("if a run ends without text, its answer says so, and reports a denied permission", async () => {
  const stage = await openStage();
  expect(await stage.say("silent")).toBe(
    'error: agent "main": it ended without an answer; it was denied permission for "Remove everything": ' +
      "see runtime.permissions",
  );
  const allowed = await openStage({ runtime: { permissions: "allow" } });
  expect(await allowed.say("silent")).toBe('error: agent "main": it ended without an answer');
});

const indexOf = (lines: readonly string[], beginning: string): number =>
  lines.findIndex((line) => line.startsWith(beginning));

test("in each session, the first prompt waits until the program has connected to its session tools", async () => {
  const stage = await openStage({ env: { ACP_TOOLS: "late" } });
  const { key } = await stage.client.request("sessions.create", { agentId: "main", idempotencyKey: "two" });
  const first = await stage.begin("say one");
  const second = await stage.begin("say two", key);
  writeFileSync(join(stage.home, `connect-${key}`), "");
  expect(await stage.end(second)).toMatchObject({ status: "ok" });
  expect(stage.log()).not.toContain("prompt say one");
  writeFileSync(join(stage.home, "connect-agent:main:main"), "");
  expect(await stage.end(first)).toMatchObject({ status: "ok" });
  const lines = stage.log();
  expect(lines.filter((line) => line.startsWith("listed"))).toHaveLength(2);
  expect(lines).not.toContain("no tools");
  expect(indexOf(lines, "listed")).toBeLessThan(indexOf(lines, "prompt say two"));
  expect(await stage.messages()).toHaveLength(2);
});

test("AC2: an abort ends a run that is waiting for its session tools, and the next run waits for them again", async () => {
  const stage = await openStage({ env: { ACP_TOOLS: "late" } });
  const runId = await stage.begin("say one");
  await expect.poll(() => indexOf(stage.log(), "new")).not.toBe(-1);
  await stage.client.call("chat.abort", { sessionKey: "main" });
  expect(await stage.end(runId)).toMatchObject({ runStatus: "aborted" });
  const next = await stage.begin("say two");
  writeFileSync(join(stage.home, "connect-agent:main:main"), "");
  expect(await stage.end(next)).toMatchObject({ status: "ok" });
  const lines = stage.log();
  expect(indexOf(lines, "listed")).toBeLessThan(indexOf(lines, "prompt say two"));
  expect(lines).not.toContain("prompt say one");
});

test("AC3: if a program exits while it connects to its tools, the run ends with an error", async () => {
  const stage = await openStage({ env: { ACP_TOOLS: "die" } });
  expect(await stage.say("say one")).toMatch(/^error: agent "main": .*it ended with exit code 4/);
});

test("a program that never connects to its tools works without them, and one of its runs reports that", async () => {
  const world = fakeWorld();
  const home = temporaryFolder();
  const agents = new AcpAgents({ world, memories: new AcpMemories(home, world.clock), version: "0" });
  cleanup(() => agents.close());
  const written: Entry[] = [];
  const { PATH = "" } = process.env;
  const say = (text: string) => {
    const id = world.ids.uuid();
    const user: UserMessage = { id, role: "user", content: [{ type: "text", text }], timestamp: 0 };
    written.push(user);
    const entries = [...written];
    const args: AcpTurnArgs = {
      ...{ runId: id, sessionKey: "agent:main:main", sessionId: "s1", agentId: "main", entries },
      program: { command: ACP_AGENT, env: { PATH, ACP_TOOLS: "never" }, cwd: home, ...POLICY },
      sessionTools: () => ({
        server: { name: "parley", command: "none", args: [], env: [] },
        overHttp: { name: "parley", url: "http://127.0.0.1:9/mcp", headers: [] },
        pass: "pass.none",
        listed: new Promise<void>(() => {}),
      }),
      ...{ idleMs: 60_000, introduction: "", attempt: 1, contextTokens: 0 },
      ask: async () => "deny",
      onCall: () => {},
      mayAct: async () => {},
      append: async (entry) => {
        written.push(entry);
        return entry;
      },
      onText: () => {},
      onThinking: () => {},
      onTool: () => {},
      signal: new AbortController().signal,
    };
    return agents.turn(args);
  };
  const first = say("say one");
  await world.advance(await world.timerWithin(30_000));
  // After the end of a prompt, a text may still come for a moment.
  const settled = async <T>(turn: Promise<T>): Promise<T> => {
    await world.advance(await world.timerWithin(1_000));
    return turn;
  };
  expect(await settled(first)).toMatchObject({ kind: "ok", text: "one" });
  expect(await settled(say("say two"))).toMatchObject({ kind: "ok", text: "two" });
  const texts = (written as Message[]).map((message) => textOf(message));
  expect(texts).toEqual([
    "say one",
    expect.stringMatching(/^This agent has not connected to its session tools .*runtime\.sessionTools/),
    "one",
    "say two",
    "two",
  ]);
  expect(world.logged.filter(({ level }) => level === "warn")).toHaveLength(1);
});
