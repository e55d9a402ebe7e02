// The first rows of the page, which it shows before its WebSocket is open.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, operatorToken, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";
import { manySessions, NEWEST, row, seedSessions } from "./sessions/seed.ts";

const FIRST = "**/page/first";

/** Keeps WebSockets of the page from their gateway until the returned function is called. */
async function holdSockets(page: Page): Promise<() => void> {
  const held = Promise.withResolvers<void>();
  await page.routeWebSocket(/^ws:/, (socket) => {
    held.promise.then(() => socket.connectToServer());
  });
  return held.resolve;
}

/** Keeps the scripts and style sheets of the page from the browser until the returned function is called. */
async function holdFiles(page: Page): Promise<() => void> {
  const held = Promise.withResolvers<void>();
  await page.route("**/assets/*", async (route) => {
    await held.promise;
    await route.continue();
  });
  return held.resolve;
}

describeInBrowser("the first rows", () => {
  test.each([
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ])(
    "ED1, ED2: they are drawn before a file has arrived, and the page takes their place: %s",
    async (_, viewport) => {
      const house = await openHouse();
      const client = await house.client();
      await client.agent({ sessionKey: "agent:main:main", message: "first words" }).done;
      const label = "<img src=x onerror=alert(1)> \u202Eevil";
      await seedSessions(house.store, [{ key: "agent:main:chat:evil", label, updatedAt: NEWEST }]);
      await seedSessions(house.store, manySessions(60, NEWEST - 60_000));
      const { page } = await visit(house.http, { viewport });
      const arrive = await holdFiles(page);
      const open = await holdSockets(page);
      await page.goto(`${house.http}/?#token=${TOKEN}`, { waitUntil: "commit" });
      const item = page.locator(".inbox-row", { hasText: "echo first words" });
      await item.waitFor();
      expect(
        await page.getByRole("button").evaluateAll((all) => all.every((one) => one.matches(":disabled"))),
      ).toBe(true);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      const places = () =>
        page
          .locator(viewport === PHONE ? ".inbox-row" : ".inbox-row, .session-row")
          .evaluateAll((rows) =>
            rows
              .slice(0, 20)
              .map((one) => [one.getBoundingClientRect().y, one.getBoundingClientRect().height]),
          );
      const before = await places();
      arrive();
      await page
        .getByRole("button", { name: "Notify me" })
        .or(page.locator(".inbox-bar kbd"))
        .first()
        .waitFor({ state: "attached" });
      expect(await places()).toEqual(before);
      await expect.poll(() => page.locator(".inbox-row", { hasText: "echo first words" }).count()).toBe(1);
      open();
      await page.locator(".version:not(:empty)").waitFor({ state: "attached" });
      await page.goto(`${house.http}/#/sessions`);
      await page.getByText("<img src=x onerror=alert(1)> \\u{202e}evil").waitFor();
    },
  );

  test("ED2: a click on a row that was drawn early opens its session when the page has started", async () => {
    const house = await openHouse();
    const client = await house.client();
    await client.agent({ sessionKey: "agent:main:main", message: "first words" }).done;
    await seedSessions(house.store, manySessions(9, NEWEST));
    const { page } = await visit(house.http);
    const arrive = await holdFiles(page);
    await page.goto(`${house.http}/?#token=${TOKEN}`, { waitUntil: "commit" });
    await page.locator(".session-row", { hasText: /^main/ }).getByRole("link").click();
    expect(page.url()).toContain(encodeURIComponent("agent:main:main"));
    arrive();
    await page.locator(".entry", { hasText: "echo first words" }).waitFor();
  });

  test("a reload shows the rows that the tab has shown last, until new ones arrive, and a sign-out removes them", async () => {
    const house = await openHouse();
    const client = await house.client();
    await client.agent({ sessionKey: "agent:main:main", message: "first words" }).done;
    const { page } = await visit(house.http, { token: TOKEN });
    await client.agent({ sessionKey: "agent:main:main", message: "second words" }).done;
    await page.locator(".inbox-row", { hasText: "echo second words" }).waitFor();
    await client.agent({ sessionKey: "agent:research:main", message: "third words" }).done;
    const held = Promise.withResolvers<void>();
    await page.route(FIRST, async (route) => {
      await held.promise;
      await route.continue();
    });
    const open = await holdSockets(page);
    await page.reload();
    await page.locator(".inbox-row", { hasText: "echo second words" }).waitFor();
    await row(page, /^main/).waitFor();
    held.resolve();
    await page.locator(".inbox-row", { hasText: "echo third words" }).waitFor();
    open();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    expect(await page.evaluate(() => Object.keys(sessionStorage))).toEqual([]);
  });

  test("a reload after a change of the token does not show rows of the other token", async () => {
    const tokens = [operatorToken("some", "operator.read", ["agent:research:*"])];
    const house = await openHouse({ gateway: { tokens } });
    const { page } = await visit(house.http, { token: TOKEN, allow: /ERR_FAILED/ });
    await row(page, /^main/).waitFor();
    await holdSockets(page);
    await page.route(FIRST, (route) => route.abort());
    await page.evaluate((to) => {
      history.replaceState(null, "", to);
      location.reload();
    }, "/#token=some");
    await page.getByRole("button", { name: "Connecting…" }).waitFor();
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(0);
  });

  test("TK1: they are requested before a script file has arrived, after the token has left the address", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(3, NEWEST));
    const { page } = await visit(house.http);
    const arrive = await holdFiles(page);
    let asked = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/page/first")) asked += 1;
    });
    const [first] = await Promise.all([
      page.waitForRequest(FIRST),
      page.goto(`${house.http}/?#token=${TOKEN}`, { waitUntil: "commit" }),
    ]);
    expect(await first.headerValue("authorization")).toBe(`Bearer ${TOKEN}`);
    expect(page.url()).toBe(`${house.http}/`);
    await first.response();
    const open = await holdSockets(page);
    arrive();
    await row(page, /^conversation 1/).waitFor();
    open();
    await page.getByRole("button", { name: "New session" }).waitFor();
    expect(asked).toBe(1);
  });

  test("a token in the address signs in even if the browser forbids storage", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http);
    await page.addInitScript(() => {
      Object.defineProperty(window, "sessionStorage", {
        get() {
          throw new DOMException("forbidden", "SecurityError");
        },
      });
    });
    await page.goto(`${house.http}/?#token=${TOKEN}`);
    await page.getByRole("button", { name: "New session" }).waitFor();
    await row(page, /^main/).waitFor();
    expect(page.url()).toBe(`${house.http}/`);
  });

  test("a filter in the address does not show rows of the whole list", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(30, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN });
    const open = await holdSockets(page);
    await page.goto(`${house.http}/#/sessions?search=conversation%207`);
    await page.reload();
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(0);
    open();
    await row(page, /^conversation 7/).waitFor();
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(1);
  });

  test("an answer that comes after the connection changes nothing, nor does one that fails", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(3, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN, allow: /ERR_FAILED/ });
    const held = Promise.withResolvers<void>();
    await page.route(FIRST, async (route) => {
      await held.promise;
      await route.fulfill({ json: { ok: true, sessions: { sessions: [] }, attention: { groups: [] } } });
    });
    await page.reload();
    await page.locator(".version:not(:empty)").waitFor({ state: "attached" });
    const answered = page.waitForEvent("requestfinished", (request) => request.url().endsWith("/page/first"));
    held.resolve();
    await answered;
    await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
    await row(page, /^conversation 1/).waitFor();
    await page.unroute(FIRST);
    await page.route(FIRST, (route) => route.abort());
    await page.reload();
    await row(page, /^conversation 1/).waitFor();
  });

  test("a page from the cache that the gateway has replaced loads itself again, once", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http);
    let loads = 0;
    page.on("domcontentloaded", () => {
      loads += 1;
    });
    await page.route(FIRST, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), script: "/assets/new.js" } });
    });
    const open = await holdSockets(page);
    await page.evaluate((token) => sessionStorage.setItem("parley.token", token), TOKEN);
    await page.goto("about:blank");
    await page.goto(`${house.http}/`);
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    open();
    await row(page, /^main/).waitFor();
    await page.getByRole("button", { name: "New session" }).waitFor();
    // Those of about:blank, of the cached page and of the new one.
    expect(loads).toBe(3);
  });
});
