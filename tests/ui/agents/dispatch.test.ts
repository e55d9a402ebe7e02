// The field that gives work to any agent, in a real browser with a real gateway.

import { expect, test } from "vitest";
import { openHouse, TOKEN, textsTo } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { fleet, READER } from "../fleet/house.ts";
import { relayOf } from "../relay.ts";

describeInBrowser("work for any agent", () => {
  test("with the keyboard alone: @ opens the field, completes the agent's name, and Enter sends to its session", async () => {
    const house = await fleet();
    const { page } = await visit(house.http, { token: TOKEN, at: "flow" });
    await page.locator("#view").focus();
    await page.keyboard.press("@");
    const field = page.getByRole("textbox", { name: "Work for an agent" });
    await expect.poll(() => field.inputValue()).toBe("@");
    const options = page.getByRole("listbox", { name: "Agents" }).getByRole("option");
    await expect.poll(() => options.count()).toBe(3);
    await page.keyboard.type("res");
    await expect.poll(() => options.allInnerTexts()).toHaveLength(1);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await expect.poll(() => field.inputValue()).toBe("@research ");
    await page.getByText("Goes to").waitFor();
    await page.keyboard.type("check the release");
    await page.keyboard.press("Enter");
    await page.getByText("echo check the release").first().waitFor();
    expect(page.url()).toContain(encodeURIComponent("agent:research:main"));
    const message = page.getByRole("textbox", { name: "Message" });
    await expect.poll(() => message.evaluate((one) => one === document.activeElement)).toBe(true);
  });

  test("DS1: without a name it goes to the default agent; a wrong name or a refusal keeps the text; a reader has no field", async () => {
    const house = await fleet();
    const { page } = await visit(house.http, { token: TOKEN, viewport: PHONE });
    const open = () => page.getByRole("button", { name: "Ask an agent" }).click();
    await open();
    const field = page.getByRole("textbox", { name: "Work for an agent" });
    const send = page.getByRole("button", { name: "Send", exact: true });
    expect(await sideways(page)).toBe(0);
    await field.fill("@nobody look");
    await page.getByText("No agent is called nobody.").waitFor();
    await send.click();
    await page.getByText("There is no agent nobody.").waitFor();
    await page.keyboard.press("Escape");
    await open();
    await expect.poll(() => field.inputValue()).toBe("@nobody look");
    await page.reload();
    await open();
    await expect.poll(() => field.inputValue()).toBe("@nobody look");
    await field.fill("look here");
    await send.click();
    await page.getByText("echo look here").first().waitFor();
    expect(page.url()).toContain(encodeURIComponent("agent:main:main"));
    const reader = await visit(house.http, { token: READER });
    await reader.page.locator("#view").focus();
    await reader.page.keyboard.press("@");
    await expect.poll(() => reader.page.getByRole("button", { name: "Ask an agent" }).count()).toBe(0);
    await expect.poll(() => reader.page.getByRole("dialog").count()).toBe(0);
  });

  test("work whose sending was interrupted by a reload is in the field again, and arrives once", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "chat.send");
    await page.reload();
    relay.hold();
    const open = () => page.getByRole("button", { name: "Ask an agent" }).click();
    await open();
    const field = page.getByRole("textbox", { name: "Work for an agent" });
    await field.fill("once only");
    await field.press("Enter");
    await expect.poll(() => relay.asked()).toBe(1);
    const client = await house.client();
    const texts = () => textsTo(client, "agent:main:main");
    await expect.poll(texts).toEqual(["once only"]);
    await page.reload();
    relay.release();
    await open();
    await expect.poll(() => field.inputValue()).toBe("once only");
    await field.press("Enter");
    await page.locator(".entry").getByText("once only", { exact: true }).waitFor();
    await expect.poll(() => page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("");
    expect(await texts()).toEqual(["once only"]);
  });
});
