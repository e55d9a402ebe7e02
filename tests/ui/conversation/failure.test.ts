// A failed run in its conversation and in the inbox: the cause, what the run left behind, and the form that mends it.

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openWith, TOKEN } from "../../gateway/reload/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { type Script, startModelServer } from "../../kit/model-server/server.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;
const KEY = "sk-typed-by-a-person-0123456789";

/** Opens the conversation of a run that failed. */
async function failed(script: Script, config = {}, viewport = { width: 1280, height: 800 }) {
  const model = await startModelServer(script);
  cleanup(() => model.close());
  const house = await openWith(model, config);
  await house.client.agent({ sessionKey: MAIN, message: "hello" }).done.catch(() => {});
  const http = `http://127.0.0.1:${house.app.port}`;
  const { page } = await visit(http, { token: TOKEN, at: AT, viewport });
  return { house, page, http, card: page.locator(".entry-failure") };
}

const dialogOf = (page: Page, name: string) => page.getByRole("dialog", { name });

describeInBrowser("a failed run", () => {
  test("a refused key is set in the conversation or from the inbox, and Retry sends the message again", async () => {
    const { house, page, http, card } = await failed(({ headers }) =>
      headers.authorization === `Bearer ${KEY}`
        ? "It works."
        : { status: 401, headers: {}, body: "invalid api key" },
    );
    await card.getByText("refused the key").waitFor();
    await card.getByText("The agent has done nothing yet. Retry sends the message again.").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    const phone = await visit(http, { token: TOKEN, at: "inbox", viewport: PHONE });
    const row = phone.page.getByRole("listitem").filter({ hasText: "refused the key" });
    await row.getByRole("button", { name: "Set the key" }).click();
    await dialogOf(phone.page, "Set the key").getByLabel("Key", { exact: true }).waitFor();
    expect(await sideways(phone.page)).toBe(0);
    await card.getByRole("button", { name: "Set the key" }).focus();
    await page.keyboard.press("Enter");
    const dialog = dialogOf(page, "Set the key");
    await dialog.getByLabel("Key", { exact: true }).fill(KEY);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    expect(readFileSync(house.path, "utf8")).toContain(KEY);
    await card.getByRole("button", { name: "Retry" }).click();
    await page.getByText("It works.").waitFor();
    await expect.poll(() => card.count()).toBe(0);
  });

  test("the key to set is that of the provider whose model failed, not that of the agent's model", async () => {
    const model = await startModelServer(() => ({ status: 401, headers: {}, body: "invalid api key" }));
    cleanup(() => model.close());
    const provider = (id: string) => ({
      ...{ api: "openai-completions", baseUrl: `${model.url}/openai/v1`, models: [{ id }] },
      apiKey: `sk-of-${id}-0123456789`,
    });
    const house = await openWith(model, {
      models: { providers: { local: provider("one"), far: provider("two") } },
    });
    await house.client.request("sessions.patch", { key: MAIN, model: "far/two" });
    await house.client.agent({ sessionKey: MAIN, message: "hello" }).done.catch(() => {});
    const http = `http://127.0.0.1:${house.app.port}`;
    const { page } = await visit(http, { token: TOKEN, at: "inbox" });
    const dialog = dialogOf(page, "Set the key");
    const openDialog = () => page.getByRole("button", { name: "Set the key" }).first().click();
    await openDialog();
    await expect.poll(() => dialog.getByLabel("Provider").inputValue()).toBe("far");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.goto(`${http}/#/${AT}`);
    await openDialog();
    await expect.poll(() => dialog.getByLabel("Provider").inputValue()).toBe("far");
    await dialog.getByLabel("Key", { exact: true }).fill(KEY);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    const text = readFileSync(house.path, "utf8");
    expect(text).toContain("sk-of-one-0123456789");
    expect(text).toContain(KEY);
  });

  test("a model that the provider does not know is replaced for the conversation", async () => {
    const { page, card } = await failed(({ body }) =>
      (body as { model?: string }).model === "two"
        ? "It works."
        : { status: 404, headers: {}, body: "no such model" },
    );
    await card.getByText("The model is not there.").waitFor();
    await card.getByRole("button", { name: "Choose a model" }).click();
    const dialog = dialogOf(page, "Choose a model");
    const choice = dialog.getByLabel("Model of this conversation");
    await expect.poll(() => choice.locator("option").allInnerTexts()).toContain("local/two");
    await choice.selectOption("local/two");
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await card.getByRole("button", { name: "Retry" }).click();
    await page.getByText("It works.").waitFor();
  });

  test("a used-up budget is changed in the form of the agent's settings", async () => {
    const { house, page, card } = await failed(
      () => "never said",
      { agents: { list: [{ id: "main", default: true, budget: { dailyTokens: 1 } }] } },
      PHONE,
    );
    await card.getByText("has used today's budget").waitFor();
    await card.getByRole("button", { name: "Change the budget" }).click();
    const dialog = dialogOf(page, "Change the budget");
    await dialog.getByLabel("Tokens a day").fill("1000000");
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(readFileSync(house.path, "utf8")).toContain("1000000");
    await card.getByRole("button", { name: "Retry" }).click();
    await page.getByText("never said").waitFor();
  });

  test("the limits of a conversation between sessions are changed from the failure that they caused", async () => {
    const { house, page, card } = await failed(
      () => "never said",
      { session: { agentToAgent: { maxChainTokens: 1, maxHops: 7 } } },
      PHONE,
    );
    await card.getByText("has reached a limit").waitFor();
    await card.getByRole("button", { name: "Change the limits" }).click();
    const dialog = dialogOf(page, "Change the limits");
    const tokens = dialog.getByLabel(/^Tokens /);
    await expect.poll(() => tokens.inputValue()).toBe("1");
    await expect.poll(() => dialog.getByLabel(/^Messages from session/).inputValue()).toBe("7");
    await expect.poll(() => dialog.getByLabel(/^Runs /).getAttribute("placeholder")).toBe("Default: 200");
    await tokens.fill("1000000");
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const text = readFileSync(house.path, "utf8");
    expect(text).toMatch(/"maxHops": ?7/);
    expect(text).toMatch(/"maxChainTokens": ?1000000/);
    // The file is applied a moment after it was saved.
    await expect
      .poll(async () => (await house.client.request("usage", {})).chainBudget?.tokensMax)
      .toBe(1_000_000);
    await card.getByRole("button", { name: "Retry" }).click();
    await page.getByText("never said").waitFor();
    await expect.poll(() => card.count()).toBe(0);
  });
});
