// Search in the messages of all sessions, in a real browser against a real gateway.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";

const KEYS = ["agent:main:main", "agent:research:main"];

describeInBrowser("the search in messages", () => {
  test("the search finds a message in any session, and opens it", async () => {
    const house = await openHouse({ play: () => "noted" });
    const client = await house.client();
    for (const sessionKey of KEYS)
      await client.agent({ sessionKey, message: `the ripe <b>tomatoes</b> of ${sessionKey}` }).done;
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: "sessions" },
        ...(viewport === undefined ? {} : { viewport }),
      });
      await page.getByRole("button", { name: "Search messages" }).click();
      const dialog = page.getByRole("dialog", { name: "Search messages" });
      await dialog.getByLabel("Words").fill("cucumbers");
      await dialog.getByText("No matches").waitFor();
      await dialog.getByLabel("Words").fill("tomato ripe");
      const hits = dialog.getByRole("listitem");
      await expect.poll(() => hits.count()).toBe(2);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await hits
        .filter({ hasText: "of agent:research:main" })
        .getByRole("link", { name: "the ripe <b>tomatoes</b>" })
        .click();
      await dialog.waitFor({ state: "detached" });
      const found = page.locator(".entry-marked");
      await found.getByText("of agent:research:main").waitFor();
      await page.getByRole("heading", { name: "research" }).waitFor();
    }
  });
});
