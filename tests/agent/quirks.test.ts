// Requests to servers that take less than their API allows.

import { expect, test, vi } from "vitest";
import { learnedQuirks } from "../../src/agent/model/learned.ts";
import { plainSchema } from "../../src/agent/model/plain-schema.ts";
import type { Entry } from "../../src/core/shapes/message.ts";
import {
  made,
  modelOf,
  providerAt,
  type RawServer,
  rawServer,
  requestFor,
  type WireApi,
} from "./clients-kit.ts";

type Json = Record<string, unknown>;

const OK: Record<WireApi, string> = {
  "openai-completions": JSON.stringify({ choices: [{ message: { content: "ok" }, finish_reason: "stop" }] }),
  "anthropic-messages": JSON.stringify({ type: "message", content: [{ type: "text", text: "ok" }] }),
};

/** Answers requests that `refusal` returns nothing for, and refuses others with its words. */
async function strict(refusal: (body: Json) => string | undefined, status = 400): Promise<RawServer> {
  const server = await rawServer((response, api) => {
    const words = refusal(server.sent.at(-1)?.body ?? {});
    if (words === undefined) response.writeHead(200, { "content-type": "text/event-stream" }).end(OK[api]);
    else response.writeHead(status, { "content-type": "application/json" }).end(words);
  });
  return server;
}

const USAGE = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 };
const COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

/** A conversation with a tool call and its result. */
const CALLED: readonly Entry[] = [
  { id: "u1", role: "user", content: [{ type: "text", text: "list" }], timestamp: 1 },
  {
    ...{ id: "a1", role: "assistant", api: "openai-completions", provider: "openai", model: "test-model" },
    content: [{ type: "toolCall", id: "call_1", name: "echo", arguments: { text: "a" } }],
    ...{ usage: { ...USAGE, cost: COST }, stopReason: "toolUse", timestamp: 2 },
  } as Entry,
  {
    ...{ id: "t1", role: "toolResult", toolCallId: "call_1", toolName: "echo", isError: false, timestamp: 3 },
    content: [{ type: "text", text: "a" }],
  } as Entry,
  { id: "u2", role: "user", content: [{ type: "text", text: "go on" }], timestamp: 4 },
];

const messages = (body: Json): Json[] => body.messages as Json[];
const error = (message: string): string => JSON.stringify({ error: { message } });
const detail = (field: string): string =>
  JSON.stringify({
    detail: [{ type: "extra_forbidden", loc: ["body", field], msg: "Extra inputs are not permitted" }],
  });

test("an unknown server gets neither `developer`, `store`, `max_completion_tokens` nor lists of text", async () => {
  const { url, sent } = await strict(() => undefined);
  const model = modelOf(providerAt(url, "openai-completions"), { reasoning: true });
  expect((await made(requestFor(model))).outcome.kind).toBe("message");
  const body = sent[0]?.body ?? {};
  expect(messages(body).map(({ role, content }) => [role, typeof content])).toEqual([
    ["system", "string"],
    ["user", "string"],
  ]);
  expect(body).not.toHaveProperty("store");
  expect(body).not.toHaveProperty("max_completion_tokens");
  expect(body.max_tokens).toBe(model.settings.maxOutputTokens);
});

test("no server gets what OpenAI's library finds in the environment", async () => {
  vi.stubEnv("OPENAI_ORG_ID", "org-of-the-user");
  vi.stubEnv("OPENAI_PROJECT_ID", "project-of-the-user");
  const { url, sent } = await strict(() => undefined);
  await made(requestFor(modelOf(providerAt(url, "openai-completions"))));
  vi.unstubAllEnvs();
  expect(JSON.stringify(sent[0]?.headers)).not.toContain("of-the-user");
});

