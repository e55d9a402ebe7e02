// Answers in other forms than the usual stream: one JSON document, lists of parts, and events without content.

import { expect, test } from "vitest";
import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import {
  DONE,
  delta,
  event,
  json,
  named,
  openRaw,
  type RawReply,
  saying,
  stream,
} from "../../kit/dialects/raw.ts";

const HELLO = delta({ content: "an answer" });
const END = delta({}, "stop") + DONE;

async function say(reply: RawReply, api: ProviderApi = "openai-completions", thinking?: "medium") {
  const talk = await (await openRaw({ api })).talk("m", () => reply, thinking);
  return { ...(await talk.says("go")), requests: talk.requests.length, history: await talk.history() };
}

const block = { type: "text", text: "an answer" };
const start = named("message_start", {
  message: { role: "assistant", content: [], usage: { input_tokens: 1 } },
});
const stop =
  named("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }) +
  named("message_stop", {});
const item = {
  ...{ type: "message", id: "i", role: "assistant", status: "completed" },
  content: [{ type: "output_text", text: "an answer", annotations: [] }],
};
const response = {
  id: "r",
  object: "response",
  status: "completed",
  output: [item],
  usage: { input_tokens: 1 },
};
const candidate = {
  index: 0,
  content: { role: "model", parts: [{ text: "an answer" }] },
  finishReason: "STOP",
};
const choice = { index: 0, message: { role: "assistant", content: "an answer" }, finish_reason: "stop" };

const FORMS: readonly (readonly [string, ProviderApi, RawReply])[] = [
  ["one JSON document", "openai-completions", json({ object: "chat.completion", choices: [choice] })],
  [
    "one JSON document that is called a stream",
    "openai-completions",
    { pieces: [JSON.stringify({ object: "chat.completion", choices: [choice] })] },
  ],
  [
    "one JSON document with a list of parts",
    "openai-completions",
    json({ choices: [{ ...choice, message: { role: "assistant", content: [block] } }] }),
  ],
  [
    "one JSON document",
    "anthropic-messages",
    json({
      type: "message",
      role: "assistant",
      content: [block],
      stop_reason: "end_turn",
      usage: { input_tokens: 1 },
    }),
  ],
  ["one JSON document", "openai-responses", json(response)],
  ["one JSON document", "google-generative-ai", json({ candidates: [candidate] })],
  ["a JSON list", "google-generative-ai", json([{ candidates: [candidate] }])],
  ["a list of parts", "openai-completions", stream(delta({ content: [block] }), END)],
  ["a refusal", "openai-completions", stream(delta({ content: null, refusal: "an answer" }), END)],
  ["`message` in place of `delta`", "openai-completions", stream(event({ choices: [choice] }), DONE)],
  [
    "`message` and `delta` in each chunk",
    "openai-completions",
    stream(
      event({ choices: [{ index: 0, delta: { content: "an " }, message: { content: "an " } }] }),
      event({ choices: [{ index: 0, delta: { content: "answer" }, message: { content: "an answer" } }] }),
      END,
    ),
  ],
  [
    "a text only in the last event",
    "openai-responses",
    stream(
      named("response.created", { response: { id: "r", status: "in_progress" } }),
      named("response.completed", { response }),
    ),
  ],
  [
    "a text without its opened item",
    "openai-responses",
    stream(
      named("response.output_text.delta", {
        item_id: "i",
        output_index: 0,
        content_index: 0,
        delta: "an answer",
      }),
      named("response.completed", { response: { ...response, output: [] } }),
    ),
  ],
  [
    "a delta without its start",
    "anthropic-messages",
    stream(
      start,
      named("content_block_delta", { index: 0, delta: { type: "text_delta", text: "an answer" } }),
      stop,
    ),
  ],
  [
    "a block that is whole at its start",
    "anthropic-messages",
    stream(
      start,
      named("content_block_start", { index: 0, content_block: block }),
      named("content_block_stop", { index: 0 }),
      stop,
    ),
  ],
  ["an event that is not JSON", "openai-completions", stream("data: ping\n\n", HELLO, END)],
  [
    "events without choices",
    "openai-completions",
    stream(event({ choices: [] }), event({ x: 1 }), HELLO, END),
  ],
  ["choices that are null", "openai-completions", stream(event({ choices: null, usage: null }), HELLO, END)],
  ["a delta that is null", "openai-completions", stream(event({ choices: [{ delta: null }] }), HELLO, END)],
  ["a byte order mark", "openai-completions", stream(`\uFEFF${HELLO}`, END)],
  [
    "a last event without its empty line",
    "openai-completions",
    stream(HELLO, (delta({}, "stop") + DONE).trimEnd()),
  ],
];

test.each(FORMS)("%s of %s is the answer", async (_, api, reply) => {
  const { status, text, error } = await say(reply, api);
  expect({ status, text, error }).toEqual({ status: "ok", text: "an answer", error: "" });
});

test("parts with thinking are thinking, and parts with text are the answer", async () => {
  const content = [
    { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
    { type: "text", text: "Bonjour" },
  ];
  const { text, history } = await say(stream(delta({ content }), END), "openai-completions", "medium");
  expect(text).toBe("Bonjour");
  const answer = history.find(({ role }) => role === "assistant");
  expect(answer?.content).toMatchObject([
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "Bonjour" },
  ]);
});

test.each([
  ["reasoning_content", { reasoning_content: "hm" }],
  ["reasoning", { reasoning: "hm" }],
  ["both fields", { reasoning_content: "hm", reasoning: "hm" }],
  ["reasoning_details", { reasoning_details: [{ type: "reasoning.text", text: "hm", index: 0 }] }],
  ["tags in the text", { content: "<think>hm</think>" }],
])("thinking in %s is not part of the answer", async (_, thought) => {
  const { text, history } = await say(stream(delta(thought), HELLO, END), "openai-completions", "medium");
  expect(text.trim()).toBe("an answer");
  expect(
    JSON.stringify(history.find(({ role }) => role === "assistant")).split("hm").length,
  ).toBeLessThanOrEqual(2);
});

const QUOTA = "The quota of this month is used up";
const HTML =
  "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title><style>a { color: red }</style></head>" +
  "<body><h1>502 Bad Gateway</h1><hr>nginx</body></html>";
const html = (status: number): RawReply => ({ status, type: "text/html", pieces: [HTML] });

const ERRORS: readonly (readonly [string, ProviderApi, RawReply, string])[] = [
  ["an error with status 200", "openai-completions", json({ error: { message: QUOTA } }), QUOTA],
  [
    "an error with status 200",
    "anthropic-messages",
    json({ type: "error", error: { message: QUOTA } }),
    QUOTA,
  ],
  ["an error with status 200", "openai-responses", json({ error: { message: QUOTA } }), QUOTA],
  ["an error with status 200", "google-generative-ai", json({ error: { code: 400, message: QUOTA } }), QUOTA],
  [
    "an error in an event",
    "openai-completions",
    stream(event({ error: { message: QUOTA, code: 402 } })),
    QUOTA,
  ],
  ["an error that is a text", "openai-completions", json({ error: QUOTA }, 400), QUOTA],
  ["an error in `detail`", "openai-completions", json({ detail: QUOTA }, 422), QUOTA],
  [
    "a list of details",
    "openai-completions",
    json({ detail: [{ loc: ["body", "model"], msg: "field required", type: "value_error" }] }, 422),
    "field required",
  ],
  ["a list of errors", "openai-completions", json([{ error: { code: 400, message: QUOTA } }], 400), QUOTA],
  ["an error in `message`", "openai-completions", json({ object: "error", message: QUOTA }, 400), QUOTA],
  ["an error in `msg`", "openai-completions", json({ success: false, msg: QUOTA }, 400), QUOTA],
  [
    "an error in the raw words of a router",
    "openai-completions",
    json(
      {
        error: { message: "Provider returned error", metadata: { raw: `{"error":{"message":"${QUOTA}"}}` } },
      },
      400,
    ),
    QUOTA,
  ],
  ["a page of HTML", "openai-completions", html(502), "502 Bad Gateway"],
  ["a page of HTML", "anthropic-messages", html(503), "502 Bad Gateway"],
  ["a page of HTML", "openai-responses", html(502), "502 Bad Gateway"],
  ["a page of HTML", "google-generative-ai", html(502), "502 Bad Gateway"],
  ["a plain text", "openai-completions", { status: 400, type: "text/plain", pieces: [QUOTA] }, QUOTA],
];

test.each(ERRORS)("%s of %s is told in plain words", async (_, api, reply, words) => {
  const { status, error } = await say(reply, api);
  expect(status).toBe("error");
  expect(error).toContain(words);
  expect(error).not.toMatch(/[{}<>]|\\"|color: red/);
});

test("an error with status 200 is not retried", async () => {
  const { requests } = await say(json({ error: { message: QUOTA } }));
  expect(requests).toBe(1);
});

test("an answer that follows an error is heard", async () => {
  const talk = await (await openRaw()).talk("m", (_, at) => (at === 0 ? html(502) : saying("at last")));
  expect((await talk.says("go")).text).toBe("at last");
});
