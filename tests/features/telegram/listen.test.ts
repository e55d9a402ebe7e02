// Receives messages from Telegram: when messages are confirmed, and how failures are handled.

import { expect, test } from "vitest";
import type { InboundMessage } from "../../../src/channels/channel.ts";
import { openChannel } from "../../../src/channels/registry.ts";
import { listenAt } from "../../contract/channel.ts";
import { type Answer, failed, type Json } from "../../kit/platforms/telegram/state.ts";
import { ADA, account, GROUP, listeningGround as ground, notingHost, TOKEN } from "./ground.ts";

const GROUP_CHAT: Json = { id: GROUP, type: "group", title: "Lunch" };

test("TL1: messages that arrived while no gateway listened are read, and are confirmed after they are stored", async () => {
  const { brings, bot, listening, heard } = await ground();
  brings({ text: "one" });
  brings({ text: "two" });
  const { state } = await listening();
  await state("ready");
  await heard("one", "two");
  await expect.poll(() => bot.updates).toEqual([]);
  expect(bot.allowed).toContain("edited_channel_post");
  expect(bot.allowed).not.toContain("message_reaction");
});

test("TL1: an update is confirmed only after it is stored; if the gateway stops before, the update arrives again, in order", async () => {
  const { channel, brings, bot, host, listening, heard, texts } = await ground();
  const stored = Promise.withResolvers<void>();
  const began = Promise.withResolvers<void>();
  const kept = host.receive.bind(host);
  let isFirst = true;
  host.receive = async (message: InboundMessage) => {
    if (!isFirst) return kept(message);
    isFirst = false;
    began.resolve();
    await stored.promise;
    throw new Error("the process is going");
  };
  brings({ text: "one" });
  brings({ text: "two" });
  const { accounts } = await listening();
  await began.promise;
  expect(bot.updates).toHaveLength(2);
  const stopped = accounts.stop();
  stored.resolve();
  await stopped;
  expect(bot.updates).toHaveLength(2);
  expect(texts()).toEqual([]);
  await listenAt(channel, host);
  await heard("one", "two");
});

test("TU1: invalid frames between messages are skipped with a log line", async () => {
  const { brings, server, bot, listening, heard, logged } = await ground();
  brings({ text: "before" });
  server.push(bot, { message: { message_id: "x" } });
  server.push(bot, { edited_message: [] });
  server.push(bot, { purchased_paid_media: { from: ADA } });
  server.push(bot, {
    message: { message_id: 5, date: 9e15, chat: { id: 1e300, type: "private" }, text: "x" },
  });
  brings({ text: "after" });
  const { status } = await listening();
  await heard("before", "after");
  expect(status()?.state).toBe("ready");
  expect(logged("invalid update")).toHaveLength(2);
  await expect.poll(() => bot.updates).toEqual([]);
});

test("TL2: if update ids restart after a week without messages, no message is lost", async () => {
  const { brings, bot, listening, heard } = await ground();
  await listening();
  brings({ text: "old" });
  await heard("old");
  await expect.poll(() => bot.offsets.at(-1)).toBe(870_000_002);
  // The open poll returns nothing, as after 25 s, and the next poll confirms nothing.
  bot.waiting?.({ status: 200, body: { ok: true, result: [] } });
  await expect.poll(() => bot.offsets.at(-1)).toBe(undefined);
  bot.nextUpdateId = 17;
  brings({ text: "new" });
  await heard("old", "new");
});

test("TL3: after temporary failures the messages arrive, and the account never stops", async () => {
  const { server, brings, listening, heard } = await ground();
  server.answerNext("getUpdates", { status: 502, body: "<html>Bad Gateway</html>" });
  server.answerNext("getUpdates", { status: 200, body: "", cut: true });
  server.answerNext("getUpdates", failed(429, "Too Many Requests: retry after 0", { retry_after: 0 }));
  const { status } = await listening();
  brings({ text: "through" });
  await heard("through");
  expect(status()?.state).toBe("ready");
  expect(server.calls.filter(({ method }) => method === "getMe")).toHaveLength(1);
});

