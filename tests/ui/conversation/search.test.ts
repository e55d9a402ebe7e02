// Search in the messages of all sessions, in a real browser against a real gateway.

import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { doing, sending, talkingModel } from "../../kit/talking-model.ts";
import { openFilters } from "../sessions/seed.ts";

const KEYS = ["agent:main:main", "agent:research:main"];

describeInBrowser("the search in messages", () => {
  test("the search finds a message in any session, and opens it", async () => {
    const house = await openHouse({ play: () => "noted" });
    const client = await house.client();
    for (const sessionKey of KEYS)
      await client.agent({ sessionKey, message: `the ripe <b>tomatoes</b> of ${sessionKey}` }).done;
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: "sessions" },
        ...(viewport === undefined ? {} : { viewport }),
      });
      await openFilters(page);
      await page.getByRole("button", { name: "Search messages" }).click();
      const dialog = page.getByRole("dialog", { name: "Search messages" });
      await dialog.getByLabel("Search messages").fill("cucumbers");
      await dialog.getByText("No matches").waitFor();
      await dialog.getByLabel("Search messages").fill("tomato ripe");
      const hits = dialog.getByRole("listitem");
      await expect.poll(() => hits.count()).toBe(2);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await expect.poll(() => hits.first().locator("mark").allInnerTexts()).toEqual(["ripe", "tomato"]);
      const head = (text: string) => hits.filter({ hasText: text }).locator(".search-hit-head").innerText();
      await expect.poll(() => head("of agent:research:main")).toMatch(/^research\s+You\s/);
      await hits
        .filter({ hasText: "of agent:research:main" })
        .getByRole("link", { name: "the ripe <b>tomatoes</b>" })
        .click();
      await dialog.waitFor({ state: "detached" });
      const found = page.locator(".entry-marked");
      await found.getByText("of agent:research:main").waitFor();
      await page.getByRole("heading", { name: "research" }).waitFor();
    }
  });

  test("Enter in the search of sessions goes to the matches; without one, it searches the messages for the same words", async () => {
    const house = await openHouse({ play: () => "noted" });
    const client = await house.client();
    await client.agent({ sessionKey: "agent:research:main", message: "the ripe tomatoes" }).done;
    const { page } = await visit(house.http, { token: TOKEN, at: "inbox" });
    await page.locator(".inbox-row").first().waitFor();
    const field = page.getByRole("searchbox", { name: "Search sessions" });
    await field.fill("research");
    await page.keyboard.press("Enter");
    const list = page.getByRole("tree", { name: "Matching sessions" });
    await expect.poll(() => list.evaluate((one) => one === document.activeElement)).toBe(true);
    const dialog = page.getByRole("dialog", { name: "Search messages" });
    await field.fill("tomato ripe");
    await page.keyboard.press("Enter");
    await dialog.getByRole("link", { name: "the ripe tomatoes" }).waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByText("No matches").waitFor();
    await field.press("ArrowDown");
    await expect.poll(() => field.evaluate((one) => one === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await expect.poll(() => dialog.getByLabel("Search messages").inputValue()).toBe("tomato ripe");
  });

  test("a match names its author: the agent, the person of a channel, or the other session by its label", async () => {
    const house = await openHouse({ model: talkingModel() });
    const client = await house.client();
    const [main = "", research = ""] = KEYS;
    await client.agent({ sessionKey: research, message: doing(sending(main, "pears of mine")) }).done;
    await client.request("sessions.patch", { key: research, label: "the garden" });
    const input = { text: "pears of people", senderName: "Ada" };
    await house.engine.accept({ sessionKey: main, input });
    await quiet(house);
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    await openFilters(page);
    await page.getByRole("button", { name: "Search messages" }).click();
    const dialog = page.getByRole("dialog", { name: "Search messages" });
    await dialog.getByLabel("Search messages").fill("pears");
    const head = (text: RegExp) =>
      dialog.getByRole("listitem").filter({ hasText: text }).locator(".search-hit-head").first().innerText();
    await expect.poll(() => head(/main.*sent by.*pears of mine/s)).toMatch(/^main\s+sent by the garden\s/);
    await expect.poll(() => head(/(?<!echo )pears of people/)).toMatch(/^main\s+Ada\s/);
    await expect.poll(() => head(/echo pears of people/)).toMatch(/^main\s+main\s/);
  });

  test("shows older matches on request, and closes when a session is opened", async () => {
    const house = await openHouse({ play: () => "ripe plum" });
    const client = await house.client();
    for (let n = 1; n <= 30; n += 1)
      await client.agent({ sessionKey: "agent:main:main", message: `plum ${n}` }).done;
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    await openFilters(page);
    await page.getByRole("button", { name: "Search messages" }).click();
    const dialog = page.getByRole("dialog", { name: "Search messages" });
    await dialog.getByLabel("Search messages").fill("plum");
    const hits = dialog.getByRole("listitem");
    await expect.poll(() => hits.count()).toBe(50);
    await dialog.getByRole("button", { name: "Search older messages" }).click();
    await expect.poll(() => hits.count()).toBe(60);
    await expect.poll(() => dialog.getByRole("button", { name: "Search older messages" }).count()).toBe(0);
    await hits.first().getByRole("link", { name: "main", exact: true }).click();
    await page.getByRole("heading", { name: "main" }).waitFor();
    await dialog.waitFor({ state: "detached" });
  });
});