const SERVERS: readonly {
  readonly name: string;
  readonly refuses: (body: Json) => boolean;
  readonly words: string;
  readonly status?: number;
}[] = [
  {
    name: "max_tokens is refused in favour of max_completion_tokens",
    refuses: ({ max_tokens }) => max_tokens !== undefined,
    words: error(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
  },
  {
    name: "an unknown field is refused by a validator",
    refuses: ({ stream_options }) => stream_options !== undefined,
    words: detail("stream_options"),
    status: 422,
  },
  {
    name: "thinking is required in answers with calls",
    refuses: (body) =>
      messages(body).some(
        ({ tool_calls, reasoning_content }) => tool_calls !== undefined && !reasoning_content,
      ),
    words: error(
      "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
    ),
  },
  {
    name: "tool call ids have nine letters and digits",
    refuses: (body) =>
      messages(body).some(({ tool_call_id: id }) => id !== undefined && !/^[a-zA-Z0-9]{9}$/.test(String(id))),
    words: JSON.stringify({
      message: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
    }),
  },
  {
    name: "null is refused as content",
    refuses: (body) => messages(body).some(({ content }) => content === null),
    words: JSON.stringify({
      detail: [{ loc: ["body", "messages", 2, "content"], msg: "Input should be a valid string" }],
    }),
    status: 422,
  },
  {
    name: "no message of a user may follow a tool's",
    refuses: (body) =>
      messages(body).some(({ role }, at, all) => role === "user" && all[at - 1]?.role === "tool"),
    words: error("Unexpected role 'user' after role 'tool'"),
  },
  {
    name: "there is no system role",
    refuses: (body) => messages(body).some(({ role }) => role === "system"),
    words: error("System role not supported"),
    status: 500,
  },
  {
    name: "schemas have no references",
    refuses: (body) => JSON.stringify(body.tools).includes("$ref"),
    words: error("Invalid JSON schema of tool echo: $ref is not supported"),
  },
];

const REFERRING = {
  name: "echo",
  description: "Gives back what it is given.",
  parameters: {
    type: "object",
    properties: { text: { $ref: "#/$defs/text" } },
    $defs: { text: { anyOf: [{ type: "null" }, { type: "string" }] } },
  },
  parallel: true,
  idempotent: true,
};

test.each(SERVERS)(
  "if $name, the request is repeated once in that form, and later ones have it",
  async (one) => {
    const { url, sent } = await strict((body) => (one.refuses(body) ? one.words : undefined), one.status);
    const provider = providerAt(url, "openai-completions");
    const model = modelOf(provider);
    const request = requestFor(model, { entries: CALLED, tools: [REFERRING] });
    expect((await made(request)).outcome.kind).toBe("message");
    expect(sent).toHaveLength(2);
    expect(learnedQuirks(model.provider, model.settings.id)).toHaveLength(1);
    expect((await made(request)).outcome.kind).toBe("message");
    expect(sent).toHaveLength(3);
  },
);

test("a server that refuses everything is asked a limited number of times, and its words are shown", async () => {
  const { url, sent } = await strict(() => detail("messages"), 422);
  const { outcome } = await made(requestFor(modelOf(providerAt(url, "openai-completions"))));
  if (outcome.kind !== "failed") throw new Error(outcome.kind);
  expect(outcome.failure.error).toContain("body.messages: Extra inputs are not permitted");
  expect(sent).toHaveLength(1);
});

test("a compatible server of Anthropic's API may refuse fields of tools", async () => {
  const { url, sent } = await strict((body) =>
    JSON.stringify(body.tools).includes("cache_control")
      ? error("tools.0.cache_control: Extra inputs are not permitted")
      : undefined,
  );
  const model = modelOf(providerAt(url, "anthropic-messages"));
  expect((await made(requestFor(model))).outcome.kind).toBe("message");
  expect(sent).toHaveLength(2);
});

test("a plain schema has no reference, union, null or unknown keyword, and recursion ends", () => {
  const schema = {
    type: "object",
    additionalProperties: false,
    properties: {
      text: { anyOf: [{ type: "null" }, { type: "string", description: "words" }] },
      count: { type: ["integer", "null"], exclusiveMinimum: 0 },
      node: { $ref: "#/$defs/node" },
    },
    required: ["text"],
    $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
  };
  const plain = JSON.stringify(plainSchema(schema));
  expect(plain).not.toMatch(/\$ref|anyOf|null|additional|exclusive/);
  expect(plainSchema(schema)).toMatchObject({
    type: "object",
    properties: { text: { type: "string", description: "words" }, count: { type: "integer" } },
    required: ["text"],
  });
});
