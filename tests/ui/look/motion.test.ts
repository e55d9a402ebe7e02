// Motion of the session list: it shows which rows moved, and is off for readers who prefer that.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { manySessions, NEWEST, names, row, seedSessions } from "../sessions/seed.ts";

/** Keeps the name of each row that is animated, and the animated property. */
const RECORD = `
  window.moves = [];
  const { animate } = Element.prototype;
  Element.prototype.animate = function (frames, options) {
    window.moves.push(this.querySelector(".session-name")?.textContent + " " + Object.keys(frames));
    return animate.call(this, frames, options);
  };`;

describeInBrowser("motion", () => {
  for (const reducedMotion of ["no-preference", "reduce"] as const) {
    const title = {
      "no-preference": "a row that moves slides, and a new row fades in",
      reduce: "rows do not move",
    };
    test(`with prefers-reduced-motion: ${reducedMotion}, ${title[reducedMotion]}`, async () => {
      const house = await openHouse();
      await seedSessions(house.store, manySessions(30, NEWEST));
      const { page } = await visit(house.http, { token: TOKEN });
      await page.addInitScript(RECORD);
      await page.emulateMedia({ reducedMotion });
      await page.reload();
      await row(page, /conversation 9\b/).waitFor();
      const client = await house.client();
      const sent = { message: "go", sessionKey: "agent:main:chat:c9", idempotencyKey: "go" };
      await client.agent(sent).done;
      await expect.poll(async () => (await names(page))[0]).toBe("conversation 9");
      await client.request("sessions.create", { label: "fresh" });
      await expect.poll(async () => (await names(page))[0]).toBe("fresh");
      const moves = await page.evaluate<string[]>("window.moves");
      if (reducedMotion === "reduce") expect(moves).toEqual([]);
      else expect(moves).toEqual(expect.arrayContaining(["conversation 9 translate", "fresh opacity"]));
    });
  }
});
