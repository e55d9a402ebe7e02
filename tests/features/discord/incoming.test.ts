// Discord events that become messages: DI1-3, DT1, DM1, DS1-2 of src/features/discord.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { recordingHost } from "../../contract/channel.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import {
  ADA,
  BOB,
  BOT,
  BOT_ROLE,
  DIRECT,
  FORUM,
  GUILD,
  type Json,
  OTHER_ROLE,
  ROOM,
  startDiscord,
  THREAD,
} from "../../kit/platforms/discord-server.ts";
import { listeningDiscord } from "./ground.ts";

const never = new AbortController().signal;

/**
 * Sends a message in a new chat and waits until its read position is stored. This is done in the order of the
 * events, so earlier events are then finished, too.
 */
async function said({
  server,
  host,
}: Awaited<ReturnType<typeof listeningDiscord>>): Promise<readonly Json[]> {
  const chat = server.nextId();
  server.channels.set(chat, { id: chat, type: 1, recipients: [ADA] });
  server.say({ channel_id: chat, content: "the end" });
  await expect.poll(() => host.cursors.has(`default last:${chat}`)).toBe(true);
  return host.received.filter(({ text }) => text !== "the end");
}

test("DI3: a direct chat has the person's id; a group setting can name a channel or its server", async () => {
  const ground = await listeningDiscord();
  ground.server.say({ channel_id: DIRECT, author: { ...ADA, username: "owner" }, content: "hi" });
  ground.server.say({ channel_id: ROOM, content: "hi", member: { nick: "Countess" } });
  const [direct, room] = await said(ground);
  expect(direct?.chat).toEqual({ type: "direct", id: ADA.id });
  expect(direct?.sender).toEqual({ id: ADA.id, name: "Ada" });
  expect(room?.chat).toEqual({ type: "channel", id: ROOM, name: "general", alsoKnownAs: [GUILD] });
  expect(room?.sender).toEqual({ id: ADA.id, name: "Countess" });
});

test("DI2: a thread is identified by its parent and its own id, even if it is unknown or a forum post", async () => {
  const ground = await listeningDiscord();
  const { server } = ground;
  const post = "450000000000000001";
  server.channels.set(post, { id: post, type: 11, name: "How?", guild_id: GUILD, parent_id: FORUM });
  server.say({ channel_id: THREAD, content: "one" });
  server.say({ channel_id: post, content: "two" });
  server.say({ channel_id: post, content: "three" });
  const [one, two, three] = await said(ground);
  expect(one?.chat).toMatchObject({
    id: ROOM,
    name: "general",
    thread: { kind: "thread", id: THREAD, name: "plans" },
  });
  expect(one?.replyTo).toEqual({ channel: "discord", to: ROOM, threadId: THREAD, accountId: "default" });
  expect(two?.replyTo).toMatchObject({ to: FORUM, threadId: post });
  expect(three?.chat).toEqual(two?.chat);
  expect(server.asked.filter(({ path }) => path === `/channels/${post}`)).toHaveLength(1);
});

test("a message of a deleted channel is skipped, and the other messages are read", async () => {
  const ground = await listeningDiscord();
  const message = { ...ground.server.say({ channel_id: DIRECT, content: "x" }, true), guild_id: GUILD };
  ground.server.gateway.dispatch("MESSAGE_CREATE", { ...message, channel_id: "499999999999999999" });
  expect(await said(ground)).toEqual([]);
});

