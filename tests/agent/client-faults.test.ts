// Streams and refusals of servers that break the rules of their API.

import { expect, test } from "vitest";
import { learnedQuirks } from "../../src/agent/model/learned.ts";
import { plainSchema } from "../../src/agent/model/plain-schema.ts";
import { judgeRefusal } from "../../src/agent/model/refusals.ts";
import { made, modelOf, providerAt, rawServer, requestFor, streaming } from "./clients-kit.ts";

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const delta = (value: object, reason: unknown = null): string =>
  data({ choices: [{ index: 0, delta: value, finish_reason: reason }] });
const call = (index: number, id: string, text: string, name = "echo"): string =>
  delta({ tool_calls: [{ index, id, function: { ...(name === "" ? {} : { name }), arguments: text } }] });
const DONE = `${delta({}, "tool_calls")}data: [DONE]\n\n`;

async function callsIn(...parts: string[]) {
  const server = await rawServer(streaming(parts.join("")));
  const { outcome } = await made(requestFor(modelOf(providerAt(server.url, "openai-completions"))));
  if (outcome.kind !== "message") throw new Error(JSON.stringify(outcome));
  return outcome.message.content.flatMap((block) => (block.type === "toolCall" ? [block] : []));
}

test("two calls with one id stay apart", async () => {
  const calls = await callsIn(call(0, "x", '{"text":"a"}'), call(1, "x", '{"text":"b"}'), DONE);
  expect(calls.map((one) => one.arguments)).toEqual([{ text: "a" }, { text: "b" }]);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
});

test("a call whose pieces each have a new id is one call", async () => {
  const calls = await callsIn(call(0, "a1", '{"te'), call(0, "a2", 'xt":"a"}', ""), DONE);
  expect(calls.map((one) => one.arguments)).toEqual([{ text: "a" }]);
});

test.each([
  ["without an id", (_: number) => ({})],
  ["each with an id of its own", (at: number) => ({ id: `a${at}` })],
])("long arguments in small pieces, %s, are read in time that grows with their length", async (_, fields) => {
  const text = "word ".repeat(60_000);
  const pieces = Array.from({ length: text.length / 5 }, (_, at) =>
    delta({ tool_calls: [{ index: 0, ...fields(at), function: { arguments: "word " } }] }),
  );
  const calls = await callsIn(call(0, "a", '{"text":"'), ...pieces, call(0, "a", '"}', ""), DONE);
  expect(calls.map((one) => one.arguments)).toEqual([{ text }]);
});

test("a reason that is the word null ends nothing, and a message after an empty delta is the answer", async () => {
  const server = await rawServer(
    streaming(
      delta({ role: "assistant" }, "null"),
      data({ choices: [{ message: { content: "hello" }, finish_reason: "stop" }] }),
    ),
  );
  const { outcome } = await made(requestFor(modelOf(providerAt(server.url, "openai-completions"))));
  expect(outcome).toMatchObject({ kind: "message", message: { content: [{ text: "hello" }] } });
});

test.each([
  ["chat", 400, "This model does not support tool_choice=auto with these settings"],
  ["a failed server", 500, "internal error: the car does not support tools in this region"],
  ["the limit of a field", 400, "max_completion_tokens is too large: 4000. This model supports at most 100"],
  ["an essential field", 400, "Unknown name \"foo\" at 'contents[0].parts[0]': Cannot find field."],
  ["a field that is not the reason", 422, "stream_options: Extra inputs are not permitted"],
  ["words of a person", 422, "invalid: failed to parse 'please explain the store and the limit'"],
])(
  "nothing is learned for good from a refusal about %s that a repeat does not heal",
  async (_, status, words) => {
    const server = await rawServer((response) => {
      response
        .writeHead(status, { "content-type": "application/json" })
        .end(JSON.stringify({ error: { message: words } }));
    });
    const model = modelOf(providerAt(server.url, "openai-completions"));
    const { outcome } = await made(requestFor(model));
    expect(outcome.kind).toBe("failed");
    expect(learnedQuirks(model.provider, model.settings.id)).toEqual([]);
  },
);

const asItem = (id: string, text = '{"text":"a"}') => ({
  ...{ type: "function_call", id, call_id: "c", name: "echo", arguments: text },
});

test.each([
  ["alone", []],
  ["behind one that was not streamed", [{ type: "reasoning", id: "r", summary: [] }]],
])("an item whose id changes between events comes once, also %s", async (_, before) => {
  const events = [
    { type: "response.output_item.added", output_index: 0, item: asItem("a", "") },
    { type: "response.output_item.done", output_index: 0, item: asItem("b") },
    { type: "response.completed", response: { status: "completed", output: [...before, asItem("d")] } },
  ];
  const server = await rawServer(streaming(events.map(data).join("")));
  const provider = { ...providerAt(server.url, "openai-completions"), api: "openai-responses" as const };
  const { outcome } = await made(requestFor(modelOf(provider)));
  if (outcome.kind !== "message") throw new Error(JSON.stringify(outcome));
  expect(outcome.message.content.filter(({ type }) => type === "toolCall")).toHaveLength(1);
});

test("arguments in the start of a block count once, also if they are repeated in pieces", async () => {
  const input = { text: "a" };
  const start = (index?: number) =>
    data({
      type: "content_block_start",
      index,
      content_block: { type: "tool_use", id: "t", name: "echo", input },
    });
  const piece = data({
    type: "content_block_delta",
    index: 0,
    delta: { type: "input_json_delta", partial_json: '{"text":"a"}' },
  });
  const end =
    data({ type: "message_delta", delta: { stop_reason: "tool_use" } }) + data({ type: "message_stop" });
  for (const stream of [start(0) + end, start(0) + piece + end, start() + piece + end]) {
    const server = await rawServer(streaming(stream));
    const { outcome } = await made(requestFor(modelOf(providerAt(server.url, "anthropic-messages"))));
    if (outcome.kind !== "message") throw new Error(JSON.stringify(outcome));
    expect(outcome.message.content).toMatchObject([{ type: "toolCall", arguments: input }]);
  }
});

test("an error that is nested deeply is a failure with a text", async () => {
  const server = await rawServer((response) => {
    response.writeHead(400).end("[".repeat(32_000) + "]".repeat(32_000));
  });
  const { outcome } = await made(requestFor(modelOf(providerAt(server.url, "openai-completions"))));
  expect(outcome.kind).toBe("failed");
  expect(judgeRefusal(400, "[".repeat(5_000) + "]".repeat(5_000))).toBeUndefined();
});

test("a schema that contains itself many times becomes a small one", () => {
  const node = {
    type: "object",
    properties: { a: { $ref: "#/$defs/n" }, b: { $ref: "#/$defs/n" }, c: { $ref: "#/$defs/n" } },
  };
  const plain = JSON.stringify(plainSchema({ $ref: "#/$defs/n", $defs: { n: node } }));
  expect(plain.length).toBeLessThan(1_000);
  expect(
    plainSchema({ allOf: [{ properties: { a: { type: "string" } } }, { properties: { b: {} } }] }),
  ).toMatchObject({
    properties: { a: { type: "string" }, b: {} },
  });
});
