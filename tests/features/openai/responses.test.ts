// The Responses API, requested with OpenAI's official client.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { heldPlay, openAi } from "../../gateway/clients/openai.ts";
import { openHouse, type Play } from "../../gateway/kit.ts";
import { whole } from "../../kit/live-text.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { allArchived, openAiSessions, PNG } from "./kit.ts";

const MODEL = "parley/main";

test("a response is the answer of one run, with its usage and the requested fields", async () => {
  const model = scriptedModel(() => "Good day");
  const house = await openHouse({ model });
  const answer = await openAi(house).responses.create({
    model: MODEL,
    instructions: "Be polite.",
    input: "Hello",
    reasoning: { effort: "low" },
    metadata: { ticket: "7" },
    store: true,
  });
  expect(answer.output_text).toBe("Good day");
  expect(answer).toMatchObject({
    object: "response",
    status: "completed",
    model: MODEL,
    error: null,
    instructions: "Be polite.",
    previous_response_id: null,
    reasoning: { effort: "low" },
    metadata: { ticket: "7" },
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  });
  expect(model.requests[0]?.system).toContain("Be polite.");
  expect(model.requests[0]?.thinking).toBe("low");
});

test("input items become history, instructions and input of the run", async () => {
  const model = scriptedModel(() => "Yes");
  const house = await openHouse({ model });
  const first = await openAi(house).responses.create({ model: MODEL, input: "One" });
  await openAi(house).responses.create({
    model: MODEL,
    input: [
      { role: "developer", content: "Be short." },
      { role: "user", content: "One" },
      ...(first.output as OpenAI.Responses.ResponseOutputMessage[]),
      {
        role: "user",
        content: [
          { type: "input_text", text: "Two" },
          { type: "input_image", image_url: PNG, detail: "auto" },
        ],
      },
    ],
  });
  expect(model.requests[1]?.system).toContain("Be short.");
  expect(model.requests[1]?.entries).toMatchObject([
    { role: "user", content: [{ text: "One" }] },
    { role: "assistant", content: [{ text: "Yes" }] },
    { role: "user", content: [{ text: "Two" }, { type: "image" }] },
  ]);
});

