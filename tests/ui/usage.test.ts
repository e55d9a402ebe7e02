// Usage in a real browser with a real gateway.
// Hard cases: a token for some sessions; an agent that has used up its budget; labels that a spreadsheet would
// run as a formula; deleted runs; answers that arrive after the reader has chosen something else; the keyboard
// alone.

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { addUsageRow } from "../../src/store/queries/runs/ledger.ts";
import { type House, type HouseOptions, openHouse, operatorToken, quiet, TOKEN } from "../gateway/kit.ts";
import { describeInBrowser, visit } from "../kit/browser.ts";
import { agentSettings } from "../tools/app.ts";
import { fleet } from "./fleet/house.ts";
import { relayOf } from "./relay.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const DAY_MS = 86_400_000;
const SCOPED = operatorToken("scoped-token", "operator.read", [RESEARCH]);

interface Used {
  readonly runId?: string;
  readonly sessionKey: string;
  readonly tokens: number;
  readonly cost?: number;
  readonly daysAgo?: number;
}

async function use(house: House, rows: readonly Used[]): Promise<void> {
  await house.engine.commit(async (unit) => {
    for (const [at, { sessionKey, tokens, cost = 0, daysAgo = 0, runId = `used-${at}` }] of rows.entries()) {
      const sums = { input: tokens, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: tokens };
      const prices = { input: cost, output: 0, cacheRead: 0, cacheWrite: 0, total: cost };
      const agentId = sessionKey.split(":")[1] ?? "";
      const names = { runId, sessionKey, agentId, provider: "p", model: "large" };
      await addUsageRow(unit.tx, {
        ...names,
        usage: { ...sums, cost: prices },
        at: unit.now - daysAgo * DAY_MS,
      });
    }
  });
}

async function spent(options: HouseOptions = {}): Promise<House> {
  const house = await openHouse({ gateway: { tokens: [SCOPED] }, ...options });
  await use(house, [
    { sessionKey: MAIN, tokens: 9_000, cost: 0.5 },
    { sessionKey: RESEARCH, tokens: 100, cost: 3 },
    { sessionKey: MAIN, tokens: 50_000, cost: 7, daysAgo: 20 },
  ]);
  return house;
}

const rows = (page: Page) => page.locator(".usage-table tbody tr");
const names = async (page: Page) =>
  (await page.locator(".usage-table tbody th").allInnerTexts()).map((name) => name.trim());
const figure = (page: Page) => page.locator(".usage-figure").first().innerText();
const period = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

