// After an import, the owner of the source approves commands of an agent from the phone: the imported
// configuration starts a whole gateway, with the real channel on a fake Telegram.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openApp } from "../../../src/app.ts";
import { loadSettings } from "../../../src/config.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { startTelegram } from "../../kit/platforms/telegram/server.ts";
import { until } from "../../kit/until.ts";
import { good } from "../../store/transfer/moves.ts";
import { sourceWith } from "./source.ts";
import { stage } from "./stage.ts";

const TOKEN = "123456789:AAH-not-a-real-token-of-any-bot-0";
const OWNER = 4711;

test.each([
  ["the command owner", { commands: { ownerAllowFrom: [OWNER] } }],
  ["a person who may write directly", {}],
])("%s of an imported source allows a command from the phone", async (_, commands) => {
  const telegram = await startTelegram();
  const bot = telegram.addBot(TOKEN, "parley_test_bot");
  telegram.addChat({ id: OWNER, type: "private" });
  const allowed = { botToken: TOKEN, dmPolicy: "allowlist", allowFrom: [String(OWNER)] };
  const dir = sourceWith({ config: { channels: { telegram: allowed }, ...commands } });
  const at = await stage("embedded");
  await at.imported(dir, { accept: ["owners", "tokens", "people"] });
  const { settings } = good(loadSettings({ env: {}, home: at.home }));
  expect(settings.owners).toEqual([`telegram:${OWNER}`]);
  const { exec } = settings.tools;
  const opened = await openApp({
    settings: {
      ...settings,
      gateway: { ...settings.gateway, port: 0 },
      channels: settings.channels.map((account) => ({ ...account, apiRoot: telegram.url })) as never,
      tools: { ...settings.tools, exec: { ...exec, approval: "always" } },
    },
    ...{ world: quietWorld(), version: "0.0.0-test", environment: {} },
  });
  const app = good(opened);
  cleanup(() => app.close(0));
  const says = (text: string): void => {
    telegram.nextMessageId += 1;
    const chat = { id: OWNER, type: "private", first_name: "Ada" };
    const from = { id: OWNER, is_bot: false, first_name: "Ada" };
    const message = { message_id: telegram.nextMessageId, date: 1_790_000_000, chat, from, text };
    telegram.push(bot, { message });
  };
  says("run: echo done > approved.txt");
  const id = await until(
    () => telegram.sent.flatMap(({ text }) => /\/allow ([0-9a-f]{8})/.exec(text)?.[1] ?? [])[0],
  );
  says(`/allow ${id}`);
  const file = join(at.home, ".parley", "workspace", "approved.txt");
  await expect.poll(() => existsSync(file), { timeout: 10_000 }).toBe(true);
});
