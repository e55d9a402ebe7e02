// The inbox when much needs the reader: failures of one cause, the filter, selected rows, rows that were put off,
// and the keys.

import { expect, test } from "vitest";
import { openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { group, rowIn, say, settled } from "./kit.ts";

/**
 * Opens a gateway in which many sessions need the reader: with `pages` failures of one cause, two of another, and
 * 18 questions. `mend` ends the failures.
 */
async function openDesk(pages = 30) {
  let mends = false;
  const play: Play = async ({ run }) => {
    const { text } = run.input;
    if (mends) return `did ${text}`;
    if (text.startsWith("page")) throw new Error(`pager unreachable after ${text.length * 7} ms`);
    if (text.startsWith("key")) throw new Error("401 invalid key");
    return `${text}. Shall I go ahead?`;
  };
  const house = await openHouse({ play });
  const client = await house.client();
  for (let at = 1; at <= pages + 20; at += 1) {
    const kind = at <= pages ? "page" : at <= pages + 2 ? "key" : "ask";
    const { key } = await client.request("sessions.create", { label: `${kind} ${at}` });
    await say(house, key, `${kind}${".".repeat(at % 7)}`);
  }
  const needs = async () => (await client.request("attention.list", { limit: 200 })).groups[0]?.count;
  await expect.poll(needs).toBe(pages + 20);
  const mend = (): void => {
    mends = true;
  };
  return { house, client, needs, mend };
}

describeInBrowser("fifty sessions that need the reader", () => {
  test("failures of one cause are one row, whose button retries all of them, and which shows each", async () => {
    // More than the gateway lists by default.
    const { house, mend, needs } = await openDesk(60);
    const { page } = await visit(house.http, { token: TOKEN });
    const needsYou = group(page, "Needs you");
    const bundle = needsYou.locator(".inbox-bundle");
    await bundle.getByText("×60").waitFor();
    await bundle.getByText("pager unreachable").waitFor();
    await expect.poll(() => bundle.count()).toBe(1);
    // Two failures of one cause stay two rows.
    await expect.poll(() => rowIn(page, "Needs you", "401 invalid key").count()).toBe(2);
    await expect.poll(() => needsYou.locator(".inbox-row").count()).toBe(21);
    await bundle.getByRole("button", { name: "Show all 60" }).click();
    await expect.poll(() => bundle.locator(".inbox-row").count()).toBe(60);
    expect(await accessibilityProblems(page)).toEqual([]);
    await bundle.getByRole("button", { name: "Show all 60" }).click();
    mend();
    const retry = bundle.getByRole("button", { name: "Retry all" });
    await settled(retry);
    await retry.click();
    await expect.poll(needs).toBe(20);
    await bundle.waitFor({ state: "detached" });
  });

  test("a filter shows one kind, and an action takes all selected rows", async () => {
    const { house, needs } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN, viewport: PHONE });
    const needsYou = group(page, "Needs you");
    await needsYou.getByRole("combobox", { name: "Show" }).selectOption("Questions (18)");
    await expect.poll(() => needsYou.locator(".inbox-row").count()).toBe(18);
    await needsYou.getByRole("button", { name: "Select" }).click();
    const bar = page.getByRole("toolbar", { name: "Selected rows" });
    await bar.getByRole("checkbox").check();
    await bar.getByText("18 selected").waitFor();
    await rowIn(page, "Needs you", "ask 50").getByRole("checkbox").uncheck();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await sideways(page)).toBe(0);
    await bar.getByRole("button", { name: "Dismiss 17" }).click();
    await page.getByText("Dismissed: 17").waitFor();
    await expect.poll(needs).toBe(33);
    await expect.poll(() => needsYou.locator(".inbox-row").count()).toBe(1);
  });

  test("a row that was put off is neither listed nor counted, also after a reload, until it is shown again", async () => {
    const { house } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN });
    const row = rowIn(page, "Needs you", "ask 50");
    await row.getByRole("button", { name: "Peek" }).click();
    await row.getByRole("combobox", { name: "Snooze" }).selectOption("Until tomorrow");
    await row.waitFor({ state: "detached" });
    await page.reload();
    const back = page.getByRole("button", { name: "Show 1 snoozed" });
    await back.waitFor();
    await group(page, "Needs you").getByRole("heading").getByText("49").waitFor();
    await expect.poll(() => row.count()).toBe(0);
    await back.click();
    await row.waitFor();
  });

  test("keys move between rows and act on the row with the focus", async () => {
    const { house, needs, mend } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "ask 50").waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.closest("li")?.textContent ?? "");
    await page.keyboard.press("j");
    await expect.poll(focused).toContain("ask 50");
    await settled(rowIn(page, "Needs you", "ask 50").getByRole("button", { name: "Dismiss" }));
    await page.keyboard.press("e");
    await expect.poll(needs).toBe(49);
    await expect.poll(focused).toContain("ask 49");
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByText("2 selected").waitFor();
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor();
    for (let at = 0; at < 18; at += 1) await page.keyboard.press("j");
    await expect.poll(focused).toContain("pager unreachable");
    mend();
    await settled(page.getByRole("button", { name: "Retry all" }));
    await page.keyboard.press("r");
    await expect.poll(needs).toBe(19);
  });

  test("a key for failures of one cause leaves out those that were put off", async () => {
    const { house, needs } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN });
    const bundle = group(page, "Needs you").locator(".inbox-bundle");
    await bundle.getByRole("button", { name: "Show all 30" }).click();
    const row = bundle.locator(".inbox-row").first();
    await row.getByRole("button", { name: "Peek" }).click();
    await row.getByRole("combobox", { name: "Snooze" }).selectOption("For a week");
    await bundle.getByText("×29").waitFor();
    await settled(bundle.getByRole("button", { name: "Dismiss all" }));
    await bundle.locator("[data-row]").first().focus();
    await page.keyboard.press("e");
    await bundle.waitFor({ state: "detached" });
    await expect.poll(needs).toBe(21);
  });
});
