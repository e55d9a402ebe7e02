// Tools that the client runs itself: a run ends with calls, and the next request brings their results. With
// OpenAI's official client.

import type OpenAI from "openai";
import { expect, test } from "vitest";
import { UNREADABLE_ARGUMENTS } from "../../../src/agent/model/model.ts";
import { openModelPort } from "../../../src/agent/model/port.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { PROVIDER_APIS, type ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { readContext } from "../../../src/store/queries/transcripts/transcripts.ts";
import { Crash, startTurn, toolSpec } from "../../agent/turn-kit.ts";
import { openAi, said } from "../../gateway/clients/openai.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { text, call as toolCall } from "../../kit/model-server/steps.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";
import { agentSettings } from "../../tools/app.ts";
import { allArchived, openAiSessions, runStates } from "./kit.ts";

const MODEL = "parley/main";
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const WEATHER = { name: "weather", description: "Says how the weather is.", parameters: CITY };
const TOOLS = [{ type: "function" as const, function: WEATHER }];
const FUNCTIONS = [{ type: "function" as const, ...WEATHER, strict: false }];
const ASK = [said("How is the weather?")];

const call = (city: string) => ({ name: "weather", arguments: { city } });
const asks = (...cities: string[]): ScriptedAnswer => ({ toolCalls: cities.map(call) });

type Ask = OpenAI.ChatCompletionMessage;
const result = (message: Ask | undefined, at: number, content: string) => ({
  role: "tool" as const,
  tool_call_id: message?.tool_calls?.[at]?.id ?? "",
  content,
});

/** A house whose model gives these answers, one after the other. */
async function scripted(...answers: ScriptedAnswer[]) {
  const model = scriptedModel((_, at) => answers[at] ?? "no more");
  const house = await openHouse({ model });
  return { model, house, client: openAi(house) };
}

async function transcript(house: House, at = 0): Promise<string[]> {
  const { sessionId = "" } = (await openAiSessions(house))[at] ?? {};
  return (await readContext(house.store.db, sessionId)).map((entry) => {
    if (!("role" in entry)) return "compaction";
    const calls = entry.role === "assistant" ? entry.content.filter(({ type }) => type === "toolCall") : [];
    return [entry.role, textOf(entry), ...calls.map((one) => "name" in one && one.name)]
      .filter(Boolean)
      .join(" ");
  });
}

test("a completion ends with the calls of the client's tools, and the next request continues with their results", async () => {
  const { model, house, client } = await scripted(
    { text: "I ask.", ...(asks("Bern", "Rome") as object) },
    "It rains in Bern.",
  );
  const asked = { model: MODEL, tools: TOOLS };
  const first = await client.chat.completions.create({ ...asked, messages: ASK });
  const [choice] = first.choices;
  expect(choice).toMatchObject({
    finish_reason: "tool_calls",
    message: {
      content: "I ask.",
      tool_calls: [
        { type: "function", function: { name: "weather", arguments: '{"city":"Bern"}' } },
        { type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } },
      ],
    },
  });
  expect(model.requests[0]?.tools.find(({ name }) => name === "weather")).toMatchObject(WEATHER);
  // The client thinks meanwhile: nothing of the gateway waits for it.
  await allArchived(house);
  const results = [result(choice?.message, 0, "rain"), result(choice?.message, 1, "sun")];
  const second = await client.chat.completions.create({
    ...asked,
    messages: [...ASK, choice?.message as Ask, ...results],
  });
  expect(second.choices[0]).toMatchObject({
    finish_reason: "stop",
    message: { content: "It rains in Bern." },
  });
  expect(second.usage?.total_tokens).toBe(15);
  expect(model.requests[1]?.entries).toMatchObject([
    { role: "user" },
    { role: "assistant" },
    { role: "toolResult", toolCallId: "call_0_0", content: [{ text: "rain" }] },
    { role: "toolResult", toolCallId: "call_0_1", content: [{ text: "sun" }] },
  ]);
  expect(await openAiSessions(house)).toHaveLength(1);
  expect(await transcript(house)).toEqual([
    "user How is the weather?",
    "assistant I ask. weather weather",
    "toolResult rain",
    "toolResult sun",
    "assistant It rains in Bern.",
  ]);
});

