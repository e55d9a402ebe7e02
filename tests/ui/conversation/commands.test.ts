// The menu of commands in the composer, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { COMMANDS } from "../../../src/core/rules/command.ts";
import type { TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { MAIN, player, say } from "../inbox/kit.ts";

const AT = `sessions/${encodeURIComponent(MAIN)}`;
const TOKENS: TokenSettings[] = [
  { token: "writer", role: "operator", scopes: ["operator.write"] },
  { token: "partial", role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
];

const message = (page: Page) => page.getByRole("textbox", { name: "Message" });
const menu = (page: Page) => page.getByRole("listbox", { name: "Commands" });
const names = async (page: Page): Promise<string[]> =>
  (await menu(page).getByRole("option").locator(".mono").allInnerTexts()).map(
    (usage) => usage.split(" ")[0] ?? "",
  );

async function open(token = TOKEN) {
  const { play, release } = player();
  const house = await openHouse({ play, gateway: { tokens: TOKENS } });
  const { page } = await visit(house.http, { token, at: AT });
  await message(page).waitFor();
  return { house, page, release };
}

describeInBrowser("the menu of commands", () => {
  test("a slash at the beginning lists every command with its arguments; more letters narrow the list", async () => {
    const { page } = await open();
    await message(page).pressSequentially("/");
    await expect
      .poll(() => menu(page).getByRole("option").allInnerTexts())
      .toEqual(COMMANDS.map(({ usage, description }) => `${usage}\n${description}`));
    await page.keyboard.type("su");
    await expect.poll(() => names(page)).toEqual(["/subagents"]);
    await page.keyboard.type("x");
    await expect.poll(() => menu(page).isVisible()).toBe(false);
    for (const text of ["see /st", "/etc/hosts", "/model offline", "a\n/st"]) {
      await message(page).fill(text);
      await expect.poll(() => menu(page).isVisible()).toBe(false);
    }
  });

  test("arrow keys move, Tab and Enter complete, Escape closes, and Enter sends a complete command", async () => {
    const { house, page, release } = await open();
    await say(house, MAIN, "hold on");
    await message(page).pressSequentially("/st");
    const active = async () => {
      const id = await message(page).getAttribute("aria-activedescendant");
      return page.locator(`[id="${id}"]`).innerText();
    };
    const hasFocus = () => message(page).evaluate((one) => one === document.activeElement);
    expect(await active()).toContain("/status");
    await page.keyboard.press("ArrowDown");
    expect(await active()).toContain("/stop");
    await page.keyboard.press("ArrowDown");
    expect(await active()).toContain("/status");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Tab");
    await expect.poll(() => message(page).inputValue()).toBe("/stop");
    expect(await hasFocus()).toBe(true);
    await page.keyboard.press("Tab");
    expect(await hasFocus()).toBe(false);
    await expect.poll(() => message(page).inputValue()).toBe("/stop");
    await message(page).fill("/mo");
    await page.keyboard.press("Enter");
    await expect.poll(() => message(page).inputValue()).toBe("/model ");
    await expect.poll(() => menu(page).isVisible()).toBe(false);
    await message(page).fill("/s");
    await page.keyboard.press("Escape");
    await expect.poll(() => menu(page).isVisible()).toBe(false);
    await expect.poll(() => message(page).inputValue()).toBe("/s");
    await page.keyboard.type("t");
    await expect.poll(() => menu(page).isVisible()).toBe(false);
    await message(page).fill("");
    await page.keyboard.type("/session");
    await expect.poll(() => names(page)).toEqual(["/session", "/sessions"]);
    await message(page).fill("/stop");
    await page.keyboard.press("Enter");
    await page.getByText("Stopped", { exact: false }).first().waitFor();
    await expect.poll(() => message(page).inputValue()).toBe("");
    release();
  });

  test("a text that begins like a command but names none is sent only after a second Enter", async () => {
    const { page } = await open();
    await message(page).fill("/nonsense please");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("There is no command /nonsense.").waitFor();
    await expect.poll(() => page.locator(".entry").count()).toBe(0);
    await page.keyboard.press("Enter");
    await page.getByText("did /nonsense please").waitFor();
    await message(page).fill("/etc/hosts");
    await page.keyboard.press("Enter");
    await page.getByText("did /etc/hosts").waitFor();
  });

  test("CM1: only the commands that the token may give are listed, and the gateway refuses exactly the others", async () => {
    for (const [token, missing] of [
      ["writer", ["/new", "/reset", "/fresh", "/fork", "/send", "/approvals", "/allow", "/deny", "/pair"]],
      ["partial", ["/pair"]],
    ] as const) {
      const { page } = await open(token);
      await message(page).pressSequentially("/");
      const all = COMMANDS.map(({ name }) => `/${name}`);
      await expect
        .poll(() => names(page))
        .toEqual(all.filter((name) => !(missing as readonly string[]).includes(name)));
      for (const name of missing) {
        await message(page).fill(`${name} x`);
        await page.keyboard.press("Enter");
        await page.locator(".composer-problem", { hasText: name }).waitFor();
      }
    }
  });
});
