// Signing in to the page, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { CUT, describeInBrowser, visit } from "../kit/browser.ts";
import { freePort } from "../kit/loopback.ts";
import { homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { openFilters } from "./sessions/seed.ts";

const views = (page: Page) => page.getByRole("navigation", { name: "Views" });
const field = (page: Page) => page.getByLabel("Token or link");

async function give(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Returns everything that the page has stored and that another page or program could read later. */
function traces(page: Page): Promise<string> {
  return page.evaluate(() =>
    JSON.stringify([window.location.href, document.referrer, document.cookie, { ...window.localStorage }]),
  );
}

/** Returns the addresses to which the tab's Back and Forward lead. */
async function addressesIn(page: Page): Promise<string> {
  const browser = await page.context().newCDPSession(page);
  const { entries } = await browser.send("Page.getNavigationHistory");
  return entries.map(({ url }) => url).join("\n");
}

describeInBrowser("sign-in", () => {
  test("TK1: the token is removed from the address and the history, and kept for this tab", async () => {
    const { http } = await openHouse();
    const { page } = await visit(http, { token: TOKEN });
    expect(page.url()).toBe(`${http}/`);
    expect(await page.evaluate(() => window.sessionStorage.getItem("parley.token"))).toBe(TOKEN);
    expect(await page.evaluate(() => JSON.stringify(window.localStorage))).not.toContain(TOKEN);
    await page.reload();
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    const addresses = await addressesIn(page);
    expect(addresses).toContain(http);
    expect(addresses).not.toContain(TOKEN);
  });

  test("GC2: a wrong token shows an error, and a right one that is pasted as a link signs in", async () => {
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

  test("TK1: a link that is pasted into an open page leaves no token in the history", async () => {
    const { http } = await openHouse();
    const { page } = await visit(http, { token: TOKEN, at: "flow" });
    const asked: string[] = [];
    page.on("request", (request) => {
      const { authorization, ...headers } = request.headers();
      asked.push(request.url() + JSON.stringify(headers));
    });
    await page.evaluate((token) => {
      window.location.hash = `#token=${token}`;
    }, TOKEN);
    await expect.poll(() => page.url()).not.toContain(TOKEN);
    await views(page).waitFor();
    await views(page).getByRole("link", { name: "Operations" }).click();
    await expect.poll(() => page.url()).toContain("operations");
    const addresses = await addressesIn(page);
    expect(addresses).toContain("flow");
    expect(addresses).not.toContain(TOKEN);
    await page.goto(http);
    await views(page).waitFor();
    expect(await traces(page)).not.toContain(TOKEN);
    expect(asked.join("\n")).not.toContain(TOKEN);
  });

  test("a token is accepted with blanks around it, and as the token part of a link", async () => {
    const { http } = await openHouse();
    for (const text of [`  ${TOKEN}\t`, `#token=${TOKEN}`, `token=${TOKEN}`]) {
      const { page } = await visit(http);
      await give(page, text);
      await views(page).waitFor();
    }
  });

  test("a link with a wrong token is refused, and the token is not stored", async () => {
    const { http } = await openHouse();
    const { page } = await visit(http);
    await page.goto(`${http}/#token=not-the-token`);
    await page.getByText("the token is not valid").waitFor();
    expect(await traces(page)).not.toContain("not-the-token");
    expect(await page.evaluate(() => window.sessionStorage.length)).toBe(0);
  });

  test("after too many wrong tokens the page asks the user to wait, and the retries can be stopped", async () => {
    const { http, client } = await openHouse();
    for (let guess = 0; guess < 10; guess++) await client({ token: `guess ${guess}` }).catch(() => null);
    const { page } = await visit(http);
    await give(page, "one guess too many");
    await page.getByText("too many wrong tokens from this address; wait and try again").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => page.getByRole("button", { name: "Sign in" }).isEnabled()).toBe(true);
  });

  test("GC2: if a restarted gateway refuses the token, the page says so and deletes the token", async () => {
    const port = await freePort();
    const first = await startProcess({
      home: homeWith({ gateway: { port, auth: { token: "the-first-token-of-the-page" } } }),
    });
    const { page } = await visit(first.httpUrl, {
      token: "the-first-token-of-the-page",
      allow: CUT,
    });
    expect(await first.end("SIGTERM")).toBe(0);
    await startProcess({
      home: homeWith({ gateway: { port, auth: { token: "the-second-token-of-the-page" } } }),
    });
    await page.getByText("the token is not valid").waitFor();
    expect(await page.evaluate(() => window.sessionStorage.length)).toBe(0);
    await give(page, "the-second-token-of-the-page");
    await views(page).waitFor();
  });

  test("TK2: two tabs are signed in with different links, and signing out of one does not affect the other", async () => {
    const { http } = await openHouse();
    const one = await visit(http, { token: TOKEN });
    const blank = await visit(http, { context: one.context });
    await field(blank.page).waitFor();
    const two = await visit(http, { token: TOKEN, context: one.context });
    await one.page.getByRole("button", { name: "Sign out" }).click();
    await field(one.page).waitFor();
    await two.page.reload();
    await views(two.page).waitFor();
    await one.page.goBack({ waitUntil: "commit" }).catch(() => null);
    await expect.poll(() => views(one.page).count()).toBe(0);
  });

  test("signing out deletes the tab's data: no selection and no draft remain", async () => {
    const { http } = await openHouse();
    const { page } = await visit(http, { token: TOKEN, at: "sessions/agent%3Amain%3Amain" });
    await page.getByRole("textbox", { name: "Message" }).fill("not yet said");
    await openFilters(page);
    await page.getByRole("button", { name: "List" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await field(page).waitFor();
    expect(await page.evaluate(() => window.sessionStorage.length)).toBe(0);
    await give(page, TOKEN);
    await views(page).waitFor();
    await expect.poll(() => page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("");
    await openFilters(page);
    await expect
      .poll(() => page.getByRole("button", { name: "Tree" }).getAttribute("aria-pressed"))
      .toBe("true");
  });

  test("a part of the page whose styles do not arrive says so, and is loaded again on request", async () => {
    const { http } = await openHouse();
    const { page } = await visit(http, { token: TOKEN, allow: /ERR_FAILED/ });
    let refused = 0;
    await page.route(/assets\/view-.*\.css/, (route) => (refused++ < 1 ? route.abort() : route.continue()));
    await page.getByRole("link", { name: "Flow" }).click();
    await page.getByText("This part of the page could not be loaded.").waitFor();
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator(".flow").waitFor();
    expect(refused).toBe(2);
  });

  test("if its gateway is killed, the page waits, and signs in again without asking for the token", async () => {
    const home = homeWith({ gateway: { port: await freePort(), auth: { token: TOKEN } } });
    const first = await startProcess({ home });
    const { page } = await visit(first.httpUrl, { token: TOKEN, allow: CUT });
    expect(await first.end("SIGKILL")).toBe(null);
    await page.getByText("Connection lost").waitFor();
    await startProcess({ home });
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await views(page).waitFor();
  });
});
