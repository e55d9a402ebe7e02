// A command that waits for its owner, in the inbox, in its conversation and in the list of sessions.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { listRules } from "../../../src/store/queries/permission-rules.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { doing, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { rowIn, say, settled } from "./kit.ts";

const READER = { token: "reader", role: "operator", scopes: ["operator.read"] } as const;

/** Opens a gateway whose agent `ops` asks before each command. `ask` makes its session ask for `touch NAME`. */
async function openDesk(askSeconds = 300) {
  const workspace = temporaryFolder();
  const house = await openHouse({
    model: talkingModel(),
    choices: {
      agents: [agentSettings("main"), agentSettings("ops", { workspace })],
      tools: { exec: { ...settingsWith().tools.exec, approval: "always", askSeconds } },
    },
    gateway: { tokens: [READER] },
  });
  const client = await house.client();
  const { key } = await client.request("sessions.create", { label: "Deploy 4.2", agentId: "ops" });
  const askFor = (command: string) => say(house, key, doing({ name: "exec", arguments: { command } }));
  const ask = (name: string) => askFor(`touch ${name} && echo 'made it'`);
  return { house, key, ask, askFor, workspace, made: (name: string) => existsSync(join(workspace, name)) };
}

const buttonsOf = async (page: Page) =>
  (await page.locator(".permission-answers > button").allInnerTexts()).map((text) => text.trim());

/** Opens the menu of lasting permissions. */
const openLonger = (within: Page | Locator) => within.getByText("Allow for longer").click();

