// The command palette in a real browser with a real gateway, by keyboard alone.
// Hard cases: 2,000 sessions; Enter before the gateway has answered; tokens with few rights.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { MAIN, player, say } from "../inbox/kit.ts";
import { relayOf } from "../relay.ts";
import { FAMILY, manySessions, NEWEST, seedSessions } from "../sessions/seed.ts";

const field = (page: Page) => page.getByRole("combobox", { name: "Session, view or action" });
const options = (page: Page) => page.getByRole("option").locator(".name:first-child").allInnerTexts();

/** Returns the id and the text of the element with the focus. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const { activeElement: one } = document;
    return { id: one?.id, name: one?.ariaLabel, text: one instanceof HTMLTextAreaElement ? one.value : "" };
  });

/** Opens the palette, types, and presses Enter at once. */
async function choose(page: Page, text: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await field(page).waitFor();
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
  await field(page).waitFor({ state: "detached" });
}

const opened = (page: Page, key: string) =>
  expect.poll(() => decodeURIComponent(page.url())).toContain(`#/sessions/${key}`);

describeInBrowser("the palette", () => {
  test("of 2,000 sessions, it opens one by its label, its key or words in any order, and the focus is in the view", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(1_250, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN });
    await choose(page, "conversation 1234");
    await opened(page, "agent:research:chat:c1234");
    await expect.poll(() => focused(page)).toMatchObject({ id: "view" });
    await choose(page, "main:chat:c1233");
    await opened(page, "agent:main:chat:c1233");
    await choose(page, "1231 CONV research");
    await opened(page, "agent:research:chat:c1231");
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "main main session" }).waitFor();
    await expect
      .poll(() => page.getByRole("option", { name: / (main|research|writer|main session)$/ }).count())
      .toBe(8);
    await expect.poll(() => page.locator(".palette-list").innerText()).not.toContain("agent:");
    await page.keyboard.type("no such thing");
    await page.getByText("No matches").waitFor();
  });

  test("Enter waits for the gateway's answer, and searches the messages if there is no match", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "sessions.list");
    await page.reload();
    await page.getByRole("treeitem", { name: "plan" }).waitFor();
    await page.keyboard.press("Control+k");
    await field(page).waitFor();
    relay.hold();
    await page.keyboard.type("stop no");
    await page.keyboard.press("Enter");
    relay.release();
    const messages = page.getByRole("dialog", { name: "Search messages" });
    await expect.poll(() => messages.getByLabel("Search messages").inputValue()).toBe("stop no");
    await messages.getByRole("button", { name: "Close" }).click();
    await messages.waitFor({ state: "detached" });
    // Hold the first answer, too: it contains the session.
    relay.hold();
    await page.keyboard.press("Control+k");
    await field(page).waitFor();
    await page.keyboard.type("look it");
    await page.keyboard.press("Enter");
    await page.getByText("Searching…").waitFor();
    relay.release();
    await opened(page, "agent:research:subagent:one");
  });

  test("PA2: late answers do not move the chosen row, and Enter does not wait for them", async () => {
    const house = await openHouse();
    const talks = Array.from({ length: 8 }, (_, n) => ({
      ...{ key: `agent:main:chat:c${n}`, label: `talk ${n}`, updatedAt: NEWEST },
    }));
    const late = { key: "agent:main:chat:late", label: "sailing", updatedAt: 900 };
    await seedSessions(house.store, [...talks, late]);
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "sessions.list");
    await page.reload();
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "talk 7" }).waitFor();
    relay.hold();
    // The session's name begins with the typed text, so it would come before most of these rows.
    await page.keyboard.type("s");
    await page.getByRole("option", { name: "talk 7" }).waitFor({ state: "detached" });
    await page.keyboard.press("ArrowUp");
    // Rows that come late stay below the chosen row, so one look reads both it and the rows above.
    const untilChosen = () =>
      page.getByRole("option").evaluateAll((rows) => {
        const at = rows.findIndex((row) => row.ariaSelected === "true");
        return rows.slice(0, at + 1).map((row) => row.querySelector(".name")?.textContent);
      });
    await expect.poll(async () => (await untilChosen()).length).toBeGreaterThan(1);
    const before = await untilChosen();
    const found = page.getByRole("option", { name: "sailing" });
    await expect
      .poll(() => {
        relay.pass();
        return found.count();
      })
      .toBe(1);
    expect(before).not.toContain("sailing");
    expect(await untilChosen()).toEqual(before);
    await field(page).fill("runs");
    await page.keyboard.press("Enter");
    await field(page).waitFor({ state: "detached" });
    await expect.poll(() => page.url()).toContain("#/operations/runs");
    relay.release();
  });

  test("its entries follow the view and the sessions while it is open", async () => {
    const { play, release } = player();
    const house = await openHouse({ play });
    await say(house, MAIN, "hold on");
    const { page } = await visit(house.http, { token: TOKEN, at: `sessions/${encodeURIComponent(MAIN)}` });
    await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
    await page.keyboard.press("Control+k");
    const stop = page.getByRole("option", { name: /^Stop/ });
    await stop.waitFor();
    await page.keyboard.press("ArrowDown");
    const chosen = () => page.locator(".palette-option[aria-selected=true]").innerText();
    const before = await chosen();
    release();
    await stop.waitFor({ state: "detached" });
    const client = await house.client();
    await client.request("sessions.create", { label: "made just now" });
    await page.getByRole("option", { name: "made just now" }).waitFor();
    expect(await chosen()).toBe(before);
    // A change of the view that no event announces.
    await page.evaluate(`document.querySelector(".session-bar button").dataset.act = "Act of the view"`);
    await page.getByRole("option", { name: "Act of the view" }).waitFor();
    expect(await chosen()).toBe(before);
  });

  test("arrow keys move and wrap, the field names the active option, and Escape returns the focus and the text", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, {
      token: TOKEN,
      at: `sessions/${encodeURIComponent(MAIN)}`,
    });
    const message = page.getByRole("textbox", { name: "Message" });
    await message.fill("half a thought");
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "plan main" }).waitFor();
    const active = async () => {
      const id = await field(page).getAttribute("aria-activedescendant");
      const option = page.locator(`[id="${id}"]`);
      await expect.poll(() => option.getAttribute("aria-selected")).toBe("true");
      return option.innerText();
    };
    const first = await active();
    await page.keyboard.press("ArrowDown");
    expect(await active()).not.toBe(first);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    expect(await active()).toContain("Sign out");
    await page.keyboard.press("ArrowDown");
    expect(await active()).toBe(first);
    await page.keyboard.press("Escape");
    await field(page).waitFor({ state: "detached" });
    await expect.poll(() => focused(page)).toMatchObject({ name: "Message", text: "half a thought" });
    await page.keyboard.press("Control+k");
    await field(page).waitFor();
    await page.keyboard.press("Control+k");
    await field(page).waitFor({ state: "detached" });
    await expect.poll(() => focused(page)).toMatchObject({ name: "Message" });
  });

  test("it opens every view and tab, and offers only those that the token may use", async () => {
    const tokens = [{ token: "reader", role: "operator" as const, scopes: ["operator.read" as const] }];
    const house = await openHouse({ gateway: { tokens } });
    const { page } = await visit(house.http, { token: TOKEN });
    for (const [text, at] of [
      ["log", "operations/log"],
      ["runs", "operations/runs"],
      ["flow", "flow"],
      ["inbox", "inbox"],
    ] as const) {
      await choose(page, text);
      await expect.poll(() => page.url()).toContain(`#/${at}`);
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "main main session" }).waitFor();
    const all = await options(page);
    const { page: reader } = await visit(house.http, { token: "reader", at: "operations/status" });
    const tabs = await reader
      .getByRole("navigation", { name: "Operations" })
      .getByRole("link")
      .allInnerTexts();
    await reader.keyboard.press("Control+k");
    await reader.getByRole("option", { name: "main main session" }).waitFor();
    const few = await options(reader);
    expect(few).toEqual(expect.arrayContaining(tabs));
    const withheld = ["New session", "Deliveries", "Tokens", "Nodes", "Log", "Configuration"];
    expect(all).toEqual(expect.arrayContaining(withheld));
    expect(few.filter((one) => withheld.includes(one))).toEqual([]);
  });

  test("it stops the run of the open session, creates a session, shows the keys, changes the colours and signs out", async () => {
    const { play, release } = player();
    const house = await openHouse({ play });
    await say(house, MAIN, "hold on");
    const { page } = await visit(house.http, {
      token: TOKEN,
      at: `sessions/${encodeURIComponent(MAIN)}`,
    });
    await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
    await choose(page, "stop");
    await page.getByText("The run was stopped.").waitFor({ state: "attached" });
    release();
    await choose(page, "new session");
    const dialog = page.getByRole("dialog", { name: "New session" });
    await dialog.getByRole("textbox", { name: "Title" }).fill("from the palette");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.title()).toBe("from the palette · Parley");
    await choose(page, "keys");
    const keys = page.getByRole("dialog", { name: "Keys" });
    await keys.waitFor();
    await page.keyboard.press("Escape");
    await keys.waitFor({ state: "detached" });
    await choose(page, "dark");
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await choose(page, "sign out");
    await page.getByRole("button", { name: "Sign in" }).waitFor();
  });
});
