// The filters of the session list, with their counts, in the page's address.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, visit } from "../../kit/browser.ts";
import { settingsWith } from "../../tools/app.ts";
import { FAMILY, names, openFilters, row, seedSessions } from "./seed.ts";

const PLAN = "agent:main:chat:plan";

const filterButton = (page: Page, name: RegExp) =>
  page.getByRole("group", { name: "Show" }).getByRole("button", { name });
const words = (page: Page) => page.getByRole("group", { name: "Show" }).innerText();

/**
 * Opens a gateway with a run that waits for `go`, a failed run and a successful one. Another token started
 * them.
 */
async function openBusy() {
  const gate = Promise.withResolvers<void>();
  const play: Play = async ({ run: { input } }) => {
    if (input.text === "wait") await gate.promise;
    if (input.text === "fail") throw new Error("no");
    return "done";
  };
  const tokens = [{ token: "other", role: "operator" as const, scopes: ["operator.write" as const] }];
  const house = await openHouse({ play, gateway: { tokens } });
  await seedSessions(house.store, FAMILY);
  const client = await house.client({ token: "other" });
  const say = async (message: string, sessionKey: string) => {
    const sent = client.agent({ message, sessionKey, idempotencyKey: `${message} ${sessionKey}` });
    await sent.accepted;
    const done = sent.done.catch(() => undefined);
    if (message !== "wait") await done;
  };
  await say("wait", "agent:main:telegram:group:7");
  await say("fail", "agent:main:subagent:two");
  await say("go", PLAN);
  return { house, say, go: () => gate.resolve() };
}

describeInBrowser("session filters", () => {
  test("running, failed and own sessions are counted and listed, and changes appear at once", async () => {
    const { house, go } = await openBusy();
    const { page } = await visit(house.http, { token: TOKEN });
    await openFilters(page);
    await expect.poll(() => words(page)).toBe("All\nActive 1\nFailed 1\nMine");
    await filterButton(page, /Active/).click();
    await expect.poll(() => names(page)).toEqual(["the group"]);
    await filterButton(page, /Failed/).click();
    await expect.poll(() => names(page)).toEqual(["write it"]);
    await filterButton(page, /Mine/).click();
    await page.getByText("No matches").waitFor();
    const own = await house.client();
    await own.agent({ message: "go", sessionKey: PLAN, idempotencyKey: "own" }).done;
    await expect.poll(() => names(page)).toEqual(["plan"]);
    await filterButton(page, /Active/).click();
    await row(page, /the group/).waitFor();
    go();
    await page.getByText("No matches").waitFor();
    await expect.poll(() => words(page)).toBe("All\nActive\nFailed 1\nMine 1");
    await own.agent({ message: "go", sessionKey: "agent:main:subagent:two", idempotencyKey: "again" }).done;
    await expect.poll(() => words(page)).toBe("All\nActive\nFailed\nMine 2");
    await filterButton(page, /All/).click();
    await page.getByRole("button", { name: "Open plan" }).waitFor();
  });

  test("a reload, a shared link and a link to a session keep the filters", async () => {
    const { house } = await openBusy();
    const { page, context } = await visit(house.http, { token: TOKEN });
    await openFilters(page);
    await filterButton(page, /Failed/).click();
    await page.getByRole("button", { name: "Filters: Failed" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("group", { name: "Filters" }).count()).toBe(0);
    await row(page, /write it/).click();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    const address = page.url();
    expect(address).toContain("subagent%3Atwo?only=failed");
    await page.reload();
    await expect.poll(() => names(page)).toEqual(["write it"]);
    await page.getByRole("button", { name: "Filters: Failed" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => filterButton(page, /Failed/).getAttribute("aria-pressed")).toBe("true");
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Flow", exact: true }).click();
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await expect.poll(() => names(page)).toEqual(["write it"]);
    await page.getByLabel("Search sessions").fill("no such thing");
    await page.getByText("No matches").waitFor();
    const other = await visit(house.http, { token: TOKEN, context });
    await other.page.goto(`${house.http}/#/sessions?only=bogus&kind=group&search=the%20group&archived=no`);
    await expect.poll(() => names(other.page)).toEqual(["the group"]);
    await expect.poll(() => other.page.getByLabel("Search sessions").inputValue()).toBe("the group");
    await other.page.goto(`${house.http}/#/sessions`);
    await row(other.page, /plan/).waitFor();
    await expect.poll(() => other.page.getByLabel("Search sessions").inputValue()).toBe("");
    await other.page.goBack();
    await expect.poll(() => names(other.page)).toEqual(["the group"]);
  });

  test("the menu is as wide as the list, and the focus returns to its button from a dialog that it opened", async () => {
    const name = "an agent with a very long name ".repeat(8);
    const house = await openHouse({
      choices: { agents: settingsWith().agents.map((one) => ({ ...one, name })) },
    });
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    await openFilters(page);
    const tooWide = () =>
      page.locator(".session-menu").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
    await page.getByRole("combobox", { name: "Agent" }).waitFor();
    await expect.poll(tooWide).toBe(0);
    await page.getByRole("button", { name: "Search messages" }).click();
    await page.getByRole("dialog", { name: "Search messages" }).waitFor();
    await page.keyboard.press("Escape");
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    await expect.poll(focused).toBe("Filters");
  });

  test("signing out resets the filters", async () => {
    const { house } = await openBusy();
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions?search=secret" });
    await page.getByText("No matches").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel(/token/i).waitFor();
    expect(page.url()).not.toContain("secret");
  });
});
