// Updates of the open inbox: slow answers, and notifications of the browser.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { relayOf } from "../relay.ts";
import { MAIN, player, RESEARCH, rowIn, say } from "./kit.ts";

/** Makes a browser without Web Push, whose page itself shows notifications. */
const withoutPush = "delete window.PushManager";

describeInBrowser("news in the inbox", () => {
  test("a slow list is requested once at a time, and each of its answers is shown", async () => {
    const house = await openHouse({ play: player().play });
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "attention.list");
    await page.clock.install();
    await page.reload();
    await page.getByText("Questions, failures and requests").waitFor();
    relay.hold();
    const before = relay.asked();
    await say(house, MAIN, "fail");
    await expect.poll(() => page.clock.runFor(500).then(() => relay.asked())).toBe(before + 1);
    // When the browser shows the second failure, there was enough time for another request.
    const heard = page.getByRole("treeitem", { name: /^research/ }).getByText("401 invalid key");
    await say(house, RESEARCH, "fail");
    await expect.poll(() => page.clock.runFor(500).then(() => heard.count())).toBe(1);
    await page.clock.runFor(1_000);
    expect(relay.asked()).toBe(before + 1);
    await expect.poll(() => relay.pass()).toBe(true);
    await rowIn(page, "Needs you", "main").waitFor();
    relay.release();
    await rowIn(page, "Needs you", "research").waitFor();
  });

  test("a browser that can't show notifications still shows the list", async () => {
    const house = await openHouse({ play: player().play });
    const { page, context } = await visit(house.http, { token: TOKEN });
    await context.grantPermissions(["notifications"]);
    await context.addInitScript(withoutPush);
    // Chromium on Android has the class, but its constructor throws.
    await page.addInitScript(() => {
      const Real = window.Notification;
      class None {
        static readonly permission = "granted";
        static readonly requestPermission = () => Real.requestPermission();
        constructor() {
          throw new TypeError("Illegal constructor");
        }
      }
      Object.assign(window, { Notification: None });
    });
    await page.reload();
    await page.getByRole("button", { name: "Notify me" }).click();
    await page.getByText("Notifications are on for items that need you.").waitFor();
    await say(house, MAIN, "fail");
    await rowIn(page, "Needs you", "401 invalid key").waitFor();
    await page.getByText("This browser can't show notifications").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Notify me" }).count()).toBe(0);
  });

  test("each new item causes a notification; an old item that moves up does not", async () => {
    const house = await openHouse({ play: player().play });
    const client = await house.client();
    const { page, context } = await visit(house.http, { token: TOKEN });
    await context.grantPermissions(["notifications"]);
    await context.addInitScript(withoutPush);
    await page.addInitScript(() => {
      const told: object[] = [];
      class Noted {
        static readonly permission = "granted";
        static readonly requestPermission = async () => "granted";
        constructor(title: string, options: NotificationOptions) {
          told.push({ title, ...options });
        }
      }
      Object.assign(window, { Notification: Noted, told });
    });
    const told = () =>
      page.evaluate(() => (window as unknown as { told: { title: string; tag: string }[] }).told);
    for (let n = 1; n <= 51; n += 1) {
      const { key } = await client.request("sessions.create", { label: `old ${n}` });
      await say(house, key, "fail");
    }
    await page.reload();
    await rowIn(page, "Needs you", "old 51").waitFor();
    await page.getByRole("button", { name: "Notify me" }).click();
    await rowIn(page, "Needs you", "old 51").getByRole("button", { name: "Dismiss" }).click();
    await rowIn(page, "Failed", "old 51").waitFor();
    expect(await told()).toEqual([]);
    for (const [at, key] of [MAIN, RESEARCH].entries()) {
      await say(house, key, "fail");
      await expect.poll(async () => (await told()).length).toBe(at + 1);
    }
    expect((await told()).map(({ title }) => title)).toEqual(["main", "research"]);
    const tags = (await told()).map(({ tag }) => tag);
    expect(new Set(tags).size).toBe(tags.length);
  });
});
