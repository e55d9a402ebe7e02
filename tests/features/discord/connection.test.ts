// The bot's connection to Discord, and the recovery after a disconnect (DC1-3, DK1-2, DN1-3, DU1).

import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { openChannel } from "../../../src/channels/registry.ts";
import { type HostParts, recordingHost } from "../../contract/channel.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import {
  BOT,
  DIRECT,
  type DiscordServer,
  HIDDEN,
  ROOM,
  startDiscord,
} from "../../kit/platforms/discord-server.ts";
import { fakeWorld } from "../../kit/world.ts";
import { discordAccount, listeningDiscord } from "./ground.ts";

const HOUR_MS = 3_600_000;

/** Returns a message id whose timestamp is this long ago. */
const idAgo = (ms: number): string => String(BigInt(Date.now() - ms - 1_420_070_400_000) << 22n);

/** Runs the listener directly, without `accounts.ts`, so that the test gets its result. */
async function listening(server: DiscordServer, host: HostParts) {
  const channel = await openChannel("discord", [discordAccount(server.restUrl)], host);
  const stopper = new AbortController();
  let isReady = false;
  const ready = (): void => {
    isReady = true;
  };
  const over = channel.accounts?.[0]?.listen({ signal: stopper.signal, ready }) ?? Promise.resolve();
  const ended = over.then(
    () => undefined,
    (error: unknown) => error,
  );
  return {
    ended,
    ready: () => expect.poll(() => isReady).toBe(true),
    stop: () => stopper.abort(),
  };
}

/**
 * Returns a host that stores messages, or those with this text, only after `release` was called. `begun`: the
 * texts that it was given.
 */
function holdingHost(text?: string) {
  const host = recordingHost();
  const held = Promise.withResolvers<void>();
  const receive = host.receive.bind(host);
  const begun: string[] = [];
  host.receive = async (message) => {
    begun.push(message.text);
    if (text === undefined || message.text === text) await held.promise;
    return receive(message);
  };
  return { host, begun, release: held.resolve };
}

test("DN3, DN1: when Discord asks for a new connection, the bot resumes its session without a log line", async () => {
  const { server, accounts, texts, heard } = await listeningDiscord();
  const since = accounts.statuses()[0]?.since;
  server.say({ channel_id: DIRECT, content: "before" });
  await heard(1);
  server.gateway.reconnect();
  server.say({ channel_id: DIRECT, content: "meanwhile" });
  await expect.poll(() => server.gateway.resumed.length).toBe(1);
  server.say({ channel_id: DIRECT, content: "after" });
  await heard(3);
  expect(texts()).toEqual(["before", "meanwhile", "after"]);
  expect(server.gateway.identified).toHaveLength(1);
  expect(accounts.statuses()[0]).toMatchObject({ state: "ready", since });
});

test("DC3: after Discord asks for a new connection, the old one stays closed, although the library would reopen it", async () => {
  const server = await startDiscord();
  server.rules.heartbeatMs = 100;
  const { texts } = await listeningDiscord({ server });
  server.gateway.reconnect();
  await expect.poll(() => server.gateway.resumed.length).toBe(1);
  // The library would reconnect after half a second. Twelve heartbeats take longer.
  const count = server.gateway.beats.length;
  await expect.poll(() => server.gateway.beats.length).toBeGreaterThan(count + 12);
  expect(server.gateway.resumed).toHaveLength(1);
  expect(server.gateway.connections()).toBe(1);
  server.say({ channel_id: DIRECT, content: "once" });
  await expect.poll(texts).toEqual(["once"]);
});

test("DN1: if an event is being stored when the connection breaks, the bot does not request it again", async () => {
  const { host, begun, release } = holdingHost("slow");
  const { server, texts } = await listeningDiscord({ host });
  for (const content of ["slow", "behind"]) server.say({ channel_id: DIRECT, content });
  await expect.poll(() => begun).toEqual(["slow"]);
  server.gateway.reconnect();
  await expect.poll(() => server.gateway.connections()).toBe(0);
  release();
  await expect.poll(() => server.gateway.resumed).toMatchObject([{ replayed: 0 }]);
  expect(texts()).toEqual(["slow", "behind"]);
});

test("DK1: the first message of a channel stores that channel's read position at once, because a crash may follow", async () => {
  const { server, host, heard } = await listeningDiscord();
  const message = server.say({ channel_id: DIRECT, content: "hello" });
  await heard(1);
  await expect.poll(() => host.cursors.get(`default last:${DIRECT}`)).toBe(message.id);
  expect(host.cursors.get("default channels")).toBe(JSON.stringify([DIRECT]));
});

