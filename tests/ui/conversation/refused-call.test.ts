// A call that an MCP server refuses until somebody signs in, in its conversation.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, visit } from "../../kit/browser.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";
import { httpServer, mcpWith } from "../../tools/mcp-kit.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;

describeInBrowser("a refused call of an MCP server", () => {
  test("a call that an MCP server refuses until somebody signs in offers the sign-in", async () => {
    const far = await openHouse();
    const servers = [httpServer("far", `${far.http}/mcp`)];
    const call = { name: "mcp__far__sessions_list", arguments: {} };
    const model = scriptedModel(({ entries }): ScriptedAnswer => {
      const last = entries.filter((entry) => "role" in entry).at(-1);
      return last?.role === "toolResult" ? "It was refused." : { toolCalls: [call] };
    });
    const house = await openHouse({ model, choices: { tools: { mcp: mcpWith(servers) } } });
    const client = await house.client();
    const allow = /^request to http:\/\/127\.0\.0\.1:\d+\//;
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/servers", allow });
    const signIn = page.getByRole("button", { name: "Sign in at far" });
    await page.getByRole("button", { name: "Test far" }).click();
    await signIn.click();
    await page.getByLabel(/^Your token/).fill(TOKEN);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText(/Signed in at far/).waitFor();
    const file = join(house.dir, "mcp-sign-ins", "far.json");
    const { tokens, ...record } = JSON.parse(readFileSync(file, "utf8"));
    const { refresh_token: _, ...rest } = tokens;
    writeFileSync(file, JSON.stringify({ ...record, tokens: { ...rest, access_token: "ended" } }));
    await client.agent({ sessionKey: MAIN, message: "list them" }).done;
    await page.goto(`${house.http}/#/${AT}`);
    await signIn.waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await signIn.click();
    await page.getByRole("heading", { name: "Allow this sign-in?" }).waitFor();
  });
});
