// A message during a run: it steers the run, or waits for its end. A message whose sending was interrupted arrives
// once.

import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import { openHouse, TOKEN, textsTo } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";
import { relayOf } from "../relay.ts";

const AT = `sessions/${encodeURIComponent("agent:main:main")}`;

describeInBrowser("a message during a run", () => {
  test("Steer lets the run read it before its next step, and Queue makes it the next run", async () => {
    const gate = Promise.withResolvers<void>();
    const heard: string[][] = [];
    const model = scriptedModel(async ({ entries }): Promise<ScriptedAnswer> => {
      const said = entries.flatMap((one) => ("role" in one && one.role === "user" ? [textOf(one)] : []));
      heard.push(said);
      if (heard.length > 1) return `heard ${said.length}`;
      await gate.promise;
      return { toolCalls: [{ name: "sessions_list", arguments: {} }] };
    });
    const house = await openHouse({ model });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill("look around");
    await field.press("Enter");
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await field.fill("later");
    await field.press("Control+A");
    await field.fill("only at the north side");
    await page.getByRole("button", { name: "Steer" }).click();
    await expect.poll(() => field.inputValue()).toBe("");
    const pending = (text: string) => page.locator(".entry-queued", { hasText: text }).locator(".state");
    await expect.poll(() => pending("north side").innerText()).toBe("read before the next step");
    await expect.poll(() => page.locator(".queue-note").count()).toBe(0);
    await field.fill("and then report");
    await page.getByRole("button", { name: "Queue" }).click();
    await expect.poll(() => field.inputValue()).toBe("");
    await expect.poll(() => pending("report").innerText()).toBe("queued");
    await page.locator(".queue-note").getByText("1 queued").waitFor();
    gate.resolve();
    await page.getByText("heard 3").waitFor();
    expect(heard).toEqual([
      ["look around"],
      ["look around", "only at the north side"],
      ["look around", "only at the north side", "and then report"],
    ]);
  });
});

describeInBrowser("a message whose sending was interrupted", () => {
  test("by a reload it is not in the field again, and nothing sends it twice", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const relay = await relayOf(page, "chat.send");
    await page.reload();
    relay.hold();
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill("once only");
    await field.press("Enter");
    await expect.poll(() => relay.asked()).toBe(1);
    const client = await house.client();
    const texts = () => textsTo(client, "agent:main:main");
    await expect.poll(texts).toEqual(["once only"]);
    await page.reload();
    await page.locator(".entry").getByText("once only", { exact: true }).waitFor();
    await expect.poll(() => field.inputValue()).toBe("");
    await field.fill("once only");
    relay.release();
    await field.press("Enter");
    await expect.poll(texts).toEqual(["once only", "once only"]);
  });
});
