// Conversations of OpenAI's API: sessions that a client creates, fills, continues, lists and deletes.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { heldPlay, openAi } from "../../gateway/clients/openai.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { openAiSessions } from "./kit.ts";

const MODEL = "parley/main";
const hello = (content: string) => ({ type: "message" as const, role: "user" as const, content });
const textOf = (item: { type: string; content?: unknown }) =>
  (item.content as { text: string }[] | undefined)?.map(({ text }) => text).join() ?? item.type;

test("a conversation keeps items and answers, and its responses are the items that it lists", async () => {
  const model = scriptedModel((_, call) => `answer ${call}`);
  const house = await openHouse({ model });
  const { conversations, responses } = openAi(house);
  const items = [hello("My name is Anne."), { ...hello("Hello Anne."), role: "assistant" as const }];
  const created = await conversations.create({ items, metadata: { ticket: "7" } });
  expect(created).toMatchObject({ object: "conversation", metadata: { ticket: "7" } });
  const first = await responses.create({ model: MODEL, input: "Who am I?", conversation: created.id });
  expect(first.conversation).toEqual({ id: created.id });
  expect(model.requests[0]?.entries).toMatchObject([
    { role: "user", content: [{ text: "My name is Anne." }] },
    { role: "assistant", content: [{ text: "Hello Anne." }] },
    { role: "user", content: [{ text: "Who am I?" }] },
  ]);
  const conversation = { id: created.id };
  const second = await responses.create({ model: MODEL, input: "Again", conversation, user: "anne" });
  expect(model.requests[1]?.entries).toHaveLength(5);
  expect(await responses.retrieve(second.id)).toMatchObject({ conversation, output_text: "answer 1" });
  const all = [];
  for await (const item of conversations.items.list(created.id, { limit: 2 })) all.push(item);
  const texts = ["answer 1", "Again", "answer 0", "Who am I?", "Hello Anne.", "My name is Anne."];
  expect(all.map(textOf)).toEqual(texts);
  const page = await conversations.items.list(created.id, { order: "asc", limit: 3 });
  expect([page.data.map(textOf), page.has_more]).toEqual([texts.toReversed().slice(0, 3), true]);
  expect(all[0]?.id).toBe(second.output[0]?.id);
  for (const { id = "" } of all as { id?: string }[]) {
    const one = await conversations.items.retrieve(id, { conversation_id: created.id });
    expect(one).toEqual(all.find((item) => (item as { id?: string }).id === id));
  }
  expect(await openAiSessions(house)).toMatchObject([{ agentId: "main" }]);
});

test("metadata can be changed, and ends with the session", async () => {
  const house = await openHouse();
  const { conversations } = openAi(house);
  const { id, created_at } = await conversations.create();
  expect(await conversations.retrieve(id)).toEqual({ id, object: "conversation", created_at, metadata: {} });
  const metadata = { ticket: "8" };
  expect(await conversations.update(id, { metadata })).toMatchObject({ id, metadata });
  expect(await conversations.retrieve(id)).toMatchObject({ metadata });
  await expect(conversations.update(id, { metadata: { ticket: 8 as never } })).rejects.toThrow(/metadata/);
  const long = conversations.update(id, { metadata: { ticket: "x".repeat(16_384) } });
  await expect(long).rejects.toThrow(/at most 16384 characters/);
  const headers = { authorization: `Bearer ${TOKEN}` };
  for (const body of ["{bad", "[]", "{}"]) {
    const request = { method: "POST", headers, body };
    expect((await fetch(`${house.http}/v1/conversations/${id}`, request)).status, body).toBe(400);
    if (body === "{}") continue;
    expect((await fetch(`${house.http}/v1/conversations`, request)).status, body).toBe(400);
  }
  expect(await openAiSessions(house)).toHaveLength(1);
  const [session] = await openAiSessions(house);
  await (await house.client()).request("sessions.delete", { key: session?.key ?? "" });
  await expect(conversations.retrieve(id)).rejects.toThrow(OpenAI.NotFoundError);
  expect(await house.store.db.selectFrom("conversation_metadata").selectAll().execute()).toEqual([]);
});

