// Permissions that the person at an MCP client gives while the client waits, with the official client.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  type CreateMessageResult,
  ElicitRequestSchema,
  type ElicitResult,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { type Answer, askNew, objectOf } from "../../gateway/clients/mcp.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { doing, inTurn, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { mcpWith, nodeServer } from "../../tools/mcp-kit.ts";
import { ASKING } from "../../tools/questions/program.ts";

const WRITER = "a-token-that-writes-but-decides-nothing";
const { exec } = settingsWith().tools;

async function open() {
  const workspace = temporaryFolder();
  const house = await openHouse({
    model: talkingModel(),
    choices: {
      labels: { mode: "off" },
      agents: [agentSettings("main", { workspace })],
      tools: {
        exec: { ...exec, approval: "always" },
        mcp: mcpWith([nodeServer("ask", [ASKING], { sampling: true })]),
      },
    },
    gateway: { tokens: [{ token: WRITER, role: "operator", scopes: ["operator.write"] }] },
  });
  const made = (name: string): boolean => existsSync(join(workspace, name));
  return { house, made };
}

type Asked = { message: string; choices: readonly string[]; schema: object };

/** Connects the official client of a person who gives these answers. */
async function person(
  house: House,
  answer: (asked: Asked) => ElicitResult | Promise<ElicitResult>,
  token = TOKEN,
): Promise<{ client: Client; asked: Asked[] }> {
  const asked: Asked[] = [];
  const client = new Client({ name: "desk", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  cleanup(() => client.close());
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    if (!("requestedSchema" in params)) throw new Error("no form");
    const { requestedSchema: schema, message } = params;
    const { decision } = schema.properties as unknown as { decision?: { enum: string[] } };
    const one = { message, choices: decision?.enum ?? [], schema };
    asked.push(one);
    return answer(one);
  });
  const url = new URL(`${house.http}/mcp?handle=desk`);
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(
    new StreamableHTTPClientTransport(url, { requestInit }) as Parameters<Client["connect"]>[0],
  );
  return { client, asked };
}

const touch = (name: string) => ({ name: "exec", arguments: { command: `touch ${name}` } });
const send = (message: string) => ({
  name: "sessions_send",
  arguments: { sessionKey: "main", message, timeoutSeconds: 60 },
});
const decide = (decision: string): ElicitResult => ({ action: "accept", content: { decision } });

test("EQ1: a person at a waiting client is asked, and the command runs only if it is allowed", async () => {
  const { house, made } = await open();
  const { client, asked } = await person(house, ({ message }) =>
    message.includes("allowed") ? decide("allow once") : { action: "decline" },
  );
  const result = objectOf(await client.callTool(send(doing(touch("allowed"), touch("refused")))));
  expect(result).toMatchObject({ status: "ok" });
  expect([made("allowed"), made("refused")]).toEqual([true, false]);
  expect(asked).toHaveLength(2);
  expect(asked[0]).toMatchObject({
    message: expect.stringContaining("Agent main asks for permission: touch allowed"),
    choices: ["allow once", "allow in this session", "always allow", "deny"],
  });
});

test("a form of an MCP server reaches the person at a waiting client, and the answer that server", async () => {
  const { house } = await open();
  const answers: ElicitResult[] = [
    { action: "accept", content: { color: "blue" } },
    { action: "cancel" },
    { action: "accept", content: { color: "green" } },
    { action: "decline" },
  ];
  const { client, asked } = await person(house, () => answers.shift() ?? { action: "cancel" });
  const operator = await house.client();
  const call = { name: "mcp__ask__form", arguments: {} };
  const first = client.callTool(send(doing(call)));
  await expect.poll(() => asked.length).toBe(2);
  const question = "A tool of agent main has a question. MCP server ask asks: Which colour?";
  const problem = 'the field "color" must be one of: red, green';
  expect(asked[1]?.message).toBe(`Your answer was not used: ${problem}. ${question}`);
  expect(asked[0]).toMatchObject({
    message: question,
    schema: {
      type: "object",
      properties: {
        color: { type: "string", title: "Colour", enum: ["red", "green"] },
        amount: { type: "integer", minimum: 1, default: 2 },
      },
      required: ["color"],
    },
  });
  // The person gives no other answer, so the question stays open for others.
  const open1 = async () => (await operator.request("permissions.list", {})).permissions;
  expect(await open1()).toHaveLength(1);
  const [{ id = "" } = {}] = await open1();
  await operator.request("permissions.answer", { id, decision: "allow", content: { color: "red" } });
  expect(objectOf(await first)).toMatchObject({ status: "ok" });
  const results = async () => {
    const { messages } = await operator.request("chat.history", { sessionKey: "main" });
    return JSON.stringify(messages);
  };
  expect(await results()).toMatch(/accept.{1,40}red.{1,30}amount.{1,8}2/);
  await client.callTool(send(doing(call)));
  expect(await results()).toMatch(/accept.{1,40}green/);
  await client.callTool(send(doing(call)));
  expect(await results()).toMatch(/decline/);
  expect(asked).toHaveLength(4);
});

