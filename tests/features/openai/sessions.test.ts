// The session in which a request of an OpenAI client runs, its rights, and repeated requests.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { heldPlay, openAi, said } from "../../gateway/clients/openai.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { allArchived, openAiSessions, runStates } from "./kit.ts";

const MODEL = "parley/main";
const KEY_HEADER = "x-parley-session-key";

test("a user has one session with its own history, and only new messages are added to it", async () => {
  const model = scriptedModel((_, call) => `answer ${call}`);
  const house = await openHouse({ model });
  const client = openAi(house);
  await client.chat.completions.create({ model: MODEL, user: "anne", messages: [said("One")] });
  await client.chat.completions.create({
    model: MODEL,
    user: "anne",
    messages: [said("One, told otherwise"), { role: "assistant", content: "never said" }, said("Two")],
  });
  expect(model.requests[1]?.entries).toMatchObject([
    { role: "user", content: [{ text: "One" }] },
    { role: "assistant", content: [{ text: "answer 0" }] },
    { role: "user", content: [{ text: "Two" }] },
  ]);
  await client.chat.completions.create({ model: MODEL, user: "bob", messages: [said("Three")] });
  await client.chat.completions.create({ model: "parley/writer", user: "anne", messages: [said("Four")] });
  const sessions = await openAiSessions(house);
  expect(sessions.map(({ label, agentId, archivedAt }) => ({ label, agentId, archivedAt }))).toEqual([
    { label: "anne", agentId: "main", archivedAt: undefined },
    { label: "bob", agentId: "main", archivedAt: undefined },
    { label: "anne", agentId: "writer", archivedAt: undefined },
  ]);
});

const HOSTILE = [
  "agent:main:main",
  "../../etc",
  "a\u0000b\u202e",
  "x".repeat(512),
  "ünïcode 🙂",
  "main",
  " ",
];
test.each(HOSTILE)("the user %j is only a name, and has no other effect", async (user) => {
  const house = await openHouse();
  const request = { model: MODEL, user, messages: [said("Hello")] };
  const { response } = await openAi(house).chat.completions.create(request).withResponse();
  const [session] = await openAiSessions(house);
  expect(session?.key).toMatch(/^agent:main:openai:user-[0-9a-f]{32}$/);
  expect(response.headers.get(KEY_HEADER)).toBe(session?.key);
});

test("two simultaneous first requests of one user create one session", async () => {
  const house = await openHouse();
  const ask = (text: string) =>
    openAi(house).chat.completions.create({ model: MODEL, user: "anne", messages: [said(text)] });
  const answers = await Promise.all(["One", "Two", "Three"].map(ask));
  const texts = answers.map((answer) => answer.choices[0]?.message.content);
  expect(texts).toEqual(["echo One", "echo Two", "echo Three"]);
  expect(await openAiSessions(house)).toHaveLength(1);
});

test("the session header can name any session of the model's agent, in every spelling of its id", async () => {
  const house = await openHouse();
  const client = openAi(house);
  const request = { model: MODEL, messages: [said("Hello")] };
  const at = (key: string) => ({ headers: { [KEY_HEADER]: key } });
  await client.chat.completions.create(request, at("main"));
  expect(await runStates(house, "agent:main:main")).toEqual(["ok"]);
  const key = "agent:main:telegram:group:Gruppe-ü";
  await house.store.transaction((tx) =>
    tx.updateTable("sessions").set({ key }).where("key", "=", "agent:main:main").execute(),
  );
  const encoded = "agent:main:telegram:group:Gruppe-%C3%BC";
  const { response } = await client.chat.completions.create(request, at(encoded)).withResponse();
  expect(response.headers.get(KEY_HEADER)).toBe(encoded);
});