test("a mention is the bot's name, its own role, or a reply to it, but not @everyone or another role", async () => {
  const ground = await listeningDiscord();
  const { server } = ground;
  const room = (more: Json) => server.say({ channel_id: ROOM, ...more });
  room({ content: `<@!${BOT.id}>  hello`, mentions: [BOT] });
  room({ content: `<@&${BOT_ROLE}> hello`, mention_roles: [BOT_ROLE] });
  room({ content: "hello", type: 19, referenced_message: { id: "1", author: BOT, content: "yes?" } });
  room({ content: "@everyone hello", mention_everyone: true });
  room({ content: `<@&${OTHER_ROLE}> hello`, mention_roles: [OTHER_ROLE] });
  room({ content: `<@${BOT.id}>`, mentions: [BOT] });
  const heard = await said(ground);
  expect(heard.map(({ mentioned, text }) => [mentioned, text])).toEqual([
    [true, "hello"],
    [true, "hello"],
    [true, "hello"],
    [false, "@everyone hello"],
    [false, "@editors hello"],
    [true, "[mention without text]"],
  ]);
  expect(heard[2]?.quoted).toEqual({ text: "yes?", senderName: "parley" });
  expect(server.asked.filter(({ path }) => path.endsWith("/roles"))).toHaveLength(1);
});

test("ids in a text are replaced by names if they are known", async () => {
  const ground = await listeningDiscord();
  const content = `<@${BOB.id}> and <@${BOT.id}>: see <#${ROOM}>, <#123456789012345678> <:wave:1> <a:dance:2> <@9>`;
  ground.server.say({ channel_id: ROOM, content, mentions: [BOB, BOT] });
  const [message] = await said(ground);
  expect(message?.text).toBe("@Bob and @parley: see #general, <#123456789012345678> :wave: :dance: <@9>");
});

test("content that is not text becomes a note; forwarded text is marked as forwarded", async () => {
  const ground = await listeningDiscord();
  const direct = (more: Json) => ground.server.say({ channel_id: DIRECT, ...more });
  direct({ sticker_items: [{ id: "1", name: "Wave\n[evil]", format_type: 1 }] });
  const answers = ["tea", "coffee"].map((text) => ({ poll_media: { text } }));
  direct({ poll: { question: { text: "Which?" }, answers } });
  direct({ content: "look https://x", embeds: [{ title: "X" }] });
  direct({ embeds: [{ title: "X" }] });
  const snapshot = { message: { content: "the plan", attachments: [] } };
  direct({ message_reference: { type: 1 }, message_snapshots: [snapshot] });
  const heard = await said(ground);
  expect(heard.map(({ text }) => text)).toEqual([
    "[sticker: Wave [evil]]",
    "[poll: Which? tea | coffee]",
    "look https://x",
    "[embed: X]",
    "[forwarded]\nthe plan",
  ]);
  expect(heard.map(({ forwarded }) => forwarded === true)).toEqual([false, false, false, false, true]);
});

const RELEASE = {
  type: "rich",
  title: "Release\n2.0",
  url: "https://example.org/2",
  author: { name: "Build", url: "https://ci.example" },
  description: `What is *new* in <#${ROOM}>\n- much`,
  fields: [{ name: "Branch", value: "main" }, { value: "no name" }, { name: "no value" }, 7],
  footer: { text: "took 3 s" },
};
const RELEASE_TEXT = [
  "[embed: Release 2.0]",
  "https://example.org/2",
  "Build (https://ci.example)",
  "What is *new* in #general",
  "- much",
  "Branch: main",
  "no name",
  "no value",
  "took 3 s",
].join("\n");

test("an embed is read whole, also in a forwarded message and in a quoted one that has text", async () => {
  const ground = await listeningDiscord();
  const room = (more: Json) => ground.server.say({ channel_id: ROOM, ...more });
  room({ embeds: [RELEASE, { description: "only this" }] });
  const snapshot = { message: { content: "Done:", embeds: [RELEASE], attachments: [] } };
  room({ message_reference: { type: 1 }, message_snapshots: [snapshot] });
  const referenced_message = { id: "1", author: BOT, content: "Done:", embeds: [RELEASE] };
  room({ content: "nice", type: 19, referenced_message });
  const [embeds, forwarded, reply] = await said(ground);
  expect(embeds?.text).toBe(`${RELEASE_TEXT}\n[embed]\nonly this`);
  expect(forwarded?.text).toBe(`[forwarded]\nDone:\n${RELEASE_TEXT}`);
  expect(reply).toMatchObject({ text: "nice", quoted: { text: `Done:\n${RELEASE_TEXT}` } });
});

