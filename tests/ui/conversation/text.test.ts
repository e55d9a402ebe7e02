// Text in a conversation, in a real browser: tables, coloured code, copy buttons.

import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;
const WORD = "Donaudampfschifffahrtsgesellschaft";
const CODE = 'const answer = "42"; // <b>why</b>';
const NO_CODE = "</code><script>window.broken = 1</script>";

const REPLY = `| ${WORD} | state | since | remarks of the person on duty |
|---|---|---|---|
| ${WORD} | running | ${WORD} | nothing |

\`\`\`ts
${CODE}
\`\`\`

\`\`\`html
${NO_CODE}
\`\`\`

\`\`\`klingon
nuqneH
\`\`\``;

describeInBrowser("text in a conversation", () => {
  test("each paragraph, list item and line has its own direction", async () => {
    const house = await openHouse({ play: () => "Good morning\n\nשלום עולם\n\n- one\n- שתיים" });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "show me" }).done;
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const directionOf = (text: string) =>
      page
        .locator(".prose :is(p, li)", { hasText: text })
        .evaluate((one) => [getComputedStyle(one).direction, getComputedStyle(one).textAlign]);
    await page.getByText("Good morning").waitFor();
    expect(await directionOf("Good morning")).toEqual(["ltr", "start"]);
    expect(await directionOf("שלום עולם")).toEqual(["rtl", "start"]);
    expect(await directionOf("one")).toEqual(["ltr", "start"]);
    expect(await directionOf("שתיים")).toEqual(["rtl", "start"]);
  });

  test("words of a table are not broken, code of known languages is coloured, and both can be copied", async () => {
    const house = await openHouse({ play: () => REPLY });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "show me" }).done;
    const { page, context } = await visit(house.http, { token: TOKEN, at: AT, viewport: PHONE });
    const table = page.getByRole("group", { name: "Table" });
    await table.waitFor();
    const cell = table.locator("td").first();
    expect(await cell.evaluate((one) => one.scrollWidth <= one.clientWidth)).toBe(true);
    expect(await cell.evaluate((one) => one.getClientRects()[0]?.height ?? 0)).toBeLessThan(50);
    expect(await table.evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(true);
    expect(await sideways(page)).toBe(0);
    const code = page.locator(".code-block code");
    await code.nth(0).locator(".hl-keyword", { hasText: "const" }).waitFor();
    await code.nth(0).locator(".hl-string", { hasText: "42" }).waitFor();
    await code.nth(1).locator("span").first().waitFor();
    await expect.poll(() => code.allInnerTexts()).toEqual([CODE, NO_CODE, "nuqneH"]);
    await expect.poll(() => code.nth(2).locator("span").count()).toBe(0);
    expect(await page.evaluate("'broken' in window")).toBe(false);
    expect(await accessibilityProblems(page)).toEqual([]);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const clipboard = () => page.evaluate<string>("navigator.clipboard.readText()");
    await page.locator(".copy-code").first().click();
    await expect.poll(clipboard).toBe(CODE);
    const wide = await visit(house.http, { token: TOKEN, at: AT, context });
    await wide.page.setViewportSize({ width: 1280, height: 800 });
    const entry = wide.page.locator(".entry", { hasText: "show me" });
    await entry.getByRole("button", { name: "Copy message" }).focus();
    await wide.page.keyboard.press("Enter");
    await expect.poll(() => wide.page.evaluate<string>("navigator.clipboard.readText()")).toBe("show me");
    await entry.getByRole("button", { name: "Copied" }).waitFor();
  });
});
