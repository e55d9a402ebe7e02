// Nodes on the page, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  joinedNode,
  NODE_TOKEN,
  NODE_TOKENS,
  newDevice,
  pairedDevice,
  tryNode,
} from "../../gateway/clients/devices.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, sideways, visit } from "../../kit/browser.ts";

const AT = "operations/nodes";
const PARTIAL = "a-token-for-research-only";
const TOKENS = [
  ...NODE_TOKENS,
  { token: PARTIAL, role: "operator", scopes: ["operator.admin"], sessions: ["agent:research:*"] },
] as const;

const row = (page: Page, name: string) =>
  page.getByRole("list", { name: "Nodes" }).locator(":scope > li", { hasText: name });

/** Returns the label of the element that has the focus in the moment in which the open dialog is removed. */
function focusAfterDialog(page: Page): Promise<string | null | undefined> {
  return page.evaluate(() => {
    const { promise, resolve } = Promise.withResolvers<string | null | undefined>();
    const observer = new MutationObserver(() => {
      if (document.querySelector("dialog") !== null) return;
      observer.disconnect();
      resolve(document.activeElement?.ariaLabel);
    });
    observer.observe(document.body, { childList: true, subtree: true });
    return promise;
  });
}

describeInBrowser("nodes", () => {
  test("a node is shown with its state and its refused commands, and can be renamed and removed by keyboard", async () => {
    const house = await openHouse({
      gateway: { tokens: [...TOKENS] },
      choices: { features: { nodes: { allowCommands: ["exec"] } } },
    });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await page.getByText("No nodes.").waitFor();
    await page.clock.install();
    await tryNode(house, newDevice(), { token: NODE_TOKEN, name: "a camera" });
    await page.clock.runFor(1_000);
    await page.getByText("1 device asked to be paired").waitFor();
    const key = await pairedDevice(house, NODE_TOKEN, { name: "<i>attic</i>\u202e" });
    await page.clock.runFor(6_000);
    await row(page, "<i>attic</i>").getByText("offline").waitFor();
    const node = await joinedNode(house, key, { name: "attic" });
    await page.clock.runFor(6_000);
    await row(page, "<i>attic</i>").getByText("connected", { exact: true }).waitFor();
    await expect
      .poll(async () =>
        (await row(page, "attic").locator(".chips code").allInnerTexts()).map((one) =>
          one.split(/\s+/).join(" "),
        ),
      )
      .toEqual(["exec", "notify (not allowed in the configuration)"]);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("button", { name: /^Rename/ }).press("Enter");
    await page.getByRole("dialog").getByLabel("Name").fill("Attic server");
    const focus = focusAfterDialog(page);
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).press("Enter");
    expect(await focus).toMatch(/^Rename/);
    await row(page, "Attic server").waitFor();
    await page.getByRole("button", { name: "Remove Attic server" }).press("Enter");
    await page.getByRole("dialog").getByText("must be paired again").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).press("Enter");
    await page.getByText("No nodes.").waitFor();
    await node.closed();
  });

  test("a token for some sessions sees only nodes that it covers; disabled nodes are explained; the view fits a phone", async () => {
    const house = await openHouse({ gateway: { tokens: [...TOKENS] } });
    await pairedDevice(house, NODE_TOKEN, {
      name: "x".repeat(64),
      commands: Array.from({ length: 30 }, (_, n) => `device.command-${n}`),
    });
    const viewport = { width: 360, height: 740 };
    const { page } = await visit(house.http, { token: TOKEN, at: AT, viewport, dark: true });
    await row(page, "xxx").waitFor();
    expect(await sideways(page)).toBeLessThanOrEqual(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    const partial = await visit(house.http, { token: PARTIAL, at: AT });
    await partial.page.getByText("No nodes.").waitFor();
    const off = await openHouse({ choices: { features: { nodes: { enabled: false } } } });
    const without = await visit(off.http, { token: TOKEN, at: AT });
    await without.page.getByText("nodes are disabled: set nodes.enabled to true").waitFor();
  });
});