test("DN1: if the session is lost, a new one starts, and missed messages arrive before new ones", async () => {
  const { server, texts, heard } = await listeningDiscord();
  server.say({ channel_id: DIRECT, content: "before" });
  server.say({ channel_id: ROOM, content: "room" });
  await heard(2);
  server.gateway.forget();
  server.gateway.cut();
  server.say({ channel_id: DIRECT, content: "missed" }, true);
  server.say({ channel_id: ROOM, content: "missed too" }, true);
  await expect.poll(() => server.gateway.identified.length).toBe(2);
  server.say({ channel_id: DIRECT, content: "new" });
  await expect.poll(() => new Set(texts()).size).toBe(5);
  expect(texts()).toContain("missed too");
  expect(texts().indexOf("missed")).toBeLessThan(texts().indexOf("new"));
});

test("DN1, I2: after a short absence Discord sends missed events again, even for channels without earlier messages", async () => {
  const host = recordingHost();
  const server = await startDiscord();
  const first = await listening(server, host);
  await first.ready();
  await expect.poll(() => host.cursors.get("default session")).toContain("session-1");
  first.stop();
  expect(await first.ended).toBeUndefined();
  expect(server.gateway.connections()).toBe(0);
  server.say({ channel_id: DIRECT, content: "are you there?" });
  await listeningDiscord({ server, host });
  await expect.poll(() => host.received.map(({ text }) => text)).toEqual(["are you there?"]);
  expect(server.gateway.identified).toHaveLength(1);
});

test("DU1: after a long disconnection, the missed messages of the last day are read in pages, in order", async () => {
  const host = recordingHost();
  const { server, heard, accounts } = await listeningDiscord({ host });
  server.say({ channel_id: DIRECT, content: "seen" });
  await heard(1);
  await accounts.stop();
  server.gateway.forget();
  host.cursors.set(`default last:${DIRECT}`, idAgo(48 * HOUR_MS));
  server.say({ channel_id: DIRECT, content: "long ago", id: idAgo(30 * HOUR_MS) }, true);
  const missed = Array.from({ length: 230 }, (_, at) => `missed ${at}`);
  for (const content of missed) server.say({ channel_id: DIRECT, content }, true);
  host.received.length = 0;
  const again = await listeningDiscord({ server, host });
  await again.heard(231);
  expect(again.texts()).toEqual(["seen", ...missed]);
  expect(host.cursors.get("default channels")).toBe(JSON.stringify([DIRECT]));
});

test("DU1: of more missed messages than are read, the oldest and the newest arrive", async () => {
  const host = recordingHost();
  const { server, heard, accounts } = await listeningDiscord({ host });
  server.say({ channel_id: DIRECT, content: "seen" });
  await heard(1);
  await accounts.stop();
  server.gateway.forget();
  const missed = Array.from({ length: 5_250 }, (_, at) => `missed ${at}`);
  for (const content of missed) server.say({ channel_id: DIRECT, content }, true);
  host.received.length = 0;
  const again = await listeningDiscord({ server, host });
  await again.heard(5_100);
  server.say({ channel_id: DIRECT, content: "new" });
  await expect.poll(() => again.texts().at(-1)).toBe("new");
  expect(again.texts()).toEqual([...missed.slice(0, 5_000), ...missed.slice(-100), "new"]);
});

test("DN2: a missed message that could not be stored is read again the next time", async () => {
  const host = recordingHost();
  const { server, heard, accounts } = await listeningDiscord({ host });
  server.say({ channel_id: DIRECT, content: "seen" });
  await heard(1);
  await accounts.stop();
  server.gateway.forget();
  server.say({ channel_id: DIRECT, content: "missed" }, true);
  host.failing = Number.POSITIVE_INFINITY;
  const receive = host.receive.bind(host);
  const failed = Promise.withResolvers<void>();
  host.receive = (message) => receive(message).finally(failed.resolve);
  const next = await listening(server, host);
  server.say({ channel_id: DIRECT, content: "new" });
  await failed.promise;
  next.stop();
  expect(await next.ended).toBeUndefined();
  expect(host.cursors.get("default session")).toBe("null");
  host.failing = 0;
  const again = await listeningDiscord({ server, host });
  await expect.poll(() => again.texts()).toEqual(["seen", "missed", "new"]);
});

