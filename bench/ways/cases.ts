// Lists difficult answers of model servers, and the reading that each must get. The server sees the request,
// so a case may also refuse it.

import { fieldsOf } from "../../src/core/json.ts";
import type { ProviderApi } from "../../src/core/shapes/settings/settings.ts";
import type { Json } from "../../tests/kit/dialects/dialect.ts";
import type { Refusal } from "../../tests/kit/dialects/overflow.ts";
import type * as raw from "../../tests/kit/dialects/raw.ts";
import { calling, callPiece, DONE, delta, event, named } from "../../tests/kit/dialects/raw.ts";

/** The reading of one answer by one client. */
export interface Answered {
  readonly text: string;
  readonly thinking: string;
  /** A call whose arguments were refused has no arguments. */
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[];
  /** stop, length, toolUse or a word of the client. */
  readonly stop?: string;
  readonly error?: string;
  /** True if the client says that the prompt is larger than the context window. Absent: it never says so. */
  readonly isOverflow?: boolean;
  readonly hasThrown?: boolean;
}

export type WayReply = (body: Record<string, unknown>) => raw.RawReply;

export interface WayCase {
  readonly name: string;
  readonly api: ProviderApi;
  readonly reply: WayReply;
  readonly isRight: (answered: Answered) => boolean;
  readonly history?: "none" | "tools";
  readonly reasoning?: boolean;
  readonly vendor?: "mistral";
  /** True if nothing listens at the address. */
  readonly isClosed?: boolean;
}

const stream =
  (...pieces: string[]): WayReply =>
  () => ({ pieces });
const json =
  (body: unknown, status = 200): WayReply =>
  () => ({ status, type: "application/json", pieces: [JSON.stringify(body)] });

const hasText =
  (text: string) =>
  (one: Answered): boolean =>
    one.text === text && one.error === undefined && one.calls.length === 0;
const stops =
  (text: string, stop: string) =>
  (one: Answered): boolean =>
    hasText(text)(one) && one.stop === stop;
const hasCalls =
  (...limits: unknown[]) =>
  (one: Answered): boolean =>
    one.error === undefined &&
    JSON.stringify(one.calls.map((call) => call.arguments)) ===
      JSON.stringify(limits.map((limit) => ({ limit }))) &&
    one.calls.every((call) => call.name === "sessions_list");
/** The words may stand in JSON: how they are shown is decided later. */
const isError =
  (words: string) =>
  (one: Answered): boolean =>
    one.error?.includes(words) === true;

const chat = (
  name: string,
  reply: WayReply,
  isRight: WayCase["isRight"],
  more: Partial<WayCase> = {},
): WayCase => ({ name, api: "openai-completions", reply, isRight, ...more });

const END = delta({}, "tool_calls") + DONE;
const L1 = '{"limit":1}';
const L2 = '{"limit":2}';

const CALLS: readonly WayCase[] = [
  chat(
    "two calls, both index 0",
    stream(calling(callPiece(0, "a1", L1)), calling(callPiece(0, "a2", L2)), END),
    hasCalls(1, 2),
  ),
  chat(
    "two calls, index 0, no ids",
    stream(calling(callPiece(0, undefined, L1)), calling(callPiece(0, undefined, L2)), END),
    hasCalls(1, 2),
  ),
  chat(
    "one id, index changes",
    stream(calling(callPiece(0, "a1", '{"li')), calling(callPiece(1, "a1", 'mit":1}', false)), END),
    hasCalls(1),
  ),
  chat(
    "second head on index 0, tail on index 1",
    stream(
      calling(callPiece(0, "a1", L1)),
      calling(callPiece(0, "a2", "")),
      calling(callPiece(1, undefined, L2, false)),
      END,
    ),
    hasCalls(1, 2),
  ),
  chat(
    "whole arguments repeated at the end",
    stream(
      calling(callPiece(0, "a1", '{"li')),
      calling(callPiece(0, undefined, 'mit":1}', false)),
      calling(callPiece(0, "a1", L1)),
      END,
    ),
    hasCalls(1),
  ),
  chat(
    "no index",
    stream(
      calling(callPiece(undefined, "a1", '{"li')),
      calling(callPiece(undefined, undefined, 'mit":1}', false)),
      END,
    ),
    hasCalls(1),
  ),
  chat(
    "two calls in one piece",
    stream(calling(callPiece(0, "a1", L1), callPiece(1, "a2", L2)), END),
    hasCalls(1, 2),
  ),
  chat("arguments are an object", stream(calling(callPiece(0, "a1", { limit: 1 })), END), hasCalls(1)),
  chat("arguments are null", stream(calling(callPiece(0, "a1", "null")), END), hasCalls(undefined)),
  chat("arguments are empty", stream(calling(callPiece(0, "a1", "")), END), hasCalls(undefined)),
  chat(
    "arguments are a list: refused",
    stream(calling(callPiece(0, "a1", "[1]")), END),
    (one) => one.error === undefined && one.calls.length === 1 && one.calls[0]?.arguments === undefined,
  ),
  chat(
    "calls with finish reason stop",
    stream(calling(callPiece(0, "a1", L1)), delta({}, "stop"), DONE),
    hasCalls(1),
  ),
  chat(
    "calls with finish reason tool_use",
    stream(calling(callPiece(0, "a1", L1)), delta({}, "tool_use"), DONE),
    hasCalls(1),
  ),
];

