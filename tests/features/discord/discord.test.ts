// Discord, with a fake of its REST interface and its gateway on real sockets: the contract of all channels,
// and the requests to Discord.

import { describe, expect, test } from "vitest";
import type { OutgoingMessage } from "../../../src/channels/channel.ts";
import { openChannel } from "../../../src/channels/registry.ts";
import { optional } from "../../../src/core/optional.ts";
import { channelContract, recordingHost } from "../../contract/channel.ts";
import {
  ADA,
  BOB,
  BOT,
  DIRECT,
  FORUM,
  HIDDEN,
  NEWS,
  ROOM,
  startDiscord,
  THREAD,
  TOKEN,
} from "../../kit/platforms/discord-server.ts";
import { fakeWorld } from "../../kit/world.ts";
import { discordAccount, openDiscordGround, SEND } from "./ground.ts";

channelContract("Discord", openDiscordGround);

const route = (to: string, threadId?: string) => ({
  ...{ channel: "discord", to, accountId: "default" },
  ...optional({ threadId }),
});

let made = 0;
function text(to: string, said: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
  made += 1;
  const message = { deliveryId: `out-${made}`, sessionKey: "agent:main:main", text: said, part: 1, parts: 1 };
  return { ...message, route: route(to), ...more };
}

async function opened() {
  const server = await startDiscord();
  const channel = await openChannel("discord", [discordAccount(server.restUrl)], recordingHost());
  const asked = (calls: RegExp) => server.asked.filter(({ method, path }) => calls.test(`${method} ${path}`));
  return { server, channel, asked };
}

describe("Discord: outgoing files", () => {
  const bytes = Buffer.from(new Uint8Array(70_000).map((_, at) => at % 251));
  const file = { name: "Übersicht 2.pdf", mimeType: "application/pdf", data: bytes };

  test("a file is sent unchanged with its name and its caption, which notifies nobody", async () => {
    const { server, channel } = await opened();
    expect(await channel.deliver(text(ROOM, "for @everyone", { file }))).toEqual({ kind: "sent" });
    expect(await channel.deliver(text(DIRECT, "", { file }))).toEqual({ kind: "sent" });
    const [{ body } = { body: undefined }, bare] = server.sent;
    expect(body).toMatchObject({ content: "for @everyone", allowed_mentions: { parse: [] } });
    expect(body.files).toHaveLength(1);
    expect(body.files[0]).toMatchObject({ name: "Übersicht 2.pdf" });
    expect(body.files[0].bytes.equals(bytes)).toBe(true);
    expect(bare?.body).toMatchObject({ content: "" });
  });

  test("DO2: an upload whose answer is lost is repeated once, and people see the file once", async () => {
    const { server, channel, asked } = await opened();
    server.fault(SEND, { kind: "cut" });
    expect(await channel.deliver(text(ROOM, "once", { file }))).toEqual({ kind: "sent" });
    expect(server.sent.map(({ body }) => body.files.length)).toEqual([1]);
    expect(asked(SEND)).toHaveLength(2);
  });

  test("a file that is too large for the server is refused", async () => {
    const { server, channel } = await opened();
    server.fault(SEND, {
      kind: "status",
      status: 413,
      body: { message: "Request entity too large", code: 40005 },
    });
    expect(await channel.deliver(text(ROOM, "", { file }))).toMatchObject({ kind: "refused" });
  });
});

