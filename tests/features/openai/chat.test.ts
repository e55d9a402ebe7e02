// Chat completions, requested with OpenAI's official client.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { openAi, said } from "../../gateway/clients/openai.ts";
import { openHouse, type Play } from "../../gateway/kit.ts";
import { whole } from "../../kit/live-text.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";
import { allArchived, openAiSessions, PNG, runStates } from "./kit.ts";

const MODEL = "parley/main";

async function collected(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
  return { chunks, text };
}

test("agents are listed as models, and each is accepted under both of its names", async () => {
  const house = await openHouse();
  const client = openAi(house);
  const { data } = await client.models.list();
  expect(data.map((model) => model.id)).toEqual(["parley/main", "parley/research", "parley/writer"]);
  expect(await client.models.retrieve("parley/research")).toMatchObject({
    object: "model",
    owned_by: "parley",
  });
  expect(await client.models.retrieve("agent:writer")).toMatchObject({ id: "parley/writer" });
  await expect(client.models.retrieve("parley/nobody")).rejects.toThrow(OpenAI.NotFoundError);
});

test("a completion is the answer of one run, with its usage and id", async () => {
  const house = await openHouse({ model: scriptedModel(() => "Good day") });
  const done = await openAi(house).chat.completions.create({ model: MODEL, messages: [said("Hello")] });
  expect(done).toMatchObject({
    object: "chat.completion",
    model: MODEL,
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Good day" } }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  });
  expect(done.id).toBe(`chatcmpl-${done._request_id}`);
  // An hour allows for a clock that is set during the test.
  expect(Math.abs(done.created - Date.now() / 1000)).toBeLessThan(3600);
});

test("an answer that the model's output limit cut off is continued once, and marked if that is cut, too", async () => {
  const house = await openHouse({ model: scriptedModel(() => ({ text: "Good d", stopReason: "length" })) });
  const request = { model: MODEL, messages: [said("Hello")] };
  const done = await openAi(house).chat.completions.create(request);
  expect(done.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "Good dGood d" } });
  const { chunks } = await collected(
    await openAi(house).chat.completions.create({ ...request, stream: true }),
  );
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("length");
});

test("a skip token is no content, whole or in pieces", async () => {
  const house = await openHouse({ model: scriptedModel(() => "NO_REPLY") });
  const request = { model: MODEL, messages: [said("Hello")] };
  const done = await openAi(house).chat.completions.create(request);
  expect(done.choices[0]?.message.content).toBe("");
  const { text } = await collected(await openAi(house).chat.completions.create({ ...request, stream: true }));
  expect(text).toBe("");
});

test("the pieces of a stream are the whole answer; usage is included if requested", async () => {
  const play: Play = (handle) => {
    handle.text(whole("Good day to"));
    return "Good day to you";
  };
  const house = await openHouse({ play });
  const request = { model: MODEL, messages: [said("Hello")], stream: true as const };
  const { chunks, text } = await collected(await openAi(house).chat.completions.create(request));
  expect(text).toBe("Good day to you");
  expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  expect(chunks.every((chunk) => chunk.usage === undefined)).toBe(true);
  const counted = { ...request, stream_options: { include_usage: true } };
  const second = await collected(await openAi(house).chat.completions.create(counted));
  expect(second.chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 5 } });
  expect(second.chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
});

test("the official client builds the same message from a stream", async () => {
  const house = await openHouse({ model: scriptedModel(() => "One two three") });
  const runner = openAi(house).chat.completions.stream({ model: MODEL, messages: [said("Count")] });
  expect(await runner.finalContent()).toBe("One two three");
});

test("a stream also contains the text before a tool call, but a plain answer contains only the last text", async () => {
  const script = (_: unknown, call: number) =>
    call % 2 === 0
      ? { text: "I look around.", toolCalls: [{ name: "agents_list" }] }
      : { text: "There are three." };
  const house = await openHouse({ model: scriptedModel(script) });
  const request = { model: MODEL, messages: [said("Who is there?")] };
  const done = await openAi(house).chat.completions.create(request);
  expect(done.choices[0]?.message.content).toBe("There are three.");
  expect(done.usage?.total_tokens).toBe(30);
  const { text } = await collected(await openAi(house).chat.completions.create({ ...request, stream: true }));
  expect(text).toBe("I look around.\n\nThere are three.");
});

