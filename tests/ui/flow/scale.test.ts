// The flow view with many sessions and steps, and the ways to find one of them, in a real browser.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways } from "../../kit/browser.ts";
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

  test("DG4: names, times and texts stay in view while the diagram scrolls; Fit shows every column", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 60, sessions: 20 });
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("button", { name: "research 21 sessions" }).click();
    const box = page.locator(".flow-scroll");
    const near = await box.boundingBox();
    await box.evaluate((one) => one.scrollTo(900, 700));
    await expect.poll(() => page.locator(".flow-head").getByText("room-9").count()).toBe(1);
    expect((await page.locator(".flow-heads").boundingBox())?.y).toBe(near?.y);
    const times = page.locator(".flow-times");
    expect((await times.boundingBox())?.x).toBe(near?.x);
    // The arrows begin at the first column, which is out of sight.
    const left = (near?.x ?? 0) + 84;
    const texts = () =>
      page.locator(".words text").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().x));
    await expect.poll(async () => (await texts()).filter((x) => x >= left).length).toBeGreaterThan(8);
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

  test("GR4: more than twelve sessions are one column for each agent, which opens to its sessions", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(WRITER, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 60, sessions: 40 });
    for (const viewport of [DESKTOP, PHONE]) {
      const page = await open(here, `flow/${chainId}`, { viewport });
      if (viewport === PHONE) await page.getByRole("button", { name: "Sequence" }).click();
      const heads = page.locator(".flow-head");
      const research = page.getByRole("button", { name: "research 40 sessions" });
      await research.waitFor();
      await expect.poll(() => heads.count()).toBe(3);
      // The text says which session of the column a step reaches.
      await page.locator(".words", { hasText: "room-3: message 3:" }).waitFor();
      await stepNamed(page, /^main told research · room-3; silent: message 3:/).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await research.focus();
      await page.keyboard.press("Enter");
      await expect.poll(() => heads.getByText("room-0").count()).toBe(1);
      await page.getByRole("button", { name: "Collapse" }).click();
      await research.waitFor();
      await expect.poll(() => heads.count()).toBe(3);
    }
  });

  test("GR4: the names of many agents are readable in their columns, also when all columns fit", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(WRITER, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 60, sessions: 39, agents: 13 });
    for (const viewport of [DESKTOP, PHONE]) {
      const page = await open(here, `flow/${chainId}`, { viewport });
      if (viewport === PHONE) await page.getByRole("button", { name: "Sequence" }).click();
      const names = page.locator(".flow-jobs .name");
      const cut = () =>
        names.evaluateAll((all) =>
          all.filter((one) => {
            const head = one.closest(".flow-head")?.getBoundingClientRect();
            const { right, bottom } = one.getBoundingClientRect();
            const fits = one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight;
            return head === undefined || right > head.right || bottom > head.bottom || !fits;
          }),
        );
      await names.first().waitFor();
      await expect.poll(cut).toEqual([]);
      await page.getByRole("button", { name: "Fit" }).click();
      await page.locator(".flow-heads.narrow").waitFor();
      await expect.poll(cut).toEqual([]);
      await page.locator(".flow-jobs").getByText("helper-12", { exact: true }).waitFor();
      await page.getByTitle("helper-0: 3 sessions").waitFor();
    }
  });

  test("DG5: the keyboard and the pointer resize a column, and Home and a double click reset it", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "one"), sending(WRITER, "two")));
    const page = await open(here, `flow/${chainId}`);
    const edge = page.getByRole("separator", { name: "Width of main" });
    const width = async () => Number(await edge.getAttribute("aria-valuenow"));
    await edge.focus();
    const before = await width();
    await page.keyboard.press("ArrowRight");
    await expect.poll(width).toBe(before + 24);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await expect.poll(width).toBe(before - 24);
    await page.keyboard.press("Home");
    await expect.poll(width).toBe(before);
    const place = await edge.boundingBox();
    const [x, y] = [(place?.x ?? 0) + 4, (place?.y ?? 0) + 8];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 100, y);
    await page.mouse.up();
    await expect.poll(width).toBe(before + 100);
    await edge.dblclick();
    await expect.poll(width).toBe(before);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("a map beside a long chain shows the part in sight, and a press on it scrolls there", async () => {
    const here = await house();
    const short = await tell(here, doing(sending(RESEARCH, "short")));
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 300, sessions: 5 });
    const page = await open(here, `flow/${short}`);
    await page.locator(".step").first().waitFor();
    await expect.poll(() => page.locator(".flow-minimap").count()).toBe(0);
    await page.goto(`${here.http}/#/flow/${chainId}`);
    const map = page.locator(".flow-minimap");
    await map.waitFor();
    const { width = 0, height = 0 } = (await map.boundingBox()) ?? {};
    const top = async () =>
      ((await map.locator(".map-frame").boundingBox())?.y ?? 0) - ((await map.boundingBox())?.y ?? 0);
    await expect.poll(top).toBe(0);
    await map.click({ position: { x: width / 2, y: height / 2 } });
    await expect.poll(top).toBeGreaterThan(height / 3);
    await page.getByRole("button", { name: /message 150/ }).waitFor();
    await page.getByRole("button", { name: "Waterfall" }).click();
    await page.getByRole("treeitem").first().focus();
    await page.keyboard.press("ArrowRight");
    for (const viewport of [DESKTOP, PHONE]) {
      await page.setViewportSize(viewport);
      await page.locator(".flow-scroll").evaluate((one) => one.scrollTo(0, 0));
      await expect.poll(top).toBe(0);
      await page.locator(".flow-scroll").evaluate((one) => one.scrollTo(0, one.scrollHeight));
      await expect.poll(top).toBeGreaterThan(viewport.height / 3);
    }
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