test("the preview of a link is not read, and the largest embeds are bounded", async () => {
  const ground = await listeningDiscord();
  const direct = (more: Json) => ground.server.say({ channel_id: DIRECT, ...more });
  direct({ content: `look ${RELEASE.url}`, embeds: [RELEASE] });
  direct({ content: "look https://x.example", embeds: [{ ...RELEASE, type: "article" }] });
  const fields = Array(25).fill({ name: "n".repeat(20), value: "v".repeat(150) });
  direct({ embeds: [{ title: "Large", description: "d".repeat(1_500), fields }] });
  direct({ embeds: Array(10).fill({ description: "👨‍👩‍👧‍👦".repeat(10_000) }) });
  const [own, article, large, hostile] = await said(ground);
  expect([own?.text, article?.text]).toEqual([`look ${RELEASE.url}`, "look https://x.example"]);
  expect(large?.text).toHaveLength(14 + 1_501 + 25 * 173);
  expect(hostile?.text.length).toBeLessThan(15_000);
  expect(hostile?.text).toMatch(/^\[embed\]\n(?:👨‍👩‍👧‍👦)+…$/u);
});

test("items of a list that are not objects are ignored", async () => {
  const ground = await listeningDiscord();
  const junk = { attachments: [null, 7, "x"], sticker_items: ["x"], embeds: [null], mentions: [1] };
  ground.server.say({ channel_id: DIRECT, content: "", ...junk });
  ground.server.say({ channel_id: DIRECT, content: "hello", ...junk });
  const heard = await said(ground);
  expect(heard.map(({ text, media }) => ({ text, media }))).toEqual([{ text: "hello", media: [] }]);
});

test("DI1: messages of bots, web hooks, Discord and the bot itself are ignored, and so are empty ones", async () => {
  const ground = await listeningDiscord();
  const room = (more: Json) => ground.server.say({ channel_id: ROOM, content: "psst", ...more });
  room({ author: { ...BOB, bot: true } });
  room({ author: BOT });
  room({ author: { ...BOB, system: true } });
  room({ webhook_id: "1" });
  room({ type: 7 });
  room({ type: 21 });
  room({ content: "" });
  room({ author: undefined });
  await ground.channel.deliver({
    ...{ deliveryId: "d", sessionKey: "s", text: "mine", part: 1, parts: 1 },
    route: { channel: "discord", to: ROOM },
  });
  expect(await said(ground)).toEqual([]);
});

test("a change of the text by its author is an edit; a link preview or a pin is not", async () => {
  const ground = await listeningDiscord();
  const { server } = ground;
  const message = server.say({ channel_id: DIRECT, content: "first" });
  server.change(message, { embeds: [{ title: "X" }] });
  server.change(message, { edited_timestamp: new Date(Date.now() - 86_400_000).toISOString() });
  server.change(message, { content: "second", edited_timestamp: new Date(Date.now() - 2_000).toISOString() });
  server.change(message, { content: "third", edited_timestamp: new Date().toISOString() });
  server.gateway.dispatch("MESSAGE_UPDATE", { id: message.id, channel_id: DIRECT, embeds: [] });
  const heard = await said(ground);
  expect(heard.map(({ text }) => text)).toEqual(["first", "second", "third"]);
  expect(new Set(heard.map(({ messageId }) => messageId)).size).toBe(1);
  expect(new Set(heard.map(({ edit }) => edit)).size).toBe(3);
});

