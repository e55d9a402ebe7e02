// A long conversation in a real browser: it is read in pages in both directions without a jump, and the
// document stays small.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, PHONE, visit } from "../../kit/browser.ts";
import { append, MAIN } from "./long.ts";

const AT = `sessions/${encodeURIComponent(MAIN)}`;
/** Maximum number of rows in the document: messages, and other rows beside them. */
const ROWS_MAX = 400;

const rows = (page: Page) => page.locator(".entries:not(.entries-tail) > li").count();

/** Resolves when the screen has not changed for a while. */
function standsStill(page: Page): Promise<void> {
  return page.evaluate(async () => {
    const box = document.querySelector(".scroller") as HTMLElement;
    let last = "";
    for (let still = 0; still < 20; ) {
      await new Promise((done) => requestAnimationFrame(done));
      const now = `${box.scrollTop} ${box.scrollHeight}`;
      still = now === last ? still + 1 : 0;
      last = now;
    }
  });
}

/** Scrolls by small steps towards an end, and returns the largest unexpected movement of visible rows. */
function walk(page: Page, direction: -1 | 1, until: string): Promise<{ jumpMax: number; rowsMax: number }> {
  return page.evaluate(
    async ({ direction, until }) => {
      const box = document.querySelector(".scroller") as HTMLElement;
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      let jumpMax = 0;
      let rowsMax = 0;
      for (let steps = 0; steps < 20_000; steps += 1) {
        const seen = [...box.querySelectorAll<HTMLElement>("li[data-id^=m]")];
        rowsMax = Math.max(rowsMax, seen.length);
        if (seen.some((row) => row.dataset.id === until)) break;
        const middle = box.getBoundingClientRect().top + box.clientHeight / 2;
        const row = seen.find((one) => one.getBoundingClientRect().bottom > middle);
        const before = row?.getBoundingClientRect().top ?? 0;
        const step = Math.min(5_000, direction < 0 ? box.scrollTop : 5_000) * direction;
        const top = box.scrollTop;
        box.scrollTop += step;
        const moved = box.scrollTop - top;
        await frame();
        await frame();
        // Visible rows must move exactly as far as the scroll, whatever the page has loaded.
        if (row?.isConnected) {
          jumpMax = Math.max(jumpMax, Math.abs(row.getBoundingClientRect().top - (before - moved)));
        }
      }
      return { jumpMax, rowsMax };
    },
    { direction, until },
  );
}

describeInBrowser("a conversation of thousands of messages", () => {
  test("TH1, LI1: a reader scrolls to the first message and back without a jump, and the document stays small", async () => {
    const house = await openHouse();
    await append(house, 0, 4_000);
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await page.locator("[data-id=m3999]").waitFor();
    const back = await walk(page, -1, "m0");
    await page.locator("[data-id=m0]").waitFor();
    expect(back.jumpMax).toBeLessThanOrEqual(1);
    expect(back.rowsMax).toBeLessThanOrEqual(ROWS_MAX);
    const on = await walk(page, 1, "m1500");
    expect(on.jumpMax).toBeLessThanOrEqual(1);
    await expect.poll(() => rows(page)).toBeLessThanOrEqual(ROWS_MAX);
    await page.getByRole("button", { name: "Latest" }).click();
    await page.locator("[data-id=m3999]").waitFor();
  });

  test("LI2: only a reader at the end stays there; others see the number of new messages and a button to them", async () => {
    const house = await openHouse();
    await append(house, 0, 350);
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "at the end" }).done;
    await page.getByText("echo at the end").waitFor();
    const gap = () =>
      page.evaluate(() => {
        const box = document.querySelector(".scroller") as HTMLElement;
        return box.scrollHeight - box.scrollTop - box.clientHeight;
      });
    await expect.poll(gap).toBeLessThanOrEqual(1);
    await page.getByRole("region", { name: "Messages" }).focus();
    await page.keyboard.press("PageUp");
    await page.keyboard.press("PageUp");
    const latest = page.getByRole("button", { name: "Latest" });
    await latest.waitFor();
    const top = () =>
      page.evaluate(() => {
        const box = (document.querySelector(".scroller") as HTMLElement).getBoundingClientRect();
        const rows = [...document.querySelectorAll<HTMLElement>("li[data-id^=m]")];
        const row = rows.find((one) => one.getBoundingClientRect().bottom > box.top + 300);
        return { id: row?.dataset.id, top: row?.getBoundingClientRect().top };
      });
    await standsStill(page);
    const before = await top();
    await client.agent({ sessionKey: MAIN, message: "while you read" }).done;
    await expect.poll(() => latest.innerText()).toBe("↓ Latest, 2 new messages");
    expect(await top()).toEqual(before);
    await latest.click();
    await expect.poll(gap).toBeLessThanOrEqual(1);
    await expect.poll(() => latest.count()).toBe(0);
  });

  test("a link opens a message, marked and with its neighbours; a wrong link is reported", async () => {
    const house = await openHouse();
    await append(house, 0, 1_000);
    const { page } = await visit(house.http, { token: TOKEN, at: `${AT}/m500`, viewport: PHONE });
    const row = page.locator("[data-id=m500]");
    await row.waitFor();
    await expect
      .poll(() =>
        row.evaluate((one) => {
          const { top, bottom } = one.getBoundingClientRect();
          return top > 0 && bottom < window.innerHeight;
        }),
      )
      .toBe(true);
    await expect.poll(() => row.getAttribute("aria-current")).toBe("true");
    await page.getByRole("button", { name: "Latest" }).click();
    await page.locator("[data-id=m999]").waitFor();
    await page.goto(`${house.http}/#/${AT}/nothing`);
    await page.getByText("That message is not in this conversation.").waitFor();
  });
});
