// The agents on the page, in a real browser with a real gateway and a real configuration file.

import { writeFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { type HouseOptions, operatorToken, TOKEN } from "../../gateway/kit.ts";
import {
  accessibilityProblems,
  CUT,
  clicksOn,
  describeInBrowser,
  PHONE,
  sideways,
  visit,
} from "../../kit/browser.ts";
import { configFileWith } from "../../kit/config-file.ts";
import { fleet, PARTIAL, READER } from "../fleet/house.ts";
import { openLine } from "../line.ts";

const FILE = `// Ours.
{
  models: { providers: { anthropic: { apiKey: "sk-ant-0123456789abcdefghij", models: [{ id: "claude-sonnet-4-5" }] } } },
  agents: { list: [
    { id: "main" },
    { id: "research" },
    { id: "writer" },
  ] },
}
`;
const list = (page: Page, name: string) => page.getByRole("list", { name, exact: true });
const row = (page: Page, name: string, text: string) =>
  list(page, name).locator(":scope > li", { hasText: text });
const model = (page: Page, name: string) => page.getByRole("combobox", { name: `Model of ${name}` });

function withFile(options: HouseOptions = {}, text = FILE) {
  const file = configFileWith(text);
  const { checkConfig, configFile } = file;
  return { file, opening: fleet({ checkConfig, configFile, ...options }) };
}

describeInBrowser("agents", () => {
  test("from any view: today's cost is one click away, a chat with an agent two, a change of its model three", async () => {
    const { file, opening } = withFile();
    const house = await opening;
    const { page } = await visit(house.http, { token: TOKEN, at: "flow" });
    const views = page.getByRole("navigation", { name: "Views" });
    const cost = clicksOn();
    await cost.click(views.getByRole("link", { name: "Agents" }));
    await row(page, "Agents", "Assistant").getByText("$0 of $2.50 today").waitFor();
    await page.locator(".agents-bar").getByText("$0 today").waitFor();
    expect(cost.count()).toBe(1);
    await page.goto(`${house.http}/#/flow`);
    const chat = clicksOn();
    await chat.click(views.getByRole("link", { name: "Agents" }));
    await chat.click(page.getByRole("link", { name: "Chat with writer" }));
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    expect(page.url()).toContain(encodeURIComponent("agent:writer:main"));
    expect(chat.count()).toBe(2);
    await page.goto(`${house.http}/#/flow`);
    const change = clicksOn();
    await change.click(views.getByRole("link", { name: "Agents" }));
    await change.choose(model(page, "writer"), "anthropic/claude-sonnet-4-5");
    await page.getByText("writer uses anthropic/claude-sonnet-4-5 from now on.").waitFor();
    expect(change.count()).toBe(3);
    expect(file.read()).toMatch(/id: "writer",\s*model: "anthropic\/claude-sonnet-4-5"/);
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(file.read).not.toContain('model: "anthropic');
    expect(file.read()).toContain("// Ours.");
  });

  test("an agent shows its purpose, its work as it changes, today's failures, and its rights in words", async () => {
    const held = Promise.withResolvers<void>();
    const house = await fleet({
      play: async ({ run }) => {
        await held.promise;
        if (run.input.text === "fail") throw new Error("the disk is full");
        return "done";
      },
    });
    const { page } = await visit(house.http, { token: TOKEN, at: "agents" });
    const main = row(page, "Agents", "Assistant");
    await main.getByText("idle", { exact: true }).waitFor();
    await main.getByText(/^May read files, .*write to other sessions/).waitFor();
    expect(await main.locator(".agent-rights").innerText()).not.toContain("run commands");
    await page.clock.install();
    const client = await house.client();
    const { runId } = await client.request("chat.send", { sessionKey: "agent:main:main", message: "fail" });
    await page.clock.runFor(6_000);
    await main.getByText("1 running").waitFor();
    await main.locator(".agent-active").getByRole("link", { name: "Assistant" }).waitFor();
    held.resolve();
    await client.request("agent.wait", { runId });
    await page.clock.runFor(6_000);
    const failed = main.getByRole("link", { name: "1 failed today of Assistant" });
    await failed.waitFor();
    await page.locator(".agents-bar").getByText("$0 today, 1 failed").waitFor();
    await expect.poll(() => failed.getAttribute("href")).toBe("#/sessions?agent=main&only=failed");
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("a model's test shows the answer with time, tokens and cost, or the error with a remedy; the keyboard suffices", async () => {
    const { file, opening } = withFile();
    const house = await opening;
    const { page } = await visit(house.http, { token: TOKEN, at: "agents" });
    const tryOut = (name: string) => page.getByRole("button", { name: `Test ${name}` });
    await tryOut("offline/rehearsal").focus();
    await page.keyboard.press("Enter");
    const good = row(page, "Models", "offline/rehearsal").getByRole("status");
    await expect.poll(() => good.innerText()).toMatch(/answered “OK”\s+812 ms · 16 tokens · \$0\.0003/);
    await tryOut("anthropic/claude-sonnet-4-5").press("Enter");
    const bad = row(page, "Models", "anthropic/").getByRole("status");
    await expect.poll(() => bad.innerText()).toContain("invalid x-api-key (HTTP 401)");
    await expect.poll(() => bad.innerText()).toContain("Check the key and its rights.");
    await expect
      .poll(() => row(page, "Models", "anthropic/").innerText())
      .toContain("$3.00 in, $0.30 cached, $15.00 out");
    await bad.getByRole("button", { name: "Set the key" }).click();
    const form = page.getByRole("dialog", { name: "Set the key" });
    await expect.poll(() => form.getByLabel("Provider").inputValue()).toBe("anthropic");
    await form.getByLabel("Key", { exact: true }).fill("sk-ant-another");
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "detached" });
    expect(file.read()).toContain("sk-ant-another");
    const client = await house.client();
    expect((await client.request("usage", { by: "agent" })).lines).toMatchObject([{ name: "models.test" }]);
  });

  test("tokens see what their methods allow: a reader no forms, one for some sessions no costs, one for none no agent", async () => {
    const house = await fleet();
    for (const [token, names, costs] of [
      [READER, ["Assistant", "research", "writer"], 3],
      [PARTIAL, ["research"], 0],
    ] as const) {
      const { page } = await visit(house.http, { token, at: "agents" });
      await page.locator(".agent-name .name").first().waitFor();
      await expect.poll(() => page.locator(".agent-name > .name").allInnerTexts()).toEqual(names);
      await page.getByText("sign in with an admin token that covers every session").waitFor();
      await expect.poll(() => page.getByText(/\$.* today/).count()).toBe(costs === 0 ? 0 : costs + 1);
      await expect.poll(() => page.getByRole("button", { name: /^(Test|Add agent|Remove)/ }).count()).toBe(0);
      await page.getByRole("link", { name: "research", exact: true }).first().click();
      await page.locator(".settings").waitFor();
      await expect.poll(() => page.locator(".agent-form").count()).toBe(0);
    }
    const { page } = await visit(house.http, { token: READER, at: "agents/main" });
    const words = (await page.locator("dl.settings").innerText()).replaceAll(/\s+/g, " ");
    expect(words).toContain("Thinking high · all agents");
    expect(words).toContain("Fallbacks local/qwen3-32b · default");
    expect(words).toContain("$0 of $2.50 today; 0 of 100k tokens today");
    await page.getByText(/other tools? withheld/).click();
    await expect.poll(() => page.locator(".withheld").innerText()).toContain("tools.deny");
    const lost = operatorToken("a-token-for-no-agent", "operator.read", ["agent:nobody:*"]);
    const other = await fleet({ gateway: { tokens: [lost] } });
    const empty = await visit(other.http, { token: "a-token-for-no-agent", at: "agents" });
    await empty.page.getByText("This token covers no agent.").waitFor();
  });

  test("AF2: the form keeps what was typed through a reconnect, another view and a refusal, and asks before it replaces", async () => {
    const { file, opening } = withFile();
    const house = await opening;
    const line = await openLine(house.port);
    const { page } = await visit(line.http, { token: TOKEN, at: "agents/writer", allow: CUT });
    const instructions = page.getByRole("textbox", { name: "Instructions" });
    await instructions.fill("You write. Be brief.\nNo lists.");
    await page.getByLabel("Tokens a day").fill("many");
    await page.getByRole("link", { name: "Flow" }).click();
    await page.goBack();
    await expect.poll(() => instructions.inputValue()).toBe("You write. Be brief.\nNo lists.");
    line.cut();
    await page.getByText("Connection lost").waitFor();
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await expect.poll(() => instructions.inputValue()).toBe("You write. Be brief.\nNo lists.");
    await page.getByRole("button", { name: "Save" }).click();
    const tokensADay = page.getByLabel("Tokens a day");
    await expect.poll(() => tokensADay.evaluate((field) => field.matches(":focus:invalid"))).toBe(true);
    await tokensADay.fill("-5");
    await page.getByLabel("Denied tools").fill("exce");
    await page.getByText("There is no tool exce; did you mean exec?").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page
      .locator(".agent-save .failed")
      .getByText(/^Tokens a day: /)
      .waitFor();
    expect(file.read()).toBe(FILE);
    await page.getByLabel("Denied tools").fill("");
    await page.getByLabel("Tokens a day").fill("");
    writeFileSync(file.path, FILE.replace('{ id: "writer" }', '{ id: "writer", instructions: "Theirs." }'));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Changed meanwhile, nothing was saved. Now Instructions: Theirs.").waitFor();
    await expect.poll(() => instructions.inputValue()).toBe("You write. Be brief.\nNo lists.");
    expect(file.read()).toContain("Theirs.");
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("button", { name: "Replace it" }).click();
    await page.getByText("writer was changed.").waitFor();
    expect(file.read()).toContain(String.raw`instructions: "You write. Be brief.\nNo lists."`);
    expect(file.read()).toContain("// Ours.");
    await expect.poll(() => page.locator(".agent-save").count()).toBe(0);
  });

  test("an agent is added, with one clear error for a bad id, and removed; nothing else is lost", async () => {
    const { file, opening } = withFile();
    const house = await opening;
    const { page } = await visit(house.http, { token: TOKEN, at: "agents" });
    await page.getByRole("button", { name: "Add agent" }).click();
    const form = page.getByRole("dialog", { name: "Add an agent" });
    const rightOf = (name: string) =>
      form.getByRole("button", { name, exact: true }).evaluate((one) => one.getBoundingClientRect().right);
    const leftOfAdd = await form
      .getByRole("button", { name: "Add", exact: true })
      .evaluate((one) => one.getBoundingClientRect().left);
    expect(leftOfAdd - (await rightOf("Cancel"))).toBeLessThan(20);
    for (const [id, error] of [
      ["research", "There is an agent research already."],
      ["../x y", "An id has 1 to 64 letters a to z, digits, - and _. The name may have any."],
    ] as const) {
      await form.getByLabel("Id", { exact: true }).fill(id);
      await form.getByRole("button", { name: "Add", exact: true }).click();
      await form.getByText(error).waitFor();
      await expect.poll(() => form.getByRole("alert").count()).toBe(1);
    }
    await form.getByLabel("Id", { exact: true }).fill("ops");
    await form.getByLabel("Name for people").fill("運用");
    await form.getByLabel("Model").selectOption("offline/rehearsal");
    expect(await accessibilityProblems(page)).toEqual([]);
    await form.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("The agent ops was added.").waitFor();
    expect(file.read()).toContain('name: "運用"');
    await page.getByRole("link", { name: "writer", exact: true }).click();
    await page.getByRole("button", { name: "Remove agent writer" }).click();
    const question = page.getByRole("dialog", { name: "Remove this agent?" });
    await expect.poll(() => question.innerText()).toContain("Its sessions stay in the store");
    await question.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("The agent writer was removed.").waitFor();
    await list(page, "Agents").waitFor();
    expect(file.read()).not.toContain("writer");
    expect(file.read()).toContain("// Ours.");
  });

  test("forty agents with long names and names in other scripts fit a phone, and the keyboard reaches all of it", async () => {
    const [first] = (await fleet()).settings.agents;
    if (first === undefined) throw new Error("there is no agent");
    const many = Array.from({ length: 40 }, (_, at) => ({
      ...first,
      id: `agent-${at}`,
      default: at === 0,
      name: ["データ分析", "باحث", "x".repeat(200), "Research and development"][at % 4] ?? "",
      instructions: "Looks after everything that nobody else does. Really.",
    }));
    const house = await fleet({ choices: { agents: many } });
    const { page } = await visit(house.http, { token: TOKEN, at: "agents", viewport: PHONE });
    await expect.poll(() => page.locator(".agent-row").count()).toBe(40);
    await page.getByText("Looks after everything that nobody else does.", { exact: true }).first().waitFor();
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    const focused = () => page.evaluate(() => document.activeElement?.closest("li")?.textContent ?? "");
    await page.locator("#view").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await expect.poll(focused).toContain("agent-1");
    await page.keyboard.press("Tab");
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe("SELECT");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.url()).toContain(encodeURIComponent("agent:agent-1:main"));
  });
});
