// A form of an MCP server, in the inbox and in its conversation.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { doing, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings } from "../../tools/app.ts";
import { mcpWith, nodeServer, REFERENCE } from "../../tools/mcp-kit.ts";
import { rowIn, say } from "./kit.ts";

describeInBrowser("a form of an MCP server", () => {
  test("it is filled in on a phone, with its defaults and its first mistake shown", async () => {
    const house = await openHouse({
      model: talkingModel(),
      choices: {
        agents: [agentSettings("main")],
        tools: { mcp: mcpWith([nodeServer("every", [REFERENCE, "stdio"])]) },
      },
    });
    const client = await house.client();
    const { key } = await client.request("sessions.create", { label: "Register", agentId: "main" });
    const { page } = await visit(house.http, { token: TOKEN, viewport: PHONE });
    const runId = await say(house, key, doing({ name: "mcp__every__trigger-elicitation-request" }));
    const row = rowIn(page, "Needs you", "Register");
    await row.getByRole("button", { name: "Answer" }).click();
    await row.getByText("MCP server every asks: Please provide inputs").first().waitFor();
    const name = row.getByLabel("String Your full, legal name");
    await name.fill("Ann");
    await row.getByLabel("Boolean").selectOption("Yes");
    await row.getByLabel("Integer").fill("1000");
    await row.getByLabel("Legacy Titled").selectOption("Dogs");
    await row.getByRole("group", { name: "Titled Multiple Select Enum" }).last().getByLabel("Trout").check();
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    if (process.env.SHOTS) {
      await page.screenshot({ path: "/tmp/form-phone.png", fullPage: true });
      await page.emulateMedia({ colorScheme: "dark" });
      await page.screenshot({ path: "/tmp/form-phone-dark.png", fullPage: true });
      await page.setViewportSize({ width: 1280, height: 1800 });
      await page.emulateMedia({ colorScheme: "light" });
      await page.screenshot({ path: "/tmp/form-wide.png", fullPage: true });
    }
    const send = row.getByRole("button", { name: "Send" });
    await send.click();
    await page.getByText('the field "integer" must be 1 to 100').waitFor();
    await row.getByLabel("Integer").fill("7");
    await send.click();
    await page.getByText("Nothing needs your attention.").waitFor();
    await expect
      .poll(async () => JSON.stringify(await client.request("chat.history", { sessionKey: key })))
      .toContain("Favorite Integer: 7");
    expect(runId).not.toBe("");
  });
});
