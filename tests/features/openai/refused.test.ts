// Unsupported fields of an OpenAI request, and the text and format of the refusal.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { REFUSED } from "../../../src/features/openai/fields.ts";
import { readRequest } from "../../../src/features/openai/request.ts";
import { realWorld } from "../../../src/world.ts";
import { openAi, said } from "../../gateway/clients/openai.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { openAiSessions } from "./kit.ts";

const MODEL = "parley/main";
const HEAD = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const TOOL = { type: "function", function: { name: "f", parameters: {} } };
const chat = (more: object) => ({ model: MODEL, messages: [said("x")], ...more });
const message = (more: object) => chat({ messages: [{ role: "user", ...more }] });
const part = (more: object) => message({ content: [more] });
const SCHEMA = "response_format.json_schema.schema";
const schema = (value: unknown) =>
  chat({ response_format: { type: "json_schema", json_schema: { name: "n", schema: value } } });
const response = (more: object) => ({ model: MODEL, input: "x", ...more });

const CHATS: [string, unknown, string | null, RegExp][] = [
  ["a list", [], null, /one JSON object/],
  ["no model", { messages: [said("x")] }, "model", /model is required/],
  ["functions", chat({ functions: [{ name: "f" }] }), "functions", /as tools/],
  ["a tool to be called", chat({ tool_choice: "required" }), "tool_choice", /name functions of tools/],
  ["several answers", chat({ n: 2 }), "n", /one run with one answer/],
  ["an unknown format", chat({ response_format: { type: "xml" } }), "response_format.type", /json_object or/],
  ["a format as text", chat({ response_format: "json" }), "response_format", /must be an object/],
  [
    "a format without a schema",
    chat({ response_format: { type: "json_schema" } }),
    "response_format.json_schema",
    /with name and schema/,
  ],
  ["a list as a schema", schema([]), `${SCHEMA}`, /object with a JSON schema/],
  ["a schema of an unknown type", schema({ type: "text" }), `${SCHEMA}.type`, /must be one of object/],
  ["a schema with wrong properties", schema({ properties: [] }), `${SCHEMA}.properties`, /must be an object/],
  ["a schema with wrong names", schema({ required: [1] }), `${SCHEMA}.required`, /list of property names/],
  ["a deep schema", schema(JSON.parse(`${'{"not":'.repeat(9e4)}{}${"}".repeat(9e4)}`)), SCHEMA, /32 levels/],
  ["a long schema", schema({ title: "x".repeat(70_000) }), SCHEMA, /at most 65536 characters/],
  ["sound", chat({ modalities: ["text", "audio"] }), "modalities", /answers in text/],
  ["probabilities", chat({ logprobs: true }), "logprobs", /not available/],
  ["storage", chat({ store: true }), "store", /kept in a session/],
  ["a grammar", chat({ guided_choice: ["a", "b"] }), "guided_choice", /asked for with response_format/],
  ["no messages", chat({ messages: [] }), "messages", /at least one message/],
  ["a message that is none", chat({ messages: ["x"] }), "messages[0]", /must be an object/],
  ["an unknown role", chat({ messages: [{ role: "boss", content: "x" }] }), "messages[0].role", /got "boss"/],
  [
    "a role of every object",
    chat({ messages: [{ role: "toString" }] }),
    "messages[0].role",
    /must be system/,
  ],
  [
    "a tool's result",
    chat({ messages: [{ role: "tool", content: "x" }] }),
    "messages[0].tool_call_id",
    /1 to 200 characters/,
  ],
  [
    "a tool's call",
    chat({ messages: [{ role: "assistant", tool_calls: [{ ...TOOL, id: "c" }] }, said("x")] }),
    "messages[0].tool_calls[0].function.arguments",
    /one JSON object/,
  ],
  ["no content", message({}), "messages[0].content", /must be a string or a list/],
  ["a number as content", message({ content: 5 }), "messages[0].content", /must be a string or a list/],
  ["nothing said", message({ content: "  " }), "messages", /must end with a non-empty user message/],
  [
    "the assistant's word last",
    chat({ messages: [said("x"), { role: "assistant", content: "y" }] }),
    "messages",
    /must end with a non-empty user message/,
  ],
  [
    "instructions alone",
    chat({ messages: [{ role: "system", content: "x" }] }),
    "messages",
    /must end with a non-empty user/,
  ],
  ["a part of no kind", part({ text: "x" }), "messages[0].content[0]", /type nothing are not supported/],
  ["a sound", part({ type: "input_audio" }), "messages[0].content[0]", /"input_audio" are not supported/],
  ["a file", part({ type: "file", file: {} }), "messages[0].content[0]", /"file" are not supported/],
  [
    "a picture to fetch",
    part({ type: "image_url", image_url: { url: "http://10.0.0.1/x.png" } }),
    "messages[0].content[0]",
    /links are not fetched/,
  ],
  [
    "a picture of another kind",
    part({ type: "image_url", image_url: { url: "data:image/svg+xml;base64,AAAA" } }),
    "messages[0].content[0]",
    /must be one of image\/png/,
  ],
  [
    "a picture that is none",
    part({ type: "image_url", image_url: { url: "data:image/png;base64,***" } }),
    "messages[0].content[0]",
    /not valid base64/,
  ],
  [
    "an assistant's picture",
    chat({
      messages: [
        { role: "assistant", content: [{ type: "image_url", image_url: { url: "data:" } }] },
        said("x"),
      ],
    }),
    "messages[0].content[0]",
    /only a user's/,
  ],
  [
    "too many pictures",
    message({
      content: Array(17).fill({ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }),
    }),
    "messages[0].content",
    /16 images/,
  ],
  [
    "an effort of no kind",
    chat({ reasoning_effort: "huge" }),
    "reasoning_effort",
    /must be one of none, minimal/,
  ],
  ["stream as text", chat({ stream: "yes" }), "stream", /true or false/],
  ["stream options as text", chat({ stream_options: "x" }), "stream_options", /must be an object/],
  ["a user who is a number", chat({ user: 5 }), "user", /must be a non-empty string/],
  ["a user too long", chat({ user: "x".repeat(513) }), "user", /at most 512/],
  ["a user of half a character", chat({ user: "\ud800" }), "user", /unpaired surrogate/],
  ["text of half a character", message({ content: "\ud800" }), "messages", /unpaired surrogate/],
];
test.each(CHATS)(
  "a completions request that contains %s fails with a clear error",
  (_, body, param, words) => {
    const read = readRequest("chat", body, false);
    expect(read).toMatchObject({ ok: false, error: expect.stringMatching(words) });
    if (param !== null) expect(read).toMatchObject({ details: { param } });
  },
);