test("the tool runner of the official client completes a conversation, streamed and not", async () => {
  for (const stream of [false, true]) {
    const { client } = await scripted(asks("Bern"), asks("Rome"), "Rain and sun.");
    const cities: string[] = [];
    const weather = (input: object): string => {
      cities.push((input as { city: string }).city);
      return "wet";
    };
    const tools = [
      { type: "function" as const, function: { ...WEATHER, function: weather, parse: JSON.parse } },
    ];
    const request = { model: MODEL, messages: ASK, tools };
    const runner = stream
      ? client.chat.completions.runTools({ ...request, stream })
      : client.chat.completions.runTools(request);
    expect(await runner.finalContent()).toBe("Rain and sun.");
    expect(cities).toEqual(["Bern", "Rome"]);
  }
});

test("a response ends with function calls, and previous_response_id brings their outputs", async () => {
  const { model, house, client } = await scripted(asks("Bern", "Rome"), "Rain.", "Bye.");
  const asked = { model: MODEL, tools: FUNCTIONS };
  const first = await client.responses.create({
    ...asked,
    input: "How is the weather?",
    parallel_tool_calls: true,
  });
  expect(first.output).toMatchObject([
    { type: "function_call", name: "weather", arguments: '{"city":"Bern"}', status: "completed" },
    { type: "function_call", name: "weather", arguments: '{"city":"Rome"}', status: "completed" },
  ]);
  expect(first.tools).toMatchObject(FUNCTIONS);
  const { output_text: _, ...fetched } = await client.responses.retrieve(first.id);
  expect(fetched.output).toEqual(first.output);
  const outputs = first.output.map((item, at) => ({
    type: "function_call_output" as const,
    call_id: item.type === "function_call" ? item.call_id : "",
    output: at === 0 ? "rain" : [{ type: "input_text" as const, text: "sun" }],
  }));
  const second = await client.responses.create({ ...asked, input: outputs, previous_response_id: first.id });
  expect(second.output_text).toBe("Rain.");
  expect(model.requests[1]?.entries.slice(2)).toMatchObject([
    { role: "toolResult", content: [{ text: "rain" }] },
    { role: "toolResult", content: [{ text: "sun" }] },
  ]);
  // The first response still has its calls.
  expect((await client.responses.retrieve(first.id)).output).toEqual(first.output);
  // A client that keeps no state sends all items again, or only their ids.
  const items = [said("How is the weather?"), ...first.output, ...outputs, ...second.output, said("Thanks")];
  await client.responses.create({ ...asked, input: items as OpenAI.Responses.ResponseInput });
  const ids = [...first.output, ...second.output].map(({ id }) => ({
    type: "item_reference" as const,
    id: id ?? "",
  }));
  await client.responses.create({
    ...asked,
    input: [said("How is the weather?"), ...ids.slice(0, 2), ...outputs, ...ids.slice(2), said("Thanks")],
  });
  for (const [at, request] of [2, 3].entries())
    expect([at, model.requests[request]?.entries]).toMatchObject([
      at,
      [
        { role: "user" },
        { role: "assistant", content: [{ type: "toolCall", name: "weather" }, { type: "toolCall" }] },
        { role: "toolResult", content: [{ text: "rain" }] },
        { role: "toolResult", content: [{ text: "sun" }] },
        { role: "assistant", content: [{ text: "Rain." }] },
        { role: "user", content: [{ text: "Thanks" }] },
      ],
    ]);
  expect(await openAiSessions(house)).toHaveLength(3);
});

test("the events of a streamed response add up to its calls", async () => {
  const { client } = await scripted({ text: "I ask.", ...(asks("Bern", "Rome") as object) });
  const runner = client.responses.stream({ model: MODEL, input: "How is it?", tools: FUNCTIONS });
  const done: OpenAI.Responses.ResponseOutputItem[] = [];
  const numbers: number[] = [];
  runner.on("event", (event) => {
    numbers.push(event.sequence_number);
    if (event.type === "response.output_item.done") {
      expect(event.output_index).toBe(done.length);
      done.push(event.item);
    }
  });
  const final = await runner.finalResponse();
  expect(final.status).toBe("completed");
  expect(done.map(({ type }) => type)).toEqual(["message", "function_call", "function_call"]);
  expect(final.output).toMatchObject(done);
  expect(numbers).toEqual(numbers.map((_, at) => at));
});

