// Destinations on channels, for every method and route that accepts one.

import { expect, test } from "vitest";
import { GatewayError } from "../../../src/contract/client/error.ts";
import { optional } from "../../../src/core/optional.ts";
import type { Route } from "../../../src/core/shapes/route.ts";
import type { SendRule } from "../../../src/core/shapes/settings/settings.ts";
import { insertSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { sessionRow } from "../../kit/engine/engine.ts";
import { type PeopleChannel, peopleChannel, telegramAccount } from "../../kit/platforms/people-channel.ts";
import { type House, type HouseOptions, openHouse } from "../kit.ts";

const MAIN = "agent:main:main";
const GROUP = "agent:main:telegram:group:-100";
const ROOM = "agent:research:telegram:channel:-200";
const TOPIC = "agent:main:telegram:group:-100:topic:5";
const NARROW = "a-token-for-one-agent";
const telegram = (to: string, more: Partial<Route> = {}): Route => ({
  ...{ channel: "telegram", to, accountId: "default" },
  ...more,
});

interface ChatHouse extends House {
  readonly people: PeopleChannel;
}

async function open(
  rules: readonly SendRule[] = [],
  more: { hooks?: boolean; ids?: string[] } & HouseOptions = {},
): Promise<ChatHouse> {
  const { ids = ["default"], ...options } = more;
  const people = peopleChannel(ids);
  const tokens = [
    { token: NARROW, role: "operator", scopes: ["operator.write"], sessions: ["agent:main:*"] },
  ] as const;
  const house = await openHouse({
    gateway: { tokens },
    channels: [people],
    ...options,
    choices: {
      channels: ids.map((id) => telegramAccount(id)),
      ...options.choices,
      session: { sendPolicy: { rules, default: "allow" } },
    },
  });
  await house.store.transaction(async (tx) => {
    await insertSession(tx, sessionRow(GROUP, { kind: "group", groupChannel: "telegram" }));
    await insertSession(tx, sessionRow(TOPIC, { kind: "group", groupChannel: "telegram" }));
    const room = { kind: "group", agentId: "research", groupChannel: "telegram" } as const;
    await insertSession(tx, sessionRow(ROOM, room));
    await updateSession(tx, MAIN, { lastRoute: telegram("7") });
  });
  return { ...house, people };
}

let keys = 0;
const key = (): string => {
  keys += 1;
  return `destination-${keys}`;
};

async function send(house: House, params: object, token?: string) {
  const client = await house.client(token === undefined ? {} : { token });
  return client.request("send", { message: "hello", idempotencyKey: key(), ...params } as never);
}

/** Returns code and message of a refusal. */
async function refused(asking: Promise<unknown>): Promise<string> {
  const error = await asking.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof GatewayError)) throw new Error(`not refused: ${JSON.stringify(error)}`);
  return `${error.reason ?? error.code}: ${error.message}`;
}

const rows = ({ store }: House) =>
  store.db.selectFrom("deliveries").select(["session_key", "state", "code", "route_json"]).execute();

test("send delivers to a chat of a channel, and records the text in that chat's session", async () => {
  const house = await open();
  const answer = await send(house, { channel: "telegram", to: "-100" });
  expect(answer).toMatchObject({ channel: "telegram", status: "queued", sessionKey: GROUP });
  await expect.poll(() => house.people.sent).toHaveLength(1);
  expect(house.people.sent[0]).toMatchObject({ text: "hello", route: telegram("-100"), sessionKey: GROUP });
  // I10: checks that no route has changed.
  const row = house.store.db.selectFrom("sessions").select("last_to").where("key", "=", GROUP);
  expect(await row.executeTakeFirst()).toEqual({ last_to: null });
  const client = await house.client();
  const page = await client.request("chat.history", { sessionKey: GROUP });
  expect(page.messages).toMatchObject([{ role: "assistant", stopReason: "injected" }]);
});

test("account and thread are those of the chat; if the chat has no account, the first account is used", async () => {
  const house = await open([], { ids: ["one", "two"] });
  await send(house, { channel: "telegram", to: "-100", accountId: "two", threadId: 5 });
  await send(house, { channel: "TELEGRAM", to: "telegram:9" });
  await expect.poll(() => house.people.sent).toHaveLength(2);
  expect(house.people.sent.map(({ route }) => route)).toEqual([
    { channel: "telegram", to: "-100", accountId: "two", threadId: "5" },
    { channel: "telegram", to: "9", accountId: "one" },
  ]);
  // If the chat has no session yet, the text is recorded in the default agent's main session.
  expect(house.people.sent.map(({ sessionKey }) => sessionKey)).toEqual([TOPIC, MAIN]);
});

test("DE1: an unknown channel or account is refused with the list of configured ones", async () => {
  const house = await open();
  const pigeon = await refused(send(house, { channel: "pigeon", to: "1" }));
  expect(pigeon).toContain('no channel "pigeon" is configured; configured: webchat, telegram');
  const other = await refused(send(house, { channel: "telegram", to: "1", accountId: "work" }));
  expect(other).toContain('the channel telegram has no account "work"; configured: default');
  for (const to of ["  ", "a\u0000b", "telegram:", "x".repeat(600)]) {
    expect(await refused(send(house, { channel: "telegram", to }))).toMatch(/^(invalid|INVALID)/);
  }
  expect(await rows(house)).toEqual([]);
});

