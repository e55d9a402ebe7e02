// Connecting a chat on the first visit: a whole gateway with its file, a fake Telegram and a real browser.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openFollowing, TOKEN } from "../../gateway/reload/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { startTelegram } from "../../kit/platforms/telegram/server.ts";

const RIGHT = "111111111:AAH-not-a-real-token-of-any-bot-0";
const WRONG = "222222222:AAH-not-a-real-token-of-any-bot-0";
const WRONGER = "333333333:AAH-not-a-real-token-of-any-bot-0";
const ADA = 1001;

describeInBrowser("connecting a chat on the first visit", () => {
  for (const viewport of [{ width: 1280, height: 800 }, PHONE]) {
    test(`the token of a bot is tested, and a stranger asks to be let in, ${viewport.width} px wide`, async () => {
      const server = await startTelegram();
      const bot = server.addBot(RIGHT, "house_bot");
      server.addChat({ id: ADA, type: "private" });
      // An account that does not work is there, because its address of Telegram is the fake's.
      const house = await openFollowing(() => "an answer", {
        channels: { telegram: { botToken: WRONG, apiRoot: server.url, inbound: { debounceMs: 0 } } },
      });
      const { page } = await visit(`http://127.0.0.1:${house.app.port}`, { token: TOKEN, viewport });
      await page.getByRole("button", { name: "Connect a chat" }).click();
      const dialog = page.getByRole("dialog", { name: "Connect a chat" });
      await dialog.getByText("@BotFather").waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      const token = dialog.getByLabel("Token of the bot");
      const connect = dialog.getByRole("button", { name: "Connect" });
      const before = readFileSync(house.path, "utf8");
      await token.fill("x");
      await connect.click();
      await dialog.getByRole("alert").getByText("A token looks like 123456789:AAF…").waitFor();
      await token.fill(WRONGER);
      await connect.click();
      await dialog.getByRole("alert").getByText("does not accept").waitFor();
      expect(readFileSync(house.path, "utf8")).toBe(before);
      await token.fill(RIGHT);
      await connect.click();
      await page.getByText(/house_bot.* is connected/).waitFor();
      await dialog.waitFor({ state: "detached" });
      expect(readFileSync(house.path, "utf8")).toContain(RIGHT);
      await expect.poll(() => page.getByRole("button", { name: "Connect a chat" }).count()).toBe(0);
      const chat = { id: ADA, type: "private", first_name: "Ada" };
      const from = { id: ADA, is_bot: false, first_name: "Ada", username: "ada_l" };
      server.push(bot, { message: { message_id: 7, date: 1_790_000_000, chat, from, text: "hello" } });
      const asking = async () => (await house.client.request("channels.pair.list", {})).peers.length;
      await expect.poll(asking).toBe(1);
      await page.goto(`http://127.0.0.1:${house.app.port}/#/inbox`);
      const asks = page.locator(".inbox-row", { hasText: "Ada @ada_l" });
      await asks.getByText("Wants to write to the agent main on telegram:default · id 1001").waitFor();
      await asks.getByRole("button", { name: /^Allow/ }).click();
      await asks.waitFor({ state: "detached" });
      await page.goto(`http://127.0.0.1:${house.app.port}/#/operations/channels`);
      const people = page.getByRole("list", { name: "People" }).getByRole("listitem");
      await people.getByText("allowed").waitFor();
      await expect
        .poll(() => people.innerText())
        .toContain("telegram:default · id 1001 · writes to the agent main");
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await people.getByRole("button", { name: "Remove Ada @ada_l" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
      await people.waitFor({ state: "detached" });
      await expect.poll(asking).toBe(0);
    });
  }
});
