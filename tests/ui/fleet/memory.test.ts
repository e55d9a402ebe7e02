// The prompt and the memory of an agent on the page, in a real browser with a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, visit } from "../../kit/browser.ts";
import { fleet, PARTIAL, READER } from "./house.ts";

const AT = "agents/main";
const settingOf = (page: Page, name: string) =>
  page.locator(".setting").filter({ has: page.locator("dt").getByText(name, { exact: true }) });

describeInBrowser("an agent's prompt and memory", () => {
  test("the memory is edited, and the prompt shows it as a part with its size", async () => {
    const house = await fleet();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const memory = settingOf(page, "Memory");
    await memory.getByText("empty").waitFor();
    await memory.getByRole("button", { name: "Edit the memory of main" }).click();
    const dialog = page.getByRole("dialog", { name: "Memory of main" });
    await expect.poll(() => dialog.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Text").fill("Ada <b>prefers</b> tea.");
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await memory.getByText("23 B").click();
    await memory.getByText("Ada <b>prefers</b> tea.").waitFor();
    const prompt = settingOf(page, "Prompt");
    await prompt.getByText("what the model is told").click();
    const part = prompt.getByRole("listitem").filter({ hasText: /^Memory/ });
    await part.locator("summary").click();
    await part.getByText("Ada <b>prefers</b> tea.").waitFor();
    await expect.poll(() => part.locator("summary").innerText()).toMatch(/ B, about \d+ tokens$/);
    await prompt.getByText(/^\d+ tools beside it: .* tokens$/).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("a change by the agent during an edit is shown, and overwritten only after another click", async () => {
    const house = await fleet();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const client = await house.client();
    await settingOf(page, "Memory").getByRole("button").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Text").fill("mine");
    await client.request("agents.memory.set", { agentId: "main", text: "the agent's", revision: 0 });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Nothing was saved").waitFor();
    await dialog.getByText("the agent's", { exact: true }).waitFor();
    const stored = async () => (await client.request("agents.memory.get", { agentId: "main" })).text;
    await expect.poll(stored).toBe("the agent's");
    await expect.poll(() => dialog.getByLabel("Text").inputValue()).toBe("mine");
    await dialog.getByRole("button", { name: "Replace it" }).click();
    await dialog.waitFor({ state: "detached" });
    await expect.poll(stored).toBe("mine");
  });

  test("a read-only token sees both and edits nothing; a token for some sessions sees neither", async () => {
    const house = await fleet();
    const { page } = await visit(house.http, { token: READER, at: AT });
    await settingOf(page, "Memory").getByText("empty").waitFor();
    await expect.poll(() => page.getByRole("button", { name: /^Edit/ }).count()).toBe(0);
    const other = await visit(house.http, { token: PARTIAL, at: "agents/research" });
    await other.page.locator(".settings").waitFor();
    await expect.poll(() => settingOf(other.page, "Memory").count()).toBe(0);
    await expect.poll(() => settingOf(other.page, "Prompt").count()).toBe(0);
  });
});
