// A run that a person holds in its conversation: it stops before its next tool call, continues after Release, and
// reads a message instead of making the call after Steer.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";

const AT = `sessions/${encodeURIComponent("agent:main:main")}`;

/** Opens a conversation whose run waits for its model, which then makes one call and reports its result. */
async function working() {
  const gate = Promise.withResolvers<void>();
  const model = scriptedModel(async ({ entries }): Promise<ScriptedAnswer> => {
    const messages = entries.filter((one) => "role" in one);
    const last = messages.at(-1);
    if (last?.role === "toolResult") return "looked around";
    if (messages.length > 1) return `read: ${last === undefined ? "" : textOf(last)}`;
    await gate.promise;
    return { toolCalls: [{ name: "sessions_list", arguments: {} }] };
  });
  const house = await openHouse({ model });
  const { page } = await visit(house.http, { token: TOKEN, at: AT });
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill("look around");
  await field.press("Enter");
  return { house, page, field, answer: gate.resolve };
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** Holds the run with the keyboard, and waits until it has stopped. */
async function held() {
  const scene = await working();
  const { page, answer } = scene;
  await button(page, "Hold").focus();
  await page.keyboard.press("Enter");
  await page.getByText("stops before the next tool call").waitFor();
  answer();
  await page.getByText("held before the next tool call").waitFor();
  return scene;
}

describeInBrowser("a held run", () => {
  test("a held run is shown as held everywhere, and continues after Release, also on a phone", async () => {
    const { house, page } = await held();
    await expect.poll(() => page.locator(".conversation-facts .state").first().innerText()).toBe("held");
    expect(await accessibilityProblems(page)).toEqual([]);
    const phone = await visit(house.http, { token: TOKEN, at: AT, viewport: PHONE });
    await phone.page.getByText("held before the next tool call").waitFor();
    expect(await sideways(phone.page)).toBe(0);
    await phone.page.goto(`${house.http}/#/inbox`);
    await phone.page.locator(".inbox-row .chip").getByText("held", { exact: true }).waitFor();
    await button(page, "Release").click();
    await page.getByText("looked around").waitFor();
    await expect.poll(() => button(page, "Hold").count()).toBe(0);
  });

  test("a held run reads the message of a person who steers it, instead of making its call", async () => {
    const { page, field } = await held();
    await field.fill("rather wait");
    await button(page, "Steer").click();
    await page.getByText("read: rather wait").waitFor();
    await expect.poll(() => page.getByText("looked around").count()).toBe(0);
  });
});
