// How the flow view and the header of a session lead to the jobs that failed, in a real browser with a real
// gateway.

import { expect, test } from "vitest";
import { accessibilityProblems, describeInBrowser, PHONE, sideways } from "../../kit/browser.ts";
import { doing, spawning, talkingModel } from "../../kit/talking-model.ts";
import { house, MAIN, open, stepNamed, tell } from "./house.ts";

const REASON = "the quota is exhausted";
const LABELS = ["Acme", "Borealis", "Cobalt", "Delta", "Ember", "Fjord"];
const FAILING = ["Delta", "Fjord"];

/** Opens a gateway on which main has spawned six jobs, two of which failed. */
async function withFailures() {
  const model = talkingModel((input) => {
    if (FAILING.some((label) => input === `check ${label}`)) throw new Error(REASON);
    return undefined;
  });
  const here = await house({ model });
  const chainId = await tell(here, doing(...LABELS.map((label) => spawning(`check ${label}`, { label }))));
  return { here, chainId };
}

describeInBrowser("jobs that failed", () => {
  test("a group of jobs names those that failed, with reason and link, and counts the others, on desktop and phone", async () => {
    const { here, chainId } = await withFailures();
    for (const viewport of [undefined, PHONE]) {
      const page = await open(here, `flow/${chainId}`, viewport === undefined ? {} : { viewport });
      await stepNamed(page, /^main gave 6 jobs: 4 ok, 2 error/).click();
      const details = page.getByRole("complementary", { name: "Selected step" });
      const failed = details.getByRole("list", { name: "Failed" }).getByRole("listitem");
      await expect.poll(() => failed.count()).toBe(2);
      for (const [at, label] of FAILING.entries())
        await expect.poll(() => failed.nth(at).innerText()).toMatch(new RegExp(`^${label}\\s+.*${REASON}`));
      await details.getByText("4 others: 4 ok").waitFor();
      await expect.poll(() => details.innerText()).not.toContain("Acme");
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await failed.getByRole("link", { name: "Fjord" }).click();
      await page.getByRole("heading", { name: "Fjord" }).waitFor();
      await page.locator(".entry").getByText("check Fjord").waitFor();
    }
  });

  test("the count of failures in the header of a chain shows their row, and then each of them", async () => {
    const { here, chainId } = await withFailures();
    const page = await open(here, `flow/${chainId}`);
    const count = page.locator(".chain-title").getByRole("button", { name: "2 failed" });
    const details = page.getByRole("complementary", { name: "Selected step" });
    await count.click();
    await details.getByRole("heading", { name: /^main gave 6 jobs/ }).waitFor();
    await details.getByRole("button", { name: "Show one by one" }).click();
    await count.click();
    await details.getByRole("heading", { name: /^main gave Delta a job/ }).waitFor();
    await count.click();
    await details.getByRole("heading", { name: /^main gave Fjord a job/ }).waitFor();
    await count.click();
    await details.getByRole("heading", { name: /^main gave Delta a job/ }).waitFor();
    await page.getByRole("button", { name: "Waterfall" }).click();
    await count.click();
    await details.getByRole("heading", { name: /^main gave Fjord a job/ }).waitFor();
  });

  test("the count of failed jobs in the header of a session lists them, with reason and link", async () => {
    const { here } = await withFailures();
    const page = await open(here, `sessions/${encodeURIComponent(MAIN)}`);
    await page.locator(".conversation-facts").getByRole("button", { name: "2 failed" }).click();
    const dialog = page.getByRole("dialog", { name: "Failed jobs" });
    const rows = dialog.getByRole("listitem");
    await expect.poll(() => rows.count()).toBe(2);
    await expect.poll(() => rows.filter({ hasText: "Delta" }).innerText()).toContain(REASON);
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole("link", { name: "Fjord" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Fjord" }).waitFor();
  });
});
