// `parley channels`: setting up, testing and listing accounts, and admitting people, with a real socket and
// gateway.

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { GUIDES } from "../../src/cli/channels/guides.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { startTelegram, type TelegramServer } from "../kit/platforms/telegram/server.ts";
import { call, makeHome, run, runJson, startGateway } from "./kit.ts";

const BOT_TOKEN = "123456789:AAH-not-a-real-token-of-any-bot-0";
const ADA = { id: 1001, is_bot: false, first_name: "Ada" };

async function platform(): Promise<TelegramServer> {
  const server = await startTelegram();
  server.addBot(BOT_TOKEN, "parley_test_bot");
  server.addChat({ id: ADA.id, type: "private" });
  cleanup(() => server.close());
  return server;
}

const fileOf = (home: string): string => join(home, ".parley", "parley.json5");

function says(server: TelegramServer, text: string): void {
  const [bot] = server.bots;
  if (bot === undefined) throw new Error("no bot");
  server.nextMessageId += 1;
  const chat = { id: ADA.id, type: "private", first_name: "Ada" };
  const message = { message_id: server.nextMessageId, date: 1_790_000_000, chat, from: ADA, text };
  server.push(bot, { message });
}

test("channels add tests an account and writes it to the file; the account works when the gateway is started", async () => {
  const server = await platform();
  const { home } = await makeHome();
  const before = readFileSync(fileOf(home), "utf8");
  writeFileSync(fileOf(home), `// mine\n${before}`, { mode: 0o600 });
  const added = await run(home, [
    ...["channels", "add", "telegram", "--set", `botToken=${BOT_TOKEN}`, `apiRoot=${server.url}`],
  ]);
  expect(added).toMatchObject({ code: 0 });
  expect(added.out).toContain("Added telegram:default to ");
  expect(added.out).toContain("1. Start the gateway. If it is running, it listens now.");
  expect(added.err).toContain("parley_test_bot");
  const after = readFileSync(fileOf(home), "utf8");
  expect(after).toMatch(/^\/\/ mine\n/);
  expect(statSync(fileOf(home)).mode & 0o777).toBe(0o600);
  const again = await run(home, ["channels", "add", "telegram", "--set", `botToken=${BOT_TOKEN}`]);
  expect(again.code).toBe(1);
  expect(again.err).toContain("channels.telegram already exists");
  expect(readFileSync(fileOf(home), "utf8")).toBe(after);

  await startGateway(home);
  await expect.poll(async () => (await run(home, ["channels"])).out).toMatch(/telegram:default +ready/);
  expect((await run(home, ["channels", "test"])).out).toMatch(/✓ telegram:default: .*parley_test_bot/);
  expect(await run(home, ["channels", "test", "telegram:other"])).toMatchObject({ code: 1 });

  says(server, "hello");
  await expect.poll(() => server.sent.length).toBe(1);
  const code = /approve ([A-Z0-9]{8})/.exec(server.sent[0]?.text ?? "")?.[1] ?? "";
  expect((await run(home, ["channels", "pair"])).out).toMatch(
    new RegExp(`${code} +pending +telegram:default +1001 +Ada`),
  );
  const approved = await run(home, ["channels", "pair", "approve", code]);
  expect(approved.out).toContain("telegram:1001 (Ada) is approved and can write now.");
  says(server, "hello again");
  await expect.poll(() => server.sent.length).toBeGreaterThan(2);
  expect((await run(home, ["channels", "pair", "approve", code])).code).toBe(1);
  expect((await run(home, ["channels", "pair", "remove", "telegram:1001"])).out).toContain(
    "no longer has access",
  );
  expect(await runJson(home, ["channels", "pair"])).toEqual({ peers: [] });
  expect((await run(home, ["channels", "bindings"])).out).toContain("(no bindings)");
  expect((await run(home, ["channels", "unbind", "main"])).out).toContain("has no bindings");
});

test("channels add reports a wrong token and writes nothing", async () => {
  const server = await platform();
  const { home } = await makeHome();
  const before = readFileSync(fileOf(home), "utf8");
  const wrong = "123456789:AAH-some-other-token-of-nobody";
  const args = ["channels", "add", "telegram", "--set", `botToken=${wrong}`, `apiRoot=${server.url}`];
  const refused = await run(home, args);
  expect(refused.code).toBe(1);
  expect(refused.err).not.toContain(wrong);
  expect(refused.err).toContain("Nothing was written");
  expect(readFileSync(fileOf(home), "utf8")).toBe(before);
  expect((await run(home, [...args, "--no-test"])).code).toBe(0);
  const checked = await run(home, ["doctor"]);
  expect(checked.out).toMatch(/✗ .*channels.*telegram:default/);
});

