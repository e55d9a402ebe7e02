// Questions of outside MCP servers to people (elicitation), in real runs: real servers of both kinds of
// revisions, over both transports, and answers over the gateway.

import { describe, expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import type { PermissionQuestion } from "../../../src/core/shapes/permission.ts";
import type { McpServerSettings } from "../../../src/core/shapes/settings/settings.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { readRun } from "../../../src/store/queries/transcripts/transcripts.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { endOf } from "../../kit/engine/engine.ts";
import { freePort } from "../../kit/loopback.ts";
import { type ScriptedCall, scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";
import { agentSettings, settingsWith } from "../app.ts";
import {
  badServer,
  httpServer,
  mcpWith,
  nodeServer,
  openWitness,
  REFERENCE,
  startReference,
} from "../mcp-kit.ts";
import { ASKING, openAskingWeb } from "./program.ts";

const MAIN = "agent:main:main";

function openWith(
  servers: readonly McpServerSettings[],
  calls: readonly ScriptedCall[],
  askSeconds = 300,
): Promise<House> {
  const { exec } = settingsWith().tools;
  return openHouse({
    model: scriptedModel(({ entries }) => {
      const messages = entries.filter((entry) => "role" in entry);
      const at = messages.findLastIndex(({ role }) => role === "user");
      const done = messages.slice(at + 1).filter(({ role }) => role === "toolResult").length;
      const input = messages[at];
      // A message may name one of the calls.
      const named = calls.find(
        ({ id }) => id !== undefined && input !== undefined && textOf(input).includes(id),
      );
      const call = named === undefined ? calls[done] : done === 0 ? named : undefined;
      return call === undefined ? "done" : { toolCalls: [{ ...call, id: `${at}-${done}` }] };
    }),
    choices: {
      agents: [agentSettings("main"), agentSettings("research")],
      tools: { mcp: mcpWith(servers), exec: { ...exec, askSeconds } },
      labels: { mode: "off" },
    },
  });
}

async function start(house: House, sessionKey = MAIN, text = "go"): Promise<string> {
  const accepted = await house.engine.accept({ sessionKey, input: { text } });
  if (!accepted.ok) throw new Error(accepted.error);
  return accepted.value.run.runId;
}

/** Waits for the end of a run, and returns the results of its calls. */
async function resultsOf(house: House, runId: string): Promise<Record<string, unknown>[]> {
  expect(await endOf(house.engine, runId)).toMatchObject({ state: "ok", reply: "done" });
  const messages = await readRun(house.store.db, runId);
  return messages.flatMap((message) => {
    if (message.role !== "toolResult") return [];
    const [block] = message.content;
    return [JSON.parse(block?.type === "text" ? block.text : "{}") as Record<string, unknown>];
  });
}

type Client = Awaited<ReturnType<House["client"]>>;

const openOf = async (client: Client) => (await client.request("permissions.list")).permissions;
const question = (client: Client): Promise<PermissionQuestion> =>
  until(async () => (await openOf(client))[0] ?? false);

describe.each(["stdio", "http"] as const)("over %s", (way) => {
  const modern = async () =>
    way === "stdio" ? nodeServer("ask", [ASKING]) : httpServer("ask", await openAskingWeb());
  const legacy = async () =>
    way === "stdio"
      ? nodeServer("ask", [REFERENCE, "stdio"])
      : httpServer("ask", await startReference(await freePort()));

  test("a form of revision 2026-07-28 is answered in the inbox, and the call is repeated with the answer", async () => {
    const house = await openWith([await modern()], [{ name: "mcp__ask__form" }]);
    const client = await house.client();
    const runId = await start(house);
    const asked = await question(client);
    expect(asked).toMatchObject({
      kind: "elicitation",
      title: "MCP server ask asks: Which colour?",
      detail: "Fields: Colour (choice of red, green) · amount (integer; optional; default 2)",
      scopes: [],
      form: { server: "ask" },
    });
    const { id } = asked;
    const refused = (params: object) =>
      client.call("permissions.answer", { id, decision: "allow", ...params }).then(
        () => "",
        (problem: Error) => problem.message,
      );
    expect(await refused({})).toContain("it has a form");
    expect(await refused({ content: {} })).toBe('the field "color" is required');
    expect(await refused({ content: { color: "blue" } })).toBe(
      'the field "color" must be one of: red, green',
    );
    expect(await refused({ content: { color: "red", amount: 0 } })).toBe(
      'the field "amount" must be at least 1',
    );
    expect(await refused({ content: { color: "red", size: 1 } })).toBe('the field "size" is not in the form');
    await client.request("permissions.answer", { id, decision: "allow", content: { color: "green" } });
    const [result] = await resultsOf(house, runId);
    expect(JSON.parse(String(result?.text))).toEqual([
      "state 1",
      { a: { action: "accept", content: { color: "green", amount: 2 } } },
    ]);
    expect(await refused({ content: { color: "red" } })).toContain("there is no open permission request");
    await until(
      async () => (await house.store.db.selectFrom("permissions").selectAll().execute()).length === 0,
    );
  });

  test("a form of an older revision is answered during the call; a denial declines", async () => {
    const call = { name: "mcp__ask__trigger-elicitation-request" };
    const house = await openWith([await legacy()], [call, call]);
    const client = await house.client();
    const runId = await start(house);
    const { id, form } = await question(client);
    expect(form?.fields.find(({ name }) => name === "titledMultipleSelectEnum")).toMatchObject({
      type: "choices",
      max: 3,
      options: [{ value: "fish-1", title: "Tuna" }, {}, {}],
    });
    const content = { name: "Ann", check: true, email: "ann@example.com" };
    await client.request("permissions.answer", { id, decision: "allow", content });
    const other = await until(async () => (await openOf(client)).find((one) => one.id !== id) ?? false);
    await client.request("permissions.answer", { id: other.id, decision: "deny" });
    const [accepted, declined] = await resultsOf(house, runId);
    expect(accepted?.text).toContain("- Name: Ann\n- Agreed to terms: true\n- Email: ann@example.com");
    expect(accepted?.text).toContain('"legacyTitledEnum": "pet-1"');
    expect(declined?.text).toContain("User declined");
  });

  test("an address is shown whole with its host, and agreeing sends no content", async () => {
    const house = await openWith(
      [await modern()],
      [{ name: "mcp__ask__visit" }, { name: "mcp__ask__confirm" }],
    );
    const client = await house.client();
    const runId = await start(house);
    const asked = await question(client);
    const url = "https://pay.example.com/?order=7";
    expect(asked).toMatchObject({
      detail: `Open this address of pay.example.com yourself, if you trust it: ${url}`,
      form: { url, fields: [] },
      scopes: ["once"],
    });
    await client.request("permissions.answer", { id: asked.id, decision: "allow" });
    const plain = await until(async () => (await openOf(client)).find(({ id }) => id !== asked.id) ?? false);
    await client.request("permissions.answer", { id: plain.id, decision: "allow" });
    const [visit, confirm] = await resultsOf(house, runId);
    expect(visit?.text).toContain('{"a":{"action":"accept"}}');
    expect(confirm?.text).toContain('{"a":{"action":"accept","content":{}}}');
  });
});

const RESEARCH = "agent:research:main";
const TOOLS = ["ask", "ask-and-go", "silent"].map((name) => ({ name, inputSchema: { type: "object" } }));

/** A question of the older revisions. */
const asks = (message = "Which one?", more: object = {}) => ({
  method: "elicitation/create",
  params: { message, requestedSchema: { type: "object", properties: { one: { type: "string" } } }, ...more },
});

const callOf = (name: string, args: object = asks(), server = "bad") => ({
  name: `mcp__${server}__${name}`,
  arguments: args as Record<string, unknown>,
});

async function openBad(
  calls: readonly ScriptedCall[],
  more: Parameters<typeof badServer>[2] = {},
  askSeconds = 300,
) {
  const witness = await openWitness();
  const bad = badServer("bad", { witness: witness.port, tools: TOOLS }, more);
  const house = await openWith([bad], calls, askSeconds);
  return { house, witness, client: await house.client() };
}

test("while calls of two sessions are in progress, a question is cancelled and shown to nobody", async () => {
  const calls = [
    { ...callOf("silent"), id: "quiet" },
    { ...callOf("ask"), id: "asking" },
  ];
  const { house, witness, client } = await openBad(calls);
  const silent = await start(house, MAIN, "quiet");
  await witness.saw("call silent");
  const asking = await start(house, RESEARCH, "asking");
  expect(await resultsOf(house, asking)).toMatchObject([{ text: '{"action":"cancel"}' }]);
  // A call that was given up may still be worked on.
  await client.request("chat.abort", { sessionKey: MAIN, runId: silent });
  await witness.saw("cancelled");
  const again = await start(house, RESEARCH, "asking");
  expect(await resultsOf(house, again)).toMatchObject([{ text: '{"action":"cancel"}' }]);
  // Also for another run of the same session, which may have been started from another chat.
  const own = await start(house, MAIN, "asking");
  expect(await resultsOf(house, own)).toMatchObject([{ text: '{"action":"cancel"}' }]);
  expect(await openOf(client)).toEqual([]);
});

test("I6: a run waits for an answer without a slot, and the time of its call does not pass", async () => {
  const witness = await openWitness();
  const deeds = { witness: witness.port, tools: TOOLS };
  const bad = badServer("bad", deeds, { timeoutSeconds: 0.3 });
  const slow = badServer("slow", deeds, { timeoutSeconds: 0.6 });
  const calls = [
    { ...callOf("ask"), id: "asking" },
    { ...callOf("silent", {}, "slow"), id: "late" },
  ];
  const house = await openWith([bad, slow], calls);
  const client = await house.client();
  const runId = await start(house, MAIN, "asking");
  const { id } = await question(client);
  await until(async () => (await client.request("runs.list")).runs.some((run) => run.state === "waiting"));
  expect(await resultsOf(house, await start(house, RESEARCH, "late"))).toMatchObject([
    { code: "mcp_timeout" },
  ]);
  await client.request("permissions.answer", { id, decision: "allow", content: {} });
  expect(await resultsOf(house, runId)).toMatchObject([{ text: '{"action":"accept","content":{}}' }]);
});

test("nobody in time and an ended run cancel the question; a call that ends withdraws it", async () => {
  const late = await openBad([callOf("ask")], {}, 0.2);
  expect(await resultsOf(late.house, await start(late.house))).toMatchObject([
    { text: '{"action":"cancel"}' },
  ]);

  const { house, witness, client } = await openBad([
    { ...callOf("ask"), id: "stopped" },
    { ...callOf("ask-and-go"), id: "gone" },
  ]);
  const gone = await start(house, MAIN, "gone");
  await question(client);
  (await witness.life(0)).socket.write("go\n");
  expect(await resultsOf(house, gone)).toMatchObject([{ text: "went" }]);
  await until(async () => (await openOf(client)).length === 0);

  const stopped = await start(house, MAIN, "stopped");
  await question(client);
  await client.request("chat.abort", { sessionKey: MAIN, runId: stopped });
  await witness.saw("reply");
  expect((await witness.life(0)).events).toContain('reply {"action":"cancel"}');
  await until(async () => (await openOf(client)).length === 0);
});

test("a server's texts are shown as its own, without its secrets and hidden characters; other forms are refused", async () => {
  const env = { API_TOKEN: "sesame-open-7788" };
  const title = "One\u0007\u202e sesame-open-7788";
  const fields = { type: "object", properties: { one: { type: "string", title } } };
  const wrong = { type: "object", properties: { one: { type: "array", items: { type: "object" } } } };
  const { house, client } = await openBad(
    [
      callOf("ask", asks("Give me sesame-open-7788\u200b\nor else", { requestedSchema: fields })),
      callOf("ask", asks("", { requestedSchema: wrong })),
      callOf("ask", asks("", { mode: "url", url: "javascript:alert(1)", elicitationId: "1" })),
      callOf("ask", asks("", { mode: "url", url: "https://bank.com%2Fa@evil.com", elicitationId: "2" })),
      callOf("ask", { method: "sampling/createMessage", params: { messages: [], maxTokens: 5 } }),
    ],
    { env },
  );
  const runId = await start(house);
  const asked = await question(client);
  expect(asked.title).toBe("MCP server bad asks: Give me [redacted]⏎\nor else");
  expect(asked.detail).toBe("Fields: One\\x07\\u{202e} [redacted] (text; optional)");
  await client.request("permissions.answer", {
    id: asked.id,
    decision: "allow",
    content: { one: "my own words" },
  });
  const [, list, script, user, sampling] = await resultsOf(house, runId);
  expect(list?.text).toMatch(/-32602/);
  expect(script?.text).toMatch(/-32602.*http or https/);
  expect(user?.text).toMatch(/-32602.*user name/);
  expect(sampling?.text).toMatch(/-32601/);
});

const prompt = (more: object = {}) => ({
  method: "sampling/createMessage",
  params: {
    messages: [
      { role: "user", content: { type: "text", text: "Rhyme on stone" } },
      { role: "assistant", content: { type: "text", text: "please" } },
      { role: "user", content: { type: "text", text: "again" } },
    ],
    systemPrompt: "Be short.",
    maxTokens: 9,
    ...more,
  },
});

/** Opens a gateway whose model calls `ask` with each of these arguments, and answers a request with a rhyme. */
async function openSampling(asked: readonly object[], more: Parameters<typeof badServer>[2] = {}) {
  const witness = await openWitness();
  const bad = badServer("bad", { witness: witness.port, tools: TOOLS }, { sampling: true, ...more });
  const model = scriptedModel(({ entries, system }) => {
    if (system === "Be short.") return { text: "a rhyme", totalTokens: 1_000 };
    const done = entries.filter((entry) => "role" in entry && entry.role === "toolResult").length;
    const args = asked[done] as Record<string, unknown> | undefined;
    return args === undefined ? "done" : { toolCalls: [{ name: "mcp__bad__ask", arguments: args }] };
  });
  const agents = [agentSettings("main")];
  const house = await openHouse({
    model,
    choices: { agents, tools: { mcp: mcpWith([bad]) }, labels: { mode: "off" } },
  });
  return { house, model, client: await house.client() };
}

test("a server with sampling asks the model, once an owner has seen and allowed the request, and the run pays", async () => {
  const { house, model, client } = await openSampling([prompt(), prompt()]);
  const runId = await start(house);
  const first = await question(client);
  expect(first).toMatchObject({ kind: "sampling", title: "MCP server bad asks your model for an answer" });
  expect(first.detail).toBe(
    "maxTokens: 9⏎\nsystem: Be short.⏎\nuser: Rhyme on stone⏎\nassistant: please⏎\nuser: again",
  );
  await client.request("permissions.answer", { id: first.id, decision: "allow" });
  const second = await until(async () => (await openOf(client)).find(({ id }) => id !== first.id) ?? false);
  await client.request("permissions.answer", { id: second.id, decision: "deny" });
  const [answered, denied] = await resultsOf(house, runId);
  expect(JSON.parse(String(answered?.text))).toMatchObject({
    role: "assistant",
    content: { type: "text", text: "a rhyme" },
    stopReason: "endTurn",
  });
  expect(JSON.parse(String(denied?.text))).toMatchObject({
    code: -1,
    message: "User rejected sampling request",
  });
  const asked = model.requests.filter(({ system }) => system === "Be short.");
  expect(asked).toMatchObject([{ tools: [], model: { settings: { maxOutputTokens: 9 } } }]);
  const run = await getRun(house.store.db, runId);
  expect(run?.usage?.totalTokens).toBeGreaterThanOrEqual(1_000);
});

test("a server of revision 2026-07-28 gets the model's answer in the repeated call", async () => {
  const model = scriptedModel(({ system, entries }) => {
    if (system === "Be short.") return "a rhyme";
    const isDone = entries.some((entry) => "role" in entry && entry.role === "toolResult");
    return isDone ? "done" : { toolCalls: [{ name: "mcp__ask__sample" }] };
  });
  const mcp = mcpWith([nodeServer("ask", [ASKING], { sampling: true })]);
  const house = await openHouse({
    model,
    choices: { agents: [agentSettings("main")], tools: { mcp }, labels: { mode: "off" } },
  });
  const client = await house.client();
  const runId = await start(house);
  const { id } = await question(client);
  await client.request("permissions.answer", { id, decision: "allow" });
  const [result] = await resultsOf(house, runId);
  expect(JSON.parse(String(result?.text))).toMatchObject({ s: { content: { text: "a rhyme" } } });
});

test("a request with more than texts, or of a server without sampling, reaches neither people nor the model", async () => {
  const image = { messages: [{ role: "user", content: { type: "image", data: "", mimeType: "image/png" } }] };
  const wrong = [
    prompt(image),
    prompt({ includeContext: "thisServer" }),
    prompt({ tools: [{ name: "x", inputSchema: { type: "object" } }] }),
    prompt({ messages: [] }),
  ];
  const { house, model } = await openSampling(wrong);
  const results = await resultsOf(house, await start(house));
  expect(results.map(({ text }) => JSON.parse(String(text)).code)).toEqual([-32602, -32602, -32602, -32602]);
  expect(model.requests.some(({ system }) => system === "Be short.")).toBe(false);
  const off = await openSampling([prompt()], { sampling: false });
  expect(await resultsOf(off.house, await start(off.house))).toMatchObject([
    { text: expect.stringContaining("-32601") },
  ]);
});

test("an operator's own call asks nobody", async () => {
  const { client } = await openBad([]);
  const asked = { name: "mcp__bad__ask", args: asks(), sessionKey: MAIN };
  expect(await client.request("tools.invoke", asked)).toMatchObject({ text: '{"action":"cancel"}' });
});