test("DC2, DK1: an event that is not stored is not acknowledged, and arrives again in its order", async () => {
  const { host, release } = holdingHost("slow");
  const server = await startDiscord();
  server.rules.heartbeatMs = 60;
  const { texts } = await listeningDiscord({ server, host });
  server.say({ channel_id: DIRECT, content: "quick" });
  await expect.poll(texts).toEqual(["quick"]);
  server.say({ channel_id: DIRECT, content: "slow" });
  server.say({ channel_id: DIRECT, content: "behind" });
  // READY, GUILD_CREATE and the first message are processed, but not the fourth event.
  const count = server.gateway.beats.length;
  await expect.poll(() => server.gateway.beats.length).toBeGreaterThan(count + 3);
  expect(server.gateway.beats.at(-1)).toBe(3);
  release();
  await expect.poll(() => server.gateway.beats.at(-1)).toBe(5);
  expect(texts()).toEqual(["quick", "slow", "behind"]);
});

test("if the connection does not answer heartbeats, the bot reconnects and resumes its session", async () => {
  const server = await startDiscord();
  server.rules.heartbeatMs = 60;
  const { texts } = await listeningDiscord({ server });
  server.gateway.deafen();
  await expect.poll(() => server.gateway.resumed.length).toBeGreaterThan(0);
  server.say({ channel_id: DIRECT, content: "hello" });
  await expect.poll(texts).toContain("hello");
});

