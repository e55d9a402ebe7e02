// Agents and models on the page, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, visit } from "../../kit/browser.ts";
import { configFileWith } from "../../kit/config-file.ts";
import { fleet, PARTIAL, READER } from "./house.ts";

const AT = "operations/agents";
const row = (page: Page, list: string, text: string) =>
  page.getByRole("list", { name: list, exact: true }).locator(":scope > li", { hasText: text });
const test1 = (page: Page, model: string) => page.getByRole("button", { name: `Test ${model}` });

describeInBrowser("agents and models", () => {
  test("an agent shows its effective settings with their sources, its tools, and its running sessions as they change", async () => {
    const held = Promise.withResolvers<void>();
    const house = await fleet({
      play: async () => {
        await held.promise;
        return "done";
      },
    });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const main = row(page, "Agents", "Assistant");
    await main.getByText("idle", { exact: true }).waitFor();
    await page.clock.install();
    const client = await house.client();
    const { runId } = await client.request("chat.send", { sessionKey: "agent:main:main", message: "wait" });
    await page.clock.runFor(6_000);
    await main.getByText("1 running").waitFor();
    await main.getByRole("button", { name: "Assistant" }).press("Enter");
    const words = (await main.locator("dl").innerText()).replaceAll(/\s+/g, " ");
    expect(words).toContain("Thinking high · agents.defaults");
    expect(words).toContain("Fallbacks local/qwen3-32b · default");
    expect(words).toContain("0 of 100k tokens today; $0 of $2.50 today");
    await expect.poll(() => main.locator(".chips code").allInnerTexts()).toContain("sessions_send");
    await main.getByText("other tool withheld").or(main.getByText("other tools withheld")).click();
    await expect.poll(() => main.locator(".withheld").innerText()).toContain("tools.deny");
    const link = main.getByRole("link", { name: "All running sessions" });
    await expect.poll(() => link.getAttribute("href")).toBe("#/sessions?agent=main&only=running");
    await expect.poll(() => main.locator(".running-sessions").innerText()).toContain("running");
    held.resolve();
    await client.request("agent.wait", { runId });
    await page.clock.runFor(6_000);
    await main.getByText("idle", { exact: true }).waitFor();
    await expect.poll(() => main.locator(".running-sessions li").count()).toBe(0);
  });

  test("a model's test shows the answer with time, tokens and cost, or the error with a remedy; the keyboard suffices", async () => {
    const house = await fleet();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await test1(page, "offline/rehearsal").focus();
    await page.keyboard.press("Enter");
    const good = row(page, "Models", "offline/rehearsal").getByRole("status");
    await expect.poll(() => good.innerText()).toMatch(/answered “OK”\s+812 ms · 16 tokens · \$0\.00030/);
    await test1(page, "anthropic/claude-sonnet-4-5").press("Enter");
    const bad = row(page, "Models", "anthropic/").getByRole("status");
    await expect.poll(() => bad.innerText()).toContain("invalid x-api-key (HTTP 401)");
    await expect.poll(() => bad.innerText()).toContain("Check the key (models.providers.anthropic.apiKey)");
    await expect
      .poll(() => row(page, "Models", "anthropic/").innerText())
      .toContain("$3.00 in, $0.30 cached, $15.00 out");
    expect(await accessibilityProblems(page)).toEqual([]);
    const client = await house.client();
    expect((await client.request("usage", { by: "agent" })).lines).toMatchObject([{ name: "models.test" }]);
  });

  test("a read-only token sees all agents, a token for some sessions only the agents of these; neither can test models", async () => {
    const house = await fleet();
    for (const [token, names] of [
      [READER, ["Assistant", "research", "writer"]],
      [PARTIAL, ["research"]],
    ] as const) {
      const { page } = await visit(house.http, { token, at: AT });
      const list = page.getByRole("list", { name: "Agents", exact: true });
      await list.locator(".agent-name").first().waitFor();
      await expect.poll(() => list.locator(".agent-name").allInnerTexts()).toEqual(names);
      await page.getByText("sign in with an admin token that covers every session").waitFor();
      await expect.poll(() => page.getByRole("button", { name: /^Test / }).count()).toBe(0);
    }
  });

  test("forms add an agent to the configuration file and remove one from it; readers without the right have none", async () => {
    const file = configFileWith(
      '// Ours.\n{ agents: { list: [\n  { id: "main" },\n  { id: "writer" },\n] } }\n',
    );
    const house = await fleet({ configFile: file.configFile });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await page.getByRole("button", { name: "Add agent" }).click();
    const form = page.getByRole("dialog", { name: "Add an agent" });
    await form.getByLabel("Id", { exact: true }).fill("research");
    await form.getByRole("button", { name: "Add", exact: true }).click();
    await form.getByText("There is an agent research already.").waitFor();
    await form.getByLabel("Id", { exact: true }).fill("ops");
    await form.getByLabel("Name for people").fill("Operations");
    await form.getByLabel("Model").selectOption("offline/rehearsal");
    expect(await accessibilityProblems(page)).toEqual([]);
    await form.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("The agent ops was added.").waitFor();
    expect(file.read()).toContain('id: "ops"');
    expect(file.read()).toContain('model: "offline/rehearsal"');
    await row(page, "Agents", "writer").getByRole("button", { name: "writer" }).click();
    await page.getByRole("button", { name: "Remove agent writer" }).click();
    const question = page.getByRole("dialog", { name: "Remove this agent?" });
    await expect.poll(() => question.innerText()).toContain("Its sessions stay in the store");
    await question.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("The agent writer was removed.").waitFor();
    expect(file.read()).not.toContain("writer");
    expect(file.read()).toContain("// Ours.");
    const reader = await visit(house.http, { token: READER, at: AT });
    await reader.page.locator(".agent-name").first().waitFor();
    const buttons = reader.page.getByRole("button", { name: /^(Add agent|Remove)/ });
    await expect.poll(() => buttons.count()).toBe(0);
  });
});
