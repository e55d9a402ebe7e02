// Web Push in Chromium, from the button on the page to a service worker that shows a notification and sends
// its answer while no page is open.
// Chrome's own push service can't be reached, so the test's is in its place: it gets the subscription, checks
// and decrypts what the gateway sends, and the browser delivers that to the real service worker.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";
import { describe, expect, test } from "vitest";
import { TOKEN } from "../../cli/kit.ts";
import { accessibilityProblems, visit } from "../../kit/browser.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { type FakeBrowser, openDesk, startPushService } from "./kit.ts";

/** The headless variant without windows has no notifications. */
const CHROMIUM = "/usr/bin/chromium";

/** Replaces the part of the browser that talks to Chrome's push service. */
const STAND_IN = `
  const made = (found) => found && {
    endpoint: found.endpoint,
    toJSON: () => ({ keys: { p256dh: found.p256dh, auth: found.auth } }),
    unsubscribe: () => leavePushService(),
  };
  PushManager.prototype.subscribe = async (options) => made(await joinPushService(options.applicationServerKey));
  PushManager.prototype.getSubscription = async () => made(await knownPushService());
`;

async function openBrowser(service: Awaited<ReturnType<typeof startPushService>>, origin: string) {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  cleanup(() => browser.close());
  const context = await browser.newContext({ reducedMotion: "reduce" });
  await context.grantPermissions(["notifications"], { origin });
  let phone: FakeBrowser | undefined;
  await context.exposeFunction("joinPushService", (key: string) => {
    phone = service.subscribe(key);
    return phone;
  });
  await context.exposeFunction("knownPushService", () => phone ?? null);
  await context.exposeFunction("leavePushService", () => {
    phone = undefined;
    return true;
  });
  await context.addInitScript(STAND_IN);
  return { context, phone: () => phone };
}

/** Delivers a message to the service worker of the page, as the browser does, and returns what is shown. */
async function openWorker(context: BrowserContext, origin: string) {
  const blank = await context.newPage();
  const browser = await context.newCDPSession(blank);
  const found = Promise.withResolvers<string>();
  browser.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
    for (const one of registrations)
      if (one.scopeURL === `${origin}/push/`) found.resolve(one.registrationId);
  });
  await browser.send("ServiceWorker.enable");
  const registrationId = await found.promise;
  const inWorker = async <T>(script: string): Promise<T> => {
    const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
    return worker.evaluate<T>(script);
  };
  // Chromium forgets a notification that it is asked for while it shows it, so nothing asks before it is shown.
  await inWorker(`(() => {
    self.timesShown = 0;
    const show = registration.showNotification.bind(registration);
    registration.showNotification = async (...all) => {
      await show(...all);
      self.timesShown++;
    };
  })()`);
  const timesShown = () => inWorker<number>("timesShown");
  const untilShown = async (act: () => Promise<unknown>): Promise<void> => {
    const before = await timesShown();
    await act();
    await expect.poll(timesShown).toBe(before + 1);
  };
  /** Presses a button of the only notification, or the notification itself. */
  const press = (action: string) =>
    inWorker(`registration.getNotifications().then(([notification]) => {
      const event = new NotificationEvent("notificationclick", { notification, action: "${action}" });
      // The browser allows it only for its own events.
      Object.defineProperty(event, "waitUntil", { value: (work) => work.catch(() => {}) });
      dispatchEvent(event);
    })`);
  return {
    deliver: (data: string) =>
      untilShown(() => browser.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data })),
    shown: () =>
      inWorker<
        { title: string; body: string; actions: string[] }[]
      >(`registration.getNotifications().then((all) =>
        all.map(({ title, body, actions }) => ({ title, body, actions: actions.map(({ title }) => title) })))`),
    click: () => press(""),
    pressAllow: () => untilShown(() => press("allow")),
  };
}

// Skips on machines without Chromium, but never in CI.
describe.skipIf(lacks("chromium", existsSync(CHROMIUM)))("Web Push in Chromium", () => {
  test("with the page closed a request is shown, and Allow in the notification runs the command", async () => {
    const service = await startPushService();
    const desk = await openDesk({ services: [service.origin] });
    const { context, phone } = await openBrowser(service, desk.http);
    const { page } = await visit(desk.http, { token: TOKEN, context });
    const button = page.getByRole("button", { name: "Notify this device" });
    await button.click();
    await page.getByText("This device is told what needs you, also while the page is closed.").waitFor();
    await page.getByRole("button", { name: "Stop notifying this device" }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Notify me" }).count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    const worker = await openWorker(context, desk.http);
    await page.close();
    await desk.say("run: touch made-by-phone");
    await expect.poll(() => phone()?.got.length).toBe(1);
    await worker.deliver(phone()?.got[0]?.text ?? "");
    const request = {
      title: "main asks for permission",
      body: expect.stringMatching(/^touch made-by-phone · in \//),
    };
    expect(await worker.shown()).toEqual([{ ...request, actions: ["Allow once", "Deny"] }]);
    await worker.pressAllow();
    expect(await worker.shown()).toEqual([{ ...request, title: "Allowed", actions: [] }]);
    const { agents } = await desk.client.request("agents.describe", {});
    const { workspace = "" } = agents.find(({ id }) => id === "main") ?? {};
    await expect.poll(() => existsSync(join(workspace, "made-by-phone"))).toBe(true);
  });

  test("a click opens the inbox at the request, a late press says so, and the button ends it all", async () => {
    const service = await startPushService();
    const desk = await openDesk({ services: [service.origin] });
    const { context, phone } = await openBrowser(service, desk.http);
    const { page } = await visit(desk.http, { token: TOKEN, context });
    await page.getByRole("button", { name: "Notify this device" }).click();
    await expect.poll(() => phone()).toBeDefined();
    const worker = await openWorker(context, desk.http);
    // Playwright gives the focus to every page, and a page with the focus shows the need itself.
    await page.goto("about:blank");
    await desk.say("run: touch a");
    await expect.poll(() => phone()?.got.length).toBe(1);
    await worker.deliver(phone()?.got[0]?.text ?? "");
    expect(await worker.shown()).toHaveLength(1);
    await page.goto(`${desk.http}/#/operations`);
    await worker.click();
    const { permissions } = await desk.client.request("permissions.list", {});
    const focused = () => page.evaluate<string>("document.activeElement.dataset.row ?? ''");
    await expect.poll(focused).toBe(`permission:${permissions[0]?.id}`);
    await desk.client.request("permissions.answer", { id: permissions[0]?.id ?? "", decision: "deny" });
    await page.goto("about:blank");
    await worker.deliver(phone()?.got[0]?.text ?? "");
    expect(await worker.shown()).toHaveLength(1);
    await worker.pressAllow();
    expect((await worker.shown())[0]?.body).toContain("was already answered");
    await page.goto(`${desk.http}/`);
    await page.getByRole("button", { name: "Stop notifying this device" }).click();
    await page.getByText("This device is not notified any more.").waitFor();
    expect((await desk.client.request("push.list", {})).devices).toEqual([]);
  });
});