test.each([
  [["fax"], /unknown channel "fax"; channels: telegram, discord/],
  [[], /missing channel; give one of: telegram/],
  [["telegram", "--set", "botToken=abc"], /A token looks like/],
  [["telegram", "--set", "botToken"], /--set must be key=value/],
  [["signal", "--set", "number=0170"], /A number is \+/],
])("channels add %j is a usage error", async (args, words) => {
  const { home } = await makeHome();
  const refused = await run(home, ["channels", "add", ...args]);
  expect(refused.code).toBe(2);
  expect(refused.err).toMatch(words);
});

test("without a terminal, channels add lists the missing values as an error", async () => {
  const { home } = await makeHome();
  const refused = await run(home, ["channels", "add", "telegram"]);
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.err).toContain("no terminal to ask for them: add --set botToken=…");
  expect(refused.err).toContain("@BotFather");
  const several = await run(home, ["channels", "add", "whatsapp", "--set", "phoneNumberId=106540352242922"]);
  expect(several.err).toMatch(/add --set accessToken=….*appSecret=….*verifyToken=…/);
  expect(several.err).not.toContain("phoneNumberId");
});

test("--set keeps answers to the guide's questions as text; for other keys it parses lists and booleans as JSON", async () => {
  const { home } = await makeHome();
  const set = [
    "number=+491701234567",
    "requireMention=false",
    'allowFrom=["+4915112345678"]',
    "agentId=main",
  ];
  const added = await run(home, ["channels", "add", "signal", "--no-test", "--set", ...set]);
  expect(added).toMatchObject({ code: 0 });
  const file = readFileSync(fileOf(home), "utf8");
  expect(file).toMatch(/requireMention"?: false/);
  expect(file).toMatch(/allowFrom"?: \[\s*"\+4915112345678"/);
  const text = ["number=true", "dmPolicy=[open"];
  const refused = await run(home, [
    "channels",
    "add",
    "signal",
    "--account",
    "b",
    "--no-test",
    "--set",
    ...text,
  ]);
  expect(refused.err).toContain("A number is +");
});

test("channels add refuses an iMessage account that would stay disabled", async () => {
  const added = await makeHome();
  const set = ["channels", "add", "imessage", "--no-test", "--set", 'names=["Home"]'];
  expect((await run(added.home, set)).code).toBe(0);
  expect((await run(added.home, ["config", "check"])).code).toBe(0);
  const { home } = await makeHome({ channels: { imessage: { allowFrom: ["+15550100"] } } });
  const checked = await run(home, ["config", "check"]);
  expect(checked.code).toBe(1);
  expect(checked.err + checked.out).toContain("channels.imessage.enabled: must be true");
});

test("channels add refuses a key that the channel does not have, and names its path", async () => {
  const { home } = await makeHome();
  const set = ["--set", `botToken=${BOT_TOKEN}`, "colour=red"];
  const refused = await run(home, ["channels", "add", "telegram", ...set, "--no-test"]);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("channels.telegram.colour");
});

test("a secret can be read from an environment variable, and a second account has a name", async () => {
  const { home } = await makeHome();
  const variable = "botToken=$" + "{BOT_TOKEN}";
  const env = { BOT_TOKEN };
  const options = { env };
  const args = ["channels", "add", "telegram", "--account", "work", "--set", variable, "--no-test"];
  expect((await run(home, args, options)).out).toContain("telegram:work");
  expect(readFileSync(fileOf(home), "utf8")).toContain("$" + "{BOT_TOKEN}");
  expect((await run(home, ["config", "check"], options)).code).toBe(0);
});

test("in a terminal, channels add asks for each value, hides secrets, and writes nothing if it is cancelled", async () => {
  const server = await platform();
  const { home } = await makeHome({ channels: { telegram: { apiRoot: server.url, enabled: false } } });
  const before = readFileSync(fileOf(home), "utf8");
  const left = call(home, ["channels", "add"], { isTTY: true });
  await left.shows("Which channel?");
  left.stdin.write("\u0003");
  expect(await left.code).toBe(1);
  expect(left.err()).toContain("nothing was written");
  expect(readFileSync(fileOf(home), "utf8")).toBe(before);

  const asked = call(home, ["channels", "add", "signal"], { isTTY: true });
  await asked.shows("The number");
  asked.stdin.write("+\r");
  await asked.shows("A number is +");
  // Adds to what stands there. Erasing would need more than a dumb terminal (TERM) can do.
  asked.stdin.write("491701234567\r");
  await asked.shows("Add it anyway?");
  asked.stdin.write("y");
  expect(await asked.code).toBe(0);
  expect(readFileSync(fileOf(home), "utf8")).toContain("+491701234567");

  const secret = call(home, ["channels", "add", "telegram", "--account", "work"], { isTTY: true });
  await secret.shows("The bot's token");
  secret.stdin.write(`${BOT_TOKEN}\r`);
  await secret.code;
  expect(secret.out()).not.toContain(BOT_TOKEN);
});

test("every channel has a setup guide, and the page that it names exists", () => {
  for (const { page } of GUIDES) {
    const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
    expect(text.length).toBeGreaterThan(1_000);
  }
});
