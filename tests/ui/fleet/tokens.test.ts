// Tokens and devices on the page, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { ParamsOf } from "../../../src/contract/methods.ts";
import { newDevice, nodeParams } from "../../gateway/clients/devices.ts";
import { type House, openRaw, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, CUT, describeInBrowser, sideways, visit } from "../../kit/browser.ts";
import { openLine } from "../line.ts";
import { fleet, PARTIAL, READER } from "./house.ts";

const AT = "operations/tokens";
const NARROWEST = { width: 360, height: 740 };

const rows = (page: Page) => page.getByRole("list", { name: "Access tokens" }).locator(":scope > li");
const dialog = (page: Page) => page.getByRole("dialog");

async function create(house: House, wanted: Partial<ParamsOf<"tokens.create">> = {}): Promise<string> {
  const client = await house.client();
  const made = await client.request("tokens.create", {
    name: "laptop",
    scopes: ["operator.write"],
    ...wanted,
  });
  return made.token ?? "";
}

async function fill(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "New token" }).press("Enter");
  await dialog(page).getByLabel("Name").fill(name);
}

describeInBrowser("tokens", () => {
  test("a new token has the chosen rights, and its text is shown once, until the user confirms", async () => {
    const house = await fleet();
    const { page, context } = await visit(house.http, { token: TOKEN, at: AT });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByText("No access tokens yet").waitFor();
    await fill(page, "build server");
    await dialog(page).getByLabel("Rights").selectOption("operator.write");
    await dialog(page).getByLabel("Sessions").fill("agent:research:*, cron:*");
    await dialog(page).getByLabel("Expires after").selectOption("7");
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog(page).getByRole("button", { name: "Create" }).press("Enter");
    const text = dialog(page).locator(".token-text code");
    const token = await text.innerText();
    expect(token).toMatch(/^pat1\./);
    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    await expect.poll(() => text.innerText()).toBe(token);
    await dialog(page).getByRole("button", { name: "Copy the token" }).press("Enter");
    await dialog(page).getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(token);
    await dialog(page).getByRole("button", { name: "Done" }).press("Enter");
    const shown = (await rows(page).innerText()).replaceAll(/\s+/g, " ");
    expect(shown).toContain("build server Reads and sends messages · agent:research:* cron:* never used");
    expect(shown).toContain("expires in 7 days");
    expect(await page.content()).not.toContain(token);
    const client = await house.client({ token });
    expect((await client.request("sessions.list", {})).sessions.map(({ key }) => key)).toEqual([
      "agent:research:main",
    ]);
  });

  test("a refused request keeps the form open; if the answer with a new token is lost, the page says so and lists the token", async () => {
    const house = await fleet();
    const line = await openLine(house.port);
    const { page } = await visit(line.http, { token: PARTIAL, at: AT, allow: CUT });
    await fill(page, "everything");
    await dialog(page).getByLabel("Sessions").fill("*");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await expect
      .poll(() => dialog(page).getByRole("alert").innerText())
      .toContain("rights that your own token lacks");
    await dialog(page).getByLabel("Sessions").fill("");
    line.hold();
    await dialog(page).getByRole("button", { name: "Create" }).click();
    const client = await house.client();
    await expect.poll(async () => (await client.request("tokens.list", {})).tokens.length).toBe(1);
    line.cut();
    line.release();
    await dialog(page).getByText("the connection broke before its answer arrived").waitFor();
    await dialog(page).getByRole("button", { name: "Close" }).press("Enter");
    await expect.poll(() => rows(page).innerText()).toContain("agent:research:*");
  });

  test("patterns are picked from agents and sessions, and a pattern that covers no session causes a warning only", async () => {
    const house = await fleet();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await fill(page, "picked");
    const field = dialog(page).getByRole("textbox", { name: /^Sessions/ });
    const add = dialog(page).getByLabel("Add an agent or a session");
    const warning = dialog(page).getByRole("status");
    await add.selectOption("agent:research:*");
    await add.selectOption("agent:research:main");
    await expect.poll(() => field.inputValue()).toBe("agent:research:*, agent:research:main");
    await field.fill("agent:research:*, agent:nobody:*, agent:*:main, agent:research:mai");
    await expect.poll(() => warning.innerText()).toBe("No session yet: agent:nobody:*, agent:research:mai");
    expect(await accessibilityProblems(page)).toEqual([]);
    await field.fill("agent:research:*");
    await expect.poll(() => warning.innerText()).toBe("");
    await field.fill("agent:nobody:*");
    await warning.getByText("agent:nobody:*").waitFor();
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await dialog(page).locator(".token-text code").waitFor();
  });

  test("narrowing a token offers only smaller rights; revoking asks for confirmation; both take effect at once", async () => {
    const house = await fleet();
    const token = await create(house);
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await page.getByRole("button", { name: "Narrow laptop" }).press("Enter");
    const options = dialog(page).getByLabel("Rights").locator("option");
    expect(await options.evaluateAll((all) => all.map((one) => one.getAttribute("value")))).toEqual([
      "operator.read",
      "operator.write",
    ]);
    await dialog(page).getByLabel("Rights").selectOption("operator.read");
    await dialog(page).getByLabel("Sessions").fill("agent:writer:*");
    await dialog(page).getByRole("button", { name: "Narrow" }).press("Enter");
    await expect.poll(() => rows(page).innerText()).toContain("agent:writer:*");
    const client = await house.client({ token });
    await expect(
      client.call("chat.send", { sessionKey: "agent:writer:main", message: "x" }),
    ).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    await page.getByRole("button", { name: "Revoke laptop" }).press("Enter");
    await dialog(page).getByText("loses its access at once").waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => rows(page).count()).toBe(1);
    await page.getByRole("button", { name: "Revoke laptop" }).press("Enter");
    await dialog(page).getByRole("button", { name: "Revoke" }).press("Enter");
    await page.getByText("No access tokens yet").waitFor();
    await expect(house.client({ token })).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });

  test("a user who signed in with an access token cannot create tokens, and is signed out by revoking that token", async () => {
    const house = await fleet();
    const token = await create(house, { scopes: ["operator.admin"] });
    const { page } = await visit(house.http, { token, at: AT, allow: /WebSocket/ });
    await page.getByText("which cannot create other tokens").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "New token" }).count()).toBe(0);
    await expect.poll(() => rows(page).innerText()).toContain("you");
    await page.getByRole("button", { name: "Revoke laptop" }).click();
    await dialog(page).getByText("so you will be signed out").waitFor();
    await dialog(page).getByRole("button", { name: "Revoke" }).click();
    await page.getByText("the access token was revoked").waitFor();
  });

  test("a read-only token has no tab for tokens; one for some sessions sees tokens within its rights, no devices", async () => {
    const house = await fleet();
    await create(house, { name: "whole" });
    await create(house, { name: "small", sessions: ["agent:research:main"] });
    const reader = await visit(house.http, { token: READER, at: AT });
    await reader.page.getByRole("navigation", { name: "Operations" }).waitFor();
    await expect.poll(() => reader.page.getByRole("link", { name: "Tokens", exact: true }).count()).toBe(0);
    const { page } = await visit(house.http, { token: PARTIAL, at: AT });
    await rows(page).first().waitFor();
    await expect.poll(() => rows(page).locator("strong").allInnerTexts()).toEqual(["small"]);
    await expect
      .poll(() => page.getByRole("list", { name: "Tokens of the configuration" }).innerText())
      .toContain("tokens[1]");
    await expect.poll(() => page.getByRole("heading", { name: "Devices" }).count()).toBe(0);
  });

  test("devices are listed and can be revoked; a hostile name is shown as one line of text; the view fits a phone", async () => {
    const house = await fleet();
    const key = newDevice();
    const raw = await openRaw(house.url);
    const { nonce } = (await raw.next((frame) => frame.event === "connect.challenge")).payload;
    const name = "<b>phone</b>\u202e of Anna";
    raw.send({
      type: "req",
      id: "c",
      method: "connect",
      params: { ...nodeParams(key, nonce, { token: TOKEN, name }), role: "operator" },
    });
    expect(await raw.res("c")).toMatchObject({ ok: true });
    await create(house, { name: "x".repeat(64), sessions: [`agent:${"research".repeat(20)}:*`] });
    const { page } = await visit(house.http, { token: TOKEN, at: AT, viewport: NARROWEST, dark: true });
    const device = page.getByRole("list", { name: "Devices" }).locator(":scope > li");
    await expect.poll(() => device.innerText()).toContain("<b>phone</b>");
    expect(await sideways(page)).toBeLessThanOrEqual(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await device.getByRole("button", { name: /^Revoke/ }).click();
    await dialog(page).getByRole("button", { name: "Revoke" }).click();
    await page.getByText("No devices").waitFor();
  });
});
