// The first minutes: from an unused gateway to the demo and back, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { connect, type GatewayClient } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { openDemo } from "../../src/main.ts";
import { type HouseOptions, openHouse, TOKEN } from "../gateway/kit.ts";
import { describeInBrowser, visit } from "../kit/browser.ts";
import { cleanup, quietWorld } from "../kit/engine/engine.ts";

const AT_MAIN = `sessions/${encodeURIComponent("agent:main:main")}`;
const ASKED = "ask research: what should we check before a release?";
const houseWithDemo = (more: HouseOptions = {}) =>
  openHouse({ openDemo: () => openDemo(quietWorld()), ...more });
const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });
const field = (page: Page) => page.getByRole("textbox", { name: "Message" });
const banner = (page: Page) => page.getByRole("complementary", { name: "Demo" });

/** Connects a client to the demo of a gateway. */
async function demoOf(own: GatewayClient, url: string): Promise<GatewayClient> {
  const { path, token } = await own.request("demo.start");
  const client = await connect({ url: url + path, token, reconnect: false });
  cleanup(() => client.close());
  return client;
}

async function saidIn(client: GatewayClient, sessionKey: string): Promise<string[]> {
  const { messages } = await client.request("chat.history", { sessionKey });
  return messages.map(textOf);
}

/** Returns a function that reads what the banner's first button has said since the page was loaded. */
async function offersOf(page: Page): Promise<() => Promise<unknown>> {
  await page.addInitScript(() => {
    const said: string[] = [];
    Object.assign(window, { said });
    new MutationObserver(() => {
      const text = document.querySelector(".demo-ways button")?.textContent ?? "";
      if (text !== "" && said.at(-1) !== text) said.push(text);
    }).observe(document, { childList: true, subtree: true, characterData: true });
  });
  return () => page.evaluate("window.said");
}

describeInBrowser("the demo", () => {
  test("an unused gateway starts the demo with one click; the demo has a separate store, and a button returns to the gateway", async () => {
    const house = await houseWithDemo();
    const { page } = await visit(house.http, { token: TOKEN, at: AT_MAIN });
    await field(page).fill("for my own gateway");
    await page.goto(`${house.http}/#/sessions`);
    const offers = await offersOf(page);
    await button(page, "Play the demo").click();
    await banner(page).getByText("This is a demo with a separate store").waitFor();
    await button(page, "Next: three jobs").waitFor();
    await expect.poll(offers).toEqual(["Playing…", "Next: three jobs"]);
    // The page now shows the diagram of the last message.
    expect(page.url()).toMatch(/#\/flow\/[\w-]+$/);
    const own = await house.client();
    const demo = await demoOf(own, house.url);
    expect(await saidIn(demo, "agent:main:main")).toContain(ASKED);
    await button(page, "Next: three jobs").click();
    await button(page, "Next: a circle").click();
    await button(page, "Play again").waitFor();
    const refused = await saidIn(demo, "agent:ops:main");
    expect(refused.join("\n")).toContain("wait_cycle");
    const { sessions } = await demo.request("sessions.list", {});
    expect(sessions.filter(({ key }) => key.includes(":subagent:"))).toHaveLength(3);
    // SC1: a draft for one gateway does not appear on the other.
    await page.goto(`${house.http}/#/${AT_MAIN}`);
    await field(page).waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("");
    await button(page, "Back to your gateway").click();
    await button(page, "Play the demo").waitFor();
    await expect.poll(() => banner(page).count()).toBe(0);
    await page.goto(`${house.http}/#/${AT_MAIN}`);
    await expect.poll(() => field(page).inputValue()).toBe("for my own gateway");
    expect((await own.request("status")).unused).toBe(true);
    expect(await page.evaluate(() => window.sessionStorage.getItem("parley.token"))).toBe(TOKEN);
  });

  test("TR1: reloading the page resumes the demo; neither a reload nor a second tab sends anything twice", async () => {
    const house = await houseWithDemo();
    const { page, context } = await visit(house.http, { token: TOKEN });
    await button(page, "Play the demo").click();
    await banner(page).waitFor();
    await page.reload();
    await button(page, "Next: three jobs").waitFor();
    const second = await visit(house.http, { token: TOKEN, context });
    await button(second.page, "Play the demo").click();
    await button(second.page, "Next: three jobs").waitFor();
    const demo = await demoOf(await house.client(), house.url);
    const asked = (await saidIn(demo, "agent:main:main")).filter((text) => text === ASKED);
    expect(asked).toHaveLength(1);
  });

  test("the demo is not offered without the scope to start it, or on a used gateway", async () => {
    const tokens = [{ token: "a-reader-of-all", role: "operator", scopes: ["operator.read"] }] as const;
    const house = await houseWithDemo({ gateway: { tokens } });
    const reader = await visit(house.http, { token: "a-reader-of-all" });
    const { page } = await visit(house.http, { token: TOKEN });
    await button(page, "Play the demo").waitFor();
    await expect.poll(() => button(reader.page, "Play the demo").count()).toBe(0);
    const client = await house.client();
    await client.request("chat.send", { sessionKey: "main", message: "hello" });
    await button(page, "Play the demo").waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    await page.getByText("idle").first().waitFor();
    await expect.poll(() => button(page, "Play the demo").count()).toBe(0);
  });
});
