// Requests to servers that check them: roles, fields, lists, ids of calls and thinking.

import { expect, test } from "vitest";
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