describe("Discord: outgoing text", () => {
  test("DO1: text of a model notifies nobody and gets no link preview", async () => {
    const { server, channel } = await opened();
    const said = `@everyone <@${ADA.id}> <@&200000000000000003> see https://example.org`;
    expect(await channel.deliver(text(ROOM, said))).toEqual({ kind: "sent" });
    const { body } = server.sent[0] ?? {};
    expect(body).toMatchObject({ content: said, allowed_mentions: { parse: [] }, flags: 4 });
  });

  test("DO2: if the result of an attempt is unknown, it is repeated once, and people see the text once", async () => {
    const { server, channel, asked } = await opened();
    server.fault(SEND, { kind: "cut" });
    expect(await channel.deliver(text(ROOM, "once"))).toEqual({ kind: "sent" });
    expect(server.sent.map(({ body }) => body.content)).toEqual(["once"]);
    expect(asked(SEND)).toHaveLength(2);
  });

  test("DO2: the parts of a text have different nonces, and so have two equal texts", async () => {
    const { server, channel } = await opened();
    const first = text(ROOM, "same", { deliveryId: "d", part: 1, parts: 2 });
    await channel.deliver(first);
    await channel.deliver({ ...first, part: 2 });
    await channel.deliver(text(ROOM, "same"));
    expect(server.sent).toHaveLength(3);
    const nonces = server.sent.map(({ body }) => body.nonce as string);
    expect(new Set(nonces).size).toBe(3);
    expect(nonces.every((nonce) => nonce.length <= 25)).toBe(true);
  });

  test("DO2, I5: if the repetition fails, the outcome stays unknown, because the first attempt may have succeeded", async () => {
    const { server, channel } = await opened();
    server.fault(SEND, { kind: "cut" });
    server.fault(SEND, { kind: "status", status: 403, body: { message: "Missing Access", code: 50001 } });
    expect((await channel.deliver(text(ROOM, "perhaps"))).kind).toBe("unknown");
    expect(server.sent).toHaveLength(1);
  });

  test("I5: a success status with an unreadable body is a success", async () => {
    const { server, channel } = await opened();
    server.fault(SEND, { kind: "text", text: "{ not json" });
    expect(await channel.deliver(text(ROOM, "hello"))).toEqual({ kind: "sent" });
  });

  test.each([502, 503])(
    "I5: status %i means that the text was not sent, and it is retried later",
    async (status) => {
      const { server, channel, asked } = await opened();
      server.fault(SEND, { kind: "status", status, body: {} });
      expect((await channel.deliver(text(ROOM, "later"))).kind).toBe("retry");
      expect(asked(SEND)).toHaveLength(1);
    },
  );

  test("I5: if no answer arrives in time, the outcome is unknown", async () => {
    const server = await startDiscord();
    const world = fakeWorld();
    const channel = await openChannel("discord", [discordAccount(server.restUrl)], {
      ...recordingHost(),
      world,
    });
    server.fault(SEND, { kind: "hang" }, 2);
    const delivered = channel.deliver(text(ROOM, "hello"));
    const calls = () => server.asked.filter(({ path }) => path.endsWith("/messages")).length;
    for (const count of [1, 2]) {
      await expect.poll(calls).toBe(count);
      await world.advance(15_000);
    }
    expect(await delivered).toMatchObject({ kind: "unknown", error: expect.stringContaining("15 s") });
    expect(world.pendingDelays()).toEqual([]);
  });

  test("after a rate limit, no request is sent until it is over", async () => {
    const { server, channel, asked } = await opened();
    const headers = {
      "x-ratelimit-limit": "5",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset-after": "30",
    };
    server.fault(SEND, { kind: "status", status: 200, body: { id: "1" }, headers });
    expect(await channel.deliver(text(ROOM, "one"))).toEqual({ kind: "sent" });
    const second = await channel.deliver(text(ROOM, "two"));
    expect(second.kind === "retry" && (second.afterMs ?? 0)).toBeGreaterThan(25_000);
    expect(asked(SEND)).toHaveLength(1);
  });

  test("if the token is refused, the text is tried again later, because the operator may correct it in the portal", async () => {
    const { server, channel } = await opened();
    server.rules.token = "another";
    const refused = await channel.deliver(text(ROOM, "hello"));
    expect(refused).toMatchObject({
      kind: "retry",
      error: expect.stringContaining("channels.discord.token"),
    });
    expect(JSON.stringify(refused)).not.toContain(TOKEN);
    server.rules.token = TOKEN;
    expect(await channel.deliver(text(ROOM, "hello"))).toEqual({ kind: "sent" });
  });

  test("a text to a person goes to their direct chat, which is looked up only once", async () => {
    const { server, channel, asked } = await opened();
    expect(await channel.deliver(text(ADA.id, "hello"))).toEqual({ kind: "sent" });
    expect(await channel.deliver(text(BOB.id, "you too"))).toEqual({ kind: "sent" });
    expect(await channel.deliver(text(ADA.id, "again"))).toEqual({ kind: "sent" });
    await channel.typing?.(route(ADA.id));
    expect(server.sent[0]?.channelId).toBe(DIRECT);
    expect(server.channels.get(server.sent[1]?.channelId ?? "")?.recipients).toEqual([BOB]);
    expect(asked(/^POST \/users\/@me\/channels$/)).toHaveLength(2);
    expect(asked(/typing$/)[0]?.path).toContain(DIRECT);
  });

  test.each([
    [HIDDEN, "View Channel"],
    ["999999999999999999", "no such channel"],
    [FORUM, "text can't be sent"],
    ["general", "is not a Discord id"],
    ["../../users/@me", "is not a Discord id"],
  ])("the error explains why a chat accepts no text (%s)", async (to, words) => {
    const { server, channel } = await opened();
    server.channels.set(HIDDEN, { id: HIDDEN, type: 0, guild_id: "1" });
    const outcome = await channel.deliver(text(to, "hello"));
    expect(outcome).toMatchObject({ kind: "refused", error: expect.stringContaining(words) });
  });

  test("each account writes with its own token to its own server", async () => {
    const [one, two] = [await startDiscord(), await startDiscord()];
    two.rules.token = "the-second-token";
    const second = { accountId: "second", token: "the-second-token" };
    const accounts = [discordAccount(one.restUrl), discordAccount(two.restUrl, second)];
    const channel = await openChannel("discord", accounts, recordingHost());
    const to = (accountId: string) => text(ROOM, accountId, { route: { ...route(ROOM), accountId } });
    await channel.deliver(to("second"));
    await channel.deliver(to("default"));
    expect(await channel.test?.("second")).toEqual({ ok: true, value: `parley (${BOT.id})` });
    expect([one, two].map(({ sent }) => sent.map(({ body }) => body.content))).toEqual([
      ["default"],
      ["second"],
    ]);
    expect(await channel.test?.("third")).toMatchObject({
      ok: false,
      error: expect.stringContaining("third"),
    });
  });
});

