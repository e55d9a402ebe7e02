// Forking a session at a step of the flow view, in a real browser with a real gateway.

import { expect, test } from "vitest";
import { accessibilityProblems, describeInBrowser, PHONE, sideways } from "../../kit/browser.ts";
import { doing, sending, spawning } from "../../kit/talking-model.ts";
import { house, MAIN, open, RESEARCH, stepNamed, tell } from "./house.ts";

describeInBrowser("the actions of a step", () => {
  test("a step forks the session of its message after this message, and opens the fork, on desktop and phone", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    await tell(here, doing(sending(RESEARCH, "and later?")));
    for (const viewport of [undefined, PHONE]) {
      const page = await open(here, `flow/${chainId}`, viewport === undefined ? {} : { viewport });
      await stepNamed(page, /^main asked research.*what is new\?$/).click();
      const details = page.getByRole("complementary", { name: "Selected step" });
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await details.getByRole("button", { name: "Fork from here" }).click();
      await page.getByText(`Forked from the conversation "what is new?", after the message above.`).waitFor();
      expect(decodeURIComponent(page.url())).toContain(`#/sessions/${RESEARCH}:fork:`);
      const texts = await page.locator(".entry").allInnerTexts();
      expect(texts.join("\n")).toContain("what is new?");
      expect(texts.join("\n")).not.toMatch(/echo|and later/);
    }
  });

  test("merged steps, steps without a message, and tokens without the right offer no fork", async () => {
    const tokens = [{ token: "reads", role: "operator" as const, scopes: ["operator.read" as const] }];
    const here = await house({ gateway: { tokens } });
    const jobs = ["one", "two", "three", "four", "five"].map((label) => spawning("same job", { label }));
    await tell(here, doing(...jobs, sending(RESEARCH, "hello")));
    const page = await open(here);
    const fork = page.getByRole("button", { name: "Fork from here" });
    const details = page.getByRole("complementary", { name: "Selected step" });
    await stepNamed(page, /^a person wrote to main/).click();
    await fork.waitFor();
    await stepNamed(page, /^main gave 5 jobs/).click();
    await details.getByText("Show one by one").waitFor();
    await expect.poll(() => fork.count()).toBe(0);
    const reader = await open(here, "flow", { token: "reads" });
    await stepNamed(reader, /^a person wrote to main/).click();
    await reader.getByRole("link", { name: "Open message" }).waitFor();
    await expect.poll(() => reader.getByRole("button", { name: "Fork from here" }).count()).toBe(0);
    const client = await here.client();
    await client.request("sessions.reset", { key: MAIN });
    await page.reload();
    await stepNamed(page, /^a person wrote to main/).click();
    await details.getByText("Message not available").waitFor();
    await expect.poll(() => fork.count()).toBe(0);
  });
});
