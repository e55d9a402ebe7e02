// `chat.history` as the web page uses it: in both directions, around a message, with the runs of the
// messages.

import { expect } from "vitest";
import type { GatewayClient, PayloadOf } from "../../../src/contract/client/node.ts";
import { NOT_VISIBLE } from "../../../src/core/rules/visibility.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import { test } from "../../kit/deep.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { doing, sending, talkingModel } from "../../kit/talking-model.ts";
import { userMessage } from "../../store/samples.ts";
import { type House, openHouse, quiet } from "../kit.ts";

type Page = PayloadOf<"chat.history">;

const MAIN = "agent:main:main";

async function withMessages(count: number, chars = 4): Promise<House> {
  const house = await openHouse();
  const client = await house.client();
  const { sessionId = "" } = await client.request("chat.history", { sessionKey: "main" });
  await house.store.transaction(async (tx) => {
    for (let n = 0; n < count; n += 1) {
      const entry = userMessage(`m${n}`, `${n} `.padEnd(chars, "x"));
      await appendEntry(tx, { sessionKey: MAIN, sessionId, entry }, plainRedactor);
    }
  });
  return house;
}

const ids = (page: Page) => page.messages.map(({ id }) => id);

test("a page can be read around a message, and from there all messages in both directions", async () => {
  const house = await withMessages(20);
  const client = await house.client();
  const read = (more: object) => client.request("chat.history", { sessionKey: "main", limit: 6, ...more });
  const middle = await read({ around: "m10" });
  expect(ids(middle)).toEqual(["m7", "m8", "m9", "m10", "m11", "m12"]);
  expect(middle).toMatchObject({ nextBefore: "m7", nextAfter: "m12" });
  const after = await read({ after: "m12" });
  expect([ids(after)[0], after.nextBefore, after.nextAfter]).toEqual(["m13", "m13", "m18"]);
  const last = await read({ after: "m18" });
  expect([ids(last), last.nextAfter]).toEqual([["m19"], undefined]);
  const first = await read({ around: "m1" });
  expect([ids(first), first.nextBefore]).toEqual([["m0", "m1", "m2", "m3"], undefined]);
  const end = await read({ around: "m19" });
  expect([ids(end), end.nextAfter]).toEqual([["m16", "m17", "m18", "m19"], undefined]);
  const newest = await read({});
  expect([ids(newest)[0], newest.nextBefore, newest.nextAfter]).toEqual(["m14", "m14", undefined]);
});

test.deep("huge messages shorten a page, but no message between two pages is lost", async () => {
  const house = await withMessages(12, 900_000);
  const client = await house.client();
  const read = (more: object) => client.request("chat.history", { sessionKey: "main", ...more });
  const page = await read({ around: "m6" });
  expect(ids(page)).toEqual(["m4", "m5", "m6", "m7"]);
  const seen = ids(page);
  for (let { nextAfter } = page; nextAfter !== undefined; ) {
    const next = await read({ after: nextAfter });
    seen.push(...ids(next));
    nextAfter = next.nextAfter;
  }
  for (let { nextBefore } = page; nextBefore !== undefined; ) {
    const next = await read({ before: nextBefore });
    seen.unshift(...ids(next));
    nextBefore = next.nextBefore;
  }
  expect(seen).toEqual(Array.from({ length: 12 }, (_, n) => `m${n}`));
});

test("a request is refused if it names two positions in the history, or an unknown message", async () => {
  const house = await withMessages(3);
  const client = await house.client();
  for (const places of [
    { before: "m1", after: "m0" },
    { around: "m1", before: "m1" },
  ]) {
    await expect(client.request("chat.history", { sessionKey: "main", ...places })).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      message: expect.stringContaining("at most one of before, after and around"),
    });
  }
  for (const place of ["before", "after", "around"]) {
    const params = { sessionKey: "main", [place]: "nothing" };
    await expect(client.call("chat.history", params)).rejects.toMatchObject({
      code: "NOT_FOUND",
      details: { code: "message_not_found" },
    });
  }
});

