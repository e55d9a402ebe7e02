// Outside MCP servers in real runs: a scripted model with the real agent loop, engine, store and gateway. The
// server is the protocol's reference server, over both transports, or our misbehaving program.

import { expect, test } from "vitest";
import type { ToolResultMessage } from "../../src/core/shapes/message.ts";
import type { McpSettings } from "../../src/core/shapes/settings/settings.ts";
import { readRun } from "../../src/store/queries/transcripts/transcripts.ts";
import { type House, openHouse } from "../gateway/kit.ts";
import { endOf } from "../kit/engine/engine.ts";
import { freePort } from "../kit/loopback.ts";
import { type ScriptedCall, type ScriptedModel, scriptedModel } from "../kit/scripted-model.ts";
import { agentSettings } from "./app.ts";
import {
  badServer,
  httpServer,
  mcpWith,
  nodeServer,
  openWitness,
  REFERENCE,
  startReference,
} from "./mcp-kit.ts";

const MAIN = "agent:main:main";

/** Returns a model that makes these calls, each in its own message, and then ends. */
const calling = (...calls: readonly ScriptedCall[]): ScriptedModel =>
  scriptedModel((_request, at) => {
    const call = calls[at];
    return call === undefined ? "done" : { toolCalls: [call] };
  });

async function houseWith(mcp: McpSettings, model: ScriptedModel, tools = {}): Promise<House> {
  const ops = agentSettings("ops");
  const agents = [
    agentSettings("main"),
    agentSettings("research"),
    { ...ops, sandbox: { ...ops.sandbox, mode: "all" as const } },
  ];
  return openHouse({ model, choices: { agents, tools: { mcp, ...tools }, labels: { mode: "off" } } });
}

