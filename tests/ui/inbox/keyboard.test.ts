// The focus in the inbox when rows come and go, unsent answers, and actions that take their time.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { relayOf } from "../relay.ts";
import { group, MAIN, player, RESEARCH, rowIn, say, settled } from "./kit.ts";

describeInBrowser("the focus in the inbox", () => {
  test("when a focused row leaves its group, the focus moves to the next row; when an open row moves, the focus follows it", async () => {
    const { play, release } = player();
    const house = await openHouse({ play });
    const client = await house.client();
    for (const label of ["first", "second", "third"]) {
      const { key } = await client.request("sessions.create", { label });
      await say(house, key, `fail ${label}`);
    }
    const { page } = await visit(house.http, { token: TOKEN });
    const focused = () => page.evaluate(() => document.activeElement?.closest("li")?.textContent ?? "");
    await rowIn(page, "Needs you", "first").waitFor();
    const second = rowIn(page, "Needs you", "second").getByRole("button", { name: "Dismiss" });
    await settled(second);
    await second.focus();
    await page.keyboard.press("Enter");
    await rowIn(page, "Failed", "second").waitFor();
    await expect.poll(focused).toContain("first");
    const first = rowIn(page, "Needs you", "first").getByRole("button", { name: "Dismiss" });
    await settled(first);
    await first.focus();
    await page.keyboard.press("Enter");
    await rowIn(page, "Failed", "first").waitFor();
    await expect.poll(focused).toContain("third");

    await say(house, MAIN, "hold on");
    const link = rowIn(page, "Running", "hold on").getByRole("link");
    await link.focus();
    await page.keyboard.press(" ");
    release();
    const done = rowIn(page, "Done", "main");
    await done.getByText("did hold on", { exact: true }).waitFor();
    await expect.poll(focused).toContain("did hold on");
    await expect
      .poll(() => done.getByRole("button", { name: "Peek main" }).getAttribute("aria-expanded"))
      .toBe("true");
  });

  test("after Stop, the focus moves to the next row of the group, also from an open row", async () => {
    const { play, release } = player();
    const house = await openHouse({ play });
    const client = await house.client();
    for (const label of ["first", "second", "third"]) {
      const { key } = await client.request("sessions.create", { label });
      await say(house, key, `hold ${label}`);
    }
    const { page } = await visit(house.http, { token: TOKEN });
    const focused = () => page.evaluate(() => document.activeElement?.closest("li")?.textContent ?? "");
    for (const [label, next] of [
      ["second", "first"],
      ["first", "third"],
    ] as const) {
      const row = rowIn(page, "Running", `hold ${label}`);
      if (label === "first") await row.getByRole("button", { name: "Peek" }).click();
      const stop = row.getByRole("button", { name: "Stop" });
      await settled(stop);
      await stop.focus();
      await page.keyboard.press("Enter");
      await rowIn(page, "Done", label).waitFor();
      await expect.poll(focused).toContain(`hold ${next}`);
    }
    release();
  });

  test("a draft answer is kept when another turn replaces the question, and the conversation's input has the draft", async () => {
    const house = await openHouse({ play: player().play });
    await say(house, RESEARCH, "ask me");
    const { page } = await visit(house.http, { token: TOKEN });
    const row = rowIn(page, "Needs you", "Shall I deploy?");
    await row.getByRole("button", { name: "Answer" }).click();
    const answer = page.getByRole("textbox", { name: "Your answer" });
    await answer.fill("Not before the");
    await say(house, RESEARCH, "ask me again");
    await answer.waitFor({ state: "detached" });
    await row.getByRole("button", { name: "Answer" }).click();
    await expect.poll(() => answer.inputValue()).toBe("Not before the");
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(RESEARCH)}`);
    const field = page.getByRole("textbox", { name: "Message" });
    await expect.poll(() => field.inputValue()).toBe("Not before the");
    await page.goBack();
    await row.getByRole("button", { name: "Answer" }).click();
    await answer.fill("Yes");
    await answer.press("Enter");
    await rowIn(page, "Done", "did Yes").waitFor();
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(RESEARCH)}`);
    await field.waitFor();
    await expect.poll(() => field.inputValue()).toBe("");
  });

  test("a retry is shown in its row until the row has gone", async () => {
    const { play, mend } = player();
    const house = await openHouse({ play });
    await say(house, MAIN, "fail");
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "401").waitFor();
    const relay = await relayOf(page, "runs.retry");
    await page.reload();
    relay.hold("requests");
    await rowIn(page, "Needs you", "401").getByRole("button", { name: "Retry" }).click();
    await rowIn(page, "Needs you", "401").getByText("Retrying…").waitFor();
    await expect.poll(() => page.getByRole("status").allInnerTexts()).toContain("Retrying.");
    relay.release();
    // The retry fails, too, so there is a new row, and nothing says that a retry is in progress.
    const retry = rowIn(page, "Needs you", "401").getByRole("button", { name: "Retry main" });
    await rowIn(page, "Needs you", "failed again").waitFor();
    await expect.poll(() => retry.allInnerTexts()).toEqual(["Retry"]);
    mend();
    await settled(retry);
    await retry.click();
    await rowIn(page, "Done", "did fail").waitFor();
    await expect.poll(() => page.getByText("Retrying").count()).toBe(0);
    await expect.poll(() => page.locator(".notice").count()).toBe(0);
  });

  test("a second click on an action in progress has no effect", async () => {
    const house = await openHouse({ play: player().play });
    await say(house, MAIN, "fail");
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "401").waitFor();
    const relay = await relayOf(page, "runs.dismiss");
    await page.reload();
    relay.hold();
    const dismiss = rowIn(page, "Needs you", "401").getByRole("button", { name: "Dismiss" });
    await page.locator(".version:not(:empty)").waitFor({ state: "attached" });
    await settled(dismiss);
    await dismiss.focus();
    for (let n = 0; n < 3; n += 1) await page.keyboard.press("Enter");
    await expect.poll(() => relay.asked()).toBe(1);
    // The gateway has dismissed the run, though its answer has not arrived.
    await rowIn(page, "Failed", "401").waitFor();
    relay.release();
    await page.getByText("Dismissed: main").waitFor();
    expect(relay.asked()).toBe(1);
    await expect.poll(() => page.locator(".notice.problem").count()).toBe(0);
  });
  test("a second click in the same place does not act on the row that has moved there, nor does a held key", async () => {
    const house = await openHouse({ play: player().play });
    const client = await house.client();
    for (const label of ["first", "second", "third"]) {
      const { key } = await client.request("sessions.create", { label });
      await say(house, key, `fail ${label}`);
    }
    const { page } = await visit(house.http, { token: TOKEN });
    const rows = group(page, "Needs you").getByRole("listitem");
    await expect.poll(() => rows.count()).toBe(3);
    const shown = rows.locator("[data-row]");
    const names = await shown.allInnerTexts();
    const dismiss = rows.first().getByRole("button", { name: "Dismiss" });
    await settled(dismiss);
    await dismiss.evaluate((button) => {
      const { x, y } = button.getBoundingClientRect();
      const under = () => document.elementFromPoint(x + 4, y + 4);
      const look = (): void => {
        const now = under();
        if (now === null || now === button || button.isConnected) return void requestAnimationFrame(look);
        (now as HTMLElement).click();
        (window as { clicked?: string }).clicked = now.getAttribute("aria-label") ?? "nothing";
      };
      (button as HTMLElement).click();
      look();
    });
    await expect
      .poll(() => page.evaluate(() => (window as { clicked?: string }).clicked))
      .toBe(`Dismiss ${names[1]}`);
    await settled(dismiss);
    await expect.poll(() => shown.allInnerTexts()).toEqual(names.slice(1));

    await dismiss.focus();
    await page.keyboard.down("Enter");
    await rowIn(page, "Failed", names[1] ?? "").waitFor();
    for (let n = 0; n < 5; n += 1) await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await expect.poll(() => shown.allInnerTexts()).toEqual(names.slice(2));
    expect(page.url()).not.toContain("sessions");
  });
});