test("the events of a stream together give the response that the last event contains", async () => {
  const play: Play = (handle) => {
    handle.text(whole("Good day to"));
    return "Good day to you";
  };
  const house = await openHouse({ play });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  const stream = await openAi(house).responses.create({ model: MODEL, input: "Hello", stream: true });
  for await (const event of stream) events.push(event);
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
  const types = events.map((event) => event.type);
  expect(types.slice(0, 4)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
  ]);
  expect(types.slice(-4)).toEqual([
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const text = events
    .map((event) => (event.type === "response.output_text.delta" ? event.delta : ""))
    .join("");
  expect(text).toBe("Good day to you");
  const runner = openAi(house).responses.stream({ model: MODEL, input: "Hello" });
  const final = await runner.finalResponse();
  expect(final.output_text).toBe("Good day to you");
  expect(final.status).toBe("completed");
});

test("an answer that was cut off is an incomplete response, streamed or not", async () => {
  const house = await openHouse({ model: scriptedModel(() => ({ text: "Good d", stopReason: "length" })) });
  const request = { model: MODEL, input: "Hello" };
  const incomplete = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  expect(await openAi(house).responses.create(request)).toMatchObject(incomplete);
  expect(await openAi(house).responses.stream(request).finalResponse()).toMatchObject(incomplete);
});

test("previous_response_id continues the session of the earlier request, even if the session was archived in between", async () => {
  const model = scriptedModel((_, call) => `answer ${call}`);
  const house = await openHouse({ model });
  const client = openAi(house);
  const first = await client.responses.create({ model: MODEL, input: "One", instructions: "Only now." });
  await allArchived(house);
  const second = await client.responses.create({
    model: MODEL,
    input: "Two",
    previous_response_id: first.id,
  });
  expect(second.previous_response_id).toBe(first.id);
  expect(model.requests[1]?.system).not.toContain("Only now.");
  expect(model.requests[1]?.entries).toMatchObject([
    { content: [{ text: "One" }] },
    { content: [{ text: "answer 0" }] },
    { content: [{ text: "Two" }] },
  ]);
  await allArchived(house);
  expect(await openAiSessions(house)).toHaveLength(1);
  // Only the last response of a session can be continued.
  const branch = client.responses.create({ model: MODEL, input: "Three", previous_response_id: first.id });
  await expect(branch).rejects.toThrow(/no longer the last response of its session/);
});

test("previous_response_id and user must name the same session, and the model must be that session's agent", async () => {
  const house = await openHouse();
  const client = openAi(house);
  const anne = await client.responses.create({ model: MODEL, input: "One", user: "anne" });
  const more = { model: MODEL, input: "Two", previous_response_id: anne.id };
  expect((await client.responses.create({ ...more, user: "anne" })).output_text).toBe("echo Two");
  await expect(client.responses.create({ ...more, user: "bob" })).rejects.toThrow(OpenAI.ConflictError);
  await expect(client.responses.create({ ...more, model: "parley/writer" })).rejects.toThrow(
    OpenAI.ConflictError,
  );
  await expect(client.responses.create({ ...more, previous_response_id: "resp_nothing" })).rejects.toThrow(
    OpenAI.NotFoundError,
  );
  await expect(client.responses.create({ ...more, previous_response_id: "nothing" })).rejects.toThrow(
    /must begin with resp_/,
  );
});

test("if a run fails during its stream, the stream ends with a failed response", async () => {
  const house = await openHouse({ model: scriptedModel(() => ({ error: "the model is on fire" })) });
  const stream = await openAi(house).responses.create({ model: MODEL, input: "Hello", stream: true });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  expect(events.at(-1)).toMatchObject({
    type: "response.failed",
    response: {
      status: "failed",
      error: { code: "run_failed", message: expect.stringContaining("on fire") },
    },
  });
});

test("a response can be fetched by its id while it runs, after its end, and after it failed", async () => {
  const held = heldPlay();
  const house = await openHouse({ play: held.play });
  const client = openAi(house);
  const stream = await client.responses.create({
    model: MODEL,
    input: "Hello",
    instructions: "Be short.",
    stream: true,
  });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  const read = (async () => {
    for await (const event of stream) events.push(event);
  })();
  const { runId } = (await held.begun).run;
  expect(await client.responses.retrieve(`resp_${runId}`)).toMatchObject({
    status: "in_progress",
    output: [],
    instructions: "Be short.",
  });
  held.end("Good day");
  await read;
  const last = events.at(-1);
  const completed = last?.type === "response.completed" ? last.response : undefined;
  expect(await client.responses.retrieve(`resp_${runId}`)).toEqual({ ...completed, output_text: "Good day" });
  await allArchived(house);

  const failing = await openHouse({ model: scriptedModel(() => ({ error: "the model is on fire" })) });
  const { headers } = await openAi(failing)
    .responses.create({ model: MODEL, input: "Hello" })
    .then(
      () => expect.unreachable(),
      (error: InstanceType<typeof OpenAI.APIError>) => error,
    );
  const failed = await openAi(failing).responses.retrieve(`resp_${headers?.get("x-request-id")}`);
  expect(failed).toMatchObject({
    status: "failed",
    error: { code: "run_failed", message: expect.stringContaining("on fire") },
  });
});

test("the response of another token, an unknown id and a run that no client requested are all not found", async () => {
  const stranger = { token: "another-token-of-tests", role: "operator", scopes: ["operator.admin"] } as const;
  const house = await openHouse({ gateway: { tokens: [stranger] } });
  const { id } = await openAi(house).responses.create({ model: MODEL, input: "One", user: "anne" });
  const other = openAi(house, { apiKey: stranger.token });
  const answers = await Promise.all(
    [id, "resp_nothing", id.slice("resp_".length)].map((one) =>
      other.responses.retrieve(one).then(
        () => "found",
        ({ status, error }: InstanceType<typeof OpenAI.APIError>) => ({ status, error }),
      ),
    ),
  );
  expect(answers[0]).toMatchObject({ status: 404, error: { code: "run_not_found", param: "response_id" } });
  expect(answers[1]).toEqual(answers[0]);
  expect(answers[2]).toEqual(answers[0]);
  await expect(openAi(house).responses.retrieve(id, { stream: true })).rejects.toThrow(/cannot be streamed/);
  expect((await openAi(house).responses.retrieve(id)).output_text).toBe("echo One");
});
