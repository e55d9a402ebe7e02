// Requests to servers that check them: roles, fields, lists, ids of calls and thinking.

import { expect, test } from "vitest";
import { fieldsOf } from "../../../src/core/json.ts";
import { PIXEL } from "../../kit/dialects/house.ts";
import {
  calling,
  callPiece,
  DONE,
  delta,
  json,
  openRaw,
  type RawOptions,
  type RawReply,
  saying,
  stream,
} from "../../kit/dialects/raw.ts";
import { listOf } from "../../kit/dialects/rules.ts";

type Json = Record<string, unknown>;
type Check = (body: Json) => string | undefined;

const callOnce = stream(
  calling(callPiece(0, "call_function_1", '{"limit":1}')),
  delta({}, "tool_calls"),
  DONE,
);

/** Opens a session with a model whose server refuses requests. The first answer is a call. */
async function openStrict(check: Check, refuse: (words: string) => RawReply, options: RawOptions = {}) {
  let refusals = 0;
  const house = await openRaw(options);
  const reply = (body: Json, isFirst: boolean): RawReply => {
    const words = check(body);
    if (words === undefined) return isFirst ? callOnce : saying("done");
    refusals += 1;
    return refuse(words);
  };
  const model = options.models?.[0] ?? "m";
  const talk = await house.talk(
    model,
    ({ body, toolResults }) => reply(body, toolResults.length === 0),
    options.settings?.reasoning === false ? undefined : "medium",
  );
  return { ...talk, house, refusals: () => refusals };
}

const messagesIn = ({ messages }: Json): Json[] => listOf(messages);
const OK = { status: "ok", text: "done", error: "" };
const badRequest = (words: string): RawReply => json({ error: { message: words } }, 400);

const noDeveloper: Check = (body) =>
  messagesIn(body).some(({ role }) => role === "developer") ? "Unexpected message role." : undefined;

test.each([
  ["in OpenAI's words", badRequest],
  ["in vLLM's words", (words: string) => json({ object: "error", message: words, code: 400 }, 400)],
  [
    "in the words of a deserializer",
    () =>
      json({ error: { message: "messages[0].role: unknown variant `developer`, expected `system`" } }, 422),
  ],
])("a local server that refuses the role developer, %s, gets the role system", async (_, refuse) => {
  const { says, requests, refusals } = await openStrict(noDeveloper, refuse);
  expect(await says("go")).toEqual(OK);
  expect(await says("again")).toEqual(OK);
  expect(refusals()).toBeLessThanOrEqual(1);
  expect(messagesIn(requests.at(-1)?.body ?? {})[0]).toMatchObject({ role: "system" });
});

const FIELDS = ["model", "messages", "stream", "max_tokens", "temperature", "tools", "tool_choice"];
const onlyBasics: Check = (body) => Object.keys(body).find((field) => !FIELDS.includes(field));
const extraForbidden = (field: string): RawReply =>
  json(
    { detail: [{ type: "extra_forbidden", loc: ["body", field], msg: "Extra inputs are not permitted" }] },
    422,
  );

test.each(["mistral", "local"])("the first request to a strict server is accepted: %s", async (id) => {
  const check: Check = (body) => ["store", "max_completion_tokens"].find((field) => field in body);
  const { says, refusals } = await openStrict(check, extraForbidden, { id });
  expect(await says("go")).toEqual(OK);
  expect(refusals()).toBe(0);
});

test.each([
  ["in FastAPI's list", extraForbidden],
  ["in a sentence", (field: string) => badRequest(`Unrecognized request argument supplied: ${field}`)],
  ["as a property", (field: string) => json({ message: `property '${field}' is unsupported` }, 400)],
  [
    "with its value",
    (field: string) => badRequest(`Extra inputs are not permitted, field: '${field}', value: True`),
  ],
])("each field that a server refuses %s is left out from then on", async (_, refuse) => {
  const refused: string[] = [];
  const { says } = await openStrict(onlyBasics, (field) => {
    refused.push(field);
    return refuse(field);
  });
  expect(await says("go")).toEqual(OK);
  expect(await says("again")).toEqual(OK);
  expect(refused).toEqual([...new Set(refused)]);
});

test("a server that refuses lists of parts gets texts", async () => {
  const check: Check = (body) =>
    messagesIn(body).some(({ content }) => Array.isArray(content)) ? "messages" : undefined;
  const refuse = (): RawReply =>
    json(
      { error: "messages[1].content: invalid type: sequence, expected a string", error_type: "validation" },
      422,
    );
  const { says, refusals } = await openStrict(check, refuse, { settings: { images: false } });
  expect(await says("go")).toEqual(OK);
  expect(await says("again")).toEqual(OK);
  expect(refusals()).toBe(0);
});

test("a server that sees pictures gets them in a list of parts", async () => {
  const { says, requests } = await openStrict(() => undefined, badRequest);
  expect(await says("look", PIXEL)).toEqual(OK);
  expect(JSON.stringify(requests[0]?.body)).toContain(PIXEL);
});