test("instructions, history, names, pictures and effort are passed to the run", async () => {
  const model = scriptedModel(() => "Yes");
  const house = await openHouse({ model });
  await openAi(house).chat.completions.create({
    model: "agent:main",
    reasoning_effort: "high",
    temperature: 0.2,
    messages: [
      { role: "system", content: "You speak like a pirate." },
      { role: "user", name: "anne", content: "First question" },
      { role: "assistant", content: "First answer" },
      { role: "developer", content: [{ type: "text", text: "Be short." }] },
      { role: "user", content: "And" },
      {
        role: "user",
        name: "bob",
        content: [
          { type: "text", text: "what is this?" },
          { type: "image_url", image_url: { url: PNG } },
        ],
      },
    ],
  });
  const [request] = model.requests;
  expect(request?.system).toContain("You speak like a pirate.\n\nBe short.");
  expect(request?.thinking).toBe("high");
  expect(request?.entries).toMatchObject([
    { role: "user", senderName: "anne", content: [{ text: "First question" }] },
    { role: "assistant", stopReason: "injected", content: [{ text: "First answer" }] },
    {
      role: "user",
      senderName: "bob",
      content: [{ text: "And\n\nwhat is this?" }, { type: "image", mimeType: "image/png" }],
    },
  ]);
  expect(JSON.stringify(request?.entries)).not.toContain("provenance");
});

test("a request without a session name gets its own session, which is archived afterwards, and an event reports that", async () => {
  const house = await openHouse();
  const archived: string[] = [];
  house.engine.bus.subscribe((event) => {
    if (event.kind === "session" && event.archived === true) archived.push(event.sessionKey);
  });
  await openAi(house).chat.completions.create({ model: MODEL, messages: [said("one")] });
  await openAi(house).chat.completions.create({ model: MODEL, messages: [said("two")] });
  await allArchived(house);
  const sessions = await openAiSessions(house);
  expect(sessions).toHaveLength(2);
  for (const { key } of sessions) expect(key).toMatch(/^agent:main:openai:[0-9a-f]{32}$/);
  await until(async () => archived.length === sessions.length);
  expect(archived.sort()).toEqual(sessions.map(({ key }) => key).sort());
});

test("the session of a request without a session name is archived only after its last sub-agent has ended", async () => {
  const release = Promise.withResolvers<string>();
  const model = scriptedModel(({ system, entries }) => {
    if (system.includes("Sub-agent announce step")) return "Result: found";
    if (system.includes("Sub-agent context")) return release.promise;
    const isFirst = entries.length === 1;
    return isFirst
      ? { toolCalls: [{ name: "sessions_spawn", arguments: { task: "look" } }] }
      : "It is on its way.";
  });
  const house = await openHouse({ model });
  const client = openAi(house);
  const done = await client.chat.completions.create({ model: MODEL, messages: [said("Find it")] });
  expect(done.choices[0]?.message.content).toBe("It is on its way.");
  const [session] = await openAiSessions(house);
  expect(session?.archivedAt).toBeUndefined();
  release.resolve("found it");
  await allArchived(house);
});

test("a send from a one-request session gets only the first answer, because nobody reads the session later", async () => {
  const model = scriptedModel(({ system, entries }) => {
    if (system.includes("Agent-to-agent message context")) return "Forty-two";
    const isFirst = entries.length === 1;
    const args = { sessionKey: "agent:research:main", message: "What is it?" };
    return isFirst ? { toolCalls: [{ name: "sessions_send", arguments: args }] } : "It is forty-two.";
  });
  const agentToAgent = { maxPingPongTurns: 3, maxHops: 16, maxChainRuns: 200 };
  const house = await openHouse({ model, choices: { session: { agentToAgent } } });
  const done = await openAi(house).chat.completions.create({ model: MODEL, messages: [said("Ask")] });
  expect(done.choices[0]?.message.content).toBe("It is forty-two.");
  await allArchived(house);
  const [session] = await openAiSessions(house);
  expect(await runStates(house, session?.key ?? "")).toEqual(["ok"]);
  expect(await runStates(house, "agent:research:main")).toEqual(["ok"]);
});

test("text that looks like a credential is redacted, streamed or not", async () => {
  const key = "sk-abcdefghij0123456789abcdefghij";
  const play: Play = (handle) => {
    handle.text(whole(`It is ${key.slice(0, 12)}`));
    return `It is ${key} indeed`;
  };
  const house = await openHouse({ play });
  const request = { model: MODEL, messages: [said("Hello")] };
  const done = await openAi(house).chat.completions.create(request);
  expect(done.choices[0]?.message.content).toBe("It is [redacted] indeed");
  const { text } = await collected(await openAi(house).chat.completions.create({ ...request, stream: true }));
  expect(text).toBe("It is [redacted] indeed");
});