const RESPONSES: [string, unknown, string, RegExp][] = [
  ["a tool of OpenAI", response({ tools: [{ type: "web_search" }] }), "tools[0].type", /has its own tools/],
  [
    "a conversation and a previous id",
    response({ conversation: "conv_1", previous_response_id: "resp_1" }),
    "conversation",
    /beside previous_response_id/,
  ],
  ["a conversation without an id", response({ conversation: {} }), "conversation", /non-empty string/],
  ["a stored prompt", response({ prompt: { id: "p" } }), "prompt", /no stored prompts/],
  ["unstored work", response({ background: true, store: false }), "background", /needs store/],
  [
    "a format without a name",
    response({ text: { format: { type: "json_schema", schema: {} } } }),
    "text.format.name",
    /1 to 64 letters/,
  ],
  ["no input", { model: MODEL }, "input", /must be a string, or a list/],
  [
    "a tool's output",
    response({ input: [{ type: "function_call_output" }] }),
    "input[0].call_id",
    /1 to 200 characters/,
  ],
  [
    "another item",
    response({ input: [{ type: "web_search_call" }] }),
    "input[0]",
    /there are: message, function/,
  ],
  ["instructions in a list", response({ instructions: [] }), "instructions", /must be a string/],
  ["metadata in depth", response({ metadata: { a: { b: 1 } } }), "metadata", /at most 16 texts/],
  [
    "a previous id of another kind",
    response({ previous_response_id: 7 }),
    "previous_response_id",
    /must be a non-empty string/,
  ],
];
test.each(RESPONSES)(
  "a responses request that contains %s fails with a clear error",
  (_, body, param, words) => {
    const read = readRequest("responses", body, false);
    expect(read).toMatchObject({ ok: false, error: expect.stringMatching(words), details: { param } });
  },
);