const HELLO = delta({ content: "an answer" });

const ENDS: readonly WayCase[] = [
  ...["eos", "eos_token", "end_turn", "stop_sequence", "STOP", "other", "tool_use"].map((reason) =>
    chat(`finish reason ${reason}`, stream(HELLO, delta({}, reason), DONE), stops("an answer", "stop")),
  ),
  chat(
    "finish reason max_tokens",
    stream(HELLO, delta({}, "max_tokens"), DONE),
    stops("an answer", "length"),
  ),
  chat("[DONE] without a reason", stream(HELLO, DONE), hasText("an answer")),
  chat("reason without [DONE]", stream(HELLO, delta({}, "stop")), hasText("an answer")),
  chat(
    "connection stays open behind the reason",
    () => ({ pieces: [HELLO, delta({}, "stop")], isOpen: true }),
    hasText("an answer"),
  ),
  chat("neither reason nor [DONE]: cut", stream(HELLO), (one) => one.error !== undefined),
];

const whole = (message: object, finish_reason = "stop"): object => ({
  id: "c",
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }],
});
const SAID = delta({}, "stop") + DONE;

const FORMS: readonly WayCase[] = [
  chat("JSON in place of a stream", json(whole({ content: "an answer" })), hasText("an answer")),
  chat(
    "JSON with a call",
    json(whole({ content: null, tool_calls: [callPiece(undefined, "a1", L1)] }, "tool_calls")),
    hasCalls(1),
  ),
  chat(
    "message in place of delta",
    stream(event(whole({ content: "an answer" })), DONE),
    hasText("an answer"),
  ),
  chat(
    "content is a list with thinking",
    stream(
      delta({
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "Bonjour" },
        ],
      }),
      SAID,
    ),
    (one) => hasText("Bonjour")(one) && one.thinking === "hm",
    { vendor: "mistral" },
  ),
  chat(
    "content is a list, unknown server",
    stream(delta({ content: [{ type: "text", text: "array text" }] }), SAID),
    hasText("array text"),
  ),
  chat("refusal", stream(delta({ refusal: "I cannot." }), SAID), hasText("I cannot.")),
  chat(
    "comments, pings and empty events",
    stream(": keep-alive\n\n", "event: ping\ndata:\n\n", "data: \n\n", HELLO, ":\n\n", SAID),
    hasText("an answer"),
  ),
  chat("an event that is not JSON", stream("data: ping\n\n", HELLO, SAID), hasText("an answer")),
  chat(
    "an event without choices",
    stream(event({ x_prompt: "filter results" }), event({ choices: [] }), HELLO, SAID),
    hasText("an answer"),
  ),
  chat("CRLF", stream((HELLO + SAID).replaceAll("\n", "\r\n")), hasText("an answer")),
  chat(
    "reasoning in two fields",
    stream(delta({ reasoning: "hm", reasoning_content: "hm" }), HELLO, SAID),
    (one) => hasText("an answer")(one) && one.thinking === "hm",
  ),
  chat("usage in the choice", stream(HELLO, delta({}, "stop", { usage: null }), DONE), hasText("an answer")),
];

const WORDS = "The quota of this month is used up";
const HTML = "<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>";

