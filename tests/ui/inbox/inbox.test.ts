// The page's inbox in a real browser: failures, permission requests, questions and deliveries are settled in
// it. Tests use two tabs and the keyboard.

import { expect, test } from "vitest";
import { insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { type House, openHouse, type Play, TOKEN, textsTo } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { askIn } from "../../kit/engine/asking.ts";
import { until } from "../../kit/until.ts";
import { relayOf } from "../relay.ts";
import { group, MAIN, player, RESEARCH, rowIn, say } from "./kit.ts";

const TOKENS = [{ token: "reader", role: "operator", scopes: ["operator.read"] }] as const;

const EMPTY = "Questions, failures and requests of your agents appear here";

/**
 * Opens a gateway whose agent asks for permission: `ask` sends its message, `decision` waits for the run's
 * end.
 */
async function openDesk(play: Play) {
  const house: House = await openHouse({
    play: (handle) => {
      const title = handle.run.input.text;
      if (!title.startsWith("Please ")) return play(handle);
      return askIn({ engine: house.engine }, handle, {
        title,
        rawInput: { path: "/etc" },
      });
    },
    gateway: { tokens: [...TOKENS] },
  });
  const ask = (title: string): Promise<string> => say(house, MAIN, `Please ${title}`);
  const decision = async (runId: string): Promise<string | undefined> => {
    const ended = await until(async () => {
      const run = await getRun(house.store.db, runId);
      return run?.endedAt !== undefined && run;
    });
    return ended.reply;
  };
  return { house, ask, decision };
}

describeInBrowser("the inbox", () => {
  test("an empty inbox explains its purpose; a failure is shown with its reason, and can be retried", async () => {
    const { play, mend } = player();
    const house = await openHouse({ play });
    const { page } = await visit(house.http, { token: TOKEN });
    await page.getByText(EMPTY).waitFor();
    await expect.poll(() => page.title()).toBe("Inbox · Parley");
    await say(house, MAIN, "fail to fetch the prices");
    const row = rowIn(page, "Needs you", "401 invalid key");
    await row.waitFor();
    await expect.poll(() => page.title()).toBe("(1) Inbox · Parley");
    mend();
    await row.getByRole("button", { name: "Retry" }).click();
    await rowIn(page, "Done", "did fail to fetch the prices").waitFor();
    await page.getByText("Nothing needs your attention.").waitFor();
    await expect.poll(() => page.title()).toBe("Inbox · Parley");
  });

  test("a permission request is allowed on the page, another in a second tab", async () => {
    const { house, ask, decision } = await openDesk(player().play);
    const { page, context } = await visit(house.http, { token: TOKEN });
    const other = await visit(house.http, { token: TOKEN, context, at: "operations/permissions" });
    const reader = await visit(house.http, { token: "reader" });
    const first = await ask("delete the old build");
    const row = rowIn(page, "Needs you", "delete the old build");
    await row.waitFor();
    await rowIn(reader.page, "Needs you", "delete the old build").waitFor();
    await expect.poll(() => reader.page.getByRole("button", { name: "Allow" }).count()).toBe(0);
    await row.getByRole("button", { name: "Peek" }).click();
    await row.getByText("path: /etc").first().waitFor();
    await row.getByText(/^denied in \d/).waitFor();
    await other.page.getByText(/^denied in \d/).waitFor();
    await row.getByRole("button", { name: "Allow" }).click();
    expect(await decision(first)).toBe("allow");
    await page.getByText("Nothing needs your attention.").waitFor();
    await reader.page.getByText("Nothing needs your attention.").waitFor();

    // This tab polls, so the first request could still be in it.
    await other.page.getByText("No open requests").waitFor();
    const second = await ask("send a mail");
    await rowIn(page, "Needs you", "send a mail").waitFor();
    await other.page.getByRole("button", { name: "Deny" }).click();
    expect(await decision(second)).toBe("deny");
    await page.getByText("Nothing needs your attention.").waitFor();
  });

  test("a failed delivery is retried, and another is dismissed after a confirmation", async () => {
    const house = await openHouse({});
    for (const id of ["one", "two"]) {
      const route = { channel: "webchat", to: MAIN };
      const failed = {
        state: "failed",
        code: "channel_failed",
        error: `no answer ${id}`,
        createdAt: 9,
      } as const;
      await house.store.transaction((tx) =>
        insertDelivery(tx, { id, sessionKey: MAIN, kind: "send", route, text: `news ${id}`, ...failed }),
      );
    }
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "no answer one").getByRole("button", { name: "Retry" }).click();
    await rowIn(page, "Needs you", "no answer one").waitFor({ state: "detached" });
    await rowIn(page, "Needs you", "no answer two").getByRole("button", { name: "Dismiss" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dismiss" }).click();
    await page.getByText(EMPTY).waitFor();
    const rows = await house.store.db
      .selectFrom("deliveries")
      .select(["id", "state"])
      .orderBy("id")
      .execute();
    expect(rows).toEqual([
      { id: "one", state: "sent" },
      { id: "two", state: "failed" },
    ]);
  });

  test("a long question with marks stands whole and once in the row's details", async () => {
    const long = `**Well**, ${"word ".repeat(60)}, **shall I** go on?`;
    const house = await openHouse({ play: async ({ run }) => (run.input.text === "start" ? long : "done") });
    await say(house, MAIN, "start");
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "word word").getByRole("button", { name: "Peek" }).click();
    const peek = page.locator(".inbox-peek");
    await peek.getByText("shall I go on?").waitFor();
    const words = (await peek.innerText()).split("word").length - 1;
    expect(words).toBe(60);
  });

  test("an answer whose sending was interrupted by a reload is not in the field again, and is sent once", async () => {
    const house = await openHouse({ play: player().play });
    await say(house, MAIN, "ask me");
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "chat.send");
    await page.reload();
    relay.hold();
    const row = rowIn(page, "Needs you", "Shall I deploy?");
    await row.getByRole("button", { name: "Answer" }).click();
    const answer = page.getByRole("textbox", { name: "Your answer" });
    await answer.fill("ask again");
    await answer.press("Enter");
    const client = await house.client();
    const texts = () => textsTo(client, MAIN);
    await expect.poll(texts).toEqual(["ask me", "ask again"]);
    // The agent asks again, in another row.
    await answer.waitFor({ state: "detached" });
    await row.waitFor();
    await page.reload();
    await row.getByRole("button", { name: "Answer" }).click();
    await row.locator(".inbox-text").waitFor();
    await expect.poll(() => answer.inputValue()).toBe("");
    await answer.fill("ask again");
    relay.release();
    await answer.press("Enter");
    await expect.poll(texts).toEqual(["ask me", "ask again", "ask again"]);
  });

  test("the inbox works with the keyboard: j and k move, Space shows a preview, an answer is sent, Enter opens", async () => {
    const { play } = player();
    const house = await openHouse({ play });
    await say(house, RESEARCH, "ask me");
    await say(house, MAIN, "fail");
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "401 invalid key").waitFor();
    await rowIn(page, "Needs you", "Shall I deploy?").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await page.keyboard.press("j");
    const name = await page.evaluate(() => document.activeElement?.textContent ?? "");
    if (name !== "research") await page.keyboard.press("k");
    await page.keyboard.press(" ");
    const answer = page.getByRole("textbox", { name: "Your answer" });
    await page.getByText("Both tests pass.").waitFor();
    await expect
      .poll(() => page.locator(".inbox-text").innerText())
      .toBe("Both tests pass.\n\nShall I deploy?");
    // It is shown as in the conversation.
    await expect.poll(() => page.locator(".inbox-text p").count()).toBe(2);
    await answer.fill("Yes, j and k");
    await answer.press("Enter");
    await rowIn(page, "Done", "did Yes, j and k").waitFor();
    const first = page.locator("[data-row]").first();
    await first.focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.url()).toContain(encodeURIComponent(MAIN));
  });

  test("a running session can be stopped, and a dismissed failure moves to Failed", async () => {
    const { play } = player();
    const house = await openHouse({ play });
    // A session whose label is its message, as a sub-agent's can be.
    await (await house.client()).request("sessions.patch", { key: MAIN, label: "hold on" });
    await say(house, MAIN, "hold on");
    await say(house, RESEARCH, "fail");
    const { page } = await visit(house.http, { token: TOKEN });
    const running = rowIn(page, "Running", "hold on");
    expect((await running.innerText()).match(/hold on/g)).toHaveLength(1);
    await running.getByRole("button", { name: "Stop" }).click();
    await rowIn(page, "Done", "stopped").waitFor();
    await rowIn(page, "Needs you", "401").getByRole("button", { name: "Dismiss" }).click();
    await rowIn(page, "Failed", "401 invalid key").waitFor();
  });

  test("failures that need nobody are in the group Failed, which leads to all failed sessions, as many as the filter counts", async () => {
    const house = await openHouse({ play: player().play });
    const client = await house.client();
    await say(house, MAIN, "fail here");
    const dismissed = await say(house, RESEARCH, "fail there");
    const args = { task: "fail", label: "the job" };
    await client.request("tools.invoke", { sessionKey: MAIN, name: "sessions_spawn", arguments: args });
    const { page } = await visit(house.http, { token: TOKEN });
    await rowIn(page, "Needs you", "research").waitFor();
    await client.request("runs.dismiss", { runId: dismissed });
    await rowIn(page, "Failed", "the job").waitFor();
    await rowIn(page, "Failed", "research").waitFor();
    await expect.poll(() => group(page, "Needs you").getByRole("listitem").count()).toBe(1);
    await group(page, "Failed").getByText("Dismissed, or told to the session that asked.").waitFor();
    const filter = page.getByRole("group", { name: "Show" }).getByRole("button", { name: /^Failed/ });
    await page.getByRole("link", { name: "All 3 failed sessions" }).click();
    await page.getByRole("button", { name: "Filters: Failed" }).click();
    await expect.poll(() => filter.innerText()).toBe("Failed 3");
    await expect.poll(() => filter.getAttribute("aria-pressed")).toBe("true");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(3);
  });
});