test("an answer that does not fit is asked for again a few times, and then only elsewhere", async () => {
  const { house } = await open();
  const { client, asked } = await person(house, () => ({ action: "accept", content: { color: "blue" } }));
  const operator = await house.client();
  const sent = client.callTool(send(doing({ name: "mcp__ask__form", arguments: {} })));
  await expect.poll(() => asked.length).toBe(3);
  const { permissions } = await operator.request("permissions.list", {});
  await operator.request("permissions.answer", { id: permissions[0]?.id ?? "", decision: "deny" });
  expect(objectOf(await sent)).toMatchObject({ status: "ok" });
  expect(asked).toHaveLength(3);
});

const SAMPLE = { name: "mcp__ask__sample", arguments: {} };
const PROMPT = {
  messages: [{ role: "user", content: { type: "text", text: "A rhyme?" } }],
  systemPrompt: "Be short.",
  maxTokens: 50,
};
const RHYME: CreateMessageResult = {
  role: "assistant",
  content: { type: "text", text: "a stone alone" },
  model: "of-the-client",
};

test("a prompt of an MCP server reaches the model of a waiting client, unless its user refuses it", async () => {
  const { house } = await open();
  const client = new Client({ name: "desk", version: "1.0.0" }, { capabilities: { sampling: {} } });
  cleanup(() => client.close());
  const answers = [RHYME, undefined];
  const asked: unknown[] = [];
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    asked.push(params);
    const answer = answers.shift();
    if (answer === undefined) throw new McpError(-1, "User rejected sampling request");
    return answer;
  });
  const requestInit = { headers: { authorization: `Bearer ${TOKEN}` } };
  const wire = new StreamableHTTPClientTransport(new URL(`${house.http}/mcp?handle=desk`), { requestInit });
  await client.connect(wire as Parameters<Client["connect"]>[0]);
  const operator = await house.client();
  for (const said of [/a stone alone.{1,60}of-the-client/, /User rejected sampling request/]) {
    expect(objectOf(await client.callTool(send(doing(SAMPLE))))).toMatchObject({ status: "ok" });
    const { messages } = await operator.request("chat.history", { sessionKey: "main" });
    expect(JSON.stringify(messages)).toMatch(said);
  }
  expect(asked).toEqual([PROMPT, PROMPT]);
});

test("EQ2: an answer from elsewhere counts, withdraws the question, and a later answer changes nothing", async () => {
  const { house, made } = await open();
  const late = Promise.withResolvers<ElicitResult>();
  const begun = Promise.withResolvers<void>();
  const { client } = await person(house, () => {
    begun.resolve();
    return late.promise;
  });
  const operator = await house.client();
  const sent = client.callTool(send(doing(touch("decided"))));
  await begun.promise;
  const { permissions } = await operator.request("permissions.list", {});
  await operator.request("permissions.answer", { id: permissions[0]?.id ?? "", decision: "deny" });
  expect(objectOf(await sent)).toMatchObject({ status: "ok" });
  late.resolve(decide("always allow"));
  await client.listTools();
  expect(made("decided")).toBe(false);
  expect((await operator.request("permissions.rules", {})).rules).toEqual([]);
});

test("EQ1: nobody is asked whose token may not decide, or about work that the client does not wait for", async () => {
  const { house, made } = await open();
  const narrow = await person(house, () => decide("always allow"), WRITER);
  const other = await person(house, () => decide("always allow"));
  const operator = await house.client();
  const waiting = other.client.callTool({ name: "sessions_inbox", arguments: { waitSeconds: 300 } });
  waiting.catch(() => {});
  const sent = narrow.client.callTool(send(doing(touch("nothing"))));
  await expect.poll(async () => (await operator.request("permissions.list", {})).permissions.length).toBe(1);
  const { permissions } = await operator.request("permissions.list", {});
  const [question] = permissions;
  // An answer that was never asked for is not taken from a token without the right.
  await fetch(`${house.http}/mcp?handle=desk`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${WRITER}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: `permission:${question?.id}`,
      result: decide("always allow"),
    }),
  });
  await operator.request("permissions.answer", { id: question?.id ?? "", decision: "deny" });
  expect(objectOf(await sent)).toMatchObject({ status: "ok" });
  expect([narrow.asked, other.asked, made("nothing")]).toEqual([[], [], false]);
});

