// A model's thinking in a conversation: live while the model writes it, and folded in the transcript after it.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { ABORTED, untilAborted } from "../../../src/agent/loop/abort.ts";
import type { ModelPort } from "../../../src/agent/model/model.ts";
import { ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { CUT, describeInBrowser, visit } from "../../kit/browser.ts";
import { until } from "../../kit/until.ts";
import { openLine } from "../line.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;

type OnDelta = (delta: { offset: number; text: string }) => void;

/** One call of the model, which the test answers. */
class Call {
  readonly #show: readonly OnDelta[];
  readonly ended = Promise.withResolvers<void>();
  thought = "";
  text = "";

  constructor(...show: OnDelta[]) {
    this.#show = show;
  }

  think(text: string): void {
    this.#show[0]?.({ offset: this.thought.length, text });
    this.thought += text;
  }

  say(text: string): void {
    this.#show[1]?.({ offset: this.text.length, text });
    this.text += text;
  }
}

/** A model that thinks and answers as the test says. */
function thinker() {
  const calls: Call[] = [];
  const model: ModelPort = {
    async call({ onThinking, model }, onText, signal) {
      const call = new Call(onThinking ?? (() => {}), onText);
      calls.push(call);
      if ((await untilAborted(call.ended.promise, signal)) === ABORTED) return { kind: "aborted" };
      const content = [
        { type: "thinking", thinking: call.thought },
        { type: "text", text: call.text },
      ] as const;
      const from = { api: "test", provider: "test", model: model.settings.id };
      return {
        kind: "message",
        message: { role: "assistant", content, timestamp: 1, ...from, usage: ZERO_USAGE, stopReason: "stop" },
      };
    },
  };
  /** Returns the call with this number when the model has got it. */
  const nth = (at: number): Promise<Call> => until(() => calls[at]);
  return { model, nth };
}

const open = async (house: House) => (await visit(house.http, { token: TOKEN, at: AT })).page;
const live = (page: Page) => page.locator(".entry-live .thinking");
const stored = (page: Page) => page.locator(".entries:not(.entries-tail) .thinking");

async function ask(page: Page): Promise<void> {
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill("think about it");
  await field.press("Enter");
}

describeInBrowser("a model that thinks", () => {
  test("thinking is one line with its time, unfolds to its text while it grows, and is folded after the run", async () => {
    const { model, nth } = thinker();
    const house = await openHouse({ model });
    const page = await open(house);
    await ask(page);
    const call = await nth(0);
    call.think("First **this**\n\nand ");
    await live(page)
      .getByText(/^Thinking \d+ s …$/)
      .waitFor();
    await expect.poll(() => page.getByText("First").count()).toBe(0);
    await live(page)
      .getByText(/^Thinking [1-9]\d* s …$/)
      .waitFor();
    await live(page).locator("summary").click();
    await live(page).locator("strong", { hasText: "this" }).waitFor();
    call.think("then <b>that</b>, ");
    await live(page).getByText("then <b>that</b>,").waitFor();
    call.say("It is 42. ");
    await page.locator(".entry-live").getByText("It is 42.").waitFor();
    await live(page)
      .getByText(/^Thinking \d+ s$/)
      .waitFor();
    call.ended.resolve();
    await stored(page).waitFor();
    await expect.poll(() => page.locator(".entry-live").count()).toBe(0);
    expect(await stored(page).evaluate((row) => row.hasAttribute("open"))).toBe(false);
    await expect.poll(() => stored(page).innerText()).toMatch(/^Thinking\s+First \*\*this\*\* and then/);
    await stored(page).locator("summary").click();
    await stored(page).locator(".prose", { hasText: "then <b>that</b>," }).waitFor();
    await expect.poll(() => page.locator(".thinking").count()).toBe(1);
  });

  test("RE2: two tabs, a reloaded page and a page that left the session show a thought whole and once", async () => {
    const { model, nth } = thinker();
    const house = await openHouse({ model });
    const pages = [await open(house), await open(house)] as const;
    const [first, second] = pages;
    await ask(first);
    const call = await nth(0);
    call.think("The beginning, ");
    for (const page of pages) await live(page).waitFor();
    await first.reload();
    await second.goto(`${house.http}/#/sessions/${encodeURIComponent("agent:writer:main")}`);
    await second.getByRole("heading", { name: "writer" }).waitFor();
    await second.goBack();
    await first.getByRole("button", { name: "Stop" }).waitFor();
    await second.getByRole("button", { name: "Stop" }).waitFor();
    call.think("the middle, ");
    for (const page of pages) {
      await live(page).locator("summary").click();
      await live(page).getByText("The beginning, the middle,").waitFor();
    }
    call.say("Done.");
    call.ended.resolve();
    for (const page of pages) {
      await stored(page).waitFor();
      await expect.poll(() => page.locator(".thinking").count()).toBe(1);
    }
  });

  test("a connection that breaks within a thought loses and doubles nothing of it; Enter unfolds it", async () => {
    const { model, nth } = thinker();
    const house = await openHouse({ model });
    const line = await openLine(house.port);
    line.slow(30_000);
    const { page } = await visit(line.http, { token: TOKEN, at: AT, allow: CUT });
    await ask(page);
    const call = await nth(0);
    call.think("The beginning, ");
    await live(page).locator("summary").focus();
    await page.keyboard.press("Enter");
    await live(page).getByText("The beginning,").waitFor();
    line.hold();
    call.think("the middle, ");
    line.cut();
    line.release();
    await page.getByText("Connection lost").waitFor();
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    call.think("the end. ");
    await expect
      .poll(() => live(page).locator(".prose").innerText())
      .toBe("The beginning, the middle, the end.");
    call.say("Done.");
    call.ended.resolve();
    await stored(page).waitFor();
    await expect.poll(() => page.locator(".thinking").count()).toBe(1);
  });
});