const ERRORS: readonly WayCase[] = [
  chat("error JSON with status 200", json({ error: { message: WORDS } }), isError(WORDS)),
  chat("error in the stream", stream(HELLO, event({ error: { message: WORDS } })), isError(WORDS)),
  chat("error is a string", json({ error: WORDS }, 400), isError(WORDS)),
  chat("error in detail", json({ detail: WORDS }, 422), isError(WORDS)),
  chat(
    "error in a list of details",
    json({ detail: [{ loc: ["body", "model"], msg: "field required", type: "value_error" }] }, 422),
    isError("field required"),
  ),
  chat("error is HTML", () => ({ status: 502, type: "text/html", pieces: [HTML] }), isError("502")),
  chat("closed port", stream(), isError("ECONNREFUSED"), { isClosed: true }),
  {
    ...chat("closed port", stream(), isError("ECONNREFUSED"), { isClosed: true }),
    api: "openai-responses",
  },
  {
    ...chat("closed port", stream(), isError("ECONNREFUSED"), { isClosed: true }),
    api: "google-generative-ai",
  },
];

const messagesIn = ({ messages }: Json): Json[] => (Array.isArray(messages) ? messages.map(fieldsOf) : []);
const refusing =
  (isRefused: (body: Json) => boolean, words: string, status = 400): WayReply =>
  (body) =>
    isRefused(body)
      ? { status, type: "application/json", pieces: [JSON.stringify({ error: { message: words } })] }
      : { pieces: [HELLO, SAID] };

const ASKED: readonly WayCase[] = [
  chat(
    "developer role refused",
    refusing((body) => messagesIn(body).some(({ role }) => role === "developer"), "Unexpected message role."),
    hasText("an answer"),
    { reasoning: true },
  ),
  chat(
    "store, max_completion_tokens refused",
    refusing(
      (body) => "store" in body || "max_completion_tokens" in body,
      "Extra inputs are not permitted",
      422,
    ),
    hasText("an answer"),
  ),
  chat(
    "content lists refused",
    refusing(
      (body) => messagesIn(body).some(({ content }) => Array.isArray(content)),
      "invalid type: sequence",
      422,
    ),
    hasText("an answer"),
    { history: "tools" },
  ),
  chat(
    "reasoning_content wanted with calls",
    refusing(
      (body) => messagesIn(body).some((one) => "tool_calls" in one && !("reasoning_content" in one)),
      "reasoning_content is missing in assistant tool call message",
    ),
    hasText("an answer"),
    { history: "tools", reasoning: true },
  ),
  chat(
    "call ids of 9 letters wanted",
    refusing(
      (body) =>
        messagesIn(body).some(
          ({ tool_call_id: id }) => id !== undefined && !/^[a-zA-Z0-9]{9}$/.test(String(id)),
        ),
      "Tool call id has to be defined with a length of 9",
    ),
    hasText("an answer"),
    { history: "tools", vendor: "mistral" },
  ),
  chat(
    "stream_options refused",
    refusing((body) => "stream_options" in body, "Unrecognized field stream_options", 422),
    hasText("an answer"),
  ),
];

const block = (index: number, kind: object, ...deltas: object[]): string =>
  named("content_block_start", { index, content_block: kind }) +
  deltas.map((one) => named("content_block_delta", { index, delta: one })).join("") +
  named("content_block_stop", { index });
const START = named("message_start", {
  message: {
    id: "m",
    type: "message",
    role: "assistant",
    content: [],
    usage: { input_tokens: 1, output_tokens: 1 },
  },
});
const ended = (stop_reason: string): string =>
  named("message_delta", { delta: { stop_reason }, usage: { output_tokens: 2 } }) + named("message_stop", {});
const TEXT = block(0, { type: "text", text: "" }, { type: "text_delta", text: "an answer" });

const claude = (name: string, reply: WayReply, isRight: WayCase["isRight"]): WayCase => ({
  name,
  api: "anthropic-messages",
  reply,
  isRight,
});

