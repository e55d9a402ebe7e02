// An agent that is a program which speaks ACP, in the page.

import { expect, test } from "vitest";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { openStage, TOKEN } from "./kit.ts";

describeInBrowser("a run of an ACP agent", () => {
  test("can be stopped, but not held or steered, which only the gateway's own runs can", async () => {
    const { begin, app } = await openStage();
    await begin("hang");
    const { page } = await visit(`http://127.0.0.1:${app.port}`, {
      token: TOKEN,
      at: "sessions/agent:main:main",
    });
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    await page.getByRole("textbox", { name: "Message" }).fill("and then this");
    await button("Queue").waitFor();
    for (const name of ["Hold", "Steer"]) await expect.poll(() => button(name).count()).toBe(0);
    await button("Queue").click();
    await page.locator(".entry-queued", { hasText: "and then this" }).waitFor();
    await button("Stop").click();
    await expect.poll(() => page.locator(".entry-queued").count()).toBe(0);
  });
});