/** Runs the listener with a server that gives this answer to every poll. */
async function withNewsOf(answer: Answer) {
  const opened = await ground();
  for (let count = 0; count < 20; count += 1) opened.server.answerNext("getUpdates", answer);
  const { status } = await opened.listening();
  const asked = () => opened.server.calls.filter(({ method }) => method === "getUpdates").length;
  return { status, asked };
}

test("TL3: a permanent failure stops the listener after a few polls, and the status has the reason", async () => {
  const again = {
    update_id: 4,
    message: { message_id: 1, date: 1, chat: { id: 1, type: "private" }, from: ADA },
  };
  const news = (result: unknown): Answer => ({ status: 200, body: { ok: true, result } });
  const cases = [
    {
      answer: failed(500, "Internal Server Error"),
      error: "Telegram refused: Internal Server Error",
      times: 4,
    },
    { answer: news([{ message: {} }, 7]), error: "the server is not a Bot API server" },
    { answer: news("updates"), error: "the server is not a Bot API server" },
    { answer: news([again]), error: "Telegram sends confirmed messages again" },
  ];
  const grounds = await Promise.all(cases.map(({ answer }) => withNewsOf(answer)));
  const errors = () => grounds.map(({ status }) => status()?.error);
  await expect.poll(errors).toEqual(cases.map(({ error }) => error));
  for (const { asked } of grounds) expect(asked()).toBeLessThan(15);
});

test("if a server answers polls immediately, the listener pauses between polls", async () => {
  const { asked, status } = await withNewsOf({ status: 200, body: { ok: true, result: [] } });
  await expect.poll(() => status()?.state).toBe("ready");
  await expect.poll(asked).toBeGreaterThan(2);
  expect(asked()).toBeLessThan(15);
});

test("the account reports another program that fetches the same bot's messages", async () => {
  const { bot, server, brings, listening } = await ground();
  const { state, status } = await listening();
  await state("ready");
  await expect.poll(() => bot.waiting).toBeDefined();
  const body = JSON.stringify({ timeout: 25 });
  const headers = { "content-type": "application/json" };
  const other = fetch(`${server.url}/bot${TOKEN}/getUpdates`, { method: "POST", headers, body });
  await state("retrying");
  expect(status()?.error).toContain("another program fetches this bot's messages");
  // The other program keeps its connection while the bot retries.
  brings({ text: "for the other" });
  expect(await (await other).json()).toMatchObject({
    ok: true,
    result: [{ message: { text: "for the other" } }],
  });
});

test("the listener removes the bot's web hook, without losing pending messages", async () => {
  const { bot, server, brings, listening, heard, logged } = await ground();
  bot.webhookUrl = "https://example.org/secret-path";
  brings({ text: "waiting" });
  await listening();
  await heard("waiting");
  expect(bot.webhookUrl).toBe("");
  expect(
    server.calls.find(({ method }) => method === "deleteWebhook")?.params.drop_pending_updates,
  ).toBeUndefined();
  expect(logged("web hook of the bot was removed")).toHaveLength(1);
  expect(JSON.stringify(logged(""))).not.toContain("secret-path");
});

test("TI1: a revoked token is a lasting problem, and no log line or status contains the token", async () => {
  const { server, bot, listening, host } = await ground();
  server.revoke(bot);
  const { state, status, accounts } = await listening();
  await state("retrying");
  const { error = "", retryAt = 0, since = 0 } = status() ?? {};
  expect(error).toContain("does not accept the bot's token");
  expect(retryAt - since).toBeGreaterThan(60_000);
  expect(JSON.stringify([host.world.logged, accounts.statuses()])).not.toContain(TOKEN);
});

test("TB2: the token is redacted if a server repeats it", async () => {
  const { server, listening, host, channel } = await ground();
  const why = `Bad Request: can't serve /bot${TOKEN}/getMe\u001b[2J`;
  server.answerNext("getMe", failed(400, why));
  const { state, status, accounts } = await listening();
  await state("retrying");
  expect(status()?.error).toContain("can't serve /bot");
  server.answerNext("getMe", failed(400, why));
  const tested = await channel.test?.("default");
  expect(tested).toMatchObject({ ok: false });
  const all = JSON.stringify([host.world.logged, accounts.statuses(), tested]);
  expect(all).not.toContain(TOKEN);
  expect(all).not.toContain("\\u001b");
});