test("DE1: if a destination no longer exists, the delivery fails, and operators see it", async () => {
  const house = await open();
  house.people.gone.add("-100");
  await send(house, { channel: "telegram", to: "-100" });
  await expect.poll(() => rows(house)).toMatchObject([{ state: "failed", code: "refused" }]);
  const client = await house.client();
  const { deliveries } = await client.request("deliveries.list", { state: "failed" });
  expect(deliveries).toMatchObject([{ route: telegram("-100"), error: "chat not found" }]);
});

test("DE1, I9: a caller who may not write to every session can write only to chats of its own sessions", async () => {
  const house = await open();
  expect(await send(house, { channel: "telegram", to: "-100" }, NARROW)).toMatchObject({ sessionKey: GROUP });
  expect(await send(house, { channel: "telegram", to: "7" }, NARROW)).toMatchObject({ sessionKey: MAIN });
  const strange = await refused(send(house, { channel: "telegram", to: "-200" }, NARROW));
  const nowhere = await refused(send(house, { channel: "telegram", to: "-999" }, NARROW));
  expect(strange).toContain("is not a chat of a session that you may write to");
  expect(strange.replace("-200", "-999")).toBe(nowhere);
  // A session key in the request gives no right to write to another session's chat.
  const named = { channel: "telegram", to: "-200", sessionKey: "main" };
  expect(await refused(send(house, named, NARROW))).toBe(strange);
  expect(await rows(house)).toHaveLength(2);
});

const DENY: readonly (readonly [string, SendRule["match"], string, string | undefined])[] = [
  ["a group", { chatType: "group" }, "-100", undefined],
  ["a thread", { chatType: "thread" }, "-100", "5"],
  ["a thread by its parent", { chatType: "group" }, "-100", "5"],
  ["a thread that nobody wrote in, by its parent", { chatType: "group" }, "-100", "77"],
  ["a room", { chatType: "room" }, "-200", undefined],
  ["a direct chat", { chatType: "direct" }, "7", undefined],
  ["a channel", { channel: "telegram" }, "-12345", undefined],
];

test.each(DENY)("DE3: the send policy denies text to %s", async (_, match, to, threadId) => {
  const house = await open([{ match, action: "deny" }]);
  const place = { channel: "telegram", to, ...optional({ threadId }) };
  // The policy allows the sending session, so the policy of the destination decides.
  const named = { ...place, sessionKey: ROOM };
  const other = match.chatType === "room" || match.channel !== undefined ? { ...place } : named;
  expect(await refused(send(house, other))).toMatch(/send blocked by session policy/);
  expect(await rows(house)).toEqual([]);
});

test("DE3: a destination of unknown type follows the rules of its channel, after the setting of its own session", async () => {
  const rules = [
    { match: { chatType: "direct" as const }, action: "deny" as const },
    { match: { chatType: "room" as const }, action: "deny" as const },
  ];
  const house = await open(rules);
  expect(await send(house, { channel: "telegram", to: "-555", sessionKey: GROUP })).toMatchObject({
    status: "queued",
  });
  const room = { channel: "telegram", to: "-200", sessionKey: GROUP };
  expect(await refused(send(house, room))).toMatch(/send blocked/);
  await house.store.transaction((tx) => updateSession(tx, ROOM, { sendPolicy: "allow" }));
  expect(await send(house, room)).toMatchObject({ status: "queued" });
  await house.store.transaction((tx) => updateSession(tx, GROUP, { sendPolicy: "deny" }));
  expect(await refused(send(house, { ...room, to: "-100", sessionKey: ROOM }))).toMatch(/send blocked/);
});

test("DE4: `last` is the last route of the session", async () => {
  const house = await open();
  expect(await send(house, { channel: "last", to: "main" })).toMatchObject({ channel: "telegram" });
  await expect.poll(() => house.people.sent).toMatchObject([{ route: telegram("7") }]);
  await house.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: null }));
  expect(await send(house, { channel: "last", to: "main" })).toMatchObject({ channel: "webchat" });
});

async function agent(house: House, params: object, token?: string) {
  const client = await house.client(token === undefined ? {} : { token });
  const runId = key();
  const asked = { message: "hi", sessionKey: "main", idempotencyKey: runId, ...params };
  await client.request("agent", asked as never);
  const run = await house.engine.waitForRun(runId, house.engine.now() + 10_000);
  return run?.route;
}

