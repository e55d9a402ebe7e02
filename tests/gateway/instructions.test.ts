// Instructions of one session: a whole gateway, and a model server that shows what the model is told.

import { expect, test } from "vitest";
import { INSTRUCTIONS_CHARS_MAX } from "../../src/core/shapes/session.ts";
import { openFollowing } from "./reload/kit.ts";

const KEY = "sk-test-0123456789-of-the-model";

test("a session's instructions are told to the model from the next run on, in this session and its forks", async () => {
  const house = await openFollowing(() => "an answer");
  const { client } = house;
  const told = () => house.model.requests.at(-1)?.system ?? "";
  const key = "agent:main:main";
  const words = "Answer in French.\nSign with Marie.";
  await client.request("sessions.patch", { key, instructions: `  ${words}\n` });
  await house.says("hello");
  expect(told()).toContain(`Instructions for this session:\n${words}`);
  const history = await client.request("chat.history", { sessionKey: key });
  expect(history.instructions).toBe(words);

  const at = history.messages.at(-1)?.id ?? "";
  const fork = await client.request("sessions.fork", { sessionKey: key, at, idempotencyKey: "fork" });
  const other = await client.request("sessions.create", { label: "other", idempotencyKey: "other" });
  for (const [sessionKey, isTold] of [
    [fork.key, true],
    [other.key, false],
  ] as const) {
    await client.agent({ sessionKey, message: "hello", idempotencyKey: `to ${sessionKey}` }).done;
    expect([sessionKey, told().includes(words)]).toEqual([sessionKey, isTold]);
  }

  await client.request("sessions.reset", { key });
  await house.says("hello again");
  expect(told()).toContain(words);
  await client.request("sessions.patch", { key, instructions: " \n" });
  await house.says("and again");
  expect(told()).not.toContain("Instructions for this session");
  expect(await client.request("chat.history", { sessionKey: key })).not.toHaveProperty("instructions");
});

test("I14: a secret in a session's instructions is not shown", async () => {
  const { client } = await openFollowing(() => "an answer");
  const key = "agent:main:main";
  await client.request("sessions.patch", { key, instructions: `The key is ${KEY}.` });
  const shown = await client.request("chat.history", { sessionKey: key });
  expect(shown.instructions).toMatch(/^The key is .+\.$/);
  expect(JSON.stringify(shown)).not.toContain(KEY);
});

test("instructions that are too long, or that no model would read, are refused in words", async () => {
  const acp = { id: "coder", runtime: { type: "acp", command: ["true"] } };
  const { client } = await openFollowing(() => "an answer", { agents: { list: [{ id: "main" }, acp] } });
  const long = "x".repeat(INSTRUCTIONS_CHARS_MAX + 1);
  await expect(
    client.request("sessions.patch", { key: "agent:main:main", instructions: long }),
  ).rejects.toThrow(/4000/);
  await expect(
    client.request("sessions.patch", { key: "agent:coder:main", instructions: "Be brief." }),
  ).rejects.toThrow(/outside program; it gets no instructions/);
  // Nothing is left to clear, and that is no mistake.
  await client.request("sessions.patch", { key: "agent:coder:main", instructions: null });
});
