// A conversation during a run: streamed text, queued messages, stopping, and changes by other clients.

import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { type House, openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { CUT, describeInBrowser, PHONE, visit } from "../../kit/browser.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { deltas } from "../../kit/live-text.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;

const field = (page: Page) => page.getByRole("textbox", { name: "Message" });
const entries = (page: Page) => page.locator(".entries:not(.entries-tail) > .entry").allInnerTexts();

async function say(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press("Enter");
}

/** Opens a session whose runs stream texts when the test tells them to. */
async function openTalk(): Promise<{
  house: House;
  speak: (text: string) => void;
  end: (text: string) => void;
}> {
  let speak: (text: string) => void = () => {};
  let end: (text: string) => void = () => {};
  const play: Play = (handle) => {
    if (handle.run.input.text.startsWith("quick")) return `echo ${handle.run.input.text}`;
    return new Promise((resolve, reject) => {
      const delta = deltas();
      speak = (text) => handle.text(delta(text));
      end = resolve;
      handle.signal.addEventListener("abort", () => reject(new Error("aborted")));
    });
  };
  const house = await openHouse({ play });
  return { house, speak: (text) => speak(text), end: (text) => end(text) };
}

/** Repeats the text until it is visible, because the engine may skip changes that follow each other quickly. */
async function until(seen: Locator, say: () => void): Promise<void> {
  const look = (): Promise<number> => {
    say();
    return seen.count();
  };
  await expect.poll(look).toBeGreaterThan(0);
}

describeInBrowser("a conversation that goes on", () => {
  test("LV2: streamed text is shown as markdown while it grows, and once when it is in the transcript", async () => {
    const { house, speak, end } = await openTalk();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await say(page, "tell me");
    await page.getByText("working").waitFor();
    const live = page.locator(".entry-live");
    await until(live.getByText("bold"), () => speak("One **bold** word.\n\n- first"));
    await live.locator("strong", { hasText: "bold" }).waitFor();
    const whole = "One **bold** word.\n\n- first\n- second\n\nThe last <b>line</b>";
    await until(live.getByText("The last <b>line</b>"), () => speak(whole));
    await expect.poll(() => live.locator("li").allInnerTexts()).toEqual(["first", "second"]);
    // A resumed run starts its text again.
    await until(live.getByText("Another beginning"), () => speak("Another beginning"));
    await expect.poll(() => live.locator("li").count()).toBe(0);
    end("Another beginning and its end");
    await page.locator(".run-end").waitFor();
    await expect.poll(() => live.count()).toBe(0);
    expect((await entries(page)).filter((text) => text.includes("Another beginning"))).toHaveLength(1);
  });

  test("a session that is opened while its answer streams shows the text so far at once, and once at the end", async () => {
    const { house, speak, end } = await openTalk();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await say(page, "tell me");
    await page.getByText("working").waitFor();
    const live = page.locator(".entry-live");
    await until(live.getByText("so far"), () => speak("The text so far"));
    // The model says nothing more until the text was shown twice more.
    await page.reload();
    await live.getByText("The text so far").waitFor();
    await page.goto(`${house.http}/#/operations/runs`);
    await expect.poll(() => live.count()).toBe(0);
    await page.goto(`${house.http}/#/${AT}`);
    await live.getByText("The text so far").waitFor();
    end("The text so far, and its end");
    await page.locator(".run-end").waitFor();
    await page.goto(`${house.http}/#/operations/runs`);
    await page.goto(`${house.http}/#/${AT}`);
    await page.locator(".run-end").waitFor();
    await expect.poll(() => live.count()).toBe(0);
    await expect.poll(() => page.getByText("The text so far, and its end").count()).toBe(1);
  });

  test("messages queued during a run are shown and can be cancelled; Stop ends the run and keeps its text", async () => {
    const { house, speak } = await openTalk();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await say(page, "begin");
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Queue" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
    await expect.poll(() => page.locator(".queue-note").count()).toBe(0);
    await say(page, "quick one");
    await say(page, "quick two");
    const queued = page.locator(".entry-queued");
    await expect.poll(() => queued.count()).toBe(2);
    await page.locator(".queue-note").getByText("2 queued").waitFor();
    await queued.filter({ hasText: "quick one" }).getByRole("button", { name: "Cancel" }).click();
    await expect.poll(() => queued.count()).toBe(1);
    speak("I had begun to t");
    await page.getByText("I had begun to t").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator(".run-end", { hasText: "stopped" }).waitFor();
    await page.getByText("echo quick two").waitFor();
    await expect.poll(() => page.getByText("quick one").count()).toBe(0);
    await expect.poll(() => queued.count()).toBe(0);
    await say(page, "again");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("status").getByText("The run was stopped.").waitFor();
    await expect.poll(() => page.locator(".run-error").count()).toBe(0);
  });

  test("Shift+Enter adds a line, and so does Enter on a phone; the field grows, and each session keeps its draft", async () => {
    const { house } = await openTalk();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const height = () => field(page).evaluate((one) => one.clientHeight);
    const low = await height();
    await field(page).pressSequentially("quick a");
    for (let line = 0; line < 3; line += 1) await field(page).press("Shift+Enter");
    await field(page).pressSequentially("b");
    expect(await height()).toBeGreaterThan(low + 40);
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent("agent:writer:main")}`);
    await page.getByRole("heading", { name: "writer" }).waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("");
    await page.goBack();
    await expect.poll(() => field(page).inputValue()).toBe("quick a\n\n\nb");
    await field(page).press("Enter");
    await page.getByText("echo quick a").waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("");
    const phone = await visit(house.http, { token: TOKEN, at: AT, viewport: PHONE });
    await field(phone.page).fill("quick phone");
    await field(phone.page).press("Enter");
    await expect.poll(() => field(phone.page).inputValue()).toBe("quick phone\n");
    await phone.page.getByRole("button", { name: "Send" }).click();
    await phone.page.getByText("echo quick phone").waitFor();
  });

  test("a tool call whose run waits says so, with the session for which it waits", async () => {
    const heard = Promise.withResolvers<string>();
    const model = scriptedModel(({ entries }) => {
      const last = JSON.stringify(entries.at(-1));
      if (last.includes("what is new")) return heard.promise;
      if (last.includes("toolResult")) return "It said so.";
      const ask = { sessionKey: "agent:research:main", message: "what is new?", timeoutSeconds: 60 };
      return { text: "I ask.", toolCalls: [{ name: "sessions_send", arguments: ask }] };
    });
    const house = await openHouse({ model });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await say(page, "ask them");
    const card = page.locator(".tool", { hasText: "sessions_send" });
    await card.getByText("waiting").waitFor();
    await page.getByText("waiting for another session").waitFor();
    await card.getByRole("link", { name: "research" }).waitFor();
    heard.resolve("Nothing new.");
    await page.getByText("It said so.").waitFor();
    // The card shows "waiting" until the stored message has been read.
    await card.getByText("waiting").waitFor({ state: "detached" });
    await expect.poll(() => page.getByText("I ask.").count()).toBe(1);
  });

  test("RE2: two tabs on one session show the same messages", async () => {
    const { house } = await openTalk();
    const first = await visit(house.http, { token: TOKEN, at: AT });
    const second = await visit(house.http, { token: TOKEN, at: AT, context: first.context });
    await say(first.page, "quick hello");
    for (const { page } of [first, second]) await page.getByText("echo quick hello").waitFor();
    await say(second.page, "quick back");
    for (const { page } of [first, second]) {
      await page.getByText("echo quick back").waitFor();
      await expect
        .poll(async () => (await entries(page)).map((text) => /^.*quick.*$/m.exec(text)?.[0]))
        .toEqual(["hello", "back"].flatMap((text) => [`quick ${text}`, `echo quick ${text}`]));
    }
    const client = await house.client();
    await client.request("sessions.patch", { key: MAIN, label: "the first room" });
    for (const { page } of [first, second])
      await page.getByRole("heading", { name: "the first room" }).waitFor();
  });

  test("RE2: after a restart of the gateway an open page shows the missed messages, each once", async () => {
    const dir = temporaryFolder();
    let house = await openHouse({ dir, play: () => "before the restart" });
    const { port } = house;
    const { page } = await visit(house.http, {
      ...{ token: TOKEN, at: AT },
      allow: CUT,
    });
    await say(page, "are you there?");
    await page.getByText("before the restart").waitFor();
    await house.stop();
    await page.getByText(/Connection lost|gateway is/).waitFor();
    house = await openHouse({ dir, gateway: { port }, play: () => "after the restart" });
    await (await house.client()).agent({ sessionKey: MAIN, message: "said meanwhile" }).done;
    await expect.poll(() => page.getByText(/Connection lost|gateway is/).count()).toBe(0);
    await page.getByText("said meanwhile").waitFor();
    await say(page, "and now?");
    await expect.poll(() => page.getByText("after the restart").count()).toBe(2);
    await expect.poll(() => entries(page)).toHaveLength(6);
  });

  test("RE3: the page reports a reset or delete by another client, and keeps the loaded messages", async () => {
    const { house } = await openTalk();
    const client = await house.client();
    const { key } = await client.request("sessions.create", {});
    await client.agent({ sessionKey: key, message: "quick words" }).done;
    const { page } = await visit(house.http, {
      token: TOKEN,
      at: `sessions/${encodeURIComponent(key)}`,
    });
    await page.getByText("echo quick words").waitFor();
    await client.request("sessions.reset", { key });
    await page.getByText("This session was reset.").waitFor();
    await expect.poll(() => page.getByText("echo quick words").count()).toBe(0);
    await client.agent({ sessionKey: key, message: "quick again" }).done;
    await page.getByText("echo quick again").waitFor();
    await field(page).fill("a long\ndraft");
    await client.request("sessions.delete", { key });
    await page.getByText("This session was deleted.").waitFor();
    await page.getByText("echo quick again").waitFor();
    await expect.poll(() => field(page).count()).toBe(0);
    const draft = page.getByRole("group", { name: "Unsent message" });
    await expect.poll(() => draft.innerText()).toContain("a long\ndraft");
    await draft.getByRole("button", { name: "Copy unsent message" }).waitFor();
  });

  test("a session that is deleted while it is open leaves the list, and offers nothing to begin with", async () => {
    const { house } = await openTalk();
    const client = await house.client();
    const { key } = await client.request("sessions.create", { label: "short-lived" });
    const at = `sessions/${encodeURIComponent(key)}`;
    const { page } = await visit(house.http, { token: TOKEN, at });
    const row = page.getByRole("treeitem", { name: /short-lived/ });
    await page.getByText("No messages yet").waitFor();
    await row.waitFor();
    await client.request("sessions.delete", { key });
    await page.getByText("This session was deleted.").waitFor();
    await expect.poll(() => page.locator(".empty button").count()).toBe(0);
    await expect.poll(() => row.count()).toBe(0);
  });
});