test("a person is asked what a sub-agent needs, and a closed dialog decides nothing", async () => {
  const { house, made } = await open();
  let times = 0;
  const { client, asked } = await person(house, () => {
    times += 1;
    return times === 1 ? { action: "cancel" } : decide("allow once");
  });
  const spawned = objectOf(
    await client.callTool({ name: "sessions_spawn", arguments: { task: doing(touch("by-a-child")) } }),
  );
  expect(spawned).toMatchObject({ status: "accepted" });
  const operator = await house.client();
  await expect.poll(async () => (await operator.request("permissions.list", {})).permissions.length).toBe(1);
  const wait = { name: "subagents", arguments: { action: "wait", timeoutSeconds: 60 } };
  const first = client.callTool(wait);
  first.catch(() => {});
  await expect.poll(() => asked.length).toBe(1);
  expect(made("by-a-child")).toBe(false);
  const second = client.callTool(wait);
  second.catch(() => {});
  await expect.poll(() => made("by-a-child")).toBe(true);
  await Promise.allSettled([first, second]);
});

test("a task requires the answers to its questions as input, of a client whose token may decide", async () => {
  const { house, made } = await open();
  const ask = async (
    method: string,
    params: Answer,
    token = TOKEN,
    capabilities: Answer = { elicitation: {} },
  ) => {
    const extensions = { "io.modelcontextprotocol/tasks": {} };
    const name = String(params.taskId ?? params.name);
    const headers = { "x-parley-handle": "desk", authorization: `Bearer ${token}` };
    const { result, error } = await askNew(
      house,
      { method, params, name, extensions, capabilities },
      headers,
    );
    return (result ?? error) as Answer;
  };
  const fill = { name: "mcp__ask__form", arguments: {} };
  const work = inTurn(doing(touch("by-task")), doing(fill), doing(SAMPLE));
  const { taskId, status } = await ask("tools/call", send(work));
  expect(status).toBe("working");
  const requested = async (prefix: string) => {
    let requests: Record<string, Answer> = {};
    await expect
      .poll(async () => {
        const { inputRequests = {} } = await ask("tasks/get", { taskId });
        requests = inputRequests as Record<string, Answer>;
        return Object.keys(requests);
      })
      .toEqual([expect.stringMatching(prefix)]);
    const [[id, request] = ["", {}]] = Object.entries(requests);
    return { id, request };
  };
  const permission = await requested("permission:");
  expect(await ask("tasks/get", { taskId })).toMatchObject({ status: "input_required" });
  expect(await ask("tasks/get", { taskId }, TOKEN, {})).toMatchObject({ status: "working" });
  expect(await ask("tasks/get", { taskId }, WRITER)).toMatchObject({ status: "working" });
  const update = (inputResponses: Answer, token?: string) =>
    ask("tasks/update", { taskId, inputResponses }, token);
  await update({ [permission.id]: decide("allow once") }, WRITER);
  expect(await requested("permission:")).toEqual(permission);
  const answered = await update({ unknown: { action: "accept" }, [permission.id]: decide("allow once") });
  expect(answered).toMatchObject({ resultType: "complete" });
  const form = await requested("form:");
  expect(made("by-task")).toBe(true);
  expect(form.request).toMatchObject({
    method: "elicitation/create",
    params: { requestedSchema: { properties: { color: { enum: ["red", "green"] } } } },
  });
  expect(await update({ [form.id]: { action: "accept", content: { color: "blue" } } })).toEqual({
    code: -32_602,
    message: 'the field "color" must be one of: red, green',
  });
  expect(await requested("form:")).toEqual(form);
  await update({ [form.id]: { action: "accept", content: { color: "green" } } });
  await requested("permission:");
  const { inputRequests } = await ask("tasks/get", { taskId }, TOKEN, { sampling: {} });
  const [[id, prompt] = ["", {}]] = Object.entries(inputRequests as Record<string, Answer>);
  expect(prompt).toEqual({ method: "sampling/createMessage", params: PROMPT });
  await update({ [id]: RHYME });
  await expect.poll(() => ask("tasks/get", { taskId })).toMatchObject({ status: "completed" });
  const { messages } = await (await house.client()).request("chat.history", { sessionKey: "main" });
  expect(JSON.stringify(messages)).toMatch(/accept.{1,40}green.*a stone alone/);
});