test("a session header gives 409 if it names another agent's session, and 404 if the session is unknown", async () => {
  const house = await openHouse();
  const client = openAi(house);
  const ask = (key: string) =>
    client.chat.completions.create(
      { model: MODEL, messages: [said("x")] },
      { headers: { [KEY_HEADER]: key } },
    );
  await expect(ask("agent:writer:main")).rejects.toThrow(OpenAI.ConflictError);
  await expect(ask("agent:main:chat:nothing")).rejects.toThrow(OpenAI.NotFoundError);
  await expect(ask("cron:not:a:key")).rejects.toThrow(OpenAI.BadRequestError);
  await expect(ask("unknown")).rejects.toThrow(OpenAI.PermissionDeniedError);
  await expect(ask("x".repeat(600))).rejects.toThrow(OpenAI.BadRequestError);
  expect(await runStates(house, "agent:writer:main")).toEqual([]);
});

const SCOPED = {
  token: "scoped-token",
  role: "operator" as const,
  scopes: ["operator.write" as const],
  sessions: ["agent:research:*"],
};
const READER = { token: "reading-token", role: "operator" as const, scopes: ["operator.read" as const] };
const NODE = { token: "node-token", role: "node" as const, scopes: [] };

test("I9: a token has only the rights of its scope and its patterns, with or without a session name", async () => {
  const house = await openHouse({ gateway: { tokens: [SCOPED, READER, NODE] } });
  const scoped = openAi(house, { apiKey: SCOPED.token });
  const ask = (client: OpenAI, model: string, more: object = {}, headers: Record<string, string> = {}) =>
    client.chat.completions.create({ model, messages: [said("x")], ...more }, { headers });
  expect((await ask(scoped, "parley/research")).choices[0]?.message.content).toBe("echo x");
  expect((await ask(scoped, "parley/research", { user: "anne" })).choices[0]?.message.content).toBe("echo x");
  const denied = OpenAI.PermissionDeniedError;
  // If the token covers no session of an agent, the answer is that of an unknown agent.
  const absent = OpenAI.NotFoundError;
  await expect(ask(scoped, MODEL)).rejects.toThrow(absent);
  await expect(ask(scoped, MODEL, { user: "anne" })).rejects.toThrow(absent);
  await expect(ask(scoped, MODEL, {}, { [KEY_HEADER]: "agent:main:main" })).rejects.toThrow(absent);
  const foreign = await openAi(house).responses.create({ model: MODEL, input: "secret" });
  const stolen = scoped.responses.create({ model: MODEL, input: "x", previous_response_id: foreign.id });
  await expect(stolen).rejects.toThrow(OpenAI.NotFoundError);
  const reader = openAi(house, { apiKey: READER.token });
  expect((await reader.models.list()).data).toHaveLength(3);
  await expect(ask(reader, MODEL)).rejects.toThrow(denied);
  const node = openAi(house, { apiKey: NODE.token });
  await expect(node.models.list()).rejects.toThrow(denied);
  await expect(ask(node, MODEL)).rejects.toThrow(denied);
});

test("the send policy applies to OpenAI requests, too", async () => {
  const sendPolicy = { rules: [], default: "deny" as const };
  const house = await openHouse({ choices: { session: { sendPolicy } } });
  const ask = openAi(house).chat.completions.create({ model: MODEL, messages: [said("x")] });
  await expect(ask).rejects.toMatchObject({ status: 403, code: "send_denied" });
  expect(await openAiSessions(house)).toEqual([]);
});