test("a run may call the agent's own tools, too; the same name means the client's tool", async () => {
  const { model, house, client } = await scripted(
    { toolCalls: [{ name: "agents_list" }, call("Bern"), { name: "read", arguments: { path: "x" } }] },
    "Done.",
  );
  const read = { type: "function" as const, function: { name: "read", parameters: CITY } };
  const asked = { model: MODEL, tools: [...TOOLS, read] };
  const first = await client.chat.completions.create({ ...asked, messages: ASK });
  const message = first.choices[0]?.message;
  expect(message?.tool_calls?.map((one) => one.type === "function" && one.function.name)).toEqual([
    "weather",
    "read",
  ]);
  const offered = model.requests[0]?.tools.filter(({ name }) => name === "read");
  expect(offered).toMatchObject([{ parameters: CITY }]);
  await client.chat.completions.create({
    ...asked,
    messages: [...ASK, message as Ask, result(message, 0, "rain"), result(message, 1, "the client's file")],
  });
  // The result of the agent's own tool is not in the messages, but in the session.
  const texts = await transcript(house);
  expect(texts.slice(2)).toEqual([
    expect.stringContaining("requester"),
    "toolResult rain",
    "toolResult the client's file",
    "assistant Done.",
  ]);
});

test("the client's choice decides which of its tools are offered, and which must be called", async () => {
  const { model, client } = await scripted(
    asks("Bern"),
    asks("Bern"),
    asks("Bern"),
    "Hello",
    "Hello",
    asks("Bern", "Rome"),
    "x",
  );
  const base = { model: MODEL, messages: ASK, tools: TOOLS };
  const named = { type: "function" as const, function: { name: "weather" } };
  await client.chat.completions.create({ ...base, tool_choice: "required" });
  await client.chat.completions.create({ ...base, tool_choice: named });
  const responded = await client.responses.create({
    model: MODEL,
    input: "Hi",
    tools: FUNCTIONS,
    tool_choice: { type: "function", name: "weather" },
  });
  expect(responded.tool_choice).toEqual({ type: "function", name: "weather" });
  const none = await client.chat.completions.create({ ...base, tool_choice: "none" });
  expect(none.choices[0]?.message.tool_calls).toBeUndefined();
  expect(model.requests.map(({ mustCall }) => mustCall)).toEqual([true, "weather", "weather", undefined]);
  expect(model.requests[3]?.tools.some(({ name }) => name === "weather")).toBe(false);
  const strict = [{ ...FUNCTIONS[0], strict: true }] as typeof FUNCTIONS;
  const asked = { model: MODEL, input: "Hi", tools: strict, tool_choice: "none" as const };
  const silent = await client.responses.create(asked);
  expect(silent.output_text).toBe("Hello");
  for (const echoed of [silent, await client.responses.retrieve(silent.id)])
    expect(echoed).toMatchObject({ tool_choice: "none", tools: FUNCTIONS });
  expect(model.requests[4]?.tools.some(({ name }) => name === "weather")).toBe(false);
  const single = await client.chat.completions.create({ ...base, parallel_tool_calls: false });
  expect(single.choices[0]?.message.tool_calls).toHaveLength(1);
  const unknown = client.chat.completions.create({
    ...base,
    tool_choice: { type: "function", function: { name: "other" } },
  });
  await expect(unknown).rejects.toThrow(/tool_choice must be/);
});

test("while a client thinks, others use the session; its results reach their calls later", async () => {
  const { model, house, client } = await scripted(asks("Bern"), "Hello Bob", "It rains.");
  const asked = { model: MODEL, user: "anne", tools: TOOLS };
  const first = await client.chat.completions.create({ ...asked, messages: ASK });
  const message = first.choices[0]?.message as Ask;
  const between = await client.chat.completions.create({ ...asked, messages: [said("Hello")] });
  expect(between.choices[0]?.message.content).toBe("Hello Bob");
  // The model of that run sees that there is no result.
  expect(model.requests[1]?.entries.map((entry) => "role" in entry && entry.role)).toEqual([
    "user",
    "assistant",
    "user",
  ]);
  const late = await client.chat.completions.create({
    ...asked,
    messages: [...ASK, message, result(message, 0, "rain")],
  });
  expect(late.choices[0]?.message.content).toBe("It rains.");
  expect(await transcript(house)).toEqual([
    "user How is the weather?",
    "assistant weather",
    "user Hello",
    "assistant Hello Bob",
    "toolResult rain",
    "assistant It rains.",
  ]);
  expect(late.usage?.total_tokens).toBe(15);
  const { runId } =
    (await openAiSessions(house)).map(({ key }) => key).map(() => ({ runId: late._request_id }))[0] ?? {};
  expect((await getRun(house.store.db, runId ?? ""))?.usage.totalTokens).toBe(15);
});