/** Executes a run, and returns the results of its calls. */
async function runOnce(house: House, sessionKey = MAIN): Promise<ToolResultMessage[]> {
  const accepted = await house.engine.accept({ sessionKey, input: { text: "go" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const { runId } = accepted.value.run;
  expect(await endOf(house.engine, runId)).toMatchObject({ state: "ok", reply: "done" });
  const messages = await readRun(house.store.db, runId);
  return messages.filter((message): message is ToolResultMessage => message.role === "toolResult");
}

const textOfResult = (result: ToolResultMessage | undefined): Record<string, unknown> => {
  const [block] = result?.content ?? [];
  return JSON.parse(block?.type === "text" ? block.text : "{}") as Record<string, unknown>;
};

const toolsShown = (model: ScriptedModel): string[] =>
  (model.requests[0]?.tools ?? []).map(({ name }) => name);

async function asReference(way: "stdio" | "http") {
  if (way === "stdio") return nodeServer("every", [REFERENCE, "stdio"]);
  return httpServer("every", await startReference(await freePort()));
}

test.each(["stdio", "http"] as const)(
  "the reference server works over %s: text, structured results, pictures, errors, sums",
  async (way) => {
    const model = calling(
      { name: "mcp__every__echo", arguments: { message: "hello" } },
      { name: "mcp__every__get-structured-content", arguments: { location: "Chicago" } },
      { name: "mcp__every__get-tiny-image" },
      { name: "mcp__every__get-sum", arguments: { a: "one" } },
      { name: "mcp__every__get-sum", arguments: { a: 2, b: 3 } },
      { name: "mcp__every__no-such-tool" },
    );
    const house = await houseWith(mcpWith([await asReference(way)]), model);
    const results = await runOnce(house);
    const [echo, structured, image, wrong, sum, none] = results.map(textOfResult);
    expect(echo).toEqual({ status: "ok", text: "Echo: hello" });
    expect(structured).toMatchObject({ status: "ok", structured: { temperature: expect.any(Number) } });
    expect(image).toMatchObject({ status: "ok" });
    expect(results[2]?.content[1]).toMatchObject({ type: "image", mimeType: "image/png" });
    expect(wrong).toMatchObject({ status: "error", code: "mcp_failed" });
    expect(results[3]?.isError).toBe(true);
    expect(sum?.text).toContain("5");
    expect(none).toMatchObject({ status: "error", code: "unknown_tool" });
    expect(toolsShown(model)).toContain("mcp__every__echo");
    expect(toolsShown(model)).toContain("sessions_send");
    expect(model.requests[0]?.system).toContain("Tools that begin with mcp__");
  },
);

test("the tools catalogue and tools.invoke include outside tools, limited by the rights of the session", async () => {
  const house = await houseWith(mcpWith([await asReference("stdio")]), calling());
  const client = await house.client();
  const { tools } = await client.request("tools.catalog");
  expect(tools.find(({ name }) => name === "mcp__every__echo")?.parameters).toMatchObject({
    required: ["message"],
  });
  const invoke = (name: string, args: object, sessionKey = MAIN) =>
    client.request("tools.invoke", { name, args, sessionKey });
  expect(await invoke("mcp__every__echo", { message: "hi" })).toEqual({ status: "ok", text: "Echo: hi" });
  const denied = await invoke("mcp__every__echo", { message: "hi" }, "agent:ops:main");
  expect(denied).toMatchObject({ status: "forbidden", code: "tool_denied" });
  expect(denied.error).toContain("tools.mcp.servers.every.allowSandboxed");
});

test("the catalogue gives the reason why MCP tools are denied or missing, and channels.status shows the state of each server", async () => {
  const gone = httpServer("gone", `http://127.0.0.1:${await freePort()}/mcp`);
  const servers = [await asReference("stdio"), gone, nodeServer("closed", ["x.js"], { agents: ["ops"] })];
  const house = await houseWith(mcpWith(servers), calling());
  const client = await house.client();
  const main = await client.request("tools.catalog");
  expect(main.tools.find(({ name }) => name === "mcp__every__echo")?.reason).toBe("no filter denies it");
  expect(main.withheld).toContainEqual({
    name: "mcp__closed__*",
    reason: expect.stringContaining('tools.mcp.servers.closed.agents does not list "main"'),
  });
  expect(main.missing).toEqual([{ server: "gone", why: expect.stringContaining("ECONNREFUSED") }]);
  const ops = await client.request("tools.catalog", { sessionKey: "agent:ops:main" });
  const denied = ops.withheld.find(({ name }) => name === "mcp__every__echo");
  expect(denied?.reason).toContain("tools.mcp.servers.every.allowSandboxed is not true");
  const { channels } = await client.request("channels.status");
  expect(channels.filter(({ id }) => id.startsWith("mcp:"))).toEqual([
    expect.objectContaining({ id: "mcp:every", state: "ready", ok: true, tools: expect.any(Number) }),
    expect.objectContaining({
      ...{ id: "mcp:gone", state: "down", ok: false, lastErrorAt: expect.any(Number) },
      lastError: expect.stringContaining("it did not start"),
    }),
    expect.objectContaining({ id: "mcp:closed", state: "idle" }),
  ]);
});

const hello = [{ name: "hello", inputSchema: { type: "object" } }];

test("a server is started by the first run that may use it, and by no other run; all runs share the server", async () => {
  const witness = await openWitness();
  const bad = (name: string, more: object) => badServer(name, { witness: witness.port, tools: hello }, more);
  const servers = [bad("theirs", { agents: ["research"] }), bad("ours", {})];
  const model = scriptedModel(() => "done");
  const house = await houseWith(mcpWith(servers), model, { filter: { allow: [], deny: ["mcp__ours__*"] } });
  await runOnce(house);
  await runOnce(house, "agent:ops:main");
  expect(witness.lives.length).toBe(0);
  expect(toolsShown(model).filter((name) => name.startsWith("mcp__"))).toEqual([]);
  await Promise.all([runOnce(house, "agent:research:main"), runOnce(house, "agent:research:main")]);
  await witness.life(0);
  expect(witness.lives.length).toBe(1);
  expect(model.requests.at(-1)?.tools.map(({ name }) => name)).toContain("mcp__theirs__hello");
});

test("if a server is missing, runs continue, and the prompt names the missing tools", async () => {
  const gone = httpServer("gone", `http://127.0.0.1:${await freePort()}/mcp`, {
    headers: { authorization: "Bearer sesame-open-7788" },
  });
  const model = calling({ name: "mcp__gone__read" });
  const house = await houseWith(mcpWith([gone]), model);
  const [result] = await runOnce(house);
  expect(textOfResult(result)).toMatchObject({ code: "unknown_tool" });
  const told = model.requests[0]?.system ?? "";
  expect(told).toContain("Missing in this run:");
  expect(told).toMatch(
    /- mcp__gone__\*: the MCP server "gone" is not available: .*ECONNREFUSED 127\.0\.0\.1:\d+/,
  );
  expect(told).not.toContain("sesame");
  const client = await house.client();
  const invoked = await client.call("tools.invoke", { name: "mcp__gone__read", sessionKey: MAIN });
  expect(invoked).toMatchObject({ status: "error", code: "mcp_unavailable" });
});

test("a planned stop ends the programs of MCP servers", async () => {
  const witness = await openWitness();
  const house = await houseWith(
    mcpWith([badServer("bad", { witness: witness.port, tools: hello })]),
    calling(),
  );
  await runOnce(house);
  await house.stop();
  const life = await witness.life(0);
  await life.dead;
  expect(life.events).toContain("end of input");
});

/** Argument names that every model API takes. */
const NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Returns every property name of a schema, at any depth. */
function namesIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {} } = schema as { properties?: Record<string, unknown> };
  return [...Object.keys(properties), ...Object.values(schema).flatMap(namesIn)];
}

test.each<[string, object | null | boolean]>([
  ["a property that is true", { type: "object", properties: { data: true } }],
  ["a property that is false", { type: "object", properties: { data: true, never: false } }],
  ["a property that is null", { type: "object", properties: { data: null } }],
  ["a property that is a text", { type: "object", properties: { data: "string" } }],
  ["required: null", { type: "object", properties: { data: {} }, required: null }],
  ["required: true", { type: "object", properties: { data: { required: true } }, required: true }],
  ["properties: null", { type: "object", properties: null }],
  ["properties: a list", { type: "object", properties: [] }],
  ["no schema", null],
  ["the schema true", true],
  ["no type", { properties: { data: { enum: ["a", null] } } }],
  ["a list of types", { type: ["object", "null"], properties: { data: { type: ["string", "null"] } } }],
  ["an unknown type", { type: "object", properties: { data: { type: "file", format: "binary" } } }],
  ["an enum of null", { type: "object", properties: { data: { enum: [null] } } }],
  ["a const", { type: "object", properties: { data: { const: null } } }],
  ["a missing reference", { type: "object", properties: { data: { $ref: "#/$defs/gone" } } }],
  ["a foreign reference", { type: "object", properties: { data: { $ref: "https://a.example/b.json" } } }],
  ["a reference that is a number", { type: "object", properties: { data: { $ref: 7 } } }],
  ["choices that are no list", { type: "object", properties: { data: { anyOf: {} } } }],
  ["a reference to itself", { type: "object", properties: { data: { $ref: "#" } } }],
  ["items: null", { type: "object", properties: { data: { type: "array", items: null } } }],
  ["choices at the top", { type: "object", oneOf: [{ properties: { data: {} } }, { $ref: "#" }] }],
])("a tool whose schema has %s is offered and can be called", async (_, inputSchema) => {
  const witness = await openWitness();
  const bad = badServer("odd", { witness: witness.port, tools: [{ name: "take", inputSchema }] });
  const model = calling({ name: "mcp__odd__take", arguments: { data: "any" } });
  const house = await houseWith(mcpWith([bad]), model);
  const [result] = await runOnce(house);
  expect(textOfResult(result)).toMatchObject({
    status: "ok",
    text: expect.stringContaining('{"data":"any"}'),
  });
  const offer = model.requests[0]?.tools.find(({ name }) => name === "mcp__odd__take");
  expect(offer?.parameters).toMatchObject({ type: "object" });
});

test("a tool gets its arguments under its own names, whatever they are, and models see names that every API takes", async () => {
  const inner = {
    type: "object",
    properties: { "first name": { type: "string" }, ok: {} },
    required: ["first name"],
  };
  const properties = {
    $top: { type: "integer", description: "Maximum number of items." },
    "filter[state]": { enum: ["open", "closed"] },
    größe: {},
    "": {},
    ["x".repeat(80)]: {},
    nested: inner,
    list: { type: "array", items: { $ref: "#/$defs/inner" } },
    either: { anyOf: [inner, { type: "string" }] },
    plain: { type: "string" },
  };
  const required = ["$top", "plain"];
  const inputSchema = { type: "object", properties, required, $defs: { inner } };
  const given = {
    $top: 3,
    "filter[state]": "open",
    größe: [1, null, "größe"],
    "": true,
    ["x".repeat(80)]: 0,
    nested: { "first name": "a", ok: { deep: [{}] } },
    list: [{ "first name": "b" }, "text"],
    either: { "first name": "c" },
    plain: "$top",
  };
  const witness = await openWitness();
  const bad = badServer("odd", { witness: witness.port, tools: [{ name: "take", inputSchema }] });
  const model = scriptedModel(({ tools }, at) => {
    if (at > 0) return "done";
    const parameters = tools.find(({ name }) => name === "mcp__odd__take")?.parameters as {
      properties: Record<string, unknown>;
    };
    // The order of the properties is that of the server.
    const names = Object.keys(parameters.properties);
    const nestedName = Object.keys((parameters.properties.nested as typeof parameters).properties)[0] ?? "";
    const rename = (value: unknown) =>
      JSON.parse(JSON.stringify(value).replaceAll('"first name"', JSON.stringify(nestedName)));
    const values = Object.values(given).map(rename);
    const args = Object.fromEntries(names.map((name, index) => [name, values[index]]));
    return { toolCalls: [{ name: "mcp__odd__take", arguments: args }] };
  });
  const house = await houseWith(mcpWith([bad]), model);
  const [result] = await runOnce(house);
  expect(textOfResult(result).text).toContain(JSON.stringify(given));
  const parameters = model.requests[0]?.tools.find(({ name }) => name === "mcp__odd__take")?.parameters;
  for (const name of namesIn(parameters)) expect(name).toMatch(NAME);
  const { properties: offered, required: needed } = parameters as {
    properties: Record<string, { description?: string }>;
    required: string[];
  };
  const [top = ""] = Object.keys(offered);
  expect(needed).toEqual([top, "plain"]);
  expect(offered[top]?.description).toBe("$top: Maximum number of items.");
});
