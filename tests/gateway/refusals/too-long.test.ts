// Conversations that a provider finds too long: they are shortened and answered, and no failure needs a command.

import { expect, test } from "vitest";
import { WORDINGS } from "../../agent/refusals/wordings.ts";
import type { Script } from "../../kit/model-server/server.ts";
import { httpError, text } from "../../kit/model-server/steps.ts";
import { asksSummary, bodyOf, openTalk, PIXEL, refusal, type Talk } from "./kit.ts";

const LONG = "x".repeat(2_000);

/** Reads the entries of the main session, with its compactions. */
async function summariesOf({ house }: Talk): Promise<string[]> {
  const rows = await house.store.db
    .selectFrom("messages")
    .select("entry_json")
    .where("role", "=", "compaction")
    .orderBy("seq")
    .execute();
  return rows.map((row) => (JSON.parse(row.entry_json) as { summary: string }).summary);
}

test("whatever the words of an error about the length, the conversation is compacted and answered", async () => {
  let refused = "";
  const script: Script = (request) => {
    if (asksSummary(request) || request.system.startsWith("You condense")) return "they counted";
    const wording = WORDINGS.length?.find(({ server }) => request.lastUserText.startsWith(`${server}: `));
    if (wording?.status === undefined || wording.server === refused) return "ok";
    refused = wording.server;
    return refusal(wording.status, wording.words);
  };
  const talk = await openTalk("openai-completions", script);
  for (let at = 0; at < 5; at += 1) await talk.say(`${at} ${LONG}`);
  const wordings = (WORDINGS.length ?? []).filter(({ status }) => status !== undefined);
  const ends: unknown[] = [];
  for (const { server } of wordings) {
    const { state, reply } = await talk.say(`${server}: ${LONG}`);
    ends.push({ server, state, reply });
  }
  expect(ends).toEqual(wordings.map(({ server }) => ({ server, state: "ok", reply: "ok" })));
  expect(await summariesOf(talk)).toHaveLength(wordings.length);
});

/** Refuses requests that are more than `charsMax` longer than the first one. */
function smallWindow(charsMax: number): Script {
  let first = 0;
  return (request, index) => {
    const { length } = bodyOf(request);
    first ||= length;
    if (request.messages.length > 0 && index > 0 && length > first + charsMax)
      return httpError(400, "prompt is too long: 213462 tokens > 200000 maximum");
    return request.system.startsWith("You condense") ? "they counted" : "answered";
  };
}

test("a message that is longer than the window is answered in part, and the next one, too", async () => {
  const talk = await openTalk("anthropic-messages", smallWindow(20_000));
  await talk.say("hi");
  expect(await talk.say(`begin ${"word ".repeat(30_000)} end`)).toMatchObject({
    state: "ok",
    reply: "answered",
  });
  expect(bodyOf(talk.served.requests.at(-1))).toMatch(/begin word .*characters left out.* word {2}end/);
  expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "answered" });
});

test("a conversation far longer than the real window of a server is answered at the next message", async () => {
  let isSmall = false;
  const small = smallWindow(20_000);
  const script: Script = (request, index) => (isSmall || index === 0 ? small(request, index) : "answered");
  const talk = await openTalk("anthropic-messages", script, { contextWindow: 1_000_000 });
  await talk.say("hi");
  for (let at = 0; at < 60; at += 1) await talk.say(`${at} ${LONG}`);
  isSmall = true;
  expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "answered" });
});

test.each([
  ["refused", httpError(400, "The response was filtered by our content policy")],
  ["too long", httpError(413, "Request Entity Too Large")],
  ["empty", [text("", 1)]],
])("C3: if the request for a summary is %s, an excerpt replaces it", async (_, answer) => {
  let isFull = true;
  const talk = await openTalk("anthropic-messages", (request, index) => {
    if (request.system.startsWith("You condense")) return answer;
    if (index < 4 || !isFull) return "answered";
    isFull = false;
    return httpError(413, "Request Entity Too Large");
  });
  for (let at = 0; at < 4; at += 1) await talk.say(`${at} ${LONG}`);
  expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "answered" });
  expect(await summariesOf(talk)).toEqual([expect.stringContaining("The model wrote no summary.")]);
  expect(bodyOf(talk.served.requests.at(-1))).toContain("0 xxx");
});

test("a request whose pictures are too large for the server is answered without them", async () => {
  const talk = await openTalk("openai-completions", (request) =>
    bodyOf(request).includes(PIXEL) ? httpError(413, "Request Entity Too Large") : "answered",
  );
  expect(await talk.say("look", PIXEL)).toMatchObject({ state: "ok", reply: "answered" });
  expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "answered" });
  expect(talk.served.requests).toHaveLength(3);
});

test("after an answer that was too large, the next message is answered", async () => {
  const limits = { maxAnswerBytes: 10_000 };
  const script: Script = (_, index) => (index === 0 ? [text("z".repeat(60_000), 40)] : "short");
  const talk = await openTalk("anthropic-messages", script, {}, limits);
  expect(await talk.say("go")).toMatchObject({ state: "error", code: "answer_too_large" });
  await talk.restart();
  expect(await talk.say("and now?")).toMatchObject({ state: "ok", reply: "short" });
});

test("an error about a rate, or about the limit of the output, is no reason to compact", async () => {
  const errors = [
    httpError(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"),
    httpError(400, "Rate limit reached: input tokens per minute exceed the maximum of 30000 for this model"),
  ];
  const talk = await openTalk("openai-completions", (_, index) => errors[index - 3] ?? "ok");
  for (let at = 0; at < 3; at += 1) await talk.say(`${at} ${LONG}`);
  expect(await talk.say("one")).toMatchObject({ state: "error" });
  expect(await talk.say("two")).toMatchObject({ state: "error" });
  expect(await talk.say("three")).toMatchObject({ state: "ok" });
  expect(await summariesOf(talk)).toEqual([]);
  expect(talk.served.requests).toHaveLength(6);
});
