// At a zoom of 200 %, a window of 1280 × 800 has 640 × 400 CSS pixels. Half of its height is for content.

import { expect, test } from "vitest";
import { describeInBrowser, sideways, visit } from "../../kit/browser.ts";
import { PAGE_VIEWS, STORY_CONFIG, showView, tellStory } from "../../kit/page-views.ts";
import { startProcess } from "../../kit/process/gateway-process.ts";

const ZOOMED = { width: 640, height: 400 };

/** The part of each view that is read, without the bars around it. */
const CONTENT: Readonly<Record<string, string>> = {
  sessions: ".session-list",
  // The palette is above this list.
  palette: ".session-list",
  conversation: ".scroller",
  jobs: ".scroller",
  "rich-text": ".scroller",
  commands: ".scroller",
  flow: ".flow-list",
  chain: ".chain-body",
  waterfall: ".chain-body",
  replay: ".chain-page",
  compare: ".chain-page",
  agents: ".agents",
  agent: ".agents",
};

describeInBrowser("a zoom of 200 %", () => {
  test("each view has half of the height for its content, and nothing is too wide", async () => {
    const gateway = await startProcess({ config: STORY_CONFIG });
    const client = await gateway.connect();
    const facts = await tellStory(client);
    const { page } = await visit(gateway.httpUrl, { token: gateway.token, viewport: ZOOMED });
    const found: object[] = [];
    for (const view of PAGE_VIEWS.filter(({ unused, signedOut }) => !unused && !signedOut)) {
      await showView(page, gateway.httpUrl, view, facts);
      const content = page.locator(CONTENT[view.name] ?? ".split-main, .tab-body").locator("visible=true");
      const height = await content.first().evaluate((part) => {
        const { top, bottom } = part.getBoundingClientRect();
        // A view with little content is as high as its content; the rest of the window is for it, too.
        const end = part.matches(".tab-body") ? window.innerHeight : Math.min(bottom, window.innerHeight);
        return end - top;
      });
      found.push({
        view: view.name,
        height,
        enough: height >= ZOOMED.height / 2,
        sideways: await sideways(page),
      });
    }
    expect(found).toEqual(found.map((one) => ({ ...one, enough: true, sideways: 0 })));
  });
});