test("DM1: files are read from Discord only, without the token and without redirects", async () => {
  const asked: string[] = [];
  const elsewhere = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end("secret of this machine");
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  cleanup(() => new Promise<void>((resolve) => elsewhere.close(() => resolve())));
  const foreign = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/x`;
  const ground = await listeningDiscord();
  const { server } = ground;
  const kept = server.keep("voice-message.ogg", new Uint8Array([1, 2, 3]));
  const moved = new URL(kept);
  server.fault(/moved/, { kind: "status", status: 302, headers: { location: foreign } });
  const urls = [
    kept,
    foreign,
    new URL("/moved", moved).href,
    "file:///etc/passwd",
    "https://cdn.discordapp.com.evil/x",
  ];
  const attachments = urls.map((url) => ({ filename: "a", content_type: "audio/ogg; codecs=opus", url }));
  server.say({ channel_id: DIRECT, flags: 1 << 13, attachments });
  const [message] = await said(ground);
  expect(message?.media[0]).toMatchObject({ kind: "voice", mimeType: "audio/ogg", name: "a" });
  const loaded = await Promise.all(message?.media.map((one: Json) => one.load(100, never)));
  expect(loaded.map(({ ok }) => ok)).toEqual([true, false, false, false, false]);
  expect(asked).toEqual([]);
  const files = server.asked.filter(
    ({ path }) => !path.startsWith("/channels") && path.includes("attachments"),
  );
  expect(files.map(({ authorization }) => authorization)).toEqual([undefined]);
});

test("DS1: the command menu is written only if it differs from the one on Discord", async () => {
  const server = await startDiscord();
  const writes = () => server.asked.filter(({ method }) => method === "PUT").length;
  const reads = () =>
    server.asked.filter(({ method, path }) => method === "GET" && path.endsWith("/commands")).length;
  await listeningDiscord({ server });
  await expect.poll(() => server.commands.map(({ name }) => name)).toEqual(["help", "status"]);
  await listeningDiscord({ server });
  await expect.poll(reads).toBe(2);
  expect(writes()).toBe(1);
  const host = { ...recordingHost(), commands: [{ name: "help", description: "Other words" }] };
  await listeningDiscord({ server, host });
  await expect.poll(() => server.commands.map(({ description }) => description)).toEqual(["Other words"]);
  expect(writes()).toBe(2);
});

test("DS2: messages arrive even if the command menu can't be written", async () => {
  const server = await startDiscord();
  server.fault(
    /applications/,
    { kind: "status", status: 403, body: { message: "Missing Access", code: 50001 } },
    9,
  );
  const ground = await listeningDiscord({ server });
  server.say({ channel_id: DIRECT, content: "hello" });
  expect(await said(ground)).toMatchObject([{ text: "hello" }]);
});

test("a command chosen from the menu is a message, and is acknowledged after it is stored", async () => {
  const ground = await listeningDiscord();
  const { server, host } = ground;
  const call = (more: Json = {}) => {
    const id = server.nextId();
    const data = { name: "help", type: 1, options: [{ name: "text", type: 3, value: "with this" }] };
    const interaction = { id, type: 2, token: `token-of-${id}`, channel_id: THREAD, guild_id: GUILD, data };
    server.gateway.dispatch("INTERACTION_CREATE", {
      ...interaction,
      member: { user: BOB, nick: "Bobby" },
      ...more,
    });
    return id;
  };
  const answered = () =>
    server.asked
      .filter(({ path }) => path.startsWith("/interactions/"))
      .map(({ path, body }) => [path.split("/")[2], body]);
  host.failing = 1;
  const id = call();
  await ground.heard(1);
  expect(host.received[0]).toMatchObject({
    ...{ messageId: id, text: "/help with this", nativeCommand: true, mentioned: true },
    ...{ sender: { id: BOB.id, name: "Bobby" }, replyTo: { to: ROOM, threadId: THREAD } },
  });
  await expect.poll(answered).toEqual([[id, { type: 4, data: { content: "Taken.", flags: 64 } }]]);
  const elsewhere = call({ context: 2, guild_id: undefined });
  await expect.poll(() => answered().length).toBe(2);
  expect(answered()[1]?.[0]).toBe(elsewhere);
  call({ type: 3 });
  call({ token: undefined });
  await expect.poll(() => host.received.length).toBe(1);
});