test("DC1: hostile frames are skipped; account and process continue", async () => {
  const { server, texts, state } = await listeningDiscord();
  const twisted = {
    ...{
      id: "1",
      channel_id: DIRECT,
      author: { id: "3" },
      content: "twisted",
      mentions: "x",
      mention_roles: {},
    },
    ...{ attachments: [null, 7, { url: 5 }], poll: { answers: {} }, referenced_message: "x", flags: {} },
    ...{
      message_reference: { type: 1 },
      message_snapshots: [{ message: [] }],
      sticker_items: [[]],
      member: 5,
    },
  };
  const frames = [
    ...["", "null", "[]", "{", '"x"', "{}", '{"op":"0"}', '{"op":0}', '{"op":0,"t":"READY","s":1,"d":null}'],
    ...[
      '{"op":0,"t":"READY","s":2,"d":{"session_id":5}}',
      '{"op":10}',
      '{"op":10,"d":{"heartbeat_interval":0}}',
    ],
    ...['{"op":9}', '{"op":9,"d":null}', '{"op":99,"d":{}}', '{"op":0,"t":"MESSAGE_CREATE","s":1e308,"d":7}'],
    `{"op":0,"t":"MESSAGE_CREATE","s":4,"d":{"id":"${"9".repeat(400)}","channel_id":{},"author":[]}}`,
    `{"op":0,"t":"MESSAGE_CREATE","s":4,"d":{"id":"1","channel_id":"2","author":{"id":"3"},"content":{"a":1}}}`,
    `{"op":0,"t":"MESSAGE_CREATE","s":4,"d":${JSON.stringify(twisted)}}`,
    `{"op":0,"t":"INTERACTION_CREATE","s":4,"d":{"type":2,"data":{"name":["x"]},"token":{},"member":0}}`,
    `{"op":0,"t":"GUILD_CREATE","s":4,"d":{"id":null,"channels":[{"id":"../..","type":0}],"threads":"x"}}`,
    `{"op":0,"t":"__proto__","s":4,"d":{"__proto__":{"polluted":true}}}`,
  ];
  for (const frame of frames) server.gateway.raw(frame);
  server.say({ channel_id: DIRECT, content: "hello" });
  await expect.poll(() => texts().at(-1)).toBe("hello");
  expect(texts()).toHaveLength(2);
  expect(state()).toBe("ready");
  // Heartbeats begin after a random part of the interval. An interval of zero would cause hundreds of them.
  expect(server.gateway.beats.length).toBeLessThan(3);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("a disabled intent in Discord's portal is reported by name, and the bot retries rarely", async () => {
  const server = await startDiscord();
  server.rules.intents = 1 | (1 << 9) | (1 << 12);
  const { ended } = await listening(server, recordingHost());
  const problem = await ended;
  expect(problem).toMatchObject({
    lasting: true,
    message: expect.stringContaining("Message Content Intent"),
  });
});

test("the bot reports too many connections per day, and an address that is not Discord's", async () => {
  const server = await startDiscord();
  server.rules.startsLeft = 0;
  const tooMany = await listening(server, recordingHost());
  expect(await tooMany.ended).toMatchObject({ lasting: true, message: expect.stringContaining("60 min") });
  server.rules.startsLeft = 1;
  server.fault(/gateway\/bot/, { kind: "status", status: 200, body: { url: "http://elsewhere.example" } });
  const wrong = await listening(server, recordingHost());
  expect(await wrong.ended).toMatchObject({ message: expect.stringContaining("no usable gateway URL") });
  const nobody = recordingHost();
  const channel = await openChannel(
    "discord",
    [discordAccount(new URL("/elsewhere", server.restUrl).href)],
    nobody,
  );
  expect(await channel.test?.("default")).toMatchObject({
    ok: false,
    error: expect.stringContaining("restUrl"),
  });
});

test("the bot disconnects from a gateway that accepts the connection but sends nothing", async () => {
  const server = await startDiscord();
  server.gateway.fallSilent(true);
  const world = fakeWorld();
  const { ended } = await listening(server, { ...recordingHost(), world });
  await expect.poll(() => server.gateway.connections()).toBe(1);
  await world.advance(30_000);
  expect(await ended).toMatchObject({ message: expect.stringContaining("did not answer in time") });
  expect(world.pendingDelays()).toEqual([]);
  await expect.poll(() => server.gateway.connections()).toBe(0);
});

test("DC3: a stop at any time closes every connection", async () => {
  const server = await startDiscord();
  for (let moment = 0; moment < 6; moment += 1) {
    const { ended, stop } = await listening(server, recordingHost());
    const count = server.asked.length;
    await expect.poll(() => server.asked.length >= count + Math.min(moment, 2)).toBe(true);
    for (let turn = 0; turn < moment * 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    stop();
    expect(await ended).toBeUndefined();
    await expect.poll(() => server.gateway.connections()).toBe(0);
  }
});

test("DC3: a stop while a connection is being opened does not wait, and leaves no socket open", async () => {
  const mute = createServer();
  const sockets = new Set<Socket>();
  mute.on("connection", (socket) => {
    sockets.add(
      socket
        .on("error", () => {})
        .on("close", () => sockets.delete(socket))
        .resume(),
    );
  });
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  cleanup(() => new Promise<void>((resolve) => mute.close(() => resolve())));
  const url = `ws://127.0.0.1:${(mute.address() as AddressInfo).port}`;
  const server = await startDiscord();
  server.fault(/gateway\/bot/, { kind: "status", status: 200, body: { url } });
  const { ended, stop } = await listening(server, { ...recordingHost(), world: fakeWorld() });
  await expect.poll(() => sockets.size).toBe(1);
  stop();
  expect(await ended).toBeUndefined();
  await expect.poll(() => sockets.size).toBe(0);
});

test("the bot does not resume the session of another bot, or at an address that must not receive the token", async () => {
  for (const more of [
    { botId: "1" },
    { url: "ftp://elsewhere.example" },
    { restUrl: "https://discord.com/api" },
  ]) {
    const host = recordingHost();
    const server = await startDiscord();
    const session = { id: "s", url: server.gateway.url, sequence: 5, botId: BOT.id, restUrl: server.restUrl };
    host.cursors.set("default session", JSON.stringify({ ...session, ...more }));
    host.cursors.set("default channels", '{"not": "a list"}');
    await listeningDiscord({ server, host });
    expect(server.gateway.identified).toHaveLength(1);
    expect(server.gateway.resumed).toEqual([]);
  }
});

test("if resuming fails, the bot starts a new session and does not try to resume again", async () => {
  const host = recordingHost();
  const server = await startDiscord();
  const session = { id: "s", sequence: 5, botId: BOT.id, restUrl: server.restUrl, url: "ws://127.0.0.1:1" };
  host.cursors.set("default session", JSON.stringify(session));
  await listeningDiscord({ server, host });
  expect(server.gateway.identified).toHaveLength(1);
});

test("a failed request for an unknown channel is retried, and a channel that stays hidden is skipped", async () => {
  const { server, texts } = await listeningDiscord();
  const body = { message: "500", code: 0 };
  server.fault(new RegExp(`^GET /channels/${HIDDEN}$`), { kind: "status", status: 500, body }, 2);
  server.channels.set(HIDDEN, { id: HIDDEN, type: 0, name: "late", guild_id: "1" });
  server.say({ channel_id: HIDDEN, content: "hello" });
  await expect.poll(texts).toEqual(["hello"]);
});
