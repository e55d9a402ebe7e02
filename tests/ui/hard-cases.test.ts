// The page during failures: a gateway that restarts, a network that stalls and breaks.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { GatewayClient } from "../../src/contract/client/node.ts";
import { textOf } from "../../src/core/shapes/message.ts";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { CUT, describeInBrowser, visit } from "../kit/browser.ts";
import { freePort } from "../kit/loopback.ts";
import { TOKEN as PROCESS_TOKEN } from "../kit/process/fleet.ts";
import { homeWith, startProcess } from "../kit/process/gateway-process.ts";
import { openLine } from "./line.ts";

const MAIN = "agent:main:main";
const AT_MAIN = `sessions/${encodeURIComponent(MAIN)}`;

const broken = (page: Page) => page.getByText("Connection lost");
/** Finds messages of the conversation with this text, without those in the session list. */
const shown = (page: Page, text: string) =>
  page.getByRole("region", { name: "Conversation" }).getByText(text, { exact: true });

async function say(client: GatewayClient, message: string): Promise<void> {
  const { runId } = await client.request("chat.send", { sessionKey: MAIN, message });
  await client.request("agent.wait", { runId });
}

async function write(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: /^(Send|Queue)$/ }).click();
}

async function timesSaid(client: GatewayClient, text: string): Promise<number> {
  const { messages } = await client.request("chat.history", { sessionKey: MAIN });
  return messages.filter((message) => message.role === "user" && textOf(message) === text).length;
}

/** Checks that the reader can open each view. */
async function expectUsable(page: Page): Promise<void> {
  const views = page.getByRole("navigation", { name: "Views" });
  await views.getByRole("link", { name: "Flow" }).click();
  await expect.poll(() => page.url()).toContain("#/flow");
  await views.getByRole("link", { name: "Sessions" }).click();
  await expect.poll(() => page.url()).toContain("#/sessions");
}

describeInBrowser("a bad day", () => {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    test(`after a restart (${signal}) the open page reconnects and shows the missed messages once`, async () => {
      const home = homeWith({ gateway: { port: await freePort(), auth: { token: PROCESS_TOKEN } } });
      const first = await startProcess({ home });
      const { page } = await visit(first.httpUrl, { token: first.token, at: AT_MAIN, allow: CUT });
      await say(await first.connect(), "say before the restart");
      await shown(page, "before the restart").waitFor();
      await first.end(signal);
      await page.getByText(/Connection lost|The gateway is stopping/).waitFor();
      const second = await startProcess({ home });
      await say(await second.connect(), "say while nobody looked");
      await shown(page, "while nobody looked").waitFor();
      await broken(page).waitFor({ state: "detached" });
      await say(await second.connect(), "say live again");
      await shown(page, "live again").waitFor();
      for (const text of ["before the restart", "while nobody looked", "live again"]) {
        await expect.poll(() => shown(page, text).count()).toBe(1);
      }
    });
  }

  test("a message sent while the connection breaks is stored once, even if the page got no response", async () => {
    const house = await openHouse();
    const client = await house.client();
    const line = await openLine(house.port);
    const { page } = await visit(line.http, { token: TOKEN, at: AT_MAIN, allow: CUT });
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    line.hold();
    await write(page, "once and only once");
    await expect.poll(() => timesSaid(client, "once and only once")).toBe(1);
    line.cut();
    line.release();
    await shown(page, "once and only once").waitFor();
    await expect.poll(() => page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("");
    await shown(page, "echo once and only once").waitFor();
    await write(page, "and another one");
    await shown(page, "echo and another one").waitFor();
    expect(await timesSaid(client, "once and only once")).toBe(1);
    await expect.poll(() => shown(page, "once and only once").count()).toBe(1);
  });

  test("while the network stalls the page stays usable, and says that it is loading", async () => {
    const house = await openHouse();
    const line = await openLine(house.port);
    const { page } = await visit(line.http, { token: TOKEN });
    await expectUsable(page);
    line.hold();
    await page.goto(`${line.http}/#/${AT_MAIN}`);
    await page.getByText("Loading…").first().waitFor();
    await expectUsable(page);
    await page.goto(`${line.http}/#/${AT_MAIN}`);
    line.release();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await expect.poll(() => page.getByText("Loading…").count()).toBe(0);
  });

  test("over a connection with 30 kB per second the page loads, and messages arrive", async () => {
    const house = await openHouse();
    const line = await openLine(house.port);
    line.slow(30_000);
    // The slow address is new to the browser, so nothing of it is cached.
    const { page } = await visit(house.http, { allow: /request to/ });
    await page.goto(`${line.http}/#token=${TOKEN}`, { waitUntil: "commit" });
    await page.getByText("Loading…").waitFor();
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    await page.goto(`${line.http}/#/${AT_MAIN}`);
    await write(page, "slowly");
    await shown(page, "echo slowly").waitFor();
    await expectUsable(page);
  });
});
