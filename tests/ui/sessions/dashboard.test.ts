// The view beside the session list while no session is chosen.

import { expect, test } from "vitest";
import { openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, visit } from "../../kit/browser.ts";

describeInBrowser("the view beside the session list", () => {
  test("the view names what needs the reader, what runs, and what today has cost, with links", async () => {
    const gate = Promise.withResolvers<void>();
    const play: Play = async ({ run: { input } }) => {
      if (input.text === "wait") await gate.promise;
      if (input.text === "fail") throw new Error("no paper");
      return "done";
    };
    const house = await openHouse({ play });
    const client = await house.client();
    await client.agent({ sessionKey: "agent:writer:main", message: "fail" }).done.catch(() => undefined);
    await client.agent({ sessionKey: "agent:research:main", message: "wait" }).accepted;
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    const needs = page.getByRole("region", { name: "Needs you" });
    await needs.getByText("no paper").waitFor();
    const work = page.getByRole("region", { name: "At work" });
    await work.getByRole("link", { name: "research" }).waitFor();
    await page.getByRole("region", { name: "Today" }).getByText("1 failed").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    gate.resolve();
    await work.getByText("No agent is at work.").waitFor();
    await needs.getByRole("link", { name: "writer" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    expect(page.url()).toContain(encodeURIComponent("agent:writer:main"));
  });
});
