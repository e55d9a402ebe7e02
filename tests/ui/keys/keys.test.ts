// The keys that act in every view, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { LogTail } from "../../../src/world/log-tail.ts";
import { KEYS } from "../../../ui/src/keys/table.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, visit } from "../../kit/browser.ts";
import { doing, sending } from "../../kit/talking-model.ts";
import { fakeWorld } from "../../kit/world.ts";
import { house as flowHouse, RESEARCH as OTHER, tell } from "../flow/house.ts";
import { MAIN, player, RESEARCH, rowIn, say } from "../inbox/kit.ts";
import { manySessions, NEWEST, seedSessions } from "../sessions/seed.ts";

const press = async (page: Page, ...keys: string[]): Promise<void> => {
  for (const key of keys) await page.keyboard.press(key);
};
/** Returns the text of the row with the focus. */
const rowText = (page: Page) =>
  page.evaluate(() => document.activeElement?.closest<HTMLElement>("[data-item]")?.innerText ?? "");
const focusedName = (page: Page) =>
  page.evaluate(() => document.activeElement?.ariaLabel ?? document.activeElement?.tagName);

describeInBrowser("the keys of the page", () => {
  test("the slash focuses the search of the view; a view without a search opens the palette", async () => {
    const house = await flowHouse();
    const chainId = await tell(house, doing(sending(OTHER, "hello")));
    const { page } = await visit(house.http, { token: TOKEN });
    for (const [at, name] of [
      ["inbox", "Search sessions"],
      [`sessions/${encodeURIComponent(MAIN)}`, "Search sessions"],
      [`flow/${chainId}`, "Find in steps"],
      ["operations/log", "Search the log"],
    ] as const) {
      await page.goto(`${house.http}/#/${at}`);
      const field = page.getByRole("searchbox", { name });
      await field.waitFor();
      await press(page, "/");
      await expect.poll(() => focusedName(page)).toBe(name);
      await expect.poll(() => field.inputValue()).toBe("");
      await field.blur();
    }
    await page.goto(`${house.http}/#/operations/usage`);
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    await press(page, "/");
    await page.getByRole("combobox", { name: "Session, view or action" }).waitFor();
  });

  test("the palette opens with Cmd on Apple platforms, and with Ctrl on others", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN });
    const field = page.getByRole("combobox", { name: "Session, view or action" });
    for (const [platform, other, mod] of [
      ["Linux x86_64", "Meta", "Control"],
      ["MacIntel", "Control", "Meta"],
    ] as const) {
      await page.addInitScript((value) => {
        Object.defineProperty(navigator, "platform", { value, configurable: true });
      }, platform);
      await page.reload();
      await page.getByRole("navigation", { name: "Views" }).waitFor();
      await press(page, `${other}+k`, "?");
      const dialog = page.getByRole("dialog", { name: "Keys" });
      await dialog.waitFor();
      await press(page, "Escape");
      await dialog.waitFor({ state: "detached" });
      await press(page, `${mod}+k`);
      await field.waitFor();
    }
  });

  test("a question mark shows every key of the table, and Escape returns the focus", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN });
    const link = page.getByRole("link", { name: "Flow" });
    await link.focus();
    await press(page, "?");
    const dialog = page.getByRole("dialog", { name: "Keys" });
    await dialog.waitFor();
    const actions = Object.values(KEYS).flatMap((area) => Object.values<string>(area));
    await expect.poll(() => dialog.locator("dl > div").count()).toBe(actions.length);
    await expect
      .poll(() => dialog.locator("kbd").count())
      .toBe(actions.flatMap((keys) => keys.split(" ")).length);
    await expect.poll(() => dialog.locator("dd:empty").count()).toBe(0);
    await expect
      .poll(() => dialog.locator("kbd").allInnerTexts())
      .toEqual(expect.arrayContaining(["Ctrl k", "/", "?", "j", "k", "↓", "Shift Enter", "Esc"]));
    await press(page, "j", "/", "Control+k");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(1);
    await press(page, "Escape");
    await expect.poll(() => link.evaluate((one) => one === document.activeElement)).toBe(true);
  });

  test("KY2: keys of a single character can be switched off in the table of keys, also for later visits", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    await page.getByRole("treeitem", { name: "main" }).waitFor();
    await press(page, "?");
    const dialog = page.getByRole("dialog", { name: "Keys" });
    const turn = dialog.getByRole("checkbox", { name: "Keys of a single character: j, k, / and ?" });
    await expect.poll(() => turn.isChecked()).toBe(true);
    await turn.uncheck();
    await expect.poll(() => dialog.locator("kbd").allInnerTexts()).not.toEqual(expect.arrayContaining(["j"]));
    expect(await accessibilityProblems(page)).toEqual([]);
    for (const isLater of [false, true]) {
      if (isLater) await page.reload();
      else await press(page, "Escape");
      await page.getByRole("treeitem", { name: "main" }).waitFor();
      await dialog.waitFor({ state: "detached" });
      await press(page, "j", "k", "/", "?");
      await expect.poll(() => focusedName(page)).toBe("BODY");
      await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
      // Space is not a character, and arrow keys act as before.
      await page.getByRole("tree").focus();
      await press(page, "ArrowDown", "Space");
      await page.getByRole("heading", { level: 2, name: /^(main|research|writer)$/ }).waitFor();
      await page.goto(`${house.http}/#/sessions`);
      await page.evaluate("document.activeElement.blur()");
    }
    await press(page, "Control+k");
    await page.getByRole("combobox", { name: "Session, view or action" }).fill("keys");
    await press(page, "Enter");
    await turn.check();
    await press(page, "Escape");
    await dialog.waitFor({ state: "detached" });
    await press(page, "/");
    await expect.poll(() => focusedName(page)).toBe("Search sessions");
  });

  test("KY1: in a field these keys write text, and Ctrl+K works", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, {
      token: TOKEN,
      at: `sessions/${encodeURIComponent(MAIN)}`,
    });
    for (const field of [
      page.getByRole("searchbox", { name: "Search sessions" }),
      page.getByRole("textbox", { name: "Message" }),
    ]) {
      await field.focus();
      await page.keyboard.type("a/?jk");
      await expect.poll(() => field.inputValue()).toBe("a/?jk");
      expect(await field.evaluate((one) => one === document.activeElement)).toBe(true);
    }
    await page.getByRole("combobox", { name: "Thinking" }).focus();
    await press(page, "j");
    await expect.poll(() => focusedName(page)).toBe("Thinking");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await press(page, "Control+k");
    await page.getByRole("dialog", { name: "Command palette" }).waitFor();
  });

  test("j and k move in the tree of sessions as the arrow keys do; Ctrl and Alt with them do nothing", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(40, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    await page.getByRole("treeitem", { name: "conversation 1" }).first().waitFor();
    const active = () => page.locator(".session-row.active .session-name").innerText();
    const top = await active();
    await press(page, "j");
    await expect.poll(() => page.evaluate(() => document.activeElement?.role)).toBe("tree");
    expect(await active()).toBe(top);
    await press(page, "j");
    await expect.poll(active).not.toBe(top);
    const second = await active();
    await press(page, "ArrowUp");
    await expect.poll(active).toBe(top);
    await press(page, "ArrowDown", "Alt+j");
    await expect.poll(active).toBe(second);
    await press(page, "k");
    await expect.poll(active).toBe(top);
  });

  test("in the inbox, the arrow keys move too, but not in an answer", async () => {
    const house = await openHouse({ play: player().play });
    await say(house, RESEARCH, "ask me");
    await say(house, MAIN, "fail");
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "401").waitFor();
    await rowIn(page, "Needs you", "Shall I deploy?").waitFor();
    const all = await page.locator("[data-row]").allInnerTexts();
    await press(page, "ArrowDown", "ArrowDown");
    await expect.poll(() => rowText(page)).toContain(all[1]);
    await press(page, "k");
    await expect.poll(() => rowText(page)).toContain(all[0]);
    await rowIn(page, "Needs you", "Shall I deploy?").getByRole("button", { name: "Answer" }).click();
    const answer = page.getByRole("textbox", { name: "Your answer" });
    await answer.fill("line");
    await press(page, "ArrowDown", "j", " ");
    await expect.poll(() => answer.inputValue()).toBe("linej ");
  });

  test("j, k and the arrow keys move in the list of chains", async () => {
    const house = await flowHouse();
    for (const text of ["first", "second", "third"]) await tell(house, doing(sending(OTHER, text)));
    const { page } = await visit(house.http, { token: TOKEN, at: "flow" });
    await page.getByText("3 chains").waitFor();
    await press(page, "j");
    await expect.poll(() => rowText(page)).toContain("third");
    await press(page, "j", "ArrowDown", "j");
    await expect.poll(() => rowText(page)).toContain("first");
    await press(page, "ArrowUp");
    await expect.poll(() => rowText(page)).toContain("second");
    // The newest chain is shown until another one is chosen and read.
    const steps = page.locator("[data-step][tabindex='0']");
    const newest = await steps.getAttribute("data-step");
    await press(page, "Enter");
    await page.locator("[aria-current=true]", { hasText: "second" }).waitFor();
    await expect.poll(() => steps.getAttribute("data-step")).not.toBe(newest);
    // In the diagram, the same keys move between its steps.
    const first = await steps.getAttribute("data-step");
    await steps.focus();
    await press(page, "j");
    await expect.poll(() => steps.getAttribute("data-step")).not.toBe(first);
    await press(page, "k");
    await expect.poll(() => steps.getAttribute("data-step")).toBe(first);
  });

  test("j and k move between log lines from the visible ones on; on the whole log, the arrow keys scroll", async () => {
    const logTail = new LogTail();
    const house = await openHouse({ world: { ...fakeWorld(), logTail } });
    for (let at = 0; at < 200; at += 1)
      logTail.write(JSON.stringify({ level: 30, time: 1_767_225_600_000 + at, msg: `line ${at}`, more: at }));
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/log" });
    await page.getByText("line 199").waitFor();
    await press(page, "j");
    const number = async () => Number(/line (\d+)/.exec(await rowText(page))?.[1] ?? -1);
    await expect.poll(number).toBeGreaterThan(100);
    const at = await number();
    await press(page, "j", "ArrowDown", "k");
    await expect.poll(number).toBe(at + 1);
    await press(page, "Enter");
    await page.getByText(`"more": ${at + 1}`).waitFor();
    const lines = page.getByRole("region", { name: "Lines" });
    await lines.focus();
    await press(page, "ArrowUp");
    await expect.poll(number).toBe(-1);
  });
});