test("unsupported fields are accepted if their value has no effect", () => {
  const idle = {
    tools: [],
    tool_choice: "auto",
    n: 1,
    logprobs: false,
    store: false,
    response_format: { type: "text" },
  };
  expect(readRequest("chat", chat({ ...idle, stop: ["x"], max_tokens: 5, user: null }), false).ok).toBe(true);
  const idleResponse = {
    tools: [],
    store: true,
    background: false,
    text: { format: { type: "text" } },
    conversation: null,
  };
  expect(readRequest("responses", response(idleResponse), false).ok).toBe(true);
  const thoughts = [
    { type: "reasoning", summary: [] },
    { role: "user", content: "x" },
  ];
  expect(readRequest("responses", response({ input: thoughts }), false)).toMatchObject({
    value: { text: "x" },
  });
});

/** Fields that front-ends add for other servers. */
const ADDED = {
  top_k: 40,
  min_p: 0.05,
  top_a: 0,
  typical_p: 1,
  repetition_penalty: 1.1,
  mirostat: 0,
  num_ctx: 8192,
  keep_alive: "5m",
  chat_template_kwargs: { enable_thinking: true },
  enable_thinking: true,
  thinking_budget: 1024,
  chat_id: "c1",
  session_id: "s1",
  options: { num_predict: 10 },
  features: { web_search: false },
  variables: {},
  transforms: ["middle-out"],
  provider: { order: ["x"] },
  cache_prompt: true,
  constructor: 1,
  metadata: { a: "b" },
  stop: ["x"],
  stream_options: { include_usage: true, continuous_usage_stats: true },
};

test.each([
  ["chat/completions", chat({ ...ADDED, reasoning: { effort: "high", exclude: true } })],
  ["responses", response({ ...ADDED, reasoning: { enabled: true }, top_logprobs: 0 })],
])("fields that front-ends add for other servers are taken and not used: %s", async (path, body) => {
  const house = await openHouse();
  const post = { method: "POST", headers: HEAD, body: JSON.stringify(body) };
  const answer = await fetch(`${house.http}/v1/${path}`, post);
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("echo x")]);
  const used = path === "responses" ? ["metadata", "stream_options"] : ["stream_options"];
  const ignored = Object.keys(ADDED).filter((name) => !used.includes(name));
  const named = answer.headers.get("x-parley-ignored-fields")?.split(", ");
  expect(named).toEqual(path === "responses" ? ignored : [...ignored, "reasoning"]);
});

