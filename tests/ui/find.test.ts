// A stranger finds a message and a session, with the keyboard alone and with the mouse, in a real browser.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";
import { manySessions, NEWEST, openFilters, seedSessions } from "./sessions/seed.ts";

const SHAPES = [
  ["desktop", {}],
  ["desktop, dark", { dark: true }],
  ["phone", { viewport: PHONE }],
  ["phone, dark", { viewport: PHONE, dark: true }],
] as const;

/** Opens a gateway with 2,000 sessions. One of them has the message "invoice 4711". */
async function openArchive() {
  const house = await openHouse({ play: () => "noted" });
  await seedSessions(house.store, manySessions(1_250, NEWEST));
  const client = await house.client();
  const { key } = await client.request("sessions.create", { label: "on-call handover" });
  for (const message of ["the first line", "please pay invoice 4711 by Friday", "invoice 4712 can wait"])
    await client.agent({ sessionKey: key, message }).done;
  await quiet(house);
  return house;
}

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Session, view or action" }).waitFor();
}

async function isFound(page: Page): Promise<void> {
  await page.getByRole("heading", { name: "on-call handover" }).waitFor();
  await page.locator(".entry-marked").getByText("invoice 4711").waitFor();
}

describeInBrowser("a stranger", () => {
  test.each(SHAPES)("finds a message of any session by its words: %s", async (_, options) => {
    const { http } = await openArchive();
    const { page } = await visit(http, { token: TOKEN, ...options });
    await openPalette(page);
    await page.keyboard.type("invoice 4711");
    await page.getByRole("option", { name: 'Search messages for "invoice 4711"' }).waitFor();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Search messages" });
    await expect.poll(() => dialog.getByRole("listitem").count()).toBe(1);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await sideways(page)).toBe(0);
    await page.keyboard.press("Enter");
    await isFound(page);
    await page.goto(`${http}/#/sessions`);
    await openFilters(page);
    await page.getByRole("button", { name: "Search messages" }).click();
    await dialog.getByLabel("Search messages").fill("4711");
    await dialog.getByRole("link", { name: /please pay invoice 4711/ }).click();
    await isFound(page);
  });

  test.each(SHAPES)("finds a session by a part of its label: %s", async (_, options) => {
    const { http } = await openArchive();
    const { page } = await visit(http, { token: TOKEN, at: "sessions", ...options });
    const tree = page.getByRole("tree", { name: "Matching sessions" });
    const heading = page.getByRole("heading", { name: "on-call handover" });
    await page.getByRole("tree").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("handover");
    await expect.poll(() => tree.getByRole("treeitem").count()).toBe(1);
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => tree.evaluate((one) => one === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await heading.waitFor();
    await page.goto(`${http}/#/sessions`);
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("on-call");
    await expect.poll(() => tree.getByRole("treeitem").count()).toBe(1);
    await tree.getByRole("link", { name: "on-call handover" }).click();
    await heading.waitFor();
    await openPalette(page);
    await page.keyboard.type("conversation 1249");
    await page.getByRole("option", { name: /^conversation 1249/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "conversation 1249" }).waitFor();
  });
});