test("a message instead of results leaves the calls without any", async () => {
  const { model, client, house } = await scripted(asks("Bern"), "As you like.");
  const asked = { model: MODEL, tools: TOOLS };
  const { choices } = await client.chat.completions.create({ ...asked, messages: ASK });
  const done = await client.chat.completions.create({
    ...asked,
    messages: [...ASK, choices[0]?.message as Ask, said("Never mind")],
  });
  expect(done.choices[0]?.message.content).toBe("As you like.");
  expect(model.requests[1]?.entries.map((entry) => "role" in entry && entry.role)).toEqual([
    "user",
    "assistant",
    "user",
  ]);
  expect(await openAiSessions(house)).toHaveLength(2);
});

test("results without their calls, a part of the results and the calls of another token are refused", async () => {
  const stranger = { token: "another-token-of-tests", role: "operator", scopes: ["operator.admin"] } as const;
  const model = scriptedModel(() => asks("Bern", "Rome"));
  const house = await openHouse({ model, gateway: { tokens: [stranger] } });
  const client = openAi(house);
  const asked = { model: MODEL, tools: TOOLS };
  const { choices } = await client.chat.completions.create({ ...asked, messages: ASK, user: "anne" });
  const message = choices[0]?.message as Ask;
  const both = [result(message, 0, "rain"), result(message, 1, "sun")];
  const made = { role: "tool" as const, tool_call_id: "call_made_up", content: "x" };
  const send = (
    results: OpenAI.ChatCompletionMessageParam[],
    more: object = { user: "anne" },
    from = client,
  ) => from.chat.completions.create({ ...asked, messages: [...ASK, message, ...results], ...more });
  await expect(send([made])).rejects.toThrow(/no open call \\?"call_made_up/);
  await expect(send([made], {})).rejects.toThrow(/no open call/);
  await expect(send([...both, made])).rejects.toThrow(/no open call/);
  await expect(send(both.slice(0, 1))).rejects.toThrow(/the result of call .* is missing/);
  await expect(send(both, { user: "bob" })).rejects.toThrow(/no open call/);
  await expect(send(both, { user: "anne" }, openAi(house, { apiKey: stranger.token }))).rejects.toThrow(
    /no open call/,
  );
  await expect(send([said("x"), ...both] as never)).rejects.toThrow(/before the user's message/);
  expect(model.requests).toHaveLength(1);
  await send(both);
  expect(model.requests).toHaveLength(2);
});

test("OC1: repeated results give the run of the first ones; a failed run is continued", async () => {
  const answers: ScriptedAnswer[] = [
    asks("Bern"),
    { error: "the model is on fire" },
    "It rains.",
    "Another.",
  ];
  const { model, house, client } = await scripted(...answers);
  const asked = { model: MODEL, tools: TOOLS };
  const { choices } = await client.chat.completions.create({ ...asked, messages: ASK });
  const message = choices[0]?.message as Ask;
  const send = (content: string, more: object = {}) =>
    client.chat.completions.create({
      ...asked,
      messages: [...ASK, message, result(message, 0, content)],
      ...more,
    });
  await expect(send("rain")).rejects.toThrow(/on fire/);
  expect((await send("rain")).choices[0]?.message.content).toBe("It rains.");
  expect(model.requests[2]?.entries.map((entry) => "role" in entry && entry.role)).toEqual([
    "user",
    "assistant",
    "toolResult",
    "user",
  ]);
  const { key = "" } = (await openAiSessions(house))[0] ?? {};
  expect(await runStates(house, key)).toEqual(["ok", "error", "ok"]);

  const next = await scripted(asks("Bern"), "It rains.", "Another.");
  const begun = await next.client.chat.completions.create({ ...asked, messages: ASK });
  const calls = begun.choices[0]?.message as Ask;
  const again = (content: string, more: object = {}) =>
    next.client.chat.completions.create({
      ...asked,
      messages: [...ASK, calls, result(calls, 0, content)],
      ...more,
    });
  const [one, two] = await Promise.all([again("rain"), again("rain")]);
  expect(two.id).toBe(one.id);
  expect((await again("rain")).id).toBe(one.id);
  expect(next.model.requests).toHaveLength(2);
  // Other results are another conversation.
  expect((await again("sun")).choices[0]?.message.content).toBe("Another.");
  expect(await openAiSessions(next.house)).toHaveLength(2);
});

test("a client that lost the answer gets the same calls by its idempotency key", async () => {
  const { model, client } = await scripted(asks("Bern"));
  const request = { model: MODEL, messages: ASK, tools: TOOLS };
  const headers = { "Idempotency-Key": "once" };
  const first = await client.chat.completions.create(request, { headers });
  const stream = client.chat.completions.stream(
    { ...request },
    { headers: { "Idempotency-Key": "streamed" } },
  );
  expect((await stream.finalChatCompletion()).choices[0]?.message.tool_calls ?? []).toEqual([]);
  const second = await client.chat.completions.create(request, { headers });
  expect(second.choices).toEqual(first.choices);
  expect(model.requests).toHaveLength(2);
});

const WRONG: [string, object, string, RegExp][] = [
  ["a tool of OpenAI", { tools: [{ type: "web_search" }] }, "tools[0].type", /must be function/],
  [
    "a tool without a name",
    { tools: [{ type: "function", function: {} }] },
    "tools[0].function.name",
    /1 to 64/,
  ],
  ["two tools of one name", { tools: [...TOOLS, ...TOOLS] }, "tools[1]", /same name/],
  ["too many tools", { tools: Array(129).fill(TOOLS[0]) }, "tools", /at most 128/],
  [
    "a call that is none",
    { messages: [{ role: "assistant", tool_calls: [5] }, ...ASK] },
    "messages[0].tool_calls[0]",
    /must be a call/,
  ],
];
test.each(WRONG)("%s is refused with its position", async (_, more, param, words) => {
  const { client } = await scripted();
  const request = client.chat.completions.create({ model: MODEL, messages: ASK, ...more });
  await expect(request).rejects.toMatchObject({ status: 400, param, message: expect.stringMatching(words) });
});

const FORCED: Record<ProviderApi, object> = {
  "openai-completions": { tool_choice: { type: "function", function: { name: "weather" } } },
  "openai-responses": { tool_choice: { type: "function", name: "weather" } },
  "anthropic-messages": { tool_choice: { type: "tool", name: "weather" } },
  "google-generative-ai": {
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["weather"] } },
  },
};

