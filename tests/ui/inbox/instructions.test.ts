// A changed instruction file in the inbox: the whole change, and what the answers do.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { temporaryFolder } from "../../kit/cleanup.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { agentSettings } from "../../tools/app.ts";
import { rowIn, settled } from "./kit.ts";

const GUEST = "token-of-a-guest-0123456789";

describeInBrowser("changed instruction files in the inbox", () => {
  test("the change is shown whole, and deny restores the file after a confirmation", async () => {
    const workspace = join(temporaryFolder(), "workspace");
    mkdirSync(workspace);
    const file = join(workspace, "AGENTS.md");
    const lines = Array.from({ length: 60 }, (_, at) => `Rule ${at}.`);
    writeFileSync(file, `${lines.join("\n")}\n`);
    const content = `${lines.map((line, at) => (at % 10 === 3 ? `Obey ${at}.` : line)).join("\n")}\n`;
    const model = scriptedModel((_, call) =>
      call === 0 ? { toolCalls: [{ name: "write", arguments: { path: "AGENTS.md", content } }] } : "done",
    );
    const tokens = [
      {
        ...{ token: GUEST, role: "operator" as const, scopes: ["operator.write" as const] },
        sessions: ["agent:main:guest"],
      },
    ];
    const agents = [agentSettings("main", { workspace })];
    const house = await openHouse({ model, choices: { agents }, gateway: { tokens } });
    const guest = await house.client({ token: GUEST });
    const { runId } = await guest.request("chat.send", { sessionKey: "agent:main:guest", message: "x" });
    await guest.request("agent.wait", { runId });
    const { page } = await visit(house.http, { token: TOKEN });
    const row = rowIn(page, "Needs you", "was changed by a run with outside content");
    // Without a look at the row's details, the question before Allow shows the change, too.
    await settled(row.getByRole("button", { name: "Allow" }));
    await row.getByRole("button", { name: "Allow" }).click();
    await page.getByRole("dialog").getByText("+Obey 53.", { exact: true }).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await row.getByRole("button", { name: "Peek" }).click();
    const change = row.getByRole("figure");
    await change.getByText("+Obey 53.", { exact: true }).waitFor();
    await change.getByText("-Rule 3.", { exact: true }).waitFor();
    await row.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Deny" }).click();
    await row.waitFor({ state: "detached" });
    expect(readFileSync(file, "utf8")).toBe(`${lines.join("\n")}\n`);
  });
});
