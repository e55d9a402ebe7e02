// Properties of every view of the page, with a gateway that has data for each.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";
import { PAGE_VIEWS, type PageView, STORY_CONFIG, showView, tellStory } from "../kit/page-views.ts";
import { startProcess } from "../kit/process/gateway-process.ts";
import { replaceCode } from "./code-box.ts";

const SHAPES = [
  { name: "a desktop", viewport: DESKTOP },
  { name: "a phone", viewport: PHONE },
];

/** States of a view that a reader reaches by an action. */
const STATES: readonly PageView[] = [
  { name: "sessions that failed", at: "sessions?only=failed", shows: ".sessions .empty" },
  {
    ...{ name: "the form of a job", at: "operations/schedules", shows: "li.job" },
    async enter(page) {
      await page.getByRole("button", { name: "New job" }).click();
      await page.getByRole("dialog", { name: "New job" }).waitFor();
    },
  },
  {
    ...{ name: "the review of a change", at: "operations/configuration", shows: ".cm-content" },
    async enter(page) {
      await replaceCode(page, '"all"', '"tree"');
      await page.getByRole("button", { name: "Review and save" }).click();
      await page.getByText("New runs use these settings at once.").waitFor();
    },
  },
];

describeInBrowser("every view", () => {
  for (const { name, viewport } of SHAPES) {
    test(`view ${name}: the content security policy is respected, nothing is too wide, and axe-core finds no problem`, async () => {
      const gateway = await startProcess({ config: STORY_CONFIG });
      const client = await gateway.connect();
      const facts = await tellStory(client);
      const { methods } = client.hello.features;
      const { page, complaints } = await visit(gateway.httpUrl, { token: gateway.token, viewport });
      const found: object[] = [];
      const views = PAGE_VIEWS.filter(({ unused, signedOut }) => !unused && !signedOut);
      for (const view of [...views, ...STATES]) {
        if (view.needs !== undefined && !methods.includes(view.needs)) continue;
        await showView(page, gateway.httpUrl, view, facts);
        const problems = await accessibilityProblems(page);
        found.push({ view: view.name, sideways: await sideways(page), problems, complaints });
      }
      const good = { sideways: 0, problems: [], complaints: [] };
      expect(found).toEqual(found.map((one) => ({ ...one, ...good })));
    });
  }
});