test.each(PROVIDER_APIS)(
  "tools, calls and results of a client reach %s and come back, streamed",
  async (api) => {
    const served = await startModelServer((_, index) =>
      index === 0 ? [text("I ask."), toolCall("weather", { city: "Bern" })] : "It rains.",
    );
    cleanup(() => served.close());
    const provider = served.provider(api, { id: "test-model", reasoning: true });
    const world = quietWorld();
    const agents = [agentSettings("main", { model: `${provider.id}/test-model`, thinking: "high" })];
    const house = await openHouse({
      world,
      model: openModelPort(world),
      choices: { providers: [provider], agents },
    });
    const asked = { model: MODEL, tools: TOOLS };
    const named = { type: "function" as const, function: { name: "weather" } };
    const first = await openAi(house)
      .chat.completions.stream({ ...asked, messages: ASK, tool_choice: named })
      .finalMessage();
    expect(first).toMatchObject({
      content: "I ask.",
      tool_calls: [{ function: { arguments: '{"city":"Bern"}' } }],
    });
    const messages = [...ASK, first as Ask, result(first as Ask, 0, "rain in the north")];
    const second = openAi(house).chat.completions.stream({ ...asked, messages });
    expect(await second.finalContent()).toBe("It rains.");
    expect(served.requests[0]?.body).toMatchObject(FORCED[api]);
    expect(served.requests[1]?.body).not.toMatchObject(FORCED[api]);
    expect(JSON.stringify(served.requests[1]?.body)).toContain("rain in the north");
  },
);

test("K5: a turn that crashed after its calls ends with them again, and refused calls are asked again", async () => {
  const list = [{ name: "weather", parameters: CITY }];
  const tools = [{ ...WEATHER, parallel: true, idempotent: true }, toolSpec("own")];
  const answers: ScriptedAnswer[] = [
    { toolCalls: [call("Bern"), { name: "own" }, call("Rome")] },
    { toolCalls: [{ name: "weather", arguments: { [UNREADABLE_ARGUMENTS]: "{" } }] },
    "Done",
  ];
  const port = scriptedModel((_, at) => answers[at] ?? "no more");
  const more = { clientTools: { list, oneByOne: true as const } };
  const crashed = startTurn({ port, tools, more, appendsMax: 1 });
  await expect(crashed.end).rejects.toThrow(Crash);
  const resumed = startTurn({ port, tools, more: { ...more, attempt: 2 }, entries: crashed.entries });
  expect(await resumed.end).toMatchObject({ kind: "ok", text: "" });
  expect(resumed.entries.slice(2)).toMatchObject([
    { toolName: "own", content: [{ text: expect.stringContaining("outcome unknown") }] },
    { toolName: "weather", content: [{ text: expect.stringContaining("one call at a time") }] },
  ]);
  const again = startTurn({ port, tools, more });
  expect(await again.end).toMatchObject({ kind: "ok", text: "Done" });
  expect(again.entries[2]).toMatchObject({ toolName: "weather", isError: true });
});
