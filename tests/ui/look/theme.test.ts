// The button for the colours, in a real browser.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";

describeInBrowser("the button for the colours", () => {
  test.each([
    [false, ["dark", "light", undefined]],
    [true, ["light", "dark", undefined]],
  ] as const)("the first click changes the colours, also if the system is dark: %s", async (dark, themes) => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, dark });
    for (const theme of themes) {
      await page.getByRole("button", { name: /^Colours/ }).click();
      await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe(theme);
    }
  });
});
