// Channels that follow a change of the configuration file, without a restart of the gateway.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ServedRequest } from "../../kit/model-server/requests.ts";
import { startTelegram, type TelegramServer } from "../../kit/platforms/telegram/server.ts";
import type { Answer, FakeBot, Json } from "../../kit/platforms/telegram/state.ts";
import { until } from "../../kit/until.ts";
import { type Json as Fields, openFollowing } from "./kit.ts";

type House = Awaited<ReturnType<typeof openFollowing>>;

const TOKENS = ["111111111:AAH-not-a-real-token-of-any-bot-0", "222222222:AAH-not-a-real-token-of-any-bot-0"];
const ADA = 1001;

/** Saves other settings. Resolves when the gateway has read them. */
async function change(house: House, settings: Fields): Promise<void> {
  const count = house.told.length;
  house.put(settings);
  house.reload();
  await until(() => house.told.length > count);
  expect(house.told.at(-1)).toMatchObject({ ok: true, restart: [] });
}

async function platform() {
  const server = await startTelegram();
  const [first, second] = TOKENS.map((token, at) => server.addBot(token, `bot_${at}`));
  if (first === undefined || second === undefined) throw new Error("there are two tokens");
  server.addChat({ id: ADA, type: "private" });
  const telegram = (more: Fields = {}): Fields => ({
    channels: {
      telegram: {
        ...{ botToken: TOKENS[0], apiRoot: server.url, dmPolicy: "open", allowFrom: ["*"] },
        ...{ inbound: { debounceMs: 0 }, ...more },
      },
    },
  });
  return { server, first, second, telegram };
}

let lastMessageId = 100;

function says(server: TelegramServer, bot: FakeBot, text: string): void {
  lastMessageId += 1;
  const chat: Json = { id: ADA, type: "private", first_name: "Ada" };
  const from: Json = { id: ADA, is_bot: false, first_name: "Ada" };
  server.push(bot, { message: { message_id: lastMessageId, date: 1_790_000_000, chat, from, text } });
}

const sent = (server: TelegramServer): string[] => server.sent.map(({ text }) => text);

const stateOf = async ({ client }: House): Promise<string | undefined> => {
  const { channels } = await client.request("channels.status", {});
  return channels.find(({ id }) => id === "telegram:default")?.state;
};

const echo = ({ lastUserText }: ServedRequest): string => `you said ${lastUserText}`;

test("a channel that is added answers, another bot takes its place, and a removed one is silent", async () => {
  const { server, first, second, telegram } = await platform();
  const house = await openFollowing(echo);
  says(server, first, "too early");
  await change(house, telegram());
  await expect.poll(() => sent(server)).toEqual([expect.stringContaining("too early")]);
  expect(await stateOf(house)).toBe("ready");

  says(server, second, "for the second bot");
  await change(house, telegram({ botToken: TOKENS[1] }));
  await expect.poll(() => sent(server)).toEqual([expect.anything(), expect.stringContaining("second bot")]);
  says(server, first, "for the first bot");
  says(server, second, "for the second bot again");
  await expect.poll(() => sent(server)).toHaveLength(3);
  expect(sent(server)[2]).toContain("again");

  await change(house, {});
  await expect.poll(() => stateOf(house)).toBeUndefined();
  says(server, second, "is anybody there?");
  await change(house, telegram({ botToken: TOKENS[1] }));
  await expect.poll(() => sent(server)).toHaveLength(4);
  expect(sent(server)[3]).toContain("is anybody there?");
});

test("LC1: a message that comes while its bot is opened again is answered once", async () => {
  const { server, first, telegram } = await platform();
  const house = await openFollowing(echo, telegram());
  await expect.poll(() => stateOf(house)).toBe("ready");
  const { url } = server;
  for (let round = 0; round < 8; round += 1) {
    says(server, first, `message ${round}`);
    await change(house, telegram({ apiRoot: round % 2 === 0 ? `${url}/` : url }));
  }
  await expect.poll(() => sent(server).length).toBe(8);
  await expect.poll(() => stateOf(house)).toBe("ready");
  expect(new Set(sent(server)).size).toBe(8);
  const runs = await house.app.store.db.selectFrom("runs").select("state").execute();
  expect(runs).toHaveLength(8);
});

test("LC2: a text under way is sent to its end by the channel that began it, and is not repeated", async () => {
  const { server, first, telegram } = await platform();
  const house = await openFollowing(echo, telegram());
  const held = Promise.withResolvers<Answer>();
  server.answerNext("sendMessage", held.promise);
  says(server, first, "hello");
  const sends = () => server.calls.filter(({ method }) => method === "sendMessage").length;
  await expect.poll(sends).toBe(1);
  await change(house, telegram({ botToken: TOKENS[1] }));
  await expect.poll(() => stateOf(house)).toBe("ready");
  held.resolve({ status: 200, body: { ok: true, result: { message_id: 7 } } });
  const deliveries = async () => (await house.client.request("deliveries.list", {})).deliveries;
  await expect.poll(async () => (await deliveries()).map(({ state }) => state)).toEqual(["sent"]);
  expect(sends()).toBe(1);
});

test("LC3: a rule of admission holds from the next message on, and interrupts no connection", async () => {
  const { server, first, telegram } = await platform();
  const house = await openFollowing(echo, telegram());
  await expect.poll(() => stateOf(house)).toBe("ready");
  const starts = () => server.calls.filter(({ method }) => method === "getMe").length;
  const before = starts();
  await change(house, telegram({ dmPolicy: "disabled" }));
  says(server, first, "not allowed");
  await expect.poll(() => first.updates.length).toBe(0);
  await change(house, telegram());
  says(server, first, "allowed");
  await expect.poll(() => sent(server)).toEqual([expect.stringContaining("allowed")]);
  expect(sent(server)[0]).not.toContain("not allowed");
  expect(starts()).toBe(before);
});

test("a channel with a wrong token says so, and works again with a right one", async () => {
  const { server, first, telegram } = await platform();
  const house = await openFollowing(
    echo,
    telegram({ botToken: "333333333:AAH-not-a-real-token-of-any-bot-0" }),
  );
  await expect.poll(() => stateOf(house)).toBe("retrying");
  await change(house, telegram());
  says(server, first, "hello");
  await expect.poll(() => sent(server)).toEqual([expect.stringContaining("hello")]);
  await house.client.request("channels.test", { channel: "telegram" });
});

test("a token that is not in the file yet is tested by its form and at its platform; nothing is written", async () => {
  const { telegram } = await platform();
  const house = await openFollowing(
    () => "an answer",
    telegram({ botToken: "333333333:AAH-no-bot-has-this-token-0" }),
  );
  const before = readFileSync(house.path, "utf8");
  const outcome = (values: Record<string, string>) =>
    house.client.request("channels.test", { channel: "telegram", values }).then(
      ({ name }) => name,
      (error: Error) => error.message,
    );
  expect(await outcome({ botToken: "x" })).toMatch("A token looks like");
  expect(await outcome({ apiRoot: "http://127.0.0.1:9" })).toMatch("values may have botToken");
  expect(await outcome({ botToken: "444444444:AAH-no-bot-has-this-token-0" })).toMatch(
    "there is no such bot",
  );
  expect(await outcome({ botToken: TOKENS[1] ?? "" })).toMatch("bot_1");
  expect(readFileSync(house.path, "utf8")).toBe(before);
  expect(house.told).toEqual([]);
});