test("with includeRuns a page has the results of its runs, the pending runs and the session's state", async () => {
  const gate = Promise.withResolvers<void>();
  const house = await openHouse({
    play: async (handle) => {
      const { text } = handle.run.input;
      if (text === "fail") throw new Error("key sk-abcdefghijklmnopqrstuvwxyz123456 was refused");
      if (text === "hold") await gate.promise;
      return "done";
    },
  });
  const client = await house.client();
  await client.agent({ message: "fail", sessionKey: "main", idempotencyKey: "r1" }).done;
  await client.request("chat.send", { sessionKey: "main", message: "hold", idempotencyKey: "r2" });
  const secret = "wait, password=hunter2hunter2";
  await client.request("chat.send", { sessionKey: "main", message: secret, idempotencyKey: "r3" });
  const page = await client.request("chat.history", { sessionKey: "main", includeRuns: true });
  expect(page.messages[0]).toMatchObject({ role: "user", runId: "r1" });
  expect(Object.keys(page.runs ?? {}).sort()).toEqual(["r1", "r2", "r3"]);
  expect(page.runs?.r1).toMatchObject({
    ...{ kind: "turn", state: "error", code: "run_failed", chainId: expect.any(String) },
    ...{ acceptedAt: expect.any(Number), startedAt: expect.any(Number), endedAt: expect.any(Number) },
    usage: { totalTokens: expect.any(Number) },
  });
  expect(page.runs?.r1?.error).toContain("was refused");
  expect(page.runs?.r3?.state).toBe("queued");
  expect(page.now?.queue).toMatchObject([{ runId: "r3", text: expect.stringContaining("wait, password=") }]);
  expect(page.now?.session).toMatchObject({ key: MAIN, queuedRuns: 1 });
  expect(JSON.stringify(page)).not.toMatch(/abcdefghijklm|hunter2/);
  const [first] = page.messages;
  const read = { sessionKey: "main", includeRuns: true } as const;
  const behind = await client.request("chat.history", { ...read, after: first?.id ?? "" });
  expect(behind.runs?.r1?.state, "the run of the message behind which it reads").toBe("error");
  const plain = await client.request("chat.history", { sessionKey: "main" });
  expect(plain).not.toHaveProperty("runs");
  expect(plain.messages[0]).not.toHaveProperty("runId");
  gate.resolve();
});

test("a run is returned with its step of a flow, but without the requester's key if the token does not cover the requester", async () => {
  const gate = Promise.withResolvers<void>();
  const tokens = [
    { token: "r", role: "operator", scopes: ["operator.read"], sessions: ["agent:research:*"] },
  ] as const;
  const house = await openHouse({
    gateway: { tokens },
    choices: { tools: { visibility: "all", agentToAgent: { enabled: true, allow: [] } } },
    play: async () => {
      await gate.promise;
      return "REPLY_SKIP";
    },
  });
  const client = await house.client();
  await client.request("chat.send", {
    sessionKey: "agent:research:main",
    message: "x",
    idempotencyKey: "r0",
  });
  const sent = await client.request("tools.invoke", {
    name: "sessions_send",
    arguments: { sessionKey: "agent:research:main", message: "look", timeoutSeconds: 0 },
    sessionKey: MAIN,
  });
  const runId = String(sent.runId);
  const read = async (token?: string) =>
    (await house.client(token === undefined ? {} : { token })).request("chat.history", {
      ...{ sessionKey: "agent:research:main", includeRuns: true },
    });
  const whole = await read();
  expect(whole.runs?.[runId]?.flow).toMatchObject({ step: "round1", turn: 1, turnsMax: expect.any(Number) });
  expect(whole.now?.queue[0]?.provenance).toMatchObject({ kind: "inter_session", sourceSessionKey: MAIN });
  const covered = await read("r");
  expect(covered.now?.queue[0]?.provenance).toMatchObject({ sourceSessionKey: "(not visible)" });
  gate.resolve();
});

test("a page names the first message that the model still sees in full", async () => {
  const house = await withMessages(6);
  const client = await house.client();
  const read = (more: object) =>
    client.request("chat.history", { sessionKey: "main", includeRuns: true, ...more });
  const { sessionId = "", compactions } = await read({});
  expect(compactions).toBeUndefined();
  const entry = { id: "c", type: "compaction", summary: "s", firstKeptId: "m3", timestamp: 7 } as const;
  await house.store.transaction((tx) =>
    appendEntry(tx, { sessionKey: MAIN, sessionId, entry }, plainRedactor),
  );
  const newest = await read({});
  expect([ids(newest).length, newest.compactions]).toEqual([6, { m3: 7 }]);
  expect((await read({ before: "m3" })).compactions).toBeUndefined();
});

