// What holds on every view of the page, over a gateway that has something to show in each.

import { afterAll, describe, expect, test } from "vitest";
import { accessibilityProblems, browserPath, closeBrowser, DESKTOP, PHONE, visit } from "../kit/browser.ts";
import { startProcess } from "../kit/gateway-process.ts";
import { PAGE_VIEWS, STORY_CONFIG, showView, tellStory } from "../kit/page-views.ts";

afterAll(closeBrowser);

const SHAPES = [
  { name: "a desktop", viewport: DESKTOP },
  { name: "a phone", viewport: PHONE },
];
const MINUTES_2 = 120_000;

// Without a Chromium at /usr/bin/chromium there is nothing to drive; in CI there is one.
describe.skipIf(browserPath === undefined)("every view", () => {
  for (const { name, viewport } of SHAPES) {
    test(
      `on ${name}: keeps to the page's policy, fits, and axe-core finds nothing`,
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
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          found.push({ view: view.name, wide, problems: await accessibilityProblems(page), complaints });
        }
        const good = { wide: viewport.width, problems: [], complaints: [] };
        expect(found).toEqual(found.map((one) => ({ ...one, ...good })));
      },
      MINUTES_2,
    );
  }
});