describe("Discord: threads", () => {
  test("a thread is opened in a channel, and text is sent to it", async () => {
    const { server, channel } = await opened();
    const thread = await channel.openThread?.(route(ROOM), "  a job\n\u202Efor you ");
    if (thread?.ok !== true) throw new Error(thread?.error);
    const { threadId = "" } = thread.value.route;
    expect(thread.value).toEqual({ kind: "created", route: route(ROOM, threadId) });
    expect(server.channels.get(threadId)).toMatchObject({
      type: 11,
      parent_id: ROOM,
      name: "a job \\u{202e}for you",
    });
    expect(await channel.deliver(text(ROOM, "first", { route: thread.value.route }))).toEqual({
      kind: "sent",
    });
    expect(server.sent[0]?.channelId).toBe(threadId);
  });

  test("a thread can be opened next to a thread, in a forum with a message, and in an announcement channel", async () => {
    const { server, channel } = await opened();
    for (const at of [route(ROOM, THREAD), route(FORUM), route(NEWS)]) {
      const thread = await channel.openThread?.(at, "t".repeat(300));
      expect(thread).toMatchObject({ ok: true, value: { route: { to: at.to } } });
      const made = thread?.ok === true ? server.channels.get(thread.value.route.threadId ?? "") : undefined;
      expect(made).toMatchObject({ parent_id: at.to, name: "t".repeat(100) });
    }
  });

  test("direct messages have no threads, and the error says so", async () => {
    const { server, channel } = await opened();
    expect(await channel.openThread?.(route(DIRECT), "x")).toMatchObject({
      ok: false,
      error: "Discord has no threads in direct messages",
    });
    const body = { message: "Missing Permissions", code: 50013 };
    server.fault(/threads$/, { kind: "status", status: 403, body });
    expect(await channel.openThread?.(route(ROOM), "x")).toMatchObject({
      ok: false,
      error: expect.stringContaining("Create Public Threads"),
    });
    expect(await channel.openThread?.(route("room"), "x")).toMatchObject({ ok: false });
  });

  test("a message to an archived thread reopens it", async () => {
    const { server, channel } = await opened();
    server.channels.set(THREAD, { ...server.channels.get(THREAD), thread_metadata: { archived: true } });
    expect(await channel.deliver(text(ROOM, "back", { route: route(ROOM, THREAD) }))).toEqual({
      kind: "sent",
    });
    expect(server.channels.get(THREAD).thread_metadata.archived).toBe(false);
  });
});
