// Results of the client's tools that come again: with another message, after failures, after a cancelled run,
// for another agent, or too many at once.

import type OpenAI from "openai";
import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import { getRun, listRuns } from "../../../src/store/queries/runs/runs.ts";
import { openAi, said } from "../../gateway/clients/openai.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { type ScriptedAnswer, type ScriptedModel, scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";
import { agentSettings } from "../../tools/app.ts";
import { openAiSessions, runStates } from "./kit.ts";

type Message = OpenAI.ChatCompletionMessageParam;

const WEATHER = { name: "weather", parameters: { type: "object", properties: {} } };
const TOOLS = [{ type: "function" as const, function: WEATHER }];
const FUNCTIONS = [{ type: "function" as const, ...WEATHER, strict: false }];
const CALLS: ScriptedAnswer = { toolCalls: [{ name: "weather" }] };
const FIRE: ScriptedAnswer = { error: "the model is on fire" };
const MODEL = "parley/main";

/** Asks a model that calls the client's tool. Returns how to send the result, with messages after it. */
async function called(answers: (ScriptedAnswer | Promise<ScriptedAnswer>)[], more: object = {}) {
  const model = scriptedModel((_, at) => (at === 0 ? CALLS : (answers[at - 1] ?? "no more")));
  const agents = [agentSettings("main"), agentSettings("other")];
  const house = await openHouse({ model, choices: { agents } });
  const client = openAi(house);
  const asked = { model: MODEL, tools: TOOLS, ...more };
  const { choices } = await client.chat.completions.create({ ...asked, messages: [said("How is it?")] });
  const message = choices[0]?.message as OpenAI.ChatCompletionMessage;
  const tool_call_id = message.tool_calls?.[0]?.id ?? "";
  const begin: Message[] = [said("How is it?"), message, { role: "tool", tool_call_id, content: "rain" }];
  const send = async (after: Message[] = [], also: object = {}) => {
    const done = await client.chat.completions.create({ ...asked, messages: [...begin, ...after], ...also });
    return done.choices[0]?.message.content;
  };
  return { model, house, client, send, begin };
}

const lastTexts = ({ requests }: ScriptedModel) =>
  requests.at(-1)?.entries.map((entry) => ("role" in entry ? `${entry.role} ${textOf(entry)}` : "")) ?? [];

const keyIn = async (house: House, at = 0): Promise<string> => (await openAiSessions(house))[at]?.key ?? "";

test("a message after repeated results is answered: in a new session, or as the next one of a named session", async () => {
  const free = await called(["It rains.", "As you like."]);
  expect(await free.send()).toBe("It rains.");
  expect(await free.send([said("Never mind")])).toBe("As you like.");
  expect(lastTexts(free.model)).toEqual([
    "user How is it?",
    "assistant ",
    "toolResult rain",
    "user Never mind",
  ]);
  expect(await free.send()).toBe("It rains.");

  const named = await called(["It rains.", "As you like."], { user: "anne" });
  expect(await named.send()).toBe("It rains.");
  expect(await named.send([said("Never mind")])).toBe("As you like.");
  expect(lastTexts(named.model).slice(2)).toEqual([
    "toolResult rain",
    "assistant It rains.",
    "user Never mind",
  ]);
  expect(await named.send()).toBe("It rains.");

  const both = await called(["It rains."], { user: "anne" });
  expect(await both.send([said("In a word")])).toBe("It rains.");
  expect(await both.send([said("In a word")])).toBe("It rains.");
  await expect(both.send()).rejects.toThrow(/another message already/);
  expect(both.model.requests).toHaveLength(2);
});

test("OC1: results whose run was cancelled before it began reach the model when they are repeated", async () => {
  const held = Promise.withResolvers<ScriptedAnswer>();
  const { model, house, client, send } = await called([held.promise, "It rains."], { user: "anne" });
  const asked = { model: MODEL, user: "anne", messages: [said("Hello")] };
  const other = client.chat.completions.create(asked);
  await until(() => model.requests.length === 2);
  const sessionKey = await keyIn(house);
  const first = send().catch((error: Error) => error.message);
  await until(async () => (await runStates(house, sessionKey))[0] === "queued");
  const [queued] = await listRuns(house.store.db, { sessionKey, limit: 1 });
  await house.engine.abort({ sessionKey, runId: queued?.runId ?? "" });
  expect(await first).toMatch(/aborted/);
  held.resolve("Hello Bob");
  await other;
  expect(await send()).toBe("It rains.");
  expect(lastTexts(model)).toContain("toolResult rain");
});