test("the guide lists the same unsupported fields as the code", () => {
  const guide = readFileSync(new URL("../../../docs/OPENAI.md", import.meta.url), "utf8");
  const refused = /\*\*Refused\*\* with 400(.*?)\n- \*\*/s.exec(guide)?.[1] ?? "";
  const [both = [], chatOnly = [], responsesOnly = []] = refused
    .replace(/\(.*?\)/, "")
    .split(/chat completions:|responses:/)
    .map((part) => [...part.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
  expect([...both, ...chatOnly].sort()).toEqual(Object.keys(REFUSED.chat).sort());
  expect([...both, ...responsesOnly].sort()).toEqual(Object.keys(REFUSED.responses).sort());
});

test("history that a named session already contains is not parsed", () => {
  const picture = {
    role: "user",
    content: [{ type: "image_url", image_url: { url: "https://example.org/x.png" } }],
  };
  const messages = [picture, { role: "assistant", content: "y" }, said("x")];
  expect(readRequest("chat", chat({ messages }), false).ok).toBe(false);
  expect(readRequest("chat", chat({ messages }), true)).toMatchObject({ value: { text: "x", seed: [] } });
  expect(readRequest("chat", chat({ messages, user: "anne" }), false).ok).toBe(true);
});

test("a request with more history than a session may begin with is refused", () => {
  const messages = [...Array(1001).fill({ role: "assistant", content: "y" }), said("x")];
  expect(readRequest("chat", chat({ messages }), false)).toMatchObject({ code: "too_large" });
  expect(readRequest("chat", chat({ messages }), true).ok).toBe(true);
});

test("the official client throws its own exceptions for refusals, and a refusal leaves nothing behind", async () => {
  const house = await openHouse();
  const client = openAi(house);
  const messages = [said("x")];
  const nobody = await client.chat.completions.create({ model: "gpt-4o", messages }).catch((e: unknown) => e);
  expect(nobody).toBeInstanceOf(OpenAI.NotFoundError);
  expect(nobody).toMatchObject({ code: "model_not_found", param: "model", type: "invalid_request_error" });
  expect(String(nobody)).toContain("parley/main, parley/research, parley/writer");
  const streamed = client.chat.completions.create({ model: "gpt-4o", messages, stream: true });
  await expect(streamed).rejects.toThrow(OpenAI.NotFoundError);
  const tools = client.chat.completions.create({ model: MODEL, messages, tools: [{ type: "web" } as never] });
  await expect(tools).rejects.toThrow(OpenAI.BadRequestError);
  const stranger = openAi(house, { apiKey: "guess" });
  await expect(stranger.models.list()).rejects.toThrow(OpenAI.AuthenticationError);
  await expect(stranger.chat.completions.create({ model: MODEL, messages })).rejects.toThrow(
    /token is not valid/,
  );
  expect(await openAiSessions(house)).toEqual([]);
});

test("an object in place of a string gives status 400, however deeply it is nested", async () => {
  const house = await openHouse();
  const deep = "[".repeat(200_000) + "]".repeat(200_000);
  const bodies = [
    `{"model":${deep},"messages":[{"role":"user","content":"x"}]}`,
    `{"model":"parley/main","messages":[{"role":${deep},"content":"x"}]}`,
    `{"model":"parley/main","messages":[{"role":"user","content":[{"type":${deep}}]}]}`,
    `{"model":"parley/main","messages":[{"role":"user","content":"x"}],"modalities":${deep}}`,
    `{"model":"parley/main","messages":[{"role":"user","content":"x"}],"response_format":${deep}}`,
  ];
  for (const body of bodies) {
    const url = `${house.http}/v1/chat/completions`;
    const answer = await fetch(url, { method: "POST", headers: HEAD, body });
    expect([answer.status, body.slice(0, 80)]).toEqual([400, body.slice(0, 80)]);
  }
  const taken = `{"model":"parley/main","messages":[{"role":"user","content":"x"}],"stop":${deep}}`;
  const headers = { ...HEAD, "idempotency-key": "deep" };
  const answer = await fetch(`${house.http}/v1/chat/completions`, { method: "POST", headers, body: taken });
  expect(answer.status).toBe(200);
});

const PATHS: [string, string, number][] = [
  ["GET", "/v1/chat/completions", 404],
  ["POST", "/v1/models", 404],
  ["POST", "/v1/embeddings", 404],
  ["GET", "/v1/responses/resp_1/others", 404],
  ["POST", "/v1/chat/completions", 400],
];
test.each(PATHS)(
  "%s %s with incomplete JSON gives status %i in OpenAI's error format",
  async (method, path, status) => {
    const house = await openHouse();
    const body = method === "POST" ? { body: '{"model":' } : {};
    const answer = await fetch(house.http + path, { method, headers: HEAD, ...body });
    expect(answer.status).toBe(status);
    const error = {
      message: expect.any(String),
      type: "invalid_request_error",
      param: null,
      code: expect.any(String),
    };
    expect(await answer.json()).toEqual({ error });
  },
);

test("a wrong origin and a missing token are refused in OpenAI's error format", async () => {
  const house = await openHouse();
  const post = (headers: Record<string, string>) =>
    fetch(`${house.http}/v1/chat/completions`, { method: "POST", headers, body: "x".repeat(100) });
  const origin = await post({ ...HEAD, origin: "https://evil.example" });
  expect([origin.status, await origin.json()]).toMatchObject([403, { error: { code: "origin_denied" } }]);
  const none = await post({});
  expect([none.status, await none.json()]).toMatchObject([401, { error: { code: "unauthorized" } }]);
  expect(none.headers.get("www-authenticate")).toContain("Bearer");
});

test("a body of up to 25 MiB is read; a larger one, and one with too many values, is refused", async () => {
  // Logs the reason if the test fails with an unexpected error.
  const house = await openHouse({ world: realWorld({ level: "error", sync: true }) });
  const post = (body: string | ReadableStream, path = "/v1/chat/completions") =>
    fetch(house.http + path, { method: "POST", headers: HEAD, body, duplex: "half" } as RequestInit);
  const url = `data:image/png;base64,${"A".repeat(4 * 1024 * 1024)}`;
  const picture = JSON.stringify(message({ content: [{ type: "image_url", image_url: { url } }] }));
  const large = await post(picture);
  expect({ status: large.status, error: large.ok ? "" : await large.text() }).toEqual({
    status: 200,
    error: "",
  });
  await large.body?.cancel();
  const body = "x".repeat(25 * 1024 * 1024 + 1);
  const refused = await post(body);
  expect(refused.status).toBe(413);
  expect(await refused.json()).toMatchObject({ error: { code: "too_large" } });
  expect((await post(new Blob([body]).stream())).status).toBe(413);
  expect((await post(picture, "/tools/invoke")).status).toBe(413);
  const heavy = await post(`{"model":"main","messages":[${"{},".repeat(2_000_000)}0]}`);
  expect([heavy.status, await heavy.json()]).toMatchObject([413, { error: { code: "too_large" } }]);
});

test("a text has the same maximum length as in other methods", () => {
  const long = "x".repeat(1024 * 1024 + 1);
  const system = { role: "system", content: long };
  const cases = [
    [said(long)],
    [system, said("x")],
    [said(long), { role: "assistant", content: "y" }, said("x")],
  ];
  for (const messages of cases) {
    expect(readRequest("chat", chat({ messages }), false)).toMatchObject({ code: "too_large" });
  }
});

/** Reads the answer's head after the interim answer. */
async function headOf(socket: Socket): Promise<string> {
  let text = "";
  for await (const piece of socket) {
    text += String(piece);
    if (text.split("\r\n\r\n").length > 2) return text;
  }
  throw new Error("the connection ended before an answer");
}

test("all bodies that are being read share a size limit, and an interrupted body no longer counts", async () => {
  const house = await openHouse();
  const begin = (bytes: number): Socket => {
    const socket = connect(house.port, "127.0.0.1");
    socket.on("error", () => {});
    cleanup(() => void socket.destroy());
    const head = `host: localhost\r\nauthorization: Bearer ${TOKEN}\r\ntransfer-encoding: chunked\r\nexpect: 100-continue`;
    socket.write(`POST /v1/responses HTTP/1.1\r\n${head}\r\n\r\n${bytes.toString(16)}\r\n`);
    socket.write(`${" ".repeat(bytes)}\r\n`);
    return socket;
  };
  const ask = () =>
    openAi(house)
      .responses.create({ model: MODEL, input: "x" })
      .catch((error: unknown) => error);
  // Only bytes that have arrived count, so slow clients do not block the others.
  const slow = Array.from({ length: 20 }, () => begin(1));
  await Promise.all(slow.map((socket) => once(socket, "data")));
  expect(await ask()).not.toBeInstanceOf(Error);
  const large = Array.from({ length: 3 }, () => begin(20 * 1024 * 1024));
  const refused = await Promise.any(large.map((socket) => headOf(socket)));
  expect(refused).toMatch(/^HTTP\/1\.1 429 /m);
  expect(refused).toMatch(/^x-should-retry: true\r$/m);
  expect(refused).toMatch(/^retry-after: 1\r$/m);
  for (const socket of [...slow, ...large]) socket.destroy();
  await until(async () => !((await ask()) instanceof Error));
});
