// Conversations in which no agent of the gateway speaks: windows of programs, and names without a session.

import { expect, test } from "vitest";
import { openPeer, SPEAKERS } from "../../gateway/clients/mcp.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";

const at = (key: string) => `sessions/${encodeURIComponent(key)}`;

describeInBrowser("a conversation without an agent of the gateway", () => {
  test("the view of a joined window offers no model, and shows its messages under its name with a link to the recipient", async () => {
    const agentToAgent = { enabled: true, allow: [] };
    const house = await openHouse({ choices: { tools: { visibility: "all", agentToAgent } } });
    for (const handle of ["writer", "reviewer"]) {
      const headers = { "x-parley-handle": handle };
      const peer = await openPeer(house, SPEAKERS[0], { name: "claude-code", headers });
      await peer.tools();
      if (handle !== "reviewer") continue;
      const told = { sessionKey: "agent:main:mcp:writer", message: "Done: 3 faults.", timeoutSeconds: 0 };
      await peer.call("sessions_send", told);
    }
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: at("agent:main:mcp:reviewer") },
        ...(viewport === undefined ? {} : { viewport }),
      });
      const sent = page.locator(".entry", { hasText: "Done: 3 faults." });
      await sent.getByText("reviewer (claude-code)").waitFor();
      await sent.getByRole("link", { name: "writer (claude-code)" }).waitFor();
      await expect.poll(() => sent.innerText()).not.toMatch(/\[to|agent:main|Note/);
      await page.getByRole("textbox", { name: "Message" }).waitFor();
      await expect.poll(() => page.getByRole("combobox").count()).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
    }
  });

  test("the page of a name without a session says so, and the first message starts the session", async () => {
    const house = await openHouse();
    for (const [name, viewport] of [
      ["zzz", undefined],
      ["yyy", PHONE],
    ] as const) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: at(`agent:main:${name}`) },
        ...(viewport === undefined ? {} : { viewport }),
      });
      await page.getByText(`There is no session main · ${name} yet. Your first message starts it.`).waitFor();
      await expect.poll(() => page.getByText("No messages yet").count()).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      const field = page.getByRole("textbox", { name: "Message" });
      await page.getByRole("button", { name: "Show my sessions" }).click();
      await expect.poll(() => field.inputValue()).toBe("Show my sessions");
      await page.getByRole("button", { name: "Send" }).click();
      await page.getByText("echo Show my sessions").waitFor();
      await expect.poll(() => page.getByText("There is no session").count()).toBe(0);
      await page.getByRole("combobox", { name: "Thinking" }).waitFor();
      await expect.poll(() => page.getByText("was reset").count()).toBe(0);
    }
  });
});
