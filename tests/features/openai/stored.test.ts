// Responses in the background and later: fetched, cancelled, deleted, listed, or not stored at all.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { heldPlay, openAi } from "../../gateway/clients/openai.ts";
import { openHouse } from "../../gateway/kit.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";

const MODEL = "parley/main";
const TOOLS = [{ type: "function" as const, name: "weather", parameters: {}, strict: false }];

test("a background response is answered at once, continues alone, and can be fetched", async () => {
  const held = heldPlay();
  const client = openAi(await openHouse({ play: held.play }));
  const begun = await client.responses.create({
    model: MODEL,
    input: "Hello",
    background: true,
    metadata: { ticket: "7" },
  });
  expect(["queued", "in_progress"]).toContain(begun.status);
  expect(begun).toMatchObject({ background: true, output: [], metadata: { ticket: "7" } });
  await held.begun;
  expect(await client.responses.retrieve(begun.id)).toMatchObject({
    status: "in_progress",
    background: true,
  });
  held.end("Good day");
  await until(async () => (await client.responses.retrieve(begun.id)).status === "completed");
  expect((await client.responses.retrieve(begun.id)).output_text).toBe("Good day");
  // An ended response stays as it is.
  expect((await client.responses.cancel(begun.id)).status).toBe("completed");
});

test("a background stream continues after its client has left, and can be cancelled", async () => {
  const held = heldPlay();
  const client = openAi(await openHouse({ play: held.play }));
  const stream = await client.responses.create({
    model: MODEL,
    input: "Hello",
    background: true,
    stream: true,
  });
  const { runId } = (await held.begun).run;
  stream.controller.abort();
  const id = `resp_${runId}`;
  expect((await client.responses.retrieve(id)).status).toBe("in_progress");
  expect((await client.responses.cancel(id)).status).toBe("cancelled");
  expect((await client.responses.retrieve(id)).status).toBe("cancelled");
});

test("a deleted response, and one that is not stored, can't be fetched, cancelled or continued", async () => {
  const client = openAi(await openHouse());
  const stored = await client.responses.create({ model: MODEL, input: "One" });
  await client.responses.delete(stored.id);
  const unstored = await client.responses.create({ model: MODEL, input: "One", store: false });
  expect([stored, unstored]).toMatchObject([{ store: true }, { store: false }]);
  for (const { id } of [stored, unstored]) {
    await expect(client.responses.retrieve(id)).rejects.toThrow(OpenAI.NotFoundError);
    await expect(client.responses.cancel(id)).rejects.toThrow(OpenAI.NotFoundError);
    await expect(client.responses.delete(id)).rejects.toThrow(OpenAI.NotFoundError);
    await expect(client.responses.inputItems.list(id)).rejects.toThrow(OpenAI.NotFoundError);
    const next = client.responses.create({ model: MODEL, input: "Two", previous_response_id: id });
    await expect(next).rejects.toThrow(/was deleted, or requested with store: false/);
  }
  const both = client.responses.create({ model: MODEL, input: "One", store: false, background: true });
  await expect(both).rejects.toThrow(/background needs store/);
});

test("calls of a response that is not stored are answered as any others; the input items are what it began with", async () => {
  const model = scriptedModel((_, at) => (at === 0 ? { toolCalls: [{ name: "weather" }] } : "It rains."));
  const client = openAi(await openHouse({ model }));
  const asked = {
    model: MODEL,
    tools: TOOLS,
    store: false,
    include: ["reasoning.encrypted_content" as const],
  };
  const hello = { role: "user" as const, content: "How is the weather?" };
  const { output } = await client.responses.create({ ...asked, input: [hello] });
  const [call] = output;
  const call_id = call?.type === "function_call" ? call.call_id : "";
  const result = { type: "function_call_output" as const, call_id, output: "rain" };
  const input = [hello, call, result, { role: "user", content: "In one word." }];
  const done = await client.responses.create({
    ...asked,
    store: true,
    input: input as OpenAI.Responses.ResponseInput,
  });
  expect(done.output_text).toBe("It rains.");
  const items = [
    { type: "message", role: "user", content: [{ type: "input_text", text: "In one word." }] },
    { type: "function_call_output", call_id, output: "rain" },
  ];
  const page = await client.responses.inputItems.list(done.id, { limit: 1 });
  expect([page.data, page.has_more]).toMatchObject([[items[0]], true]);
  const all = [];
  for await (const item of client.responses.inputItems.list(done.id, { limit: 1 })) all.push(item);
  expect(all).toMatchObject(items);
  const other = await client.responses.inputItems.list(done.id, { order: "asc" });
  expect(other.data).toMatchObject(items.toReversed());
  await expect(client.responses.inputItems.list(done.id, { limit: 0 })).rejects.toThrow(/1 to 100/);
  const after = client.responses.inputItems.list(done.id, { after: "in_unknown" });
  await expect(after).rejects.toThrow(/after must be the id of an input item/);
  const wrong = client.responses.inputItems.list(done.id, { order: "up" as "asc" });
  await expect(wrong).rejects.toThrow(/order must be asc or desc/);
});

test("a response that was deleted, or is not stored, gives nothing to a later request; its results still come", async () => {
  const answers = ["Secret.", { toolCalls: [{ name: "weather" }] }, "It rains."];
  const stranger = { token: "another-token-of-tests", role: "operator", scopes: ["operator.write"] } as const;
  const model = scriptedModel((_, at) => answers[at] ?? "no more");
  const house = await openHouse({
    model,
    gateway: { tokens: [{ ...stranger, sessions: ["agent:main:x"] }] },
  });
  const { responses } = openAi(house);
  const text = await responses.create({ model: MODEL, input: "One", store: false });
  const calls = await responses.create({ model: MODEL, input: "Two", tools: TOOLS });
  await responses.delete(calls.id);
  const [call] = calls.output;
  const call_id = call?.type === "function_call" ? call.call_id : "";
  const result = { type: "function_call_output" as const, call_id, output: "rain" };
  const asked = { model: MODEL, tools: TOOLS };
  for (const id of [text.output[0]?.id ?? "", call?.id ?? ""]) {
    const input = [
      { type: "item_reference" as const, id },
      { role: "user" as const, content: "Go" },
    ];
    await expect(responses.create({ ...asked, input })).rejects.toThrow(/there is no item/);
  }
  const named = responses.create({ ...asked, input: [result], previous_response_id: calls.id });
  await expect(named).rejects.toThrow(/was deleted, or requested with store: false/);
  const foreign = openAi(house, { apiKey: stranger.token }).responses.create({
    ...asked,
    input: "Go",
    previous_response_id: calls.id,
  });
  await expect(foreign).rejects.toThrow(/there is no response/);
  const input = [{ role: "user" as const, content: "Two" }, call, result];
  const done = await responses.create({ ...asked, input: input as OpenAI.Responses.ResponseInput });
  expect(done.output_text).toBe("It rains.");
});