const CLAUDE: readonly WayCase[] = [
  claude(
    "JSON in place of a stream",
    json({
      ...{ id: "m", type: "message", role: "assistant", content: [{ type: "text", text: "an answer" }] },
      ...{ stop_reason: "end_turn", usage: { input_tokens: 1, output_tokens: 1 } },
    }),
    hasText("an answer"),
  ),
  claude(
    "delta without its start",
    stream(
      START,
      named("content_block_delta", { index: 0, delta: { type: "text_delta", text: "an answer" } }),
      ended("end_turn"),
    ),
    hasText("an answer"),
  ),
  claude("unknown stop reason", stream(START, TEXT, ended("eos")), hasText("an answer")),
  claude(
    "no message_stop",
    stream(
      START,
      TEXT,
      named("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }),
    ),
    hasText("an answer"),
  ),
  claude("no message_start", stream(TEXT, ended("end_turn")), hasText("an answer")),
  claude(
    "input in the start of the block",
    stream(
      START,
      block(0, { type: "tool_use", id: "t1", name: "sessions_list", input: { limit: 1 } }),
      ended("tool_use"),
    ),
    hasCalls(1),
  ),
  claude(
    "open behind its end",
    () => ({ pieces: [START, TEXT, ended("end_turn")], isOpen: true }),
    hasText("an answer"),
  ),
  claude(
    "unknown events and blocks",
    stream(
      START,
      named("vendor_event", { x: 1 }),
      block(0, { type: "vendor_block" }, { type: "vendor_delta", x: 1 }),
      TEXT.replaceAll('"index":0', '"index":1'),
      ended("end_turn"),
    ),
    hasText("an answer"),
  ),
];

const output = (...items: object[]): object => ({
  response: {
    ...{ id: "r", object: "response", status: "completed", output: items },
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  },
});
const MESSAGE = {
  ...{ type: "message", id: "i", role: "assistant", status: "completed" },
  content: [{ type: "output_text", text: "an answer", annotations: [] }],
};

const responses = (name: string, reply: WayReply): WayCase => ({
  name,
  api: "openai-responses",
  reply,
  isRight: hasText("an answer"),
});

const RESPONSES: readonly WayCase[] = [
  responses("text only in the last event", stream(named("response.completed", output(MESSAGE)))),
  responses("JSON in place of a stream", json((output(MESSAGE) as { response: object }).response)),
  responses(
    "deltas without an opened item",
    stream(
      named("response.output_text.delta", {
        item_id: "i",
        output_index: 0,
        content_index: 0,
        delta: "an answer",
      }),
      named("response.completed", output()),
    ),
  ),
];

const gemini = (name: string, reply: WayReply, isRight: WayCase["isRight"]): WayCase => ({
  name,
  api: "google-generative-ai",
  reply,
  isRight,
});
const part = (finishReason: string | undefined, ...parts: object[]): object => ({
  candidates: [
    { index: 0, content: { role: "model", parts }, ...(finishReason === undefined ? {} : { finishReason }) },
  ],
});

const GEMINI: readonly WayCase[] = [
  gemini(
    "unknown finish reason",
    stream(event(part("FINISHED", { text: "an answer" }))),
    hasText("an answer"),
  ),
  gemini(
    "JSON list in place of a stream",
    json([part(undefined, { text: "an " }), part("STOP", { text: "answer" })]),
    hasText("an answer"),
  ),
  gemini(
    "two calls without ids",
    stream(
      event(
        part(
          "STOP",
          { functionCall: { name: "sessions_list", args: { limit: 1 } } },
          { functionCall: { name: "sessions_list", args: { limit: 2 } } },
        ),
      ),
    ),
    hasCalls(1, 2),
  ),
  gemini(
    "a call without args",
    stream(event(part("STOP", { functionCall: { name: "sessions_list" } }))),
    hasCalls(undefined),
  ),
];

export const CASES: readonly WayCase[] = [
  ...CALLS,
  ...ENDS,
  ...FORMS,
  ...ERRORS,
  ...ASKED,
  ...CLAUDE,
  ...RESPONSES,
  ...GEMINI,
];

/** Answers with each wording of a context overflow, or of a refusal that resembles one. */
export function overflowCases(refusals: readonly Refusal[], isOverflow: boolean): WayCase[] {
  return refusals.map(({ server, status, body }) => {
    const isHtml = typeof body === "string";
    return {
      name: server,
      api: "openai-completions",
      reply: () => ({
        ...{ status, type: isHtml ? "text/html" : "application/json" },
        pieces: [isHtml ? body : JSON.stringify(body)],
      }),
      isRight: (one) => one.error !== undefined && (one.isOverflow ?? false) === isOverflow,
    };
  });
}
