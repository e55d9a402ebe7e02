// Going back restores where the reader was: what was scrolled, and the row with the focus.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { describeInBrowser, visit } from "../kit/browser.ts";
import { doing, sending } from "../kit/talking-model.ts";
import { append, MAIN } from "./conversation/long.ts";
import { fill } from "./flow/fill.ts";
import { house as flowHouse, open, RESEARCH, stepNamed, tell } from "./flow/house.ts";
import { group, player, rowIn, say } from "./inbox/kit.ts";

const topOf = (page: Page, selector: string) =>
  page.locator(selector).evaluate((part) => Math.round(part.scrollTop));

describeInBrowser("the way back", () => {
  test("to the inbox leads to the row that was opened", async () => {
    const house = await openHouse({ play: async ({ run }) => `Shall I ${run.input.text}?` });
    const client = await house.client();
    for (let at = 1; at <= 30; at += 1) {
      const { key } = await client.request("sessions.create", { label: `deploy ${at}` });
      await say(house, key, `do ${at}`);
    }
    const { page } = await visit(house.http, { token: TOKEN });
    await expect.poll(() => group(page, "Needs you").locator(".inbox-row").count()).toBe(30);
    const link = rowIn(page, "Needs you", "deploy 5").first().getByRole("link");
    await link.click();
    const field = page.getByRole("textbox", { name: "Message" });
    await field.waitFor();
    await page.goBack();
    await expect.poll(() => topOf(page, ".split-main")).toBeGreaterThan(200);
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    await expect.poll(focused).toMatch(/^deploy 5$/);
    const before = await topOf(page, ".split-main");
    await page.goForward();
    await field.waitFor();
    await page.goBack();
    await expect.poll(() => topOf(page, ".split-main")).toBe(before);
  });

  test("to the inbox leads to a row that the reader had unfolded, and keeps the filter of the others", async () => {
    const { play } = player();
    const house = await openHouse({ play });
    const client = await house.client();
    for (let at = 1; at <= 20; at += 1) {
      const { key } = await client.request("sessions.create", { label: `deploy ${at}` });
      await say(house, key, `do ${at}`);
    }
    await say(house, MAIN, "ask me");
    await say(house, RESEARCH, "fail");
    const { page } = await visit(house.http, { token: TOKEN });
    const filter = group(page, "Needs you").getByRole("combobox", { name: "Show" });
    await filter.selectOption("Questions (1)");
    await group(page, "Done").getByRole("button", { name: "Show 12 more" }).click();
    await rowIn(page, "Done", "deploy 1").last().getByRole("link").click();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await page.goBack();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    await expect.poll(focused).toMatch(/^deploy 1$/);
    await expect.poll(() => filter.locator("option:checked").innerText()).toBe("Questions (1)");
  });

  test("to a conversation leads to the message that was read; a new visit begins at its end", async () => {
    const house = await openHouse();
    await append(house, 0, 200);
    const { page } = await visit(house.http, { token: TOKEN, at: `sessions/${encodeURIComponent(MAIN)}` });
    await page.locator("[data-id=m199]").waitFor();
    await page.locator("[data-id=m170]").scrollIntoViewIfNeeded();
    const isInSight = () =>
      page.evaluate(() => {
        const box = document.querySelector(".scroller")?.getBoundingClientRect();
        const row = document.querySelector("[data-id=m170]")?.getBoundingClientRect();
        return box !== undefined && row !== undefined && row.bottom > box.top && row.top < box.bottom;
      });
    await expect.poll(isInSight).toBe(true);
    const views = page.getByRole("navigation", { name: "Views" });
    await views.getByRole("link", { name: "Operations" }).click();
    await page.locator(".scroller").waitFor({ state: "detached" });
    await page.goBack();
    await expect.poll(isInSight).toBe(true);
    await views.getByRole("link", { name: "Operations" }).click();
    await page.locator(".scroller").waitFor({ state: "detached" });
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(MAIN)}`);
    await page.locator("[data-id=m199]").waitFor();
    await expect.poll(isInSight).toBe(false);
  });

  test("to a chain leads to the place in both directions, with the agent that was opened", async () => {
    const here = await flowHouse();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 90, sessions: 39, agents: 13 });
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("button", { name: "helper-0 3 sessions" }).click();
    await page.getByRole("button", { name: "Collapse" }).waitFor();
    const box = page.locator(".flow-scroll");
    await box.evaluate((one) => one.scrollTo(400, 900));
    const place = () => box.evaluate((one) => [one.scrollLeft, one.scrollTop]);
    await expect.poll(place).toEqual([400, 900]);
    await page.getByRole("link", { name: "Inbox", exact: true }).click();
    await box.waitFor({ state: "detached" });
    await page.goBack();
    await expect.poll(place).toEqual([400, 900]);
    await page.getByRole("button", { name: "Collapse" }).waitFor();
  });

  test("to a chain leads to the step that was chosen and to the link in it, with the rows as they were", async () => {
    const here = await flowHouse();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    const details = page.getByRole("complementary", { name: "Selected step" });
    const goAndComeBack = async (): Promise<void> => {
      await details.getByRole("link", { name: "Open session" }).press("Enter");
      await page.getByRole("textbox", { name: "Message" }).waitFor();
      await page.goBack();
      await details.waitFor();
      const isFocused = () => details.evaluate((one) => one.contains(document.activeElement));
      await expect.poll(isFocused).toBe(true);
    };
    await stepNamed(page, /^main asked research/).click();
    await goAndComeBack();
    await page.getByRole("button", { name: "Waterfall" }).click();
    const rows = page.getByRole("treeitem");
    await expect.poll(() => rows.count()).toBeGreaterThan(3);
    await rows.first().focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => rows.count()).toBe(1);
    await page.keyboard.press("Enter");
    await goAndComeBack();
    await expect.poll(() => rows.count()).toBe(1);
  });
});
