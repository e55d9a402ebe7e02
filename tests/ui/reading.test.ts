// How a view reads from a slow gateway while events arrive.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { describeInBrowser, visit } from "../kit/browser.ts";
import { relayOf } from "./relay.ts";

describeInBrowser("a view of a slow gateway", () => {
  test("an event during a read causes one more read after it, and both answers are shown", async () => {
    const house = await openHouse({});
    const client = await house.client();
    const add = (name: string) =>
      client.request("cron.add", { name, message: "go", schedule: { kind: "every", everyMs: 900_000 } });
    await add("early job");
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/schedules" });
    const job = (name: string) => page.locator("li.job", { hasText: name });
    const relay = await relayOf(page, "cron.list");
    await page.clock.install();
    await page.reload();
    await job("early job").waitFor();
    const before = relay.asked();
    const asked = () => page.clock.runFor(500).then(() => relay.asked());
    relay.hold();
    await add("first job");
    await expect.poll(asked).toBe(before + 1);
    await add("second job");
    await page.clock.runFor(2_000);
    expect(relay.asked()).toBe(before + 1);
    await expect.poll(() => relay.pass()).toBe(true);
    await job("first job").waitFor();
    await expect.poll(asked).toBe(before + 2);
    relay.release();
    await job("second job").waitFor();
  });
});
