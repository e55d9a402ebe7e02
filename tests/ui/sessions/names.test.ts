// Wherever the page links to a session, it shows the session's label, and the key as a tooltip.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, visit } from "../../kit/browser.ts";
import { MAIN, player, RESEARCH, say } from "../inbox/kit.ts";
import { FAMILY, row, seedSessions } from "./seed.ts";

const PLAN = "agent:main:chat:plan";
const GONE = "agent:main:chat:gone";

/** Returns text and tooltip of the link to a session. */
async function linkTo(page: Page, key: string): Promise<readonly [string, string | null]> {
  const link = page.locator(`#view a.session-link[href*="${encodeURIComponent(key)}"] .name`).last();
  return [await link.innerText(), await link.getAttribute("title")];
}

describeInBrowser("names of sessions", () => {
  test("a conversation and the outbox show labels, and follow a rename", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    await house.store.transaction(async (tx) => {
      for (const [id, sessionKey] of [PLAN, GONE, "agent:main:telegram:group:7", PLAN].entries())
        await insertDelivery(tx, {
          ...{ id: `d${id}`, sessionKey, kind: "send", route: { channel: "webchat", to: "a" } },
          ...{ text: "x", state: "skipped", createdAt: 100, code: "x", error: "no" },
        });
    });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/deliveries" });
    await expect.poll(() => linkTo(page, PLAN)).toEqual(["plan", PLAN]);
    await expect
      .poll(() => linkTo(page, "agent:main:telegram:group:7"))
      .toEqual(["the group", "agent:main:telegram:group:7"]);
    await expect.poll(() => linkTo(page, GONE)).toEqual(["main · chat gone", GONE]);
    const client = await house.client();
    await client.call("sessions.patch", { key: PLAN, label: "<b>renamed</b>" });
    await expect.poll(() => linkTo(page, PLAN)).toEqual(["<b>renamed</b>", PLAN]);
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent("agent:main:subagent:deep")}`);
    await page.getByRole("heading", { name: "check it" }).waitFor();
    const parent = page.locator(".conversation-facts .session-link");
    await expect.poll(() => parent.innerText()).toBe("write it");
    await expect.poll(() => page.title()).toBe("check it · Parley");
    await client.call("sessions.patch", { key: "agent:main:subagent:deep", label: "<b>\u202echecked</b>" });
    await expect.poll(() => page.title()).toBe("<b>\\u{202e}checked</b> · Parley");
    await page.goto(`${house.http}/#/operations/schedules`);
    await expect.poll(() => page.title()).toBe("Schedules · Parley");
    await page.goto(`${house.http}/#/sessions`);
    await expect.poll(() => page.title()).toBe("Sessions · Parley");
  });

  test("a new session is asked for a title; a part of its key is under More, and is shown without its encoding", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    const dialog = page.getByRole("dialog", { name: "New session" });
    const create = async (fields: Readonly<Record<string, string>>) => {
      await page.getByRole("button", { name: "New session" }).click();
      await expect.poll(() => dialog.getByRole("textbox").count()).toBe(1);
      if (fields["Key part"] !== undefined) await dialog.getByText("More").click();
      for (const [name, text] of Object.entries(fields)) await dialog.getByLabel(name).fill(text);
      expect(await accessibilityProblems(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await create({ Title: "Bird picture" });
    // The reader can write at once.
    await expect
      .poll(() => page.evaluate("document.activeElement?.getAttribute('aria-label')"))
      .toBe("Message");
    await expect.poll(() => page.title()).toBe("Bird picture · Parley");
    await expect.poll(() => row(page, /Bird picture/).innerText()).toContain("chat");
    await create({ "Key part": "birds of May" });
    await expect.poll(() => page.title()).toBe("main · birds of May · Parley");
    await row(page, /main · birds of May/).waitFor();
    await expect.poll(() => page.locator(".session-list").innerText()).not.toContain("%20");
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "main · birds of May" }).waitFor();
  });

  test("a selection that ends outside of a dialog does not close it, a click there does", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    await page.getByRole("button", { name: "New session" }).click();
    const title = page.getByRole("dialog").getByLabel("Title");
    await title.fill("Bird picture");
    const { x = 0, y = 0, height = 0 } = (await title.boundingBox()) ?? {};
    await page.mouse.move(x + 60, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(5, 5);
    await page.mouse.up();
    await expect.poll(() => title.inputValue()).toBe("Bird picture");
    await page.mouse.click(5, 5);
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  });

  test("the title of the tab names the open session, chain or tab, and counts what needs the reader", async () => {
    const house = await openHouse({ play: player().play });
    const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "say" } });
    const chainId = accepted.ok ? accepted.value.run.chainId : "";
    const { page } = await visit(house.http, { token: TOKEN });
    for (const [at, title] of [
      ["inbox", "Inbox"],
      ["sessions", "Sessions"],
      [`sessions/${encodeURIComponent(RESEARCH)}`, "research"],
      [`flow/${chainId}`, "main · Flow"],
      ["operations", "Operations"],
      ["operations/log", "Log"],
    ] as const) {
      await page.goto(`${house.http}/#/${at}`);
      await expect.poll(() => page.title()).toBe(`${title} · Parley`);
    }
    await say(house, RESEARCH, "fail");
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(RESEARCH)}`);
    await expect.poll(() => page.title()).toBe("(1) research · Parley");
  });
});
