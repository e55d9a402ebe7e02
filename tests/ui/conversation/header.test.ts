// The header of a conversation, in a real browser against a real gateway: the last failure, retry, loading.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { withoutFirstRows } from "../relay.ts";
import { row } from "../sessions/seed.ts";

const MAIN = "agent:main:main";
const at = (key: string) => `sessions/${encodeURIComponent(key)}`;
const REASON = "401 <b>no such key</b> \u202eyek";

describeInBrowser("the header of a conversation", () => {
  test("the header says when and why the last turn failed, and retries it, on desktop and phone", async () => {
    let works = false;
    const house = await openHouse({
      play: () => {
        if (!works) throw new Error(REASON);
        return "It works.";
      },
    });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "do it" }).done.catch(() => undefined);
    for (const viewport of [undefined, PHONE]) {
      works = false;
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: at(MAIN) },
        ...(viewport === undefined ? {} : { viewport }),
      });
      const facts = page.locator(".conversation-facts");
      const failure = facts.getByText(
        /^failed (just now|\d+ (s|min) ago): 401 <b>no such key<\/b> \\u\{202e\}yek/,
      );
      await failure.waitFor();
      await expect.poll(() => facts.getByText("idle").count()).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      works = true;
      await expect.poll(() => page.getByRole("button", { name: "Earlier conversations" }).count()).toBe(0);
      await page.getByRole("button", { name: "Retry" }).focus();
      await page.keyboard.press("Enter");
      await page.getByText("It works.").last().waitFor();
      await facts.getByText("idle").waitFor();
      await expect.poll(() => failure.count()).toBe(0);
      works = false;
      await client.agent({ sessionKey: MAIN, message: "do it again" }).done.catch(() => undefined);
      await failure.waitFor();
    }
  });

  test("the header of a failed job says who can repeat it; it offers no retry of a job, nor of a dismissed failure", async () => {
    const house = await openHouse({
      play: () => {
        throw new Error(REASON);
      },
    });
    const client = await house.client();
    const sessionKey = "agent:research:main";
    const { runId } = await client.request("chat.send", { sessionKey, message: "do it" });
    await client.request("agent.wait", { runId });
    const args = { task: "count them", label: "counting" };
    await client.request("tools.invoke", { sessionKey: MAIN, name: "sessions_spawn", arguments: args });
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions?only=failed" });
    const facts = page.locator(".conversation-facts");
    const retry = page.getByRole("button", { name: "Retry" });
    await row(page, /^counting/)
      .getByRole("link")
      .first()
      .click();
    await page.getByRole("heading", { name: "counting" }).waitFor();
    await facts.getByText(/^failed /).waitFor();
    await page.getByText("to repeat the job, ask there").waitFor();
    await expect.poll(() => retry.count()).toBe(0);
    await row(page, /^research/)
      .getByRole("link")
      .first()
      .click();
    await page.getByRole("heading", { name: "research" }).waitFor();
    await retry.waitFor();
    await expect.poll(() => page.getByText("to repeat the job").count()).toBe(0);
    await client.request("runs.dismiss", { runId });
    await retry.waitFor({ state: "detached" });
    await facts.getByText(/^failed /).waitFor();
  });

  test("while the list is loading, the page says so instead of `No sessions yet`", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http);
    let release = (): void => {};
    await withoutFirstRows(page);
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      const held: (string | Buffer)[] = [];
      let isHeld = true;
      release = () => {
        isHeld = false;
        for (const message of held) server.send(message);
      };
      socket.onMessage((message) => {
        if (isHeld && String(message).includes('"sessions.list"')) held.push(message);
        else server.send(message);
      });
    });
    // After a reload it would show the rows from before.
    await page.goto(`${house.http}/?#token=${TOKEN}`);
    const list = page.getByRole("region", { name: "Sessions" });
    await list.getByText("Loading…").waitFor();
    await expect.poll(() => page.getByText("No sessions yet").count()).toBe(0);
    release();
    await row(page, /^main/).waitFor();
  });
});