test("OC1: results are continued after a second failure, and repeated ones get that answer", async () => {
  for (const more of [{}, { user: "anne" }]) {
    const { model, house, send } = await called([FIRE, FIRE, "It rains."], more);
    await expect(send()).rejects.toThrow(/on fire/);
    await expect(send()).rejects.toThrow(/on fire/);
    expect(await send()).toBe("It rains.");
    expect(await send()).toBe("It rains.");
    expect(model.requests).toHaveLength(4);
    expect(await runStates(house, await keyIn(house))).toEqual(["ok", "error", "error", "ok"]);
  }
  const model = scriptedModel((_, at) => [CALLS, FIRE, FIRE, "It rains."][at] ?? "no more");
  const { responses } = openAi(await openHouse({ model }));
  const first = await responses.create({ model: MODEL, input: "How is it?", tools: FUNCTIONS });
  const call_id = first.output[0]?.type === "function_call" ? first.output[0].call_id : "";
  const input = [{ type: "function_call_output" as const, call_id, output: "rain" }];
  const repeat = () => responses.create({ model: MODEL, input, previous_response_id: first.id });
  await expect(repeat()).rejects.toThrow(/on fire/);
  await expect(repeat()).rejects.toThrow(/on fire/);
  const [one, two] = await Promise.all([repeat(), repeat()]);
  expect([one.output_text, two.id]).toEqual(["It rains.", one.id]);
});

test("a retry by an operator has the results, and no tools that nobody runs", async () => {
  const { model, house, send } = await called([FIRE, "It rains."], { user: "anne" });
  await expect(send()).rejects.toThrow(/on fire/);
  const sessionKey = await keyIn(house);
  const [failed] = await listRuns(house.store.db, { sessionKey, limit: 1 });
  const operator = await house.client();
  const { runId } = await operator.request("runs.retry", { runId: failed?.runId ?? "" });
  await until(async () => (await runStates(house, sessionKey)).join() === "ok,error,ok");
  const { input } = (await getRun(house.store.db, runId)) ?? {};
  expect(input).toMatchObject({ results: [{ content: [{ text: "rain" }] }], retries: 1 });
  expect(input?.clientTools).toBeUndefined();
  expect(model.requests.at(-1)?.tools.some(({ name }) => name === "weather")).toBe(false);
  expect(lastTexts(model).filter((one) => one === "toolResult rain")).toHaveLength(1);
});

test("results for the model of another agent begin a session of that agent", async () => {
  const { house, send } = await called(["It rains."]);
  expect(await send([], { model: "parley/other" })).toBe("It rains.");
  expect(await keyIn(house, 1)).toMatch(/^agent:other:/);
});

test("results that name one call twice, and more results than calls of an answer, are refused", async () => {
  const { send, begin } = await called([]);
  const twice = send([begin[2] as Message]);
  await expect(twice).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/two results/) });
  const many = Array.from({ length: 200 }, (_, at) => {
    return { role: "tool" as const, tool_call_id: `call_${at}`, content: "x" };
  });
  await expect(send(many)).rejects.toMatchObject({
    status: 400,
    message: expect.stringMatching(/at most 128 results/),
  });
});

test("operators see the message of a run with many tools, and calls of the client as no failure", async () => {
  const description = "x".repeat(100_000);
  const tools = [{ type: "function", function: { ...WEATHER, description } }];
  const held = Promise.withResolvers<ScriptedAnswer>();
  const { house, send } = await called([held.promise], { tools, user: "anne" });
  const operator = await house.client();
  const { chains } = await operator.request("chains.list", { includeSingle: true });
  expect(chains).toMatchObject([{ opening: "How is it?" }]);
  const asked = { chainId: chains[0]?.chainId ?? "", includeCalls: true };
  const { calls } = await operator.request("chains.get", asked);
  expect(calls?.map(({ kind, failed }) => [kind, failed])).toEqual([
    ["model", undefined],
    ["tool", undefined],
  ]);
  const answer = send([said("In a word")]);
  await until(async () => (await operator.request("runs.list", {})).runs.length === 1);
  expect((await operator.request("runs.list", {})).runs).toMatchObject([{ summary: "In a word" }]);
  held.resolve("It rains.");
  expect(await answer).toBe("It rains.");
});