test("the method `agent` delivers to the given destination or to the last route, and changes no route", async () => {
  const house = await open();
  expect(await agent(house, { deliver: true, channel: "telegram", to: "-100" })).toEqual(telegram("-100"));
  expect(await agent(house, { deliver: true })).toEqual(telegram("7"));
  expect(await agent(house, { deliver: true, channel: "last" })).toEqual(telegram("7"));
  expect(await agent(house, { deliver: true, channel: "telegram" })).toEqual(telegram("7"));
  expect(await agent(house, { channel: "telegram", to: "-100" })).toBeUndefined();
  const row = house.store.db.selectFrom("sessions").select("last_to").where("key", "=", MAIN);
  expect(await row.executeTakeFirst()).toEqual({ last_to: "7" });
  const unknown = agent(house, { deliver: true, channel: "pigeon", to: "1" });
  expect(await refused(unknown)).toContain('no channel "pigeon"');
  const strange = agent(house, { deliver: true, channel: "telegram", to: "-200" }, NARROW);
  expect(await refused(strange)).toContain("is not a chat of a session that you may write to");
  const nobody = agent(house, { deliver: true, channel: "telegram", sessionKey: "agent:writer:main" });
  expect(await refused(nobody)).toContain("to must not be empty");
});

test("the method `agent` fails at once if the send policy would deny the delivery", async () => {
  const house = await open([{ match: { chatType: "room" }, action: "deny" }]);
  const asked = agent(house, { deliver: true, channel: "telegram", to: "-200" });
  expect(await refused(asked)).toMatch(/send blocked/);
});

async function cronJob(house: House, deliver: object, token?: string) {
  const client = await house.client(token === undefined ? {} : { token });
  const schedule = { kind: "every", everyMs: 3_600_000 };
  const { job } = await client.request("cron.add", { schedule, message: "tick", deliver } as never);
  return { client, job };
}

async function fired(house: House, deliver: object): Promise<void> {
  const { client, job } = await cronJob(house, deliver);
  const { runId } = await client.request("cron.run", { id: job.id });
  await house.engine.waitForRun(runId, house.engine.now() + 10_000);
}

test("a job's answer is sent to a chat once; a destination that no longer exists gives a failed delivery", async () => {
  const house = await open();
  await fired(house, { channel: "telegram", to: "-100", threadId: "5" });
  await expect.poll(() => house.people.sent).toMatchObject([{ text: "echo tick" }]);
  expect(house.people.sent[0]?.route).toEqual(telegram("-100", { threadId: "5" }));
  await fired(house, { channel: "last", to: "main" });
  await expect.poll(() => house.people.sent).toHaveLength(2);
  expect(house.people.sent[1]?.route).toEqual(telegram("7"));
  house.people.gone.add("-100");
  await fired(house, { channel: "telegram", to: "-100" });
  await expect
    .poll(async () => (await rows(house)).map(({ state }) => state))
    .toEqual(["sent", "sent", "failed"]);
});

test("a job with an unknown destination is refused and not listed", async () => {
  const house = await open();
  expect(await refused(cronJob(house, { channel: "pigeon", to: "1" }))).toContain('no channel "pigeon"');
  const client = await house.client({ token: NARROW });
  const { jobs } = await client.request("cron.list", {});
  expect(jobs).toEqual([]);
});

test("a job's answer is skipped if the send policy denies the type of its destination", async () => {
  const house = await open([{ match: { chatType: "room" }, action: "deny" }]);
  await fired(house, { channel: "telegram", to: "-200" });
  await expect.poll(() => rows(house)).toMatchObject([{ state: "skipped", code: "send_denied" }]);
  expect(house.people.sent).toEqual([]);
});

const HOOKS = {
  enabled: true,
  token: "token-of-the-hooks-0123456789",
  allowedSessionKeys: ["hook:*", "agent:main:telegram:*"],
  mappings: [
    {
      ...{ id: "ci", match: { events: [] }, preset: "token" as const, message: "build {{body.n}}" },
      ...{ deliver: true, ...telegram("-777") },
    },
  ],
};

async function hook(house: House, path: string, body: object): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${house.http}/hooks/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${HOOKS.token}` },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

test("a web hook delivers to chats of the sessions that it may use, or to the destination in its mapping", async () => {
  const house = await open([], { choices: { features: { hooks: HOOKS } } });
  const body = { message: "how is it?", deliver: true, channel: "telegram" };
  expect((await hook(house, "agent", { ...body, to: "-100" })).status).toBe(202);
  await expect
    .poll(() => house.people.sent)
    .toMatchObject([{ text: "echo how is it?", route: telegram("-100") }]);
  expect((await hook(house, "ci", { n: 5 })).status).toBe(202);
  await expect.poll(() => house.people.sent).toHaveLength(2);
  expect(house.people.sent[1]).toMatchObject({ text: "echo build 5", route: telegram("-777") });
  const strange = await hook(house, "agent", { ...body, to: "-200" });
  expect(strange.status).toBe(403);
  expect(strange.text).toContain("is not a chat of a session that you may write to");
  expect((await hook(house, "agent", { ...body, to: "-777" })).status).toBe(403);
  expect((await hook(house, "agent", { ...body, channel: "pigeon", to: "1" })).text).toContain("no channel");
  expect((await hook(house, "agent", body)).text).toContain("to is required with a channel");
  // `last` is the chat in which people last wrote to the main session.
  expect((await hook(house, "agent", { ...body, channel: "last" })).status).toBe(202);
  await expect.poll(() => house.people.sent).toHaveLength(3);
  expect(house.people.sent[2]?.route).toEqual(telegram("7"));
});
