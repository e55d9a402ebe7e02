// The groups of the operations tabs, in a real browser with a real gateway.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";

const GROUPS = {
  Now: ["Status", "Runs", "Usage", "Schedules"],
  Access: ["Rights", "Permissions", "Tokens"],
  Connections: ["Deliveries", "Channels", "Servers", "Nodes"],
  Upkeep: ["Backups", "Doctor", "Log", "Configuration"],
};

const READ = { role: "operator", scopes: ["operator.read"] } as const;
const ADMIN = { role: "operator", scopes: ["operator.admin"] } as const;
const SOME = ["agent:research:*"];
const OF_READERS = [...GROUPS.Now, "Rights", "Permissions", "Channels"];

describeInBrowser("the operations tabs", () => {
  test.each([
    ["a reader", READ, [...OF_READERS, "Servers"]],
    ["a reader of some sessions", { ...READ, sessions: SOME }, OF_READERS],
    [
      "an administrator of some sessions",
      { ...ADMIN, sessions: SOME },
      [...GROUPS.Now, ...GROUPS.Access, "Deliveries", "Channels", "Nodes"],
    ],
  ])("OP1: %s is offered only tabs that the token may use", async (_, rights, wanted) => {
    const house = await openHouse({ gateway: { tokens: [{ token: "other", ...rights }] } });
    const { page } = await visit(house.http, { token: "other", at: "operations/log" });
    const nav = page.getByRole("navigation", { name: "Operations" });
    await nav.waitFor();
    await expect.poll(() => nav.getByRole("link").allInnerTexts()).toEqual(wanted);
    await expect.poll(() => page.locator(".log").count()).toBe(0);
  });

  test("on a desktop all tabs are visible in groups, without scrolling, and Tab and Enter open one", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/status", viewport: DESKTOP });
    const nav = page.getByRole("navigation", { name: "Operations" });
    await nav.waitFor();
    for (const [name, tabs] of Object.entries(GROUPS)) {
      const group = nav.getByRole("list", { name });
      await expect.poll(() => group.getByRole("link").allInnerTexts()).toEqual(tabs);
    }
    await expect.poll(() => nav.getByRole("link").count()).toBe(15);
    expect(await nav.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
    await nav.getByRole("link", { name: "Schedules" }).focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.url()).toContain("#/operations/rights");
    await expect.poll(() => nav.locator("[aria-current]:visible").allInnerTexts()).toEqual(["Rights"]);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("on a phone the groups are links, and the tabs of the current group are visible without scrolling", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, at: "operations", viewport: PHONE });
    const nav = page.getByRole("navigation", { name: "Operations" });
    const wide = () => nav.evaluate((one) => one.scrollWidth - one.clientWidth);
    for (const [name, tabs] of Object.entries(GROUPS)) {
      await nav.getByRole("link", { name, exact: true }).tap();
      await expect.poll(() => nav.locator("[aria-current]:visible").allInnerTexts()).toEqual([name, tabs[0]]);
      await expect
        .poll(() => nav.getByRole("link").allInnerTexts())
        .toEqual([...Object.keys(GROUPS), ...tabs]);
      expect([await wide(), await sideways(page)]).toEqual([0, 0]);
    }
    await nav.getByRole("link", { name: "Log" }).tap();
    await page.getByRole("searchbox", { name: "Search the log" }).waitFor();
    expect(page.url()).toContain("#/operations/log");
    expect(await accessibilityProblems(page)).toEqual([]);
  });
});
