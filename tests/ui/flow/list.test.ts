// The list of chains in a real browser: its period, search, filters and pages, and the overview beside it.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways } from "../../kit/browser.ts";
import { doing, sending, talkingModel } from "../../kit/talking-model.ts";
import { age, HOUR_MS, house, open, RESEARCH, tell, WRITER } from "./house.ts";

const parties = (page: Page) => page.locator(".chain-parties");
const choose = (page: Page, name: string, value: string) =>
  page.locator(".flow-bar").getByLabel(name, { exact: true }).selectOption(value);

describeInBrowser("the list of chains", () => {
  test("it is filtered by agent and by state, and says how many runs failed", async () => {
    const broken = talkingModel((text) => {
      if (text === "fail") throw new Error("no");
      return undefined;
    });
    const here = await house({ model: broken });
    await tell(here, doing(sending(RESEARCH, "fail")));
    await tell(here, doing(sending(WRITER, "fine")));
    const page = await open(here);
    await expect.poll(() => parties(page).allInnerTexts()).toEqual(["writer", "research"]);
    await expect.poll(() => page.locator(".chain-row").getByText("1 failed").count()).toBe(1);
    await choose(page, "State", "failed");
    await expect.poll(() => parties(page).allInnerTexts()).toEqual(["research"]);
    await choose(page, "Agent", "writer");
    await page.getByText("No matching chains").waitFor();
    await choose(page, "State", "running");
    await page.getByRole("button", { name: "Show all chains" }).click();
    await expect.poll(() => parties(page).allInnerTexts()).toEqual(["writer", "research"]);
    await choose(page, "Agent", "writer");
    await expect.poll(() => parties(page).allInnerTexts()).toEqual(["writer"]);
  });

  test("without a chain in the last hour, the page looks further back and says so", async () => {
    const here = await house();
    await age(here, await tell(here, doing(sending(RESEARCH, "one"))), 30 * HOUR_MS);
    const page = await open(here);
    await page.getByText("None within 1 hour. Last 7 days:").waitFor();
    await page.getByRole("heading", { name: "1 chain" }).waitFor();
  });

  test.each(["flow", "flow?period=24h"])(
    "on a phone, the filters are above an empty list: %s",
    async (at) => {
      const page = await open(await house(), at, { viewport: PHONE });
      const words = await page.locator(".flow-main .empty").boundingBox();
      const choices = await page.locator(".flow-choices").boundingBox();
      expect(words?.y).toBeGreaterThan((choices?.y ?? 0) + (choices?.height ?? 0));
      expect(await sideways(page)).toBe(0);
    },
  );

  test.each([
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ])(
    "a period and a search stay in the address, over a chain, Back and a reload: %s",
    async (_, viewport) => {
      const here = await house();
      const old = await tell(here, doing(sending(RESEARCH, "the tides of Saturn")));
      await age(here, old, 100 * 24 * HOUR_MS);
      await tell(here, doing(sending(WRITER, "the rings of Saturn")));
      const page = await open(here, "flow", { viewport });
      await expect.poll(() => parties(page).allInnerTexts()).toEqual(["writer"]);
      const search = page.getByRole("searchbox", { name: "Search chains" });
      await search.fill("tides");
      await page.getByText("No matching chains").waitFor();
      await choose(page, "Period", "dates");
      await expect.poll(() => parties(page).allInnerTexts()).toEqual(["research"]);
      const day = (ms: number) => new Date(here.engine.now() - ms).toISOString().slice(0, 10);
      await page.getByLabel("To", { exact: true }).fill(day(90 * 24 * HOUR_MS));
      await page.getByLabel("From", { exact: true }).fill(day(110 * 24 * HOUR_MS));
      await expect.poll(() => page.url()).toMatch(/period=dates&from=.*&to=.*&search=tides$/);
      await expect.poll(() => parties(page).allInnerTexts()).toEqual(["research"]);
      await page.getByLabel("To", { exact: true }).fill(day(120 * 24 * HOUR_MS));
      await page.getByText("No matching chains").waitFor();
      await page.getByLabel("From", { exact: true }).fill(day(90 * 24 * HOUR_MS));
      await expect.poll(() => parties(page).allInnerTexts()).toEqual(["research"]);
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await parties(page).click();
      await page.getByRole("heading", { name: "From main" }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "From main" }).waitFor();
      expect(page.url()).toContain(`flow/${old}?period=dates`);
      // The steps that match are marked, too.
      await expect
        .poll(() => page.getByRole("searchbox", { name: "Find in steps" }).inputValue())
        .toBe("tides");
      await page.goBack();
      await expect.poll(() => parties(page).allInnerTexts()).toEqual(["research"]);
      await expect.poll(() => search.inputValue()).toBe("tides");
      await search.fill("rings");
      await page.getByText("No matching chains").waitFor();
      await page.getByLabel("To", { exact: true }).fill("");
      await expect.poll(() => parties(page).allInnerTexts()).toEqual(["writer"]);
    },
  );

  test("older chains are loaded on demand, page by page", async () => {
    const here = await house();
    for (let at = 0; at < 52; at++) await tell(here, doing(sending(WRITER, `${at}`)));
    const page = await open(here);
    await page.getByRole("heading", { name: "50 chains and more" }).waitFor();
    await page.getByRole("button", { name: "Older chains" }).click();
    await page.getByRole("heading", { name: "52 chains", exact: true }).waitFor();
    await tell(here, doing(sending(RESEARCH, "new")));
    await page.getByRole("heading", { name: "53 chains", exact: true }).waitFor();
    await expect.poll(() => parties(page).first().innerText()).toBe("research");
    await expect.poll(() => page.getByRole("button", { name: "Older chains" }).count()).toBe(0);
  });

  test("the overview takes the place of the chain, keeps the order of its rows, and filters the list", async () => {
    const here = await house();
    await tell(here, doing(sending(WRITER, "a")));
    await tell(here, doing(sending(RESEARCH, "b")));
    const page = await open(here);
    const heads = async () => (await page.locator(".flow-head").allInnerTexts()).map((text) => text.trim());
    await expect.poll(heads).toEqual(["main", "research"]);
    await expect.poll(() => page.locator(".flow-overview").count()).toBe(0);
    // A new chain does not replace the shown one.
    await tell(here, doing(sending(WRITER, "c")));
    await expect.poll(() => page.locator(".chain-row").count()).toBe(3);
    expect(await heads()).toEqual(["main", "research"]);
    const toggle = page.getByRole("button", { name: "Overview" });
    await toggle.click();
    await expect.poll(() => page.locator(".flow-picture").count()).toBe(0);
    const overview = page.getByRole("region", { name: "Conversations between sessions" });
    const rows = async () =>
      (await overview.locator("tbody tr").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " ").trim());
    const before = ["main talks to research 1", "main talks to writer 2"];
    await expect.poll(rows).toEqual(before);
    // The writer now has more steps than the other session. The rows keep their order.
    for (let more = 0; more < 2; more++) await tell(here, doing(sending(WRITER, "c")));
    await expect.poll(() => page.locator(".chain-row").count()).toBe(5);
    const after = ["main talks to research 1", "main talks to writer 4"];
    expect(await rows()).toEqual(after);
    await overview.getByRole("button", { name: "Steps" }).click();
    expect(await rows()).toEqual(after.toReversed());
    await overview.getByRole("button", { name: "main talks to writer" }).click();
    await expect.poll(() => page.locator(".chain-row").count()).toBe(4);
    await page.getByTitle("Show all chains").click();
    await expect.poll(() => page.locator(".chain-row").count()).toBe(5);
    await overview.getByRole("button", { name: "main talks to research" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => parties(page).allInnerTexts()).toEqual(["research"]);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.locator(".chain-row").click();
    await page.locator(".flow-picture").waitFor();
    await expect.poll(() => page.locator(".flow-overview").count()).toBe(0);
    await toggle.click();
    await page.locator(".flow-overview").waitFor();
  });
});