test("an operator whose token covers an archived session can read it", async () => {
  const house = await withMessages(2);
  await house.store.transaction((tx) => updateSession(tx, MAIN, { archivedAt: 5 }));
  const client = await house.client();
  const page = await client.request("chat.history", { sessionKey: MAIN, includeRuns: true });
  expect(ids(page)).toEqual(["m0", "m1"]);
  expect(page.now?.session.archivedAt).toBe(5);
});

test("chat.image reads the pictures of a message, and nothing else", async () => {
  const house = await openHouse();
  const client = await house.client();
  const content = Buffer.from("a picture").toString("base64");
  const attachments = [{ mimeType: "image/png", content }];
  const about = { sessionKey: "main", message: "look", idempotencyKey: "r1" };
  await client.request("chat.send", { ...about, attachments });
  await client.request("agent.wait", { runId: "r1" });
  const { messages } = await client.request("chat.history", { sessionKey: "main" });
  expect(messages[0]?.content[1]).toEqual({ type: "image", mimeType: "image/png", data: "", bytes: 9 });
  const read = (messageId: string, index: number) =>
    client.request("chat.image", { sessionKey: "main", messageId, index });
  const id = messages[0]?.id ?? "";
  expect(await read(id, 1)).toEqual({ mimeType: "image/png", content });
  for (const [messageId, index] of [
    [id, 0],
    [id, 2],
    ["other", 1],
  ] as const)
    await expect(read(messageId, index)).rejects.toMatchObject({ reason: "message_not_found" });
  const elsewhere = { sessionKey: "agent:research:main", messageId: id, index: 1 };
  await expect(client.request("chat.image", elsewhere)).rejects.toMatchObject({
    reason: "message_not_found",
  });
});

test("I9: sessions.search names the label of the sender only to a token that covers the sender", async () => {
  const token = "covers-only-main-token";
  const tokens = [{ token, role: "operator", scopes: ["operator.read"], sessions: [MAIN] }] as const;
  const from = "agent:research:main";
  const house = await openHouse({ model: talkingModel(), gateway: { tokens } });
  const client = await house.client();
  const message = doing(sending(MAIN, "ripe tomatoes"));
  await client.agent({ sessionKey: from, message }).done;
  await client.request("sessions.patch", { key: from, label: "the garden" });
  await quiet(house);
  const authors = async (by: GatewayClient) => {
    const { hits } = await by.request("sessions.search", { query: "ripe", sessionKey: MAIN });
    return hits.map(({ author }) => author).filter(({ kind }) => kind === "session");
  };
  expect(await authors(client)).toEqual([{ kind: "session", name: "the garden", sessionKey: from }]);
  expect(await authors(await house.client({ token }))).toEqual([
    { kind: "session", sessionKey: NOT_VISIBLE },
  ]);
});

test("sessions.search finds messages of all sessions that the token covers, in pages", async () => {
  const token = "covers-only-main-token";
  const tokens = [{ token, role: "operator", scopes: ["operator.read"], sessions: [MAIN] }] as const;
  const house = await openHouse({ gateway: { tokens } });
  const client = await house.client();
  for (const sessionKey of [MAIN, "agent:research:main"])
    await client.agent({ sessionKey, message: "ripe tomatoes" }).done;
  const search = async (limit: number, cursor?: string, by = client) =>
    by.request("sessions.search", {
      query: "tomato ripe",
      limit,
      ...(cursor === undefined ? {} : { cursor }),
    });
  const all = await search(10);
  expect(all.hits.map(({ sessionKey, role }) => [sessionKey, role])).toEqual([
    ["agent:research:main", "assistant"],
    ["agent:research:main", "user"],
    [MAIN, "assistant"],
    [MAIN, "user"],
  ]);
  const first = await search(3);
  const rest = await search(3, first.nextCursor);
  expect([...first.hits, ...rest.hits]).toEqual(all.hits);
  const scoped = await search(10, undefined, await house.client({ token }));
  expect(scoped.hits).toEqual(all.hits.slice(2));
  await expect(search(1, "x")).rejects.toMatchObject({ reason: "invalid_argument" });
});
