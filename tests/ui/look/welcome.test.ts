// Empty states: what the page says and offers before there is anything to show.

import { expect, test } from "vitest";
import { openDemo } from "../../../src/main.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { agentSettings } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const JOBS = "Spawn 3 jobs: wait 2 seconds, then say part {n} is done";

describeInBrowser("an empty state", () => {
  for (const viewport of [{ width: 1280, height: 800 }, PHONE]) {
    test(`a first visit ${viewport.width} px wide says what Parley is and which model answers; sentences fill the composer`, async () => {
      const house = await openHouse({ openDemo: () => openDemo(quietWorld()) });
      const { page } = await visit(house.http, { token: TOKEN, viewport });
      const welcome = page.getByRole("region", { name: "Welcome to Parley" });
      await welcome.getByText("Parley is a gateway for AI agents").waitFor();
      await expect.poll(() => welcome.innerText()).toContain("offline model, which needs no key");
      await welcome.getByRole("button", { name: "Play the demo" }).waitFor();
      const sentences = welcome.getByRole("list").getByRole("button");
      await expect
        .poll(() => sentences.allInnerTexts())
        .toEqual([
          expect.stringMatching(/^Ask \w+: what should we check before a release\?$/),
          JOBS,
          "Show my sessions",
        ]);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await sentences.nth(1).click();
      await expect.poll(() => page.url()).toContain(encodeURIComponent(MAIN));
      const field = page.getByRole("textbox", { name: "Message" });
      await expect.poll(() => field.inputValue()).toBe(JOBS);
      await page.getByRole("button", { name: "Send" }).click();
      await page.getByText(`echo ${JOBS}`).first().waitFor();
      await page.goto(`${house.http}/#/inbox`);
      await page.getByRole("heading", { name: "Done" }).waitFor();
      await expect.poll(() => welcome.count()).toBe(0);
    });
  }

  test("the offline model is not mentioned when a model is configured, and other tokens get no introduction", async () => {
    const reader = { token: "a-reader", role: "operator", scopes: ["operator.read"] } as const;
    const house = await openHouse({
      gateway: { tokens: [reader] },
      choices: { agents: [agentSettings("main", { model: "acme/one" })] },
    });
    const { page } = await visit(house.http, { token: TOKEN });
    await page.getByRole("heading", { name: "Welcome to Parley" }).waitFor();
    await expect.poll(() => page.getByText("offline model").count()).toBe(0);
    await expect.poll(() => page.getByRole("button", { name: "Who are you?" }).count()).toBe(1);
    await expect.poll(() => page.getByRole("button", { name: JOBS }).count()).toBe(0);
    const other = await visit(house.http, { token: "a-reader" });
    await other.page.getByText("Questions, failures and requests of your agents").waitFor();
    await expect.poll(() => other.page.getByRole("heading", { name: "Welcome to Parley" }).count()).toBe(0);
  });
});
