// Conversations before a reset: listed, read, searched and exported, until the session is deleted.

import { expect, test } from "vitest";
import type { ToolResultOf } from "../../../src/contract/tools.ts";
import { type House, openHouse, operatorToken } from "../kit.ts";

const READER = "a-token-for-the-writer-alone";

async function say(house: House, message: string, sessionKey = "work"): Promise<void> {
  const client = await house.client();
  await client.agent({ message, sessionKey, idempotencyKey: message }).done;
}

/** Opens a gateway with a session that was reset twice, and used afterwards. */
async function resetTwice(): Promise<House> {
  const house = await openHouse();
  const client = await house.client();
  for (const word of ["marmalade", "porridge"]) {
    await say(house, `first ${word}`);
    await say(house, `then ${word}`);
    await client.call("sessions.reset", { key: "work" });
  }
  await say(house, "now tea");
  return house;
}

test("after a reset the earlier conversations are listed, newest first, and each can be read in pages", async () => {
  const house = await resetTwice();
  const client = await house.client();
  const { conversations, sessionId } = await client.request("sessions.earlier", { key: "work" });
  expect(conversations).toMatchObject([
    { title: "first porridge", messages: 4 },
    { title: "first marmalade", messages: 4 },
  ]);
  const [newest, oldest] = conversations;
  expect(oldest?.endedAt).toBeLessThanOrEqual(newest?.endedAt ?? 0);
  const read = (id: string | undefined, more = {}) =>
    client.request("chat.history", { sessionKey: "work", sessionId: id ?? "", ...more });
  const page = await read(oldest?.sessionId, { limit: 3, includeRuns: true });
  expect(page).toMatchObject({ sessionKey: "agent:main:work", sessionId: oldest?.sessionId });
  expect(page.messages).toHaveLength(3);
  expect(page.now).toBeUndefined();
  expect((await read(oldest?.sessionId, { before: page.nextBefore })).messages).toHaveLength(1);
  expect((await read(sessionId)).messages).toHaveLength(2);
  const main = await client.request("chat.history", { sessionKey: "main" });
  await expect(read(main.sessionId)).rejects.toMatchObject({ code: "NOT_FOUND" });
  expect((await client.request("sessions.earlier", { key: "main" })).conversations).toEqual([]);
});

test("a search finds messages from before a reset, and marks them", async () => {
  const house = await resetTwice();
  const client = await house.client();
  const search = (query: string) =>
    client.call<ToolResultOf<"sessions_search">>("tools.invoke", {
      name: "sessions_search",
      args: { query },
      sessionKey: "agent:main:work",
    });
  const earlier = await search("marmalade");
  expect(earlier.hits).toHaveLength(4);
  for (const hit of earlier.hits) expect(hit).toMatchObject({ sessionKey: "agent:main:work", earlier: true });
  const now = await search("tea");
  expect(now.hits).toHaveLength(2);
  for (const hit of now.hits) expect(hit).not.toHaveProperty("earlier");
});

test("sessions.delete also deletes the earlier conversations; a token reads only those of sessions that it covers", async () => {
  const tokens = [operatorToken(READER, "operator.read", ["agent:writer:*"])];
  const house = await openHouse({ gateway: { tokens } });
  const client = await house.client();
  await say(house, "marmalade");
  await client.call("sessions.reset", { key: "work" });
  const [{ sessionId } = { sessionId: "" }] = (await client.request("sessions.earlier", { key: "work" }))
    .conversations;
  const reader = await house.client({ token: READER });
  await expect(reader.call("sessions.earlier", { key: "work" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  for (const sessionKey of ["work", "agent:writer:main"]) {
    const stolen = reader.call("chat.history", { sessionKey, sessionId });
    await expect(stolen).rejects.toMatchObject({ code: expect.stringMatching(/FORBIDDEN|NOT_FOUND/) });
  }
  await client.call("sessions.delete", { key: "work" });
  await say(house, "anew");
  expect((await client.request("sessions.earlier", { key: "work" })).conversations).toEqual([]);
  const left = await house.store.db
    .selectFrom("messages")
    .select("id")
    .where("session_id", "=", sessionId)
    .execute();
  expect(left).toEqual([]);
});
