// The gateway's status, log and configuration, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { LogTail } from "../../src/world/log-tail.ts";
import { type HouseOptions, openHouse, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../kit/browser.ts";
import { fakeWorld } from "../kit/world.ts";

/** Opens a gateway with a clock and a log that the test controls. */
async function held(options: HouseOptions = {}) {
  const logTail = new LogTail();
  const world = { ...fakeWorld(), logTail };
  const house = await openHouse({ world, ...options });
  let said = 0;
  const say = (level: number, msg: string, more: object = {}): void => {
    said += 1;
    logTail.write(JSON.stringify({ level, time: 1_767_225_600_000 + said * 1_000, ...more, msg }));
  };
  return { house, world, say };
}

const messages = (page: Page) => page.locator(".log-msg").allInnerTexts();
describeInBrowser("the gateway's own work", () => {
  test("PL1: each metric is a plot with its current value and a table; mouse and keyboard show the value at any time", async () => {
    const { house, world } = await held();
    const client = await house.client();
    for (let at = 0; at < 12; at += 1) {
      await client.agent({ message: "x", idempotencyKey: `run-${at}` }).done;
      await world.advance(10_000);
    }
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/status" });
    const runs = page.getByRole("region", { name: "Runs" });
    await expect.poll(() => runs.locator(".plot-values li").first().innerText()).toMatch(/^6\/min\s+ended$/);
    await expect.poll(() => page.locator(".plot").count()).toBe(12);
    await expect
      .poll(() => runs.locator(".visually-hidden").innerText())
      .toMatch(/^Runs\. ended: now 6\/min, lowest/);
    const moment = runs.getByRole("slider");
    await moment.focus();
    for (const key of ["Home", "ArrowRight"]) await page.keyboard.press(key);
    await expect
      .poll(() => moment.getAttribute("aria-valuetext"))
      .toBe("00:00:11: ended 1/min, failed 0/min");
    await expect.poll(() => runs.locator(".plot-when").innerText()).toBe("00:00:11");
    await expect.poll(() => runs.locator(".plot-cursor").count()).toBe(1);
    await page.keyboard.press("Escape");
    await expect.poll(() => runs.locator(".plot-when").innerText()).toBe("now");
    const box = await runs.locator("svg").boundingBox();
    await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) - 1, (box?.y ?? 0) + 20);
    await expect.poll(() => runs.locator(".plot-when").innerText()).toBe("00:01:51");
    await page.getByText("Show as table").click();
    const row = page.getByRole("row", { name: /^Runs ended/ });
    await expect.poll(() => row.getByRole("cell").allInnerTexts()).toContain("6/min");
  });

  test("the log can be followed, paused, filtered by level and searched; lines can be opened and link to their session", async () => {
    const { house, say } = await held();
    say(30, "one", { sessionKey: "agent:research:main", runId: "run-1" });
    say(50, "two", { err: { type: "Error", message: "no", stack: "Error: no\n    at deep (file.ts:1)" } });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/log" });
    await expect.poll(() => messages(page)).toEqual(["one", "two"]);
    await expect
      .poll(() => page.getByRole("link", { name: "research" }).getAttribute("href"))
      .toBe("#/sessions/agent%3Aresearch%3Amain");
    await page.getByRole("button", { name: /two/ }).press("Enter");
    await expect.poll(() => page.locator(".log-details").innerText()).toContain("at deep (file.ts:1)");
    say(40, "three");
    await expect.poll(() => messages(page)).toEqual(["one", "two", "three"]);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("3 lines, paused").waitFor();
    say(30, "four");
    await page.getByLabel("Level").selectOption("warn");
    await expect.poll(() => messages(page)).toEqual(["two", "three"]);
    await page.getByLabel("Level").selectOption("debug");
    await page.getByLabel("Search the log").fill("FOUR");
    await expect.poll(() => messages(page)).toEqual(["four"]);
    await page.getByLabel("Search the log").fill("nothing like it");
    await page.getByText("No matching lines").waitFor();
  });

  test("a row of the log shows the reason of a failure in words, with its codes, without opening it", async () => {
    const { house, say } = await held();
    const stack = "Error: at x";
    say(40, "a run failed", { why: "401 invalid key", code: "run_failed" });
    say(50, "the store failed", {
      err: { type: "StoreProblem", message: "the disk is full", stack, code: "ENOSPC" },
    });
    say(40, "Telegram did not answer", { err: { type: "TimeoutError" }, status: 502 });
    say(40, "a group became a supergroup", { from: 1 });
    say(40, "a message was skipped: too long", { why: "too long" });
    say(50, "an error", { err: { message: `${"long ".repeat(200)}<b>end</b>`, stack } });
    for (const viewport of [undefined, { ...PHONE, width: 360 }]) {
      const shape = viewport === undefined ? {} : { viewport };
      const { page } = await visit(house.http, { token: TOKEN, at: "operations/log", ...shape });
      await expect.poll(() => messages(page)).toHaveLength(6);
      const reasons = await page
        .locator(".log-line")
        .evaluateAll((rows) => rows.map((row) => row.querySelector(".log-reason")?.textContent ?? ""));
      expect(reasons.slice(0, 5)).toEqual([
        "401 invalid key · run_failed",
        "the disk is full · ENOSPC",
        "TimeoutError · status 502",
        "",
        "",
      ]);
      expect(reasons[5]).toMatch(/^(long )+(lo?n?g?)?…$/);
      await expect.poll(() => page.locator(".log-line b").count()).toBe(0);
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
    }
  });

  test("LG1: a reader at the end sees new lines; for a reader who scrolled up the page does not move", async () => {
    const { house, say } = await held();
    for (let at = 0; at < 200; at += 1) say(30, `line ${at}`);
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/log" });
    const box = page.locator(".log-lines");
    const fromEnd = () => box.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
    await page.locator(".log-line").first().waitFor();
    await expect.poll(fromEnd).toBeLessThan(5);
    say(30, "a new one");
    await expect.poll(async () => (await messages(page)).at(-1)).toBe("a new one");
    expect(await fromEnd()).toBeLessThan(5);
    await box.evaluate((one) => one.scrollTo(0, 100));
    say(30, "another one");
    await expect.poll(async () => (await messages(page)).at(-1)).toBe("another one");
    expect(await box.evaluate((one) => one.scrollTop)).toBe(100);
  });

  test("going back to the log leads to the link of the line that was read, with its filter and what was open", async () => {
    const { house, say } = await held();
    const { key: sessionKey } = await (await house.client()).request("sessions.create", { label: "work" });
    for (let at = 0; at < 200; at += 1) say(40, `line ${at}`, { sessionKey, why: "slow" });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/log" });
    await page.getByLabel("Search the log").fill("line 1");
    await expect.poll(() => page.locator(".log-line").count()).toBe(111);
    const line = page.locator(".log-line").filter({ hasText: "line 150" });
    await line.getByRole("button").click();
    await line.locator(".log-details").waitFor();
    const top = () => page.locator(".log-lines").evaluate((one) => Math.round(one.scrollTop));
    await expect.poll(top).toBeGreaterThan(0);
    const before = await top();
    await line.getByRole("link").press("Enter");
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await page.goBack();
    await line.locator(".log-details").waitFor();
    await expect.poll(top).toBe(before);
    await expect.poll(() => line.evaluate((one) => one.contains(document.activeElement))).toBe(true);
    await expect.poll(() => page.locator(".log-line").count()).toBe(111);
  });

  test("NM1: hostile lines stay text: no markup, reordering or hiding, and long lines don't widen the page", async () => {
    const { house, say } = await held();
    const hostile =
      '<img src=x onerror="document.title=1">\u202Egpj.exe\u200b\u0007 [x](javascript:alert(1))';
    say(30, hostile, { sessionKey: `agent:main:chat:${hostile}`, part: hostile, [hostile]: hostile });
    say(30, "x".repeat(20_000));
    say(30, "", { sessionKey: 7, chainId: { deep: [] }, err: { stack: 5 } });
    for (const viewport of [undefined, PHONE]) {
      const shape = viewport === undefined ? {} : { viewport };
      const { page } = await visit(house.http, { token: TOKEN, at: "operations/log", ...shape });
      await expect.poll(async () => (await messages(page)).length).toBe(3);
      for (const one of await page.locator("button.log-what").all()) await one.click();
      await expect.poll(() => page.locator(".log img, .log script").count()).toBe(0);
      const text = await page.locator(".log-lines").innerText();
      expect(text).toContain("<img src=x onerror=");
      for (const hidden of ["\u202E", "\u200B", "\u0007"]) expect(text).not.toContain(hidden);
      await expect.poll(() => page.title()).toBe("Log · Parley");
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
    }
  });

  test("the check of the configuration shows problems, and the changes that a restart would make", async () => {
    let found = 0;
    const base = { path: "<b>x.json5", exists: true, ok: true, errors: [], warnings: [] };
    const settings = { gateway: { port: 7275, token: "(set)" }, agents: [{ id: "main", tools: {} }] };
    const answers = [
      { ...base, differs: false, changed: [], restart: [], settings },
      {
        ...base,
        ...{ differs: true, changed: ["session", "tools"], restart: ["session.scope", "tools.mcp"] },
        ...{ warnings: ["mode 644"], settings },
      },
      {
        ...base,
        ok: false,
        errors: ["gatevay: unknown <i>key"],
        differs: false,
        changed: [],
        restart: [],
        settings,
      },
    ];
    const { house } = await held({
      checkConfig: () => answers[found] as (typeof answers)[number],
    });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/configuration" });
    await page.getByText("No problems. The file is in effect.").waitFor();
    await page.getByText("agents", { exact: true }).click();
    await page.locator("summary").getByText("main", { exact: true }).waitFor();
    const again = page.getByRole("button", { name: "Check again" });
    found = 1;
    await again.click();
    await page.getByText(/^Restart needed/).waitFor();
    await expect
      .poll(() => page.locator(".config-changed .chip").allInnerTexts())
      .toEqual(["session.scope", "tools.mcp"]);
    await expect.poll(() => page.locator(".config-said").innerText()).toContain("mode 644");
    found = 2;
    await again.click();
    await page.getByText("The file has 1 problem: the gateway keeps its settings.").waitFor();
    await page.getByText("gatevay: unknown <i>key").waitFor();
    await expect.poll(() => page.locator(".config b, .config i").count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("every view names the settings of the file that need a restart", async () => {
    const same = { path: "x.json5", exists: true, ok: true, errors: [], warnings: [], settings: {} };
    let restart: string[] = [];
    const { house, world } = await held({
      checkConfig: () => ({ ...same, differs: restart.length > 0, changed: restart, restart }),
    });
    for (const viewport of [undefined, PHONE]) {
      restart = [];
      const shape = viewport === undefined ? {} : { viewport };
      const { page } = await visit(house.http, { token: TOKEN, ...shape });
      await page.getByText(/^Questions, failures and requests/).waitFor();
      await expect.poll(() => page.getByText(/only after a restart/).count()).toBe(0);
      restart = ["channels"];
      const notice = page.getByText("Some settings of the file apply only after a restart: channels.");
      await world.advance(60_000);
      await notice.waitFor();
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole("link", { name: "Show differences" }).click();
      await page.getByText(/^Restart needed/).waitFor();
    }
  });
});
