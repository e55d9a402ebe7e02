// Properties of every view of the page, with a gateway that has data for each.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";
import { PAGE_VIEWS, STORY_CONFIG, showView, tellStory } from "../kit/page-views.ts";
import { startProcess } from "../kit/process/gateway-process.ts";

const SHAPES = [
  { name: "a desktop", viewport: DESKTOP },
  { name: "a phone", viewport: PHONE },
];
const MINUTES_2 = 120_000;

describeInBrowser("every view", () => {
  for (const { name, viewport } of SHAPES) {
    test(
      `view ${name}: the content security policy is respected, nothing is too wide, and axe-core finds no problem`,
      async () => {
        const gateway = await startProcess({ config: STORY_CONFIG });
        const client = await gateway.connect();
        const facts = await tellStory(client);
        const { methods } = client.hello.features;
        const { page, complaints } = await visit(gateway.httpUrl, { token: gateway.token, viewport });
        const found: object[] = [];
        for (const view of PAGE_VIEWS.filter(({ unused, signedOut }) => !unused && !signedOut)) {
          if (view.needs !== undefined && !methods.includes(view.needs)) continue;
          await showView(page, gateway.httpUrl, view, facts);
          const problems = await accessibilityProblems(page);
          found.push({ view: view.name, sideways: await sideways(page), problems, complaints });
        }
        const good = { sideways: 0, problems: [], complaints: [] };
        expect(found).toEqual(found.map((one) => ({ ...one, ...good })));
      },
      MINUTES_2,
    );
  }
});
