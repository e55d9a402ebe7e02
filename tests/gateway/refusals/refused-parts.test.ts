// A provider refuses a part of the history: the turn is answered without it, and so is every later turn.

import { expect, test } from "vitest";
import type { ChatEvent } from "../../../src/contract/events.ts";
import { jsonWithin } from "../../../src/core/json.ts";
import { type Message, textOf } from "../../../src/core/shapes/message.ts";
import { PROVIDER_APIS } from "../../../src/core/shapes/settings/settings.ts";
import { WORDINGS } from "../../agent/refusals/wordings.ts";
import type { Script } from "../../kit/model-server/server.ts";
import { call, text, thinking } from "../../kit/model-server/steps.ts";
import { until } from "../../kit/until.ts";
import { bodyOf, openTalk, PIXEL, refusal } from "./kit.ts";

const OTHER_PIXEL = PIXEL.replace("iVBOR", "iVBOS");
const NOTE = "a picture was here";
const UNCLEAR = refusal(400, "messages.0.content.1: could not process image");

const notesIn = (messages: readonly Message[]): string[] =>
  messages.flatMap((one) => (one.role === "assistant" && one.stopReason === "injected" ? [textOf(one)] : []));

test.each(PROVIDER_APIS)(
  "%s: a refused picture is replaced by a note, now and after a restart",
  async (api) => {
    const talk = await openTalk(api, (request, index) =>
      bodyOf(request).includes(PIXEL) ? UNCLEAR : `answer ${index}`,
    );
    expect(await talk.say("look", PIXEL)).toMatchObject({ state: "ok", reply: "answer 1" });
    expect(bodyOf(talk.served.requests[1])).toContain(NOTE);
    expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "answer 2" });
    await talk.restart();
    expect(await talk.say("and after a restart?")).toMatchObject({ state: "ok", reply: "answer 3" });
    const messages = await talk.history();
    expect(notesIn(messages)).toEqual([expect.stringContaining("refused a picture")]);
    expect(JSON.stringify(messages)).not.toContain(NOTE);
  },
);

test("people who watch the chat see the note during the turn, beside its answer", async () => {
  const talk = await openTalk("anthropic-messages", (request) =>
    bodyOf(request).includes(PIXEL) ? UNCLEAR : "answered",
  );
  const watcher = await talk.house.client();
  const seen: unknown[] = [];
  watcher.onEvent(({ event, payload }) => {
    const chat = payload as ChatEvent;
    if (event === "chat" && chat.state === "final") seen.push([chat.stopReason, chat.message?.content]);
  });
  await talk.say("look", PIXEL);
  await until(() => seen.length === 2);
  const textBlock = (text: unknown) => [expect.objectContaining({ text })];
  expect(seen).toEqual([
    ["injected", textBlock(expect.stringContaining("refused a picture"))],
    ["stop", textBlock("answered")],
  ]);
});

test("a newer picture is sent again, and a new refusal replaces it again", async () => {
  const refused = [PIXEL];
  const talk = await openTalk("anthropic-messages", (request, index) =>
    refused.some((one) => bodyOf(request).includes(one)) ? UNCLEAR : `answer ${index}`,
  );
  await talk.say("look", PIXEL);
  expect(await talk.say("and this one", OTHER_PIXEL)).toMatchObject({ state: "ok" });
  expect(bodyOf(talk.served.requests.at(-1))).toContain(OTHER_PIXEL);
  refused.push(OTHER_PIXEL);
  expect(await talk.say("now it is refused, too")).toMatchObject({ state: "ok" });
  expect(notesIn(await talk.history())).toHaveLength(2);
  expect(talk.served.requests).toHaveLength(5);
});

test.each(WORDINGS.pictures ?? [])(
  "$server: the words of a refused picture are understood",
  async ({ status, words }) => {
    const talk = await openTalk("openai-completions", (request) =>
      bodyOf(request).includes(PIXEL) ? refusal(status ?? 400, words) : "answered",
    );
    expect(await talk.say("look", PIXEL)).toMatchObject({ state: "ok", reply: "answered" });
    expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "answered" });
    expect(talk.served.requests).toHaveLength(3);
  },
);

const SIGNED_APIS = ["openai-completions", "openai-responses", "anthropic-messages"] as const;