/** The check of a server that wants the thinking of each message with calls. `blank`: enough for it. */
const wantsThinking =
  (blank: "" | " "): Check =>
  (body) => {
    const isThought = (value: unknown): boolean => typeof value === "string" && value.length >= blank.length;
    const at = messagesIn(body).findIndex(
      (one) => listOf(one.tool_calls).length > 0 && !isThought(one.reasoning_content),
    );
    return at < 0 ? undefined : `reasoning_content is missing in assistant tool call message at index ${at}`;
  };

test.each([
  ["moonshotai", (words: string) => badRequest(`thinking is enabled but ${words}`)],
  ["local", (words: string) => badRequest(`thinking is enabled but ${words}`)],
  ["local", () => badRequest("The `reasoning_content` in the thinking mode must be passed back to the API.")],
  [
    "deepseek",
    () => badRequest("Missing `reasoning_content` field in the assistant message at message index 2."),
  ],
])(
  "%s: calls without thinking go back with blank thinking once the server asks for it",
  async (id, refuse) => {
    const { says, refusals } = await openStrict(wantsThinking(id === "deepseek" ? "" : " "), refuse, { id });
    expect(await says("go")).toEqual(OK);
    expect(await says("again")).toEqual(OK);
    expect(refusals()).toBeLessThanOrEqual(1);
  },
);

test("the history of another model goes to a model that wants thinking", async () => {
  const talk = await openStrict(() => undefined, badRequest, { models: ["m", "thinker"] });
  expect(await talk.says("go")).toEqual(OK);
  talk.house.script("thinker", ({ body }) => {
    const words = wantsThinking(" ")(body);
    return words === undefined ? saying("done") : badRequest(words);
  });
  await talk.useModel("local/thinker");
  expect(await talk.says("again")).toEqual(OK);
});

test("thinking that a server refuses is not sent again", async () => {
  const check: Check = (body) =>
    messagesIn(body).some((one) => "reasoning_content" in one)
      ? "'messages.2' : property 'reasoning_content' is unsupported"
      : undefined;
  const house = await openRaw();
  let refusals = 0;
  const thought = stream(
    delta({ reasoning_content: "hm" }),
    calling(callPiece(0, "a1", '{"limit":1}')),
    delta({}, "tool_calls"),
    DONE,
  );
  const talk = await house.talk(
    "m",
    ({ body, toolResults }) => {
      const words = check(body);
      if (words !== undefined) refusals += 1;
      if (words !== undefined) return badRequest(words);
      return toolResults.length === 0 ? thought : saying("done");
    },
    "medium",
  );
  expect(await talk.says("go")).toEqual(OK);
  expect(await talk.says("again")).toEqual(OK);
  expect(refusals).toBeLessThanOrEqual(1);
});

test.each([
  [
    "mistral",
    /^[a-zA-Z0-9]{9}$/,
    (id: string) => `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`,
  ],
  [
    "local",
    /^[a-zA-Z0-9]{9}$/,
    (id: string) => `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`,
  ],
])("%s: ids of calls have the form that the server takes", async (id, pattern, words) => {
  const check: Check = (body) => {
    const ids = messagesIn(body).flatMap((one) => [
      ...listOf(one.tool_calls).map((call) => String(call.id)),
      ...(one.tool_call_id === undefined ? [] : [String(one.tool_call_id)]),
    ]);
    const bad = ids.find((one) => !pattern.test(one));
    return bad === undefined ? undefined : words(bad);
  };
  const { says, requests, refusals } = await openStrict(check, badRequest, { id });
  expect(await says("go")).toEqual(OK);
  expect(await says("again")).toEqual(OK);
  expect(refusals()).toBeLessThanOrEqual(1);
  const messages = messagesIn(requests.at(-1)?.body ?? {});
  const called = messages.flatMap((one) => listOf(one.tool_calls).map((call) => call.id));
  expect(messages.flatMap((one) => one.tool_call_id ?? [])).toEqual(called);
});

test("a server that knows no stream_options is asked without them", async () => {
  const check: Check = (body) =>
    "stream_options" in body ? "Unrecognized request argument supplied: stream_options" : undefined;
  const { says, refusals } = await openStrict(check, badRequest);
  expect(await says("go")).toEqual(OK);
  expect(refusals()).toBeLessThanOrEqual(1);
});

test("a server that wants max_completion_tokens gets them", async () => {
  const check: Check = (body) =>
    "max_tokens" in body
      ? "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
      : undefined;
  const { says, requests, refusals } = await openStrict(check, badRequest);
  expect(await says("go")).toEqual(OK);
  expect(refusals()).toBeLessThanOrEqual(1);
  expect(fieldsOf(requests.at(-1)?.body).max_completion_tokens).toBeGreaterThan(0);
});

test("a refusal that blames nothing known is told, and asked once", async () => {
  const { says, refusals } = await openStrict(() => "The model is not for you", badRequest);
  const { status, error } = await says("go");
  expect(status).toBe("error");
  expect(error).toContain("The model is not for you");
  expect(refusals()).toBe(1);
});
