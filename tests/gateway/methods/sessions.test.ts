// The methods about sessions and the outbox, as a dashboard uses them.

import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import { beginAttempt, endAttempt, insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import { type House, openHouse, operatorToken } from "../kit.ts";

async function told(house: House, sessionKey: string, message: string): Promise<void> {
  const client = await house.client();
  await client.agent({ message, sessionKey, idempotencyKey: `run of ${message.length}` }).done;
}

test("sessions.list returns rows with canonical keys and kinds, newest first", async () => {
  const house = await openHouse();
  await told(
    house,
    "agent:research:main",
    "the first question of all, which is a little longer than a title may be here",
  );
  const client = await house.client();
  const list = await client.request("sessions.list", {
    includeDerivedTitles: true,
    includeLastMessage: true,
    limit: 2,
  });
  expect(list).toMatchObject({
    ts: expect.any(Number),
    path: house.dir,
    count: 2,
    defaults: { modelProvider: "offline", model: "rehearsal", contextTokens: 1000 },
    nextCursor: expect.any(String),
  });
  expect(list.sessions[0]).toMatchObject({
    key: "agent:research:main",
    kind: "direct",
    sessionKind: "main",
    agentId: "research",
    modelProvider: "offline",
    model: "rehearsal",
    totalTokens: 5,
    systemSent: true,
    state: "idle",
    queuedRuns: 0,
    derivedTitle: "the first question of all, which is a little longer than a…",
    lastMessagePreview: expect.stringMatching(/^echo the first/),
  });
  const rest = await client.request("sessions.list", { limit: 5, ...optional({ cursor: list.nextCursor }) });
  expect(rest.sessions).toHaveLength(1);
  await expect(client.call("sessions.list", { cursor: "made up" })).rejects.toMatchObject({
    code: "INVALID_REQUEST",
  });
});

test("a search finds a session by the first words of its conversation, until a reset", async () => {
  const house = await openHouse();
  const client = await house.client();
  const { key } = await client.request("sessions.create", {});
  await told(house, key, "Count the\n  SHIPS in the harbour");
  await told(house, key, "and the boats");
  const found = async (search: string) => {
    const { sessions } = await client.request("sessions.list", { search, includeDerivedTitles: true });
    return sessions.map((row) => [row.key, row.derivedTitle]);
  };
  expect(await found("count the ships")).toEqual([[key, "Count the SHIPS in the harbour"]]);
  expect(await found("boats")).toEqual([]);
  await client.request("sessions.reset", { key });
  expect(await found("the ships")).toEqual([]);
  await told(house, key, "Feed the gulls");
  expect(await found("the gulls")).toEqual([[key, "Feed the gulls"]]);
  const [message] = (await client.request("chat.history", { sessionKey: key })).messages;
  const fork = await client.request("sessions.fork", { sessionKey: key, at: message?.id ?? "" });
  expect(await found("the gulls")).toEqual([
    [fork.key, "Feed the gulls"],
    [key, "Feed the gulls"],
  ]);
  await client.request("sessions.delete", { key: fork.key });
  await client.request("sessions.delete", { key });
  expect(await found("the gulls")).toEqual([]);
});

test("a session is resolved by exactly one of key, id and label", async () => {
  const house = await openHouse();
  const client = await house.client();
  const made = await client.request("sessions.create", {
    agentId: "writer",
    label: "novel",
    idempotencyKey: "n",
  });
  expect(made.key).toMatch(/^agent:writer:chat:[0-9a-f-]{36}$/);
  for (const params of [
    { key: made.key },
    { sessionId: made.sessionId },
    { label: "novel" },
    { label: "novel", agentId: "writer" },
  ]) {
    expect(await client.call("sessions.resolve", params)).toEqual({ ok: true, key: made.key });
  }
  expect(await client.call("sessions.resolve", { key: "main" })).toEqual({
    ok: true,
    key: "agent:main:main",
  });
  const missing = { code: "NOT_FOUND" };
  await expect(client.call("sessions.resolve", { key: "agent:writer:chat:none" })).rejects.toMatchObject(
    missing,
  );
  await expect(client.call("sessions.resolve", { label: "nothing" })).rejects.toMatchObject(missing);
  await expect(
    client.call("sessions.resolve", { key: made.key, spawnedBy: "agent:main:main" }),
  ).rejects.toMatchObject(missing);
  const wrong = { code: "INVALID_REQUEST" };
  await expect(client.call("sessions.resolve", {})).rejects.toMatchObject(wrong);
  await expect(client.call("sessions.resolve", { key: made.key, label: "novel" })).rejects.toMatchObject(
    wrong,
  );
});

test("sessions.preview returns the last lines of each session, and marks empty and missing sessions", async () => {
  const house = await openHouse();
  await told(house, "agent:main:main", "one\n\n  two");
  const client = await house.client();
  const keys = ["agent:main:main", "agent:writer:main", "agent:writer:chat:none"];
  expect(await client.call("sessions.preview", { keys, maxChars: 20 })).toMatchObject({
    previews: [
      {
        key: keys[0],
        status: "ok",
        items: [
          { role: "user", text: "one two" },
          { role: "assistant", text: "echo one two" },
        ],
      },
      { key: keys[1], status: "empty", items: [] },
      { key: keys[2], status: "missing", items: [] },
    ],
  });
});

test("sessions.patch sets and removes fields and refuses invalid ones; a reset keeps the values", async () => {
  const house = await openHouse();
  await told(house, "main", "hello");
  const client = await house.client();
  const set = {
    label: "desk",
    thinkingLevel: "low",
    verboseLevel: "on",
    model: "offline/rehearsal",
    sendPolicy: "allow",
  } as const;
  const patched = await client.request("sessions.patch", { key: "main", ...set });
  expect(patched.entry).toMatchObject({
    label: "desk",
    thinkingLevel: "low",
    verboseLevel: "on",
    sendPolicy: "allow",
  });
  for (const wrong of [
    { thinkingLevel: "huge" },
    { verboseLevel: "loud" },
    { model: "no/model" },
    { label: " " },
    { spawnedBy: "agent:research:main" },
  ]) {
    await expect(client.call("sessions.patch", { key: "main", ...wrong })).rejects.toMatchObject({
      code: "INVALID_REQUEST",
    });
  }
  const before = patched.entry.sessionId;
  const reset = await client.request("sessions.reset", { key: "main" });
  expect(reset.sessionId).not.toBe(before);
  expect(reset.entry).toMatchObject({ label: "desk", thinkingLevel: "low", totalTokens: 0 });
  const cleared = await client.request("sessions.patch", {
    key: "main",
    label: null,
    thinkingLevel: null,
  });
  expect(cleared.entry).not.toHaveProperty("label");
  const history = await client.call("chat.history", { sessionKey: "main" });
  expect(history).toMatchObject({ sessionKey: "agent:main:main", messages: [], thinkingLevel: "off" });
  await expect(client.call("chat.history", { sessionKey: before })).rejects.toMatchObject({
    code: "CONFLICT",
  });
});

test("a session can be deleted, but not a main session", async () => {
  const house = await openHouse();
  const client = await house.client();
  const { key } = await client.request("sessions.create", { idempotencyKey: "d" });
  await expect(client.call("sessions.delete", { key: "main" })).rejects.toMatchObject({ code: "CONFLICT" });
  expect(await client.call("sessions.delete", { key })).toEqual({ ok: true, key, deleted: true });
  await expect(client.call("chat.history", { sessionKey: key })).rejects.toMatchObject({ code: "NOT_FOUND" });
});

test("history is read in pages, oldest first, with credentials redacted", async () => {
  const house = await openHouse();
  for (const text of ["one", "three", "key sk-abcdefghijklmnopqrstuvwxyz123456"])
    await told(house, "main", text);
  const client = await house.client();
  const newest = await client.request("chat.history", { sessionKey: "main", limit: 2 });
  expect(newest.messages.map((message) => message.role)).toEqual(["user", "assistant"]);
  expect(JSON.stringify(newest)).not.toContain("abcdefghijklmnopqrstuvwxyz");
  const older = await client.request("chat.history", {
    sessionKey: "main",
    limit: 10,
    ...optional({ before: newest.nextBefore }),
  });
  expect(older.messages.map(textOf)).toEqual(["one", "echo one", "three", "echo three"]);
  await expect(client.call("chat.history", { sessionKey: "main", before: "no" })).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
});

const PICTURES: [object, RegExp][] = [
  [{ mimeType: "application/pdf", content: "AAAA" }, /attachments.0.mimeType must be one of/],
  [{ mimeType: "image/png", content: "not base64!" }, /not valid base64/],
  [{ mimeType: "image/png", content: "AAA" }, /not valid base64/],
  [{ mimeType: "image/png", content: "A===" }, /not valid base64/],
  [{ mimeType: "image/png", content: "AA=A" }, /not valid base64/],
  [{ mimeType: "image/png", content: "====" }, /not valid base64/],
  [{ mimeType: "image/png" }, /content must be base64 text/],
  [{ content: "AAAA" }, /mimeType must be one of/],
  [{ mimeType: "image/png", content: 7 }, /content must be base64 text/],
];
test.each(PICTURES)("the attachment %o is refused with a clear error", async (attachment, words) => {
  const house = await openHouse();
  const client = await house.client();
  const params = { sessionKey: "main", message: "look", attachments: [attachment], idempotencyKey: "p" };
  await expect(client.call("chat.send", params)).rejects.toMatchObject({
    message: expect.stringMatching(words),
  });
});

test("a message that is empty, or has an unknown thinking level or channel, is refused", async () => {
  const house = await openHouse();
  const client = await house.client();
  const refused: [string, object, string][] = [
    ["chat.send", { sessionKey: "main", message: "  ", idempotencyKey: "1" }, "INVALID_REQUEST"],
    [
      "chat.send",
      { sessionKey: "main", message: "x", thinking: "huge", idempotencyKey: "2" },
      "INVALID_REQUEST",
    ],
    ["agent", { message: "x", channel: "telegram", deliver: true, idempotencyKey: "3" }, "NOT_LINKED"],
    ["send", { to: "main", message: "x", channel: "pigeon", idempotencyKey: "4" }, "NOT_LINKED"],
    ["send", { to: "nobody", message: "x", idempotencyKey: "5" }, "NOT_FOUND"],
    ["chat.inject", { sessionKey: "main", message: " " }, "INVALID_REQUEST"],
  ];
  for (const [method, params, code] of refused) {
    await expect(client.call(method, params), `${method} ${JSON.stringify(params)}`).rejects.toMatchObject({
      code,
    });
  }
});

test("only callers whose token covers its session can see, retry or dismiss a failed delivery", async () => {
  const tokens = [operatorToken("scoped", "operator.admin", ["agent:research:*"])];
  const house = await openHouse({ gateway: { tokens } });
  await house.store.transaction(async (tx) => {
    for (const id of ["d1", "d2"]) {
      const route = { channel: "pigeon", to: id };
      await insertDelivery(tx, {
        id,
        sessionKey: "agent:main:main",
        kind: "send",
        route,
        text: "x",
        state: "pending",
        createdAt: 1,
      });
      await beginAttempt(tx, { id, partsSent: 0 }, "p");
      await endAttempt(
        tx,
        { id, owner: "p" },
        { kind: "failed", code: "channel_unknown", error: "no pigeons" },
        2,
      );
    }
  });
  const [client, scoped] = [await house.client(), await house.client({ token: "scoped" })];
  expect(
    (await client.request("deliveries.list", { state: "failed" })).deliveries.map((row) => row.id),
  ).toEqual(["d2", "d1"]);
  expect((await scoped.request("deliveries.list")).deliveries).toEqual([]);
  await expect(scoped.call("deliveries.retry", { id: "d1" })).rejects.toMatchObject({ code: "NOT_FOUND" });
  expect(await client.call("deliveries.dismiss", { id: "d1" })).toMatchObject({
    ok: true,
    delivery: { id: "d1", state: "failed" },
  });
  await expect(client.call("deliveries.dismiss", { id: "d1" })).rejects.toMatchObject({ code: "CONFLICT" });
  expect(await client.call("deliveries.retry", { id: "d2" })).toMatchObject({
    ok: true,
    delivery: { state: "pending" },
  });
  expect((await client.request("deliveries.list", { includeDismissed: true })).deliveries).toHaveLength(2);
});

test("the catalog lists the tools of a session, and a tool is called with the rights of the session", async () => {
  const house = await openHouse();
  const client = await house.client();
  const catalog = await client.request("tools.catalog");
  expect(catalog.tools.map((tool) => tool.name)).toContain("sessions_send");
  const status = await client.call("tools.invoke", { name: "session_status", arguments: {} });
  expect(status).toMatchObject({ sessionKey: "main" });
  expect(
    await client.call("tools.invoke", { name: "session_status", arguments: { wrong: 1 } }),
  ).toMatchObject({
    status: "error",
    code: "unknown_argument",
  });
});
