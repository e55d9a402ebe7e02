// The way into the page, in a real browser against a real gateway.

import { afterAll, describe, expect, test } from "vitest";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, browserPath, closeBrowser, PHONE, visit } from "../kit/browser.ts";

afterAll(closeBrowser);

// Without a Chromium at /usr/bin/chromium there is nothing to drive; in CI there is one.
describe.skipIf(browserPath === undefined)("sign-in", () => {
  test("TK1: the token of the link is taken out of the address and the history, and kept for this tab", async () => {
    const { http } = await openHouse();
    const { page } = await visit(http, { token: TOKEN });
    expect(page.url()).toBe(`${http}/`);
    expect(await page.evaluate(() => window.sessionStorage.getItem("parley.token"))).toBe(TOKEN);
    expect(await page.evaluate(() => JSON.stringify(window.localStorage))).not.toContain(TOKEN);
    await page.reload();
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    await page.goBack().catch(() => null);
    expect(page.url()).not.toContain(TOKEN);
  });

  test("GC2: a wrong token is refused in words, and a right one pasted as a link is taken", async () => {
    const { http } = await openHouse();
    const { page } = await visit(http);
    const field = page.getByLabel("Token or link");
    await field.fill("not the token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page
      .getByText(/wrong|unknown|not valid|token/i)
      .last()
      .waitFor();
    await expect.poll(() => page.locator(".problem").innerText()).toMatch(/token/);
    await field.fill(`  ${http}/#token=${TOKEN} `);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await field.waitFor();
    expect(await page.evaluate(() => window.sessionStorage.length)).toBe(0);
  });

  test("axe-core finds nothing on the sign-in and the first view, on desktop and phone, light and dark", async () => {
    const { http } = await openHouse();
    for (const dark of [false, true]) {
      const { page } = await visit(http, { dark });
      expect(await accessibilityProblems(page)).toEqual([]);
      const phone = await visit(http, { dark, token: TOKEN, viewport: PHONE });
      expect(await accessibilityProblems(phone.page)).toEqual([]);
    }
  });
});