test("items are added between responses: texts, and calls with their results", async () => {
  const model = scriptedModel(() => "It rains.");
  const { conversations, responses } = openAi(await openHouse({ model }));
  const { id } = await conversations.create({ items: [hello("How is the weather?")] });
  const call = { type: "function_call" as const, call_id: "c1", name: "weather", arguments: "{}" };
  const items = [call, { type: "function_call_output" as const, call_id: "c1", output: "rain" }];
  const added = await conversations.items.create(id, { items });
  expect(added.data).toMatchObject([
    { ...call, id: expect.stringMatching(/^fc_/) },
    { ...items[1], id: expect.stringMatching(/^fco_/) },
  ]);
  await responses.create({ model: MODEL, input: "So?", conversation: id });
  expect(model.requests[0]?.entries.map((entry) => "role" in entry && entry.role)).toEqual([
    "user",
    "assistant",
    "toolResult",
    "user",
  ]);
  const listed = await conversations.items.list(id, { order: "asc" });
  expect(listed.data.slice(1, 3)).toEqual(added.data);
  const wrong = (more: unknown[]) => conversations.items.create(id, { items: more as never });
  await expect(wrong([{ ...items[1], call_id: "c2" }])).rejects.toThrow(/there is no open call "c2"/);
  await expect(wrong([{ ...hello("Be brief"), role: "system" }])).rejects.toThrow(/instructions/);
  await expect(wrong([])).rejects.toThrow(/items must be/);
  await expect(wrong(Array(21).fill(hello("x")))).rejects.toThrow(/at most 20/);
  await expect(wrong([hello("")])).rejects.toThrow(/must not be empty/);
});

test("calls of a response are answered in its conversation", async () => {
  const answers = [{ toolCalls: [{ name: "weather" }] }, "It rains."];
  const model = scriptedModel((_, at) => answers[at] ?? "no more");
  const { conversations, responses } = openAi(await openHouse({ model }));
  const { id } = await conversations.create();
  const tools = [{ type: "function" as const, name: "weather", parameters: {}, strict: false }];
  const asked = { model: MODEL, tools, conversation: id };
  const [call] = (await responses.create({ ...asked, input: "How is the weather?" })).output;
  const call_id = call?.type === "function_call" ? call.call_id : "";
  const input = [{ type: "function_call_output" as const, call_id, output: "rain" }];
  expect((await responses.create({ ...asked, input })).output_text).toBe("It rains.");
  const { data } = await conversations.items.list(id, { order: "asc" });
  expect(data.map(({ type }) => type)).toEqual([
    "message",
    "function_call",
    "function_call_output",
    "message",
  ]);
});

test("while a response runs, items can't be added; its stream names the conversation", async () => {
  const held = heldPlay();
  const { conversations, responses } = openAi(await openHouse({ play: held.play }));
  const { id } = await conversations.create();
  const stream = await responses.create({ model: MODEL, input: "Hello", conversation: id, stream: true });
  await held.begun;
  const added = conversations.items.create(id, { items: [hello("More")] });
  await expect(added).rejects.toThrow(OpenAI.ConflictError);
  held.end("Good day");
  const named = [];
  for await (const event of stream) {
    if (event.type === "response.created" || event.type === "response.completed") named.push(event.response);
  }
  expect(named.map(({ conversation }) => conversation)).toEqual([{ id }, { id }]);
  await conversations.items.create(id, { items: [hello("More")] });
});

test("an empty conversation takes the agent of its first response; later ones have this agent", async () => {
  const house = await openHouse();
  const { conversations, responses } = openAi(house);
  const { id } = await conversations.create({ metadata: { ticket: "7" } });
  const asked = { input: "Hello", conversation: id };
  await responses.create({ ...asked, model: "parley/writer" });
  await responses.create({ ...asked, model: "parley/writer" });
  await expect(responses.create({ ...asked, model: MODEL })).rejects.toThrow(OpenAI.ConflictError);
  expect(await openAiSessions(house)).toMatchObject([{ agentId: "writer" }]);
  expect(await conversations.retrieve(id)).toMatchObject({ metadata: { ticket: "7" } });
  const chosen = await conversations.create({ model: "parley/writer", items: [hello("Hi")] } as object);
  await responses.create({ ...asked, model: "parley/writer", conversation: chosen.id });
});

const OTHER = { token: "another-token-of-tests", role: "operator", scopes: ["operator.write"] } as const;
const READER = { token: "reading-token-of-tests", role: "operator", scopes: ["operator.read"] } as const;

