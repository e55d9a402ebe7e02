// Forking a conversation on the page, in a real browser against a real gateway.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, CUT, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { openLine } from "../line.ts";

const MAIN = "agent:main:main";
const at = (key: string) => `sessions/${encodeURIComponent(key)}`;

describeInBrowser("a fork", () => {
  test("each message has a button that forks from there; the fork links to its origin and has the focus in its message box", async () => {
    const house = await openHouse();
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "first words" }).done;
    await client.agent({ sessionKey: MAIN, message: "second words" }).done;
    for (const viewport of [undefined, PHONE]) {
      const view = viewport === undefined ? {} : { viewport };
      const { page } = await visit(house.http, { token: TOKEN, at: at(MAIN), ...view });
      await page.getByText("echo second words").waitFor();
      const message = page.locator(".entry-agent", { hasText: "echo first words" });
      const button = message.getByRole("button", { name: "Fork", exact: true });
      if (viewport === undefined) {
        await button.focus();
        await page.keyboard.press("Enter");
      } else {
        const copy = message.getByRole("button", { name: "Copy message" });
        expect(await copy.evaluate((one) => one.checkVisibility({ opacityProperty: true }))).toBe(true);
        await button.tap();
      }
      await page.getByText(`Forked from the conversation "first words", after the message above.`).waitFor();
      await page.getByRole("heading", { name: "main (fork)" }).waitFor();
      await expect.poll(() => page.evaluate(() => document.activeElement?.ariaLabel)).toBe("Message");
      await expect.poll(() => page.locator(".entry", { hasText: "first words" }).count()).toBe(3);
      await expect.poll(() => page.getByText("echo second words").count()).toBe(0);
      const facts = page.locator(".conversation-facts");
      await facts.getByText("forked from main").waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await facts.getByRole("link", { name: "main", exact: true }).click();
      await page.getByText("echo second words").waitFor();
    }
    const readers = { token: "reads", role: "operator" as const, scopes: ["operator.read" as const] };
    const other = await openHouse({ gateway: { tokens: [readers] } });
    const writer = await other.client();
    await writer.agent({ sessionKey: MAIN, message: "read this" }).done;
    const { page } = await visit(other.http, { token: "reads", at: at(MAIN) });
    await page.getByText("echo read this").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Fork", exact: true }).count()).toBe(0);
  });

  test("a double click on a slow connection that then breaks makes one fork, and opens it", async () => {
    const house = await openHouse();
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "first words" }).done;
    const keys = async () => (await client.request("sessions.list", {})).sessions.map(({ key }) => key);
    const before = await keys();
    const line = await openLine(house.port);
    const { page } = await visit(line.http, { token: TOKEN, at: at(MAIN), allow: CUT });
    const message = page.locator(".entry-agent", { hasText: "echo first words" });
    await message.hover();
    line.hold();
    await message.getByRole("button", { name: "Fork", exact: true }).dblclick();
    await expect.poll(async () => (await keys()).length).toBe(before.length + 1);
    line.cut();
    line.release();
    await page.getByText(`Forked from the conversation "first words", after the message above.`).waitFor();
    const [fork] = (await keys()).filter((key) => !before.includes(key));
    expect(decodeURIComponent(page.url())).toContain(`#/sessions/${fork}`);
    expect(await keys()).toHaveLength(before.length + 1);
  });
});
