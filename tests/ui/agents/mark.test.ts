// The mark of an agent wherever its sessions are shown, in a real browser with a real gateway.

import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { doing, sending, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings } from "../../tools/app.ts";
import { rules } from "../flow/house.ts";
import { say } from "../inbox/kit.ts";

describeInBrowser("the mark of an agent", () => {
  test("its colour and icon are in the rows of sessions, inbox and chains, in the header and on a lifeline", async () => {
    const house = await openHouse({
      model: talkingModel(),
      choices: {
        ...rules(),
        labels: { mode: "off" },
        agents: [
          agentSettings("main"),
          agentSettings("printer", { name: "Print shop", color: "pink", icon: "🖨️" }),
        ],
      },
    });
    const client = await house.client();
    const { key } = await client.request("sessions.create", { label: "Flyers", agentId: "printer" });
    await say(house, key, doing(sending("agent:main:main", "is there paper?")));
    await quiet(house);
    const { page } = await visit(house.http, { token: TOKEN });
    const expectMark = async (within: string) => {
      const mark = page.locator(within, { hasText: "Flyers" }).locator(".agent-mark").first();
      await expect.poll(() => mark.getAttribute("data-letters"), { message: within }).toBe("🖨️");
      await expect.poll(() => mark.getAttribute("class")).toContain("agent-pink");
    };
    await expectMark(".session-row");
    await expectMark(".inbox-row");
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(key)}`);
    await expectMark(".conversation-head");
    await page.locator(".conversation-facts").getByText("Print shop", { exact: true }).waitFor();
    await page.goto(`${house.http}/#/flow`);
    await expectMark(".chain-row");
    await page.locator(".chain-row").click();
    await expectMark(".flow-head");
    await client.request("sessions.patch", { key, label: "Print shop" });
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(key)}`);
    await page.getByRole("heading", { name: "Print shop" }).waitFor();
    await expect.poll(() => page.locator(".conversation-facts").getByText("Print shop").count()).toBe(0);
  });
});
