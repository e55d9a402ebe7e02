// The flow view with many sessions and steps, and the ways to find one of them, in a real browser.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE } from "../../kit/browser.ts";
import { doing, sending } from "../../kit/talking-model.ts";
import { fill } from "./fill.ts";
import { house, open, RESEARCH, rules, stepNamed, tell, WRITER } from "./house.ts";

describeInBrowser("a large flow", () => {
  test("DG1, WV1: of 5,000 steps and 500 sessions only the visible ones are in the document", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 5_000, sessions: 500 });
    const page = await open(here, `flow/${chainId}`);
    await page.getByText("only the newest steps are shown").waitFor();
    const drawn = (): Promise<number> => page.locator(".flow-scroll *").count();
    for (const [view, row] of [
      ["Sequence", ".step"],
      ["Waterfall", ".waterfall-name"],
      ["Steps", ".flow-row"],
    ] as const) {
      await page.getByRole("button", { name: view, exact: true }).click();
      await page.locator(row).nth(2).waitFor();
      expect(await drawn()).toBeLessThan(900);
      const box = page.locator(".flow-scroll");
      await box.evaluate((one) => one.scrollTo(0, one.scrollHeight / 2));
      await expect.poll(() => page.locator(row).count()).toBeGreaterThan(5);
      expect(await drawn()).toBeLessThan(900);
    }
    await page.getByRole("button", { name: "Latest" }).click();
    await page.getByRole("button", { name: /message 4999/ }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Latest" }).count()).toBe(0);
  });

  test("DG4: names and times stay in view while the diagram scrolls; Fit shows every column", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 60, sessions: 20 });
    const page = await open(here, `flow/${chainId}`);
    await page.locator(".flow-head").first().waitFor();
    const box = page.locator(".flow-scroll");
    const near = await box.boundingBox();
    await box.evaluate((one) => one.scrollTo(900, 700));
    await expect.poll(() => page.locator(".flow-head").getByText("room-9").count()).toBe(1);
    expect((await page.locator(".flow-heads").boundingBox())?.y).toBe(near?.y);
    const times = page.locator(".flow-times");
    expect((await times.boundingBox())?.x).toBe(near?.x);
    const longest = await times
      .locator("span")
      .last()
      .evaluate((one) => {
        one.textContent = "12:57:00 PM";
        return one.getBoundingClientRect().x;
      });
    expect(longest).toBeGreaterThanOrEqual(near?.x ?? 0);
    await page.getByRole("button", { name: "Fit" }).click();
    await expect.poll(() => page.locator(".flow-head").count()).toBe(22);
    expect(await box.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  });

  test("a search goes from match to match, in the diagram and in the list", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 300, sessions: 5 });
    const page = await open(here, `flow/${chainId}`);
    const find = page.getByRole("searchbox", { name: "Find in steps" });
    await find.fill("message 29");
    const status = page.locator(".flow-find").getByRole("status");
    await expect.poll(() => status.innerText()).toBe("11 found");
    await find.press("Enter");
    await find.press("Enter");
    await expect.poll(() => status.innerText()).toBe("2 of 11");
    await expect.poll(() => page.locator(".step.chosen").getAttribute("aria-label")).toContain("message 290");
    await expect.poll(() => page.locator(".step.chosen").isVisible()).toBe(true);
    await find.press("Shift+Enter");
    await find.press("Shift+Enter");
    await expect.poll(() => status.innerText()).toBe("11 of 11");
    await page.getByRole("button", { name: "Steps", exact: true }).click();
    await find.press("Enter");
    await expect.poll(() => page.locator(".flow-row.chosen").innerText()).toContain("message 29:");
  });

  test("ten equal refusals of a run are one row in the sequence and in the list of steps; opened, each has a row", async () => {
    const here = await house({ choices: rules({ maxHops: 1 }) });
    const ten = Array.from({ length: 10 }, (_, at) => sending(WRITER, `may I? ${at}`));
    const chainId = await tell(here, doing(sending(RESEARCH, doing(...ten))));
    for (const viewport of [DESKTOP, PHONE]) {
      const page = await open(here, `flow/${chainId}`, { viewport });
      const refused = page.locator(".step.kind-refused");
      await stepNamed(page, /^research was refused a message to writer × 10; refused: hop limit 1/).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await expect.poll(() => refused.count()).toBe(1);
      const words = page.locator(":is(.flow-row.kind-refused .flow-row-text, .words.kind-refused)");
      await expect.poll(() => words.textContent()).toBe("× 10 refused: hop limit 1");
      await refused.click();
      await page.getByRole("button", { name: "Show one by one" }).click();
      await expect.poll(() => refused.count()).toBe(10);
      await page.getByRole("button", { name: "Collapse" }).click();
      await expect.poll(() => refused.count()).toBe(1);
    }
  });

  test("on a phone a chain is a list of steps, and each step can be opened", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const phone = await open(here, `flow/${chainId}`, { viewport: PHONE });
    await phone
      .getByRole("button", { name: /^main asked research, answered after .*: what is new\?/ })
      .click();
    const details = phone.getByRole("complementary", { name: "Selected step" });
    await details.getByRole("link", { name: "Open message" }).waitFor();
    await expect.poll(() => phone.locator(".flow-picture").count()).toBe(0);
    await expect.poll(() => phone.getByRole("button", { name: "Legend" }).count()).toBe(0);
  });
});
