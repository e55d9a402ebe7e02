// The typeface of the page: a variable font that the gateway serves, loaded after the first view.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, untilTypeface, visit } from "../../kit/browser.ts";
import { openLine } from "../line.ts";
import { manySessions, NEWEST, row, seedSessions } from "../sessions/seed.ts";

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

  test("text is set in the variable font, and other alphabets load a file of their own when they appear", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http);
    const files: (string | undefined)[] = [];
    page.on("request", (request) => {
      const name = FONT_FILE.exec(request.url());
      if (name !== null) files.push(name[1]);
    });
    await page.goto(`${house.http}/#token=${TOKEN}`);
    // Loads the page with the token that this tab has stored.
    await page.reload();
    await untilTypeface(page);
    const widthOf = (weight: number): Promise<number> =>
      page.evaluate((of) => {
        const pen = document.createElement("canvas").getContext("2d");
        if (pen === null) return 0;
        pen.font = `${of} 100px ${getComputedStyle(document.body).fontFamily}`;
        return pen.measureText("Parley").width;
      }, weight);
    // A font with one file for each weight would draw 560 like 600.
    expect(await widthOf(560)).toBeLessThan(await widthOf(600));
    expect(new Set(files)).toEqual(new Set(["latin"]));
    const client = await house.client();
    await client.request("sessions.create", { label: "Проверка" });
    await row(page, /Проверка/).waitFor();
    await expect.poll(() => new Set(files)).toEqual(new Set(["latin", "cyrillic"]));
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
      await page.waitForFunction("document.querySelector('.loading') === null");
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