test("the gateway's commands are published as the bot's menu; without a menu people get answers, too", async () => {
  const host = notingHost();
  const commands = [
    ...host.commands,
    { name: "max-age", description: "" },
    { name: "Kürze", description: "no name that Telegram takes" },
  ];
  const { bot, listening } = await ground({}, Object.assign(host, { commands }));
  const { state } = await listening();
  await state("ready");
  expect(bot.commands).toEqual([
    { command: "help", description: "What can be said to the gateway" },
    { command: "status", description: "How this session stands" },
    { command: "max_age", description: "max-age" },
  ]);
  const refused = await ground();
  refused.server.answerNext("setMyCommands", failed(400, "Bad Request: BOT_COMMANDS_TOO_MUCH"));
  refused.brings({ text: "hi" });
  await refused.listening();
  await refused.heard("hi");
  expect(refused.logged("command menu could not be set")).toHaveLength(1);
});

const photo = (id: string, group: string): Json => ({
  media_group_id: group,
  photo: [{ file_id: id, file_unique_id: id, width: 10, height: 10 }],
});

test("TA1: an album whose parts arrive separately is one message, and later messages follow it", async () => {
  const { brings, listening, host, bot } = await ground();
  const { state } = await listening();
  await state("ready");
  await expect.poll(() => bot.waiting).toBeDefined();
  // The open poll returns only the first part.
  brings({ ...photo("a", "g1"), caption: "our trip" });
  brings(photo("b", "g1"));
  await expect.poll(() => host.received.length).toBe(1);
  brings({ text: "nice?" });
  await expect.poll(() => host.received.length).toBe(2);
  expect(host.received.map(({ text, media }) => [text, media.length])).toEqual([
    ["our trip", 2],
    ["nice?", 0],
  ]);
});

test("TA2: an album that could not be stored arrives again as one message with the same id", async () => {
  const { brings, listening, host } = await ground();
  host.failing = 1;
  const first = brings(photo("a", "g1"));
  brings(photo("b", "g1"));
  await listening();
  await expect.poll(() => host.received.length).toBe(1);
  expect(host.received[0]?.messageId).toBe(String(first.message_id));
  expect(host.received[0]?.media).toHaveLength(2);
});

test("TA2: an album at the end of a full response stays one message if earlier messages arrive again", async () => {
  const { brings, listening, host } = await ground();
  for (let at = 1; at < 50; at += 1) brings({ text: `${at}` });
  brings({ text: "not stored at first", chat: GROUP_CHAT });
  for (let at = 51; at < 99; at += 1) brings({ text: `${at}` });
  const first = brings(photo("a", "g1"));
  brings(photo("b", "g1"));
  // A response has at most 100 updates, so the first one ends before this picture.
  brings(photo("c", "g1"));
  brings({ text: "nice?" });
  const receive = host.receive;
  let failures = 1;
  host.receive = async (message) => {
    if (message.chat.type === "group" && failures-- > 0) throw new Error("the store is not there");
    await receive(message);
  };
  await listening();
  await expect.poll(() => host.received.at(-1)?.text).toBe("nice?");
  const albums = host.received.filter(({ media }) => media.length > 0);
  expect(new Set(albums.map(({ messageId, media }) => `${messageId}: ${media.length}`))).toEqual(
    new Set([`${first.message_id}: 3`]),
  );
});

