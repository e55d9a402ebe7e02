// Titles of sessions without a label: the first words of the conversation, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { doing, spawning, talkingModel } from "../../kit/talking-model.ts";
import { names, row } from "./seed.ts";

const WORDS = "Plan my week, with a free Friday";
const at = (key: string): string => `sessions/${encodeURIComponent(key)}`;
const about = (page: Page, name: string | RegExp) => row(page, name).locator(".session-about").innerText();

describeInBrowser("the title of a session without a label", () => {
  test("its first words name it at once in the list, the conversation, the tab and links; a label replaces them", async () => {
    const house = await openHouse();
    const client = await house.client();
    const { key } = await client.request("sessions.create", {});
    const { page } = await visit(house.http, { token: TOKEN, at: at(key) });
    const short = `main · chat ${key.split(":").at(-1)?.slice(0, 8)}`;
    await expect.poll(() => page.title()).toBe(`${short} · Parley`);
    await client.request("chat.send", { sessionKey: key, message: `${WORDS}\n\nand more` });
    await row(page, WORDS).waitFor();
    await page.getByRole("heading", { name: WORDS }).waitFor();
    await expect.poll(() => page.title()).toBe(`${WORDS} and more · Parley`);
    await expect.poll(() => about(page, WORDS)).toMatch(/^idle\nmain · chat/);
    // After a reload, the inbox has to ask for the name.
    await page.goto(`${house.http}/#/inbox`);
    await page.reload();
    await page.locator(".inbox-row", { hasText: WORDS }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: WORDS }).waitFor();
    await page.keyboard.press("Escape");
    await client.request("sessions.patch", { key, label: "the week" });
    await page.goto(`${house.http}/#/${at(key)}`);
    await page.getByRole("heading", { name: "the week" }).waitFor();
    await row(page, "the week").waitFor();
    await client.request("sessions.patch", { key, label: null });
    await page.getByRole("heading", { name: WORDS }).waitFor();
    await client.request("sessions.reset", { key });
    await page.getByRole("heading", { name: short }).waitFor();
    await row(page, short).waitFor();
  });

  test("a job and a fork have a title, too; a main session keeps the name of its agent", async () => {
    const house = await openHouse({ model: talkingModel() });
    const client = await house.client();
    await client.agent({ message: doing(spawning("count the ships")), idempotencyKey: "a" }).done;
    await quiet(house);
    const { key } = await client.request("sessions.create", {});
    await client.agent({ sessionKey: key, message: WORDS, idempotencyKey: "b" }).done;
    const { messages } = await client.request("chat.history", { sessionKey: key });
    await client.request("sessions.fork", { sessionKey: key, at: messages[0]?.id ?? "" });
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions?shape=list" });
    await row(page, "count the ships").waitFor();
    expect((await names(page)).toSorted()).toEqual(
      expect.arrayContaining([WORDS, `${WORDS} (fork)`, "count the ships", "main", "research"]),
    );
    await expect.poll(() => about(page, /count the ships/)).toContain("sub-agent");
    await client.request("sessions.patch", { key, label: "the week" });
    await row(page, "the week (fork)").waitFor();
    const facts = await row(page, /^the week/)
      .locator("..")
      .locator(".session-about")
      .allInnerTexts();
    expect(facts.filter((one) => one.includes("main · fork"))).toHaveLength(1);
    expect(facts.filter((one) => one.includes("main · chat"))).toHaveLength(1);
  });

  test("the search finds a session by the first words that name it", async () => {
    const house = await openHouse();
    const client = await house.client();
    const { key } = await client.request("sessions.create", {});
    await client.agent({ sessionKey: key, message: WORDS, idempotencyKey: "a" }).done;
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions?shape=list" });
    await row(page, WORDS).waitFor();
    await page.getByLabel("Search sessions").fill("a FREE friday");
    await expect.poll(() => names(page)).toEqual([WORDS]);
    await page.getByLabel("Search sessions").fill("a free monday");
    await page.getByText("No matches").waitFor();
  });
});