describeInBrowser("usage", () => {
  test("the tab lists agents by cost, can sort by tokens and change the period; a reload keeps the period", async () => {
    const house = await spent();
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/usage" });
    await rows(page).first().waitFor();
    await expect.poll(() => names(page)).toEqual(["research", "main"]);
    await expect.poll(() => figure(page)).toBe("$3.50");
    await page.getByRole("button", { name: "Tokens" }).click();
    await expect.poll(() => names(page)).toEqual(["main", "research"]);
    await expect
      .poll(() => page.getByRole("columnheader", { name: "Tokens" }).getAttribute("aria-sort"))
      .toBe("descending");
    await period(page, "30 days").click();
    await expect.poll(() => figure(page)).toBe("$10.50");
    await page.reload();
    await rows(page).first().waitFor();
    await expect.poll(() => figure(page)).toBe("$10.50");
    await expect.poll(() => page.locator(".usage-bar").count()).toBe(30);
    // The style of plots comes with the tab, also if no other tab was open before.
    const axis = page.locator(".plot-axis");
    await expect.poll(() => axis.evaluate((part) => getComputedStyle(part).display)).toBe("flex");
    await period(page, "Today").click();
    await expect.poll(() => figure(page)).toBe("$3.50");
    await expect
      .poll(() => page.getByRole("row", { name: /^All/ }).getByRole("cell").allInnerTexts())
      .toContain("$3.50");
  });

  test("wherever a cost is below one cent, its full value is a tooltip", async () => {
    const house = await fleet();
    await house.engine.accept({ sessionKey: MAIN, input: { text: "hello" } });
    await quiet(house);
    await use(house, [{ sessionKey: MAIN, tokens: 10, cost: 0.0042 }]);
    for (const at of ["agents", "agents/main", "sessions", "operations/usage"]) {
      const { page } = await visit(house.http, { token: TOKEN, at });
      const costs = page.locator("#view").getByText(/<\$0\.01/);
      await costs.first().waitFor();
      const lacking = await costs.evaluateAll((all) =>
        all
          .filter((one) => one.closest(".visually-hidden, .plot-top") === null)
          .filter((one) => !one.closest("[title]")?.getAttribute("title")?.includes("$0.0042"))
          .map((one) => one.outerHTML),
      );
      expect(lacking).toEqual([]);
    }
    const { page } = await visit(house.http, { token: TOKEN, at: "agents" });
    const sum = page.locator(".agents-bar").getByText("<$0.01");
    await expect.poll(() => sum.getAttribute("title")).toBe("$0.0042");
  });

  test("UD1: the arrow keys move from day to day in the chart", async () => {
    const house = await spent();
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/usage/30~agent~cost~" });
    const day = page.getByRole("slider", { name: "Cost by day: day" });
    await day.focus();
    await expect.poll(() => day.getAttribute("aria-valuetext")).toMatch(/\$3\.50, 9\.1k tokens$/);
    await page.keyboard.press("Home");
    for (let at = 0; at < 9; at += 1) await page.keyboard.press("ArrowRight");
    await expect.poll(() => day.getAttribute("aria-valuetext")).toMatch(/\$7\.00, 50\.0k tokens$/);
    await page.keyboard.press("Escape");
    await expect.poll(() => day.getAttribute("aria-valuenow")).toBe("29");
  });

  test("an agent's row opens its sessions, a session's row its conversation, and a chain's row its flow", async () => {
    const house = await spent();
    const client = await house.client();
    await client.request("sessions.patch", { key: MAIN, label: "the <b>release" });
    const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: "is it <i>ready?" });
    await quiet(house);
    await use(house, [{ sessionKey: MAIN, tokens: 10, cost: 20, runId }]);
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/usage" });
    await page.getByRole("link", { name: "main", exact: true }).click();
    await expect.poll(() => names(page)).toEqual([expect.stringContaining("the <b>release")]);
    await expect
      .poll(() => rows(page).getByRole("link").getAttribute("href"))
      .toBe("#/sessions/agent%3Amain%3Amain");
    await page.getByRole("button", { name: /^Only main/ }).click();
    await page.getByLabel("Group by").selectOption("chain");
    const chain = rows(page).getByRole("link", { name: "is it <i>ready?" });
    await chain.waitFor();
    expect((await names(page)).at(1)).toBe("Runs that are no longer stored");
    await expect.poll(() => page.locator(".usage b b, .usage i").count()).toBe(0);
    await chain.click();
    await expect.poll(() => page.url()).toContain("#/flow/");
  });

  test("a used-up budget shows how many runs it stopped and when runs can start again; a second budget is within its limit", async () => {
    const agents = [
      { ...agentSettings("main"), default: true, budget: { dailyCost: 100 } },
      { ...agentSettings("research"), budget: { dailyCost: 3 } },
    ];
    const house = await spent({ choices: { agents } });
    const run = await house.engine.accept({ sessionKey: RESEARCH, input: { text: "go" } });
    expect(run.ok).toBe(true);
    await quiet(house);
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/usage" });
    const budgets = page.getByRole("region", { name: "Budgets today" }).getByRole("listitem");
    await budgets.first().waitFor();
    const [research = "", main = ""] = await budgets.allInnerTexts();
    expect(research).toMatch(
      /\$3\.00 of \$3\.00, used up\s+Used up\. 1 run stopped today\. Runs can start again in/,
    );
    expect(main).toMatch(/\$0\.50 of \$100\.00\s+Within the budget/);
  });

  test("UX1: all lines can be exported as CSV without executable formulas, and as JSON with exact figures", async () => {
    const house = await spent();
    const client = await house.client();
    await client.request("sessions.patch", { key: MAIN, label: '=HYPERLINK("x"),1' });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/usage/30~session~cost~" });
    await rows(page).first().waitFor();
    const saved = async (kind: string): Promise<{ name: string; text: string }> => {
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Export ${kind}` }).click(),
      ]);
      return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
    };
    const csv = await saved("CSV");
    expect(csv.name).toMatch(/^parley-usage-session-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/);
    const [head, first, second] = csv.text.split("\r\n");
    expect(head).toBe(
      "session,label,runs,input_tokens,cache_read_tokens,cache_write_tokens,output_tokens,total_tokens,cost_usd,last_at",
    );
    expect(first).toMatch(/^agent:main:main,"'=HYPERLINK\(""x""\),1",2,59000,0,0,0,59000,7\.5,\d{4}-/);
    expect(second).toMatch(/^agent:research:main,,1,100,0,0,0,100,3,/);
    const json = JSON.parse((await saved("JSON")).text);
    expect(json).toMatchObject({ by: "session", lines: [{ name: MAIN, cost: 7.5 }, { name: RESEARCH }] });
  });

  test("I9: for a token for one session the tab shows only that session's usage, says so, and shows no budget", async () => {
    const house = await spent();
    const { page } = await visit(house.http, { token: SCOPED.token, at: "operations/usage" });
    await page.getByText(/^Your token covers only some sessions/).waitFor();
    await rows(page).first().waitFor();
    await expect.poll(() => names(page)).toEqual(["research"]);
    await expect.poll(() => figure(page)).toBe("$3.00");
    await expect.poll(() => page.getByText("Budgets today").count()).toBe(0);
  });

  test("PO1: a late answer does not block the page, and does not replace a later selection", async () => {
    const house = await spent();
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "usage");
    await page.goto(`${house.http}/#/operations/usage`);
    await page.reload();
    await rows(page).first().waitFor();
    relay.hold();
    await period(page, "30 days").click();
    await period(page, "Today").click();
    await expect.poll(relay.asked).toBeGreaterThanOrEqual(4);
    await expect.poll(() => names(page)).toEqual(["research", "main"]);
    await expect.poll(() => period(page, "Today").getAttribute("aria-pressed")).toBe("true");
    relay.release();
    await expect.poll(() => page.locator(".usage-bar").count()).toBe(1);
    await expect.poll(() => page.locator(".usage-old").count()).toBe(0);
    await expect.poll(() => figure(page)).toBe("$3.50");
  });
});