test("TA3: a picture that comes late for a stored album is a message of its own, even after a crash", async () => {
  const { channel, brings, listening, host } = await ground();
  const [began, stored] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const receive = host.receive;
  host.receive = async (message) => {
    began.resolve();
    await stored.promise;
    await receive(message);
  };
  const first = brings(photo("a", "g1"));
  brings(photo("b", "g1"));
  const { accounts } = await listening();
  await began.promise;
  const late = brings(photo("c", "g1"));
  // The listener stops before it confirms the stored updates, as in a crash.
  const stopped = accounts.stop();
  stored.resolve();
  await stopped;
  await listenAt(channel, host);
  const files = () => new Set(host.received.map(({ messageId, media }) => `${messageId}: ${media.length}`));
  // A message that is stored already arrives again, and the host recognises it by its id.
  await expect.poll(files).toEqual(new Set([`${first.message_id}: 2`, `${late.message_id}: 1`]));
});

test("the log reports a group that became a supergroup, with both ids, and a group that removed the bot", async () => {
  const { brings, server, bot, listening, logged, heard } = await ground();
  brings({ chat: GROUP_CHAT, migrate_to_chat_id: -1_009 });
  server.push(bot, { my_chat_member: { chat: GROUP_CHAT, new_chat_member: { status: "kicked" }, date: 1 } });
  brings({ text: "done" });
  await listening();
  await heard("done");
  expect(logged("became a supergroup")[0]?.fields).toMatchObject({ from: "-5001", to: "-1009" });
  expect(logged("in a chat has changed")[0]?.fields).toMatchObject({ chat: "-5001", status: "kicked" });
});

test("a stop cancels the open poll at once and logs no failure", async () => {
  const { bot, listening, host } = await ground();
  const { accounts, state } = await listening();
  await state("ready");
  await expect.poll(() => bot.waiting).toBeDefined();
  await accounts.stop();
  expect(host.world.logged.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});

test("two accounts are two bots: each receives its own messages and answers under its own name", async () => {
  const { server, bot, host, message } = await ground();
  const token = TOKEN.replace("123456789", "987654321");
  const other = server.addBot(token, "ops_bot");
  const accounts = [account(server.url), account(server.url, { accountId: "ops", botToken: token })];
  const channel = await openChannel("telegram", accounts, host);
  await listenAt(channel, host);
  server.push(bot, { message: message({ text: "to the first" }) });
  server.push(other, { message: message({ text: "to ops" }) });
  await expect.poll(() => host.received.length).toBe(2);
  const heard = host.received.map(({ accountId, text, replyTo }) => [accountId, text, replyTo.accountId]);
  expect(heard.sort()).toEqual([
    ["default", "to the first", "default"],
    ["ops", "to ops", "ops"],
  ]);
  expect(await channel.test?.("ops")).toMatchObject({ ok: true, value: expect.stringContaining("@ops_bot") });
  server.revoke(other);
  expect(await channel.test?.("ops")).toMatchObject({ ok: false });
  expect(await channel.test?.("default")).toMatchObject({ ok: true });
});

test.each([-3_600_000, 0, 3_600_000])(
  "a button works from two seconds after it was sent, by our clock, which differs by %d ms from Telegram's",
  async (differenceMs) => {
    const host = notingHost();
    let now = 1_790_000_000_000 + differenceMs;
    const world = { ...host.world, clock: { ...host.world.clock, now: () => now } };
    const { bot, channel, listening, routes, server } = await ground({}, Object.assign(host, { world }));
    await listening();
    const message = { deliveryId: "d", sessionKey: "agent:main:main", part: 1, parts: 1, text: "May I?" };
    const choices = [{ label: "Allow", command: "/allow x" }];
    expect(await channel.deliver({ ...message, route: routes.direct, choices })).toEqual({ kind: "sent" });
    const [sent] = server.sent;
    if (sent === undefined) throw new Error("nothing was sent");
    const press = () =>
      server.press(bot, { message: sent, from: ADA, data: sent.buttons[0]?.[0]?.callback_data });
    now += 1_999;
    const hasty = press();
    await expect.poll(() => hasty.notice).toBeDefined();
    expect(hasty.notice).toBe("This button has just appeared. Press it again.");
    expect(host.received).toEqual([]);
    now += 1;
    press();
    await expect.poll(() => host.received).toMatchObject([{ text: "/allow x", sentAt: now }]);
  },
);