test("the same Idempotency-Key gives the same run and the same answer, also after a restart", async () => {
  const dir = temporaryFolder();
  const first = await openHouse({ dir });
  const headers = { "Idempotency-Key": "request-1" };
  const request = { model: MODEL, user: "anne", messages: [said("Hello")] };
  const [one, two] = await Promise.all([
    openAi(first).chat.completions.create(request, { headers }),
    openAi(first).chat.completions.create(request, { headers }),
  ]);
  expect(two).toEqual(one);
  await first.stop();
  const second = await openHouse({ dir, play: () => "something else" });
  expect(await openAi(second).chat.completions.create(request, { headers })).toEqual(one);
  const [session] = await openAiSessions(second);
  expect(await runStates(second, session?.key ?? "")).toEqual(["ok"]);
  const other = { ...request, messages: [said("Other")] };
  await expect(openAi(second).chat.completions.create(other, { headers })).rejects.toThrow(
    OpenAI.ConflictError,
  );
  const response = openAi(second).responses.create({ model: MODEL, input: "Hello" }, { headers });
  await expect(response).rejects.toMatchObject({ status: 409, code: "idempotency_conflict" });
  const bad = openAi(second).chat.completions.create(request, {
    headers: { "Idempotency-Key": "x".repeat(201) },
  });
  await expect(bad).rejects.toThrow(OpenAI.BadRequestError);
});

test("a full queue gives status 429, marked as retryable", async () => {
  const held = heldPlay();
  const house = await openHouse({ play: held.play, choices: { session: { queueMax: 1 } } });
  const ask = (text: string) =>
    openAi(house).chat.completions.create({ model: MODEL, user: "anne", messages: [said(text)] });
  const first = ask("One");
  await held.begun;
  const [session] = await openAiSessions(house);
  await house.engine.accept({ sessionKey: session?.key ?? "", input: { text: "Two" } });
  const refused = await ask("Three").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
  expect(refused).toMatchObject({ status: 429, code: "queue_full", type: "rate_limit_error" });
  expect((refused as InstanceType<typeof OpenAI.RateLimitError>).headers.get("x-should-retry")).toBe("true");
  held.end("Done");
  expect((await first).choices[0]?.message.content).toBe("Done");
});

test("a failed run is an error that the client does not retry automatically", async () => {
  const model = scriptedModel(() => ({ error: "the model is on fire" }));
  const house = await openHouse({ model });
  const client = openAi(house, { maxRetries: 3 });
  const request = { model: MODEL, messages: [said("Hello")] };
  const failed = await client.chat.completions.create(request).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(OpenAI.InternalServerError);
  expect(failed).toMatchObject({ status: 502, code: "run_failed", type: "server_error" });
  expect(model.requests).toHaveLength(1);
  const stream = await client.chat.completions.create({ ...request, stream: true });
  const read = async () => {
    for await (const _ of stream);
  };
  await expect(read()).rejects.toThrow(/on fire/);
  await allArchived(house);
});

test("an aborted run is a conflict, and a stopped engine gives status 503", async () => {
  const held = heldPlay();
  const house = await openHouse({ play: held.play });
  const ask = () =>
    openAi(house).chat.completions.create({ model: MODEL, user: "anne", messages: [said("x")] });
  const first = ask().catch((error: unknown) => error);
  const { run } = await held.begun;
  await house.engine.abort({ sessionKey: run.sessionKey });
  expect(await first).toMatchObject({ status: 409, code: "run_aborted" });
  await house.engine.stop(0);
  const refused = await ask().catch((error: unknown) => error);
  expect(refused).toMatchObject({ status: 503, code: "shutting_down" });
  expect(refused).toBeInstanceOf(OpenAI.InternalServerError);
});

test("two tokens with the same Idempotency-Key have separate runs", async () => {
  const other = { token: "another-token", role: "operator" as const, scopes: ["operator.write" as const] };
  const house = await openHouse({ gateway: { tokens: [other] } });
  const headers = { "Idempotency-Key": "request-1" };
  const request = { model: MODEL, messages: [said("Hello")] };
  const by = (apiKey: string) => openAi(house, { apiKey }).chat.completions.create(request, { headers });
  const [first, second] = [await by(TOKEN), await by(other.token)];
  expect(second.id).not.toBe(first.id);
  expect((await by(TOKEN)).id).toBe(first.id);
  expect((await by(other.token)).id).toBe(second.id);
});