test.each(SIGNED_APIS)("%s: stored thinking that is refused is left out from then on", async (api) => {
  let refuses = false;
  const script: Script = ({ body }, index) => {
    const sent = JSON.stringify(body.messages ?? body.input);
    if (refuses && /the old thought|signature|encrypted/i.test(sent))
      return refusal(400, "Invalid `signature` in `thinking` block");
    return index < 2 ? [thinking("the old thought"), text(`answer ${index}`)] : `answer ${index}`;
  };
  const talk = await openTalk(api, script, {}, { thinking: "high" });
  await talk.say("one");
  await talk.say("two");
  refuses = true;
  expect(await talk.say("three")).toMatchObject({ state: "ok", reply: "answer 3" });
  await talk.restart();
  expect(await talk.say("four")).toMatchObject({ state: "ok", reply: "answer 4" });
  expect(notesIn(await talk.history())).toEqual([expect.stringContaining("refused earlier thinking")]);
});

test("thinking that is refused between two tool calls is left out, and the turn continues without thinking", async () => {
  const talk = await openTalk(
    "anthropic-messages",
    (request, index) => {
      if (index === 0) return [thinking("hm"), call("session_status", {}, "toolu_1")];
      const isThinking = request.body.thinking !== undefined && !bodyOf(request).includes('"disabled"');
      return isThinking
        ? refusal(400, "messages.1.content.0: Expected `thinking`, but found `tool_use`")
        : "done";
    },
    {},
    { thinking: "high" },
  );
  expect(await talk.say("go")).toMatchObject({ state: "ok", reply: "done" });
  expect(talk.served.requests).toHaveLength(3);
});

test.each(PROVIDER_APIS)("%s: tool calls that are refused are sent as text", async (api) => {
  const talk = await openTalk(api, (request, index) => {
    if (index === 0) return [text("I look. "), call("session_status", {}, "toolu_1")];
    const hasCalls = request.messages.some((one) => one.calls.length > 0 || one.role === "tool");
    return hasCalls ? refusal(400, "tool_call_id  is not found") : `answer ${index}`;
  });
  expect(await talk.say("go")).toMatchObject({ state: "ok", reply: "answer 2" });
  const sent = bodyOf(talk.served.requests[2]);
  expect(sent).toContain("You called the tool session_status with {}");
  const [result] = (await talk.history()).filter(({ role }) => role === "toolResult");
  expect(sent).toContain(jsonWithin(textOf(result as Message)));
  expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "answer 3" });
});

test("after a refusal of two parts the turn is repeated for each of them", async () => {
  const talk = await openTalk("anthropic-messages", (request, index) => {
    if (bodyOf(request).includes(PIXEL)) return UNCLEAR;
    if (index === 1) return [call("session_status", {}, "toolu_1")];
    return bodyOf(request).includes("tool_use")
      ? refusal(400, "`tool_use` ids were found without `tool_result`")
      : "ok";
  });
  expect(await talk.say("look", PIXEL)).toMatchObject({ state: "ok", reply: "ok" });
  expect(notesIn(await talk.history())).toHaveLength(2);
});

test("a provider that refuses everything gets one repeat, and the next message is answered", async () => {
  let refuses = true;
  const talk = await openTalk("anthropic-messages", () => (refuses ? UNCLEAR : "back again"));
  const end = await talk.say("look", PIXEL);
  expect(end).toMatchObject({ state: "error", error: expect.stringContaining("could not process image") });
  expect(talk.served.requests).toHaveLength(2);
  refuses = false;
  expect(await talk.say("hello?")).toMatchObject({ state: "ok", reply: "back again" });
});

test("a note survives a compaction that keeps messages before it", async () => {
  const talk = await openTalk("anthropic-messages", (request, index) =>
    bodyOf(request).includes(PIXEL) ? UNCLEAR : `answer ${index}`,
  );
  await talk.say("x".repeat(20_000));
  expect(await talk.say("look", PIXEL)).toMatchObject({ state: "ok" });
  expect(await talk.say("/compact")).toMatchObject({ state: "ok" });
  const before = talk.served.requests.length;
  expect(await talk.say("and now?")).toMatchObject({ state: "ok" });
  expect(talk.served.requests).toHaveLength(before + 1);
  const [summary, ...kept] = talk.served.requests.at(-1)?.messages.flatMap(({ texts }) => texts) ?? [];
  expect(summary).toContain("[summary of the earlier messages");
  expect(kept).toContainEqual(expect.stringContaining(NOTE));
});
