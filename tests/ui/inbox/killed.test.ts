// The open inbox while its gateway process is killed.

import { expect, test } from "vitest";
import { CUT, describeInBrowser, visit } from "../../kit/browser.ts";
import { freePort } from "../../kit/loopback.ts";
import { TOKEN } from "../../kit/process/fleet.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";
import { group, MAIN, RESEARCH, rowIn } from "./kit.ts";

describeInBrowser("the inbox of a gateway that was killed", () => {
  test("after the restart the inbox shows running and unsettled items, and no dismissed ones", async () => {
    const home = homeWith({
      gateway: { port: await freePort(), auth: { token: TOKEN } },
      agents: { list: [{ id: "main", default: true }, { id: "research" }] },
    });
    const first = await startProcess({ home });
    const client = await first.connect();
    const { key: old } = await client.request("sessions.create", { label: "old question" });
    await client.agent({ sessionKey: old, message: "say shall we begin?" }).done;
    await client.agent({ sessionKey: RESEARCH, message: "say shall we ship?" }).done;
    await client.request("chat.send", { sessionKey: MAIN, message: "wait 600 seconds" });
    const { page } = await visit(first.httpUrl, { token: first.token, allow: CUT });
    await rowIn(page, "Needs you", "shall we begin?").getByRole("button", { name: "Dismiss" }).click();
    await rowIn(page, "Done", "shall we begin?").waitFor();
    const running = rowIn(page, "Running", "wait 600 seconds");
    await running.waitFor();
    await first.end("SIGKILL");
    await page.getByText("Connection lost").waitFor();
    const second = await startProcess({ home });
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await (await second.connect()).request("chat.send", { sessionKey: old, message: "say done after all" });
    await rowIn(page, "Done", "done after all").waitFor();
    await expect
      .poll(() => group(page, "Needs you").getByRole("listitem").allInnerTexts())
      .toEqual([expect.stringContaining("shall we ship?")]);
    await running.getByRole("button", { name: "Stop" }).click();
    await rowIn(page, "Done", "wait 600 seconds").waitFor();
    await expect.poll(() => page.title()).toBe("(1) Inbox · Parley");
  });
});