test("a deleted, reset or unknown conversation, and one of another token, is not found by any request", async () => {
  const house = await openHouse({ gateway: { tokens: [OTHER, READER] } });
  const own = openAi(house);
  const other = openAi(house, { apiKey: OTHER.token });
  const made = await Promise.all([1, 2, 3].map(() => own.conversations.create({ items: [hello("Hi")] })));
  const [deleted = "", reset = "", kept = ""] = made.map(({ id }) => id);
  expect(await own.conversations.delete(deleted)).toEqual({
    ...{ id: deleted, object: "conversation.deleted", deleted: true },
  });
  const sessions = await openAiSessions(house);
  const key = sessions.find(({ sessionId }) => reset.endsWith(sessionId))?.key ?? "";
  await (await house.client()).request("sessions.reset", { key });
  const main = (await own.responses.create({ model: MODEL, input: "x", user: "u" }).withResponse()).response;
  const userKey = main.headers.get("x-parley-session-key");
  const user = (await openAiSessions(house)).find((session) => session.key === userKey);
  const missing = `conv_${user?.sessionId}`;
  for (const [client, id] of [
    [own, deleted],
    [own, reset],
    [own, "conv_x"],
    [own, missing],
    [own, "x"],
    [other, kept],
  ] as const) {
    const { conversations, responses } = client;
    const requests = [
      () => conversations.retrieve(id),
      () => conversations.update(id, { metadata: {} }),
      () => conversations.delete(id),
      () => conversations.items.list(id),
      () => conversations.items.create(id, { items: [hello("Hi")] }),
      () => conversations.items.retrieve("msg_x", { conversation_id: id }),
      () => responses.create({ model: MODEL, input: "x", conversation: id }),
    ];
    for (const [at, request] of requests.entries())
      await expect(request(), `${id} ${at}`).rejects.toThrow(OpenAI.NotFoundError);
  }
  const reader = openAi(house, { apiKey: READER.token });
  await expect(reader.conversations.create()).rejects.toThrow(OpenAI.PermissionDeniedError);
  await expect(own.conversations.items.retrieve("msg_x", { conversation_id: kept })).rejects.toThrow(
    /no item/,
  );
});

test("items of a response that is not stored can't be fetched; no item can be deleted alone", async () => {
  const { conversations, responses } = openAi(await openHouse());
  const { id } = await conversations.create({ items: [hello("Hi")] });
  const hidden = await responses.create({ model: MODEL, input: "Secret", conversation: id, store: false });
  const { data } = await conversations.items.list(id);
  expect(data.map(textOf)).toEqual(["Hi"]);
  const at = { conversation_id: id };
  await expect(conversations.items.retrieve(hidden.output[0]?.id ?? "", at)).rejects.toThrow(/no item/);
  const [item] = data as { id: string }[];
  await expect(conversations.items.delete(item?.id ?? "", at)).rejects.toThrow(/a transcript only grows/);
  const asked = { model: MODEL, input: "x", conversation: id };
  const previous = responses.create({ ...asked, previous_response_id: hidden.id });
  await expect(previous).rejects.toThrow(OpenAI.BadRequestError);
  const named = responses.create(asked, { headers: { "x-parley-session-key": "main" } });
  await expect(named).rejects.toThrow(OpenAI.BadRequestError);
  await expect(responses.create({ ...asked, conversation: 7 as never })).rejects.toThrow(/conversation/);
  await expect(conversations.items.list(id, { limit: 0 })).rejects.toThrow(/1 to 100/);
  await expect(conversations.items.list(id, { after: "msg_x" })).rejects.toThrow(/after/);
});

test("with an Idempotency-Key, a conversation is created once, and its items are added once", async () => {
  const house = await openHouse();
  const { conversations } = openAi(house);
  const keyed = (key: string) => ({ headers: { "Idempotency-Key": key } });
  const create = () => conversations.create({ items: [hello("Hi")] }, keyed("one"));
  const [first, second] = [await create(), await create()];
  expect(second).toEqual(first);
  const add = () => conversations.items.create(first.id, { items: [hello("More")] }, keyed("two"));
  expect((await add()).data).toEqual((await add()).data);
  expect((await conversations.items.list(first.id)).data).toHaveLength(2);
  expect(await openAiSessions(house)).toHaveLength(1);
});
