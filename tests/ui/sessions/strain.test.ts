// The session list in difficult cases: narrow tokens and hostile names.

import { expect, test } from "vitest";
import { openHouse, operatorToken, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { relayOf } from "../relay.ts";
import { FAMILY, names, row, seedSessions } from "./seed.ts";

describeInBrowser("sessions", () => {
  test("I9: a scoped token sees the sessions that it covers, and creates no others", async () => {
    const scoped = operatorToken("scoped", "operator.read", ["agent:research:*"]);
    const house = await openHouse({ gateway: { tokens: [scoped] } });
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: "scoped" });
    await row(page, /look it up/).waitFor();
    await expect.poll(() => names(page)).toEqual(["research", "look it up"]);
    await expect.poll(() => page.getByRole("button", { name: "New session" }).count()).toBe(0);
    const client = await house.client();
    for (const sessionKey of ["agent:main:chat:plan", "agent:research:subagent:one"]) {
      await client.agent({ message: "go", sessionKey, idempotencyKey: sessionKey }).done;
    }
    await expect.poll(async () => (await names(page))[0]).toBe("look it up");
    await expect.poll(() => names(page)).toHaveLength(2);
    expect(await page.content()).not.toContain("agent:main:chat:plan");
  });

  test("a new session is created for the selected agent, and opened", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN });
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByRole("dialog").getByLabel("Agent").selectOption("writer");
    await page.getByRole("dialog").getByLabel("Title").fill("by hand");
    await page.getByRole("button", { name: "Create" }).click();
    await expect.poll(() => page.url()).toContain(encodeURIComponent("agent:writer:chat:"));
    await expect.poll(async () => (await names(page))[0]).toBe("by hand");
    await expect.poll(() => row(page, /by hand/).getAttribute("aria-selected")).toBe("true");
  });

  test("a new session can be created with Enter before the agents are known: the default agent has it", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions" });
    const agents = await relayOf(page, "agents.list");
    await page.reload();
    await page.getByRole("button", { name: "New session" }).waitFor();
    agents.hold();
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByRole("dialog").getByLabel("Title").fill("in a hurry");
    await page.keyboard.press("Enter");
    await expect.poll(() => decodeURIComponent(page.url())).toContain("/agent:main:chat:");
    await row(page, /in a hurry/).waitFor();
  });

  test("hostile names stay text on one line, in their row, and change nothing around them", async () => {
    const house = await openHouse();
    const hostile = [
      `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`,
      "\u202egnp.exe \u2066 reversed",
      "x".repeat(512),
      "zero\u200bwidth\u2060",
      "line\nbreak\ttab",
      "\u0645\u0631\u062d\u0628\u0627",
    ];
    await seedSessions(
      house.store,
      hostile.map((label, n) => ({
        key: `agent:main:chat:${n === 2 ? "k".repeat(490) : `h${n}`}`,
        sessionId: `h${n}`,
        updatedAt: 900 - n,
        ...(n % 2 === 0 ? { label } : { displayName: label }),
      })),
    );
    for (const viewport of [{ width: 1280, height: 800 }, PHONE]) {
      const { page } = await visit(house.http, { token: TOKEN, at: "sessions", viewport });
      await row(page, /gnp\.exe/).waitFor();
      await expect.poll(() => page.title()).toBe("Sessions · Parley");
      const text = (await names(page)).join("\n");
      expect(text).toContain("<script>");
      expect(text).toContain("\\u{202e}gnp.exe \\u{2066} reversed");
      expect(text).toContain("zero\\u{200b}width\\u{2060}");
      expect(text).toContain("line\\nbreak tab");
      const sizes = await page
        .locator(".session-row")
        .evaluateAll((rows) =>
          rows.map((one) => [one.getBoundingClientRect().height, one.getBoundingClientRect().width]),
        );
      expect(new Set(sizes.map(([height]) => height)).size).toBe(1);
      expect(new Set(sizes.map(([, width]) => width)).size).toBe(1);
      expect(await sideways(page)).toBe(0);
    }
  });
});