describeInBrowser("a command that waits for permission", () => {
  test("beside the session list, a command of several lines is one line with marks", async () => {
    const { house, askFor } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    await askFor("set -e\ntouch a");
    await page.getByRole("region", { name: "Needs you" }).getByText("set -e⏎ touch a").waitFor();
  });

  test("a command that nobody allows in time is not lost: the inbox, the list and the conversation say so", async () => {
    const { house, key, ask, made } = await openDesk(0.5);
    const { page } = await visit(house.http, { token: TOKEN });
    await ask("late");
    const row = rowIn(page, "Needs you", "Nobody answered in time, so it was not done: touch late");
    await row.getByText("unanswered", { exact: true }).waitFor();
    await page
      .getByRole("treeitem")
      .filter({ hasText: "Deploy 4.2" })
      .getByText("needs you: unanswered")
      .waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await row.getByRole("button", { name: "Answer" }).click();
    await page.getByRole("textbox", { name: "Your answer" }).fill("Leave it.");
    await page.keyboard.press("Enter");
    await rowIn(page, "Done", "Deploy 4.2").waitFor();
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(key)}`);
    await page.locator(".tool").getByText("not approved").waitFor();
    expect(made("late")).toBe(false);
  });

  test("the inbox names agent, command and folder, and offers Allow and Deny first", async () => {
    const { house, ask, workspace } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN, viewport: PHONE });
    await ask("deployed");
    const row = rowIn(page, "Needs you", "Deploy 4.2");
    const summary = row.locator(".inbox-summary");
    await expect.poll(() => summary.innerText()).toBe("ops wants to run: touch deployed && echo 'made it'");
    await expect.poll(() => summary.locator("code").innerText()).toBe("touch deployed && echo 'made it'");
    await expect.poll(() => rowIn(page, "Waiting", "Deploy 4.2").count()).toBe(0);
    await row.getByText(/^denied in \d min$/).waitFor();
    await row.getByRole("button", { name: "Peek" }).click();
    await expect
      .poll(() => row.locator(".permission pre").innerText())
      .toBe("touch deployed && echo 'made it'");
    await row.getByText(`in ${workspace}`).waitFor();
    await expect.poll(() => row.innerText()).not.toContain("approval is always");
    await expect.poll(() => buttonsOf(page)).toEqual(["Allow", "Deny"]);
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("a command is always allowed only after a second step that says what this means, and Undo takes it back", async () => {
    const { house, ask, workspace } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN, viewport: PHONE });
    await ask("deployed");
    const row = rowIn(page, "Needs you", "Deploy 4.2");
    await row.getByRole("button", { name: "Peek" }).click();
    await openLonger(row);
    await row.getByRole("button", { name: "Always allow this command…" }).click();
    const means = "From now on agent ops runs exactly this command without asking, in all its sessions";
    await row.getByText(`${means}, in the folder ${workspace}.`).waitFor();
    await expect.poll(() => buttonsOf(page)).toEqual(["Always allow this command", "Back"]);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await sideways(page)).toBe(0);
    await row.getByRole("button", { name: "Back" }).click();
    await expect.poll(() => buttonsOf(page)).toEqual(["Allow", "Deny"]);
    expect(await listRules(house.store.db)).toEqual([]);
    await openLonger(row);
    await row.getByRole("button", { name: "Always allow this command…" }).click();
    await row.getByRole("button", { name: "Always allow this command" }).click();
    const notice = page.locator(".notice");
    await notice.getByText("Allowed from now on in all sessions of ops: touch deployed").waitFor();
    await page.getByText("Nothing needs your attention.").waitFor();
    await expect.poll(() => listRules(house.store.db)).toMatchObject([{ agentId: "ops", scope: "always" }]);
    await notice.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undone. The next call of the command asks again.").waitFor();
    await expect.poll(() => listRules(house.store.db)).toEqual([]);
  });

  test("a second click within a second answers neither the next request nor a confirmation", async () => {
    const { house, key, ask, made } = await openDesk();
    const at = `sessions/${encodeURIComponent(key)}`;
    const { page } = await visit(house.http, { token: TOKEN, at });
    const tail = page.getByRole("list", { name: "In progress" });
    const press = (name: string) => tail.getByRole("button", { name, exact: true }).click();
    /** Clicks a button in the frame in which it appears. */
    const atOnce = (name: string) =>
      page.evaluate(`new Promise((clicked) => {
        const look = () => {
          const buttons = [...document.querySelectorAll(".permission-answers button")];
          const button = buttons.find(({ textContent }) => textContent.trim() === "${name}");
          if (button === undefined) return requestAnimationFrame(look);
          button.click();
          requestAnimationFrame(() => requestAnimationFrame(clicked));
        };
        look();
      })`);
    let click = atOnce("Allow");
    await ask("first");
    await click;
    click = atOnce("Always allow this command");
    await openLonger(tail);
    await press("Always allow this command…");
    await click;
    await press("Back");
    await press("Allow");
    await expect.poll(() => made("first")).toBe(true);
    await expect.poll(() => page.locator(".permission").count()).toBe(0);
    click = atOnce("Allow");
    await ask("second");
    await click;
    await press("Deny");
    await page.getByText("Denied: exec in Deploy 4.2").waitFor();
    expect(made("second")).toBe(false);
    expect(await listRules(house.store.db)).toEqual([]);
  });

  test("the whole command is shown on a phone, before and after Peek, without a box that cuts it", async () => {
    const { house, askFor } = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN, viewport: PHONE });
    const lines = Array.from({ length: 60 }, (_, n) => `echo line ${n}`);
    await askFor(`TOKEN="$(id)" true\n${lines.join("\n")}\u202e`);
    const shown = ['TOKEN="$(id)" true', ...lines].join("⏎\n");
    const row = rowIn(page, "Needs you", "Deploy 4.2");
    const isWhole = (selector: string) =>
      row.locator(selector).evaluate((box) => box.scrollHeight <= box.clientHeight + 1);
    await expect.poll(() => row.locator(".inbox-summary code").innerText()).toBe(`${shown}\\u{202e}`);
    expect(await isWhole(".inbox-summary")).toBe(true);
    await row.getByRole("button", { name: "Peek" }).click();
    await expect.poll(() => row.locator(".permission pre").innerText()).toBe(`${shown}\\u{202e}`);
    expect(await isWhole(".permission pre")).toBe(true);
    expect(await sideways(page)).toBe(0);
    await row.getByRole("button", { name: "Deny" }).click();
  });

  test("A allows it and D denies it, from the row with the focus", async () => {
    const { house, ask, made } = await openDesk();
    await ask("first");
    const { page } = await visit(house.http, { token: TOKEN });
    const row = rowIn(page, "Needs you", "Deploy 4.2");
    await settled(row.getByRole("button", { name: "Deny" }));
    await row.getByRole("link").focus();
    await page.keyboard.press("d");
    await page.getByText("Denied: exec in Deploy 4.2").waitFor();
    expect(made("first")).toBe(false);
    await ask("second");
    await settled(row.getByRole("button", { name: "Allow" }));
    await row.getByRole("link").focus();
    await page.keyboard.press("a");
    await expect.poll(() => made("second")).toBe(true);
  });

  test("its conversation shows the question with its buttons, and the list of sessions says that it needs you", async () => {
    const { house, key, ask, made } = await openDesk();
    await ask("first");
    const at = `sessions/${encodeURIComponent(key)}`;
    const { page } = await visit(house.http, { token: TOKEN, at });
    const reader = await visit(house.http, { token: "reader", at });
    const tail = page.getByRole("list", { name: "In progress" });
    await tail.getByText("waiting for your permission").waitFor();
    await tail.getByText("ops wants to run:").waitFor();
    await expect.poll(() => buttonsOf(page)).toEqual(["Allow", "Deny"]);
    await page.locator(".tool").getByText("needs permission").waitFor();
    await page
      .getByRole("treeitem")
      .filter({ hasText: "Deploy 4.2" })
      .getByText("needs you: permission")
      .waitFor();
    await expect.poll(() => page.getByText("another session").count()).toBe(0);
    await reader.page.getByText("waiting for permission").waitFor();
    await expect.poll(() => buttonsOf(reader.page)).toEqual([]);
    expect(await accessibilityProblems(page)).toEqual([]);
    await tail.getByRole("button", { name: "Allow", exact: true }).click();
    await page.getByText("Allowed: exec in Deploy 4.2").waitFor();
    await expect.poll(() => made("first")).toBe(true);
    await expect.poll(() => page.getByText("needs you: permission").count()).toBe(0);
    await expect.poll(() => page.locator(".permission").count()).toBe(0);

    await ask("second");
    await tail.getByRole("button", { name: "Deny" }).click();
    await page.getByText("Denied: exec in Deploy 4.2").waitFor();
    await page.getByText("approval_denied").first().waitFor();
    expect(made("second")).toBe(false);
  });
});
