// The typeface of the page: a variable font that the gateway serves, loaded after the first view.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, untilTypeface, visit } from "../../kit/browser.ts";
import { openLine } from "../line.ts";
import { manySessions, NEWEST, seedSessions } from "../sessions/seed.ts";

const FONT_FILE = /\/inter-([a-z-]+)-wght-normal-.*\.woff2$/;

/** Returns the y coordinate of the middle of each visible button and link. */
function targets(page: Page): Promise<{ name: string; y: number }[]> {
  return page.locator("button:visible, a:visible").evaluateAll((all) =>
    all.map((one, at) => {
      const { top, height } = one.getBoundingClientRect();
      return { name: `${at} ${one.textContent}`, y: top + height / 2 };
    }),
  );
}

describeInBrowser("the typeface", () => {
  test("over a slow connection with 2,000 sessions, rows are visible before a font file is requested", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(2_000, NEWEST));
    const line = await openLine(house.port);
    line.slow(100_000);
    const { page } = await visit(house.http, { allow: /request to/ });
    const rowsAtRequest: number[] = [];
    await page.route(FONT_FILE, async (route) => {
      if (route.request().url().startsWith(line.http))
        rowsAtRequest.push(await page.getByRole("treeitem").count());
      await route.continue();
    });
    await page.goto(`${line.http}/#token=${TOKEN}`, { waitUntil: "commit" });
    await untilTypeface(page);
    expect(rowsAtRequest).toHaveLength(1);
    expect(rowsAtRequest[0]).toBeGreaterThan(10);
  });

  test.for(["", "sessions/agent%3Amain%3Amain", "operations/usage", "operations/rights"])(
    "a button or link does not move away from the pointer when the typeface arrives: #/%s",
    async (at) => {
      const house = await openHouse();
      const client = await house.client();
      for (const message of ["compare all prices of the last ten years", "is it ready?"]) {
        await client.request("chat.send", { sessionKey: "agent:main:main", message });
        await quiet(house);
      }
      const { page, context } = await visit(house.http);
      const arrived = Promise.withResolvers<void>();
      await context.route(FONT_FILE, async (route) => {
        await arrived.promise;
        await route.continue();
      });
      const asked = page.waitForRequest(FONT_FILE);
      await page.goto(`${house.http}/?again#token=${TOKEN}`);
      await page.goto(`${house.http}/?again#/${at}`);
      await page.locator("h1").waitFor({ state: "attached" });
      await asked;
      await expect.poll(() => page.locator(".loading").count()).toBe(0);
      const before = await targets(page);
      expect(before.length).toBeGreaterThan(5);
      arrived.resolve();
      await untilTypeface(page);
      const after = new Map((await targets(page)).map(({ name, y }) => [name, y]));
      const moved = before.filter(({ name, y }) => Math.abs((after.get(name) ?? y) - y) > 6);
      expect(moved).toEqual([]);
    },
  );
});
