// Hostile text wherever a conversation shows text. It must run nothing, load nothing, move nothing and not
// block the page.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Message } from "../../../src/core/shapes/message.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, sideways, visit } from "../../kit/browser.ts";
import { whole } from "../../kit/live-text.ts";
import { assistantMessage, toolResult, userMessage } from "../../store/samples.ts";
import { hold } from "./transcript.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;

/**
 * Each text would set `window.broken`, call another host, or overwrite a name of the page if it were
 * executed.
 */
const TEXTS = [
  "<script>window.broken = 1</script>",
  "<img src=x onerror='window.broken = 1'>",
  "<svg onload='window.broken = 1'><script>window.broken = 1</script></svg>",
  "<svg><a href='javascript:window.broken = 1'><text>x</text></a></svg>",
  "<math><mi//xlink:href='data:x,<script>window.broken = 1</script>'>",
  "<iframe srcdoc='<script>parent.broken = 1</script>'></iframe>",
  "<form action='https://evil.test'><input name=q autofocus onfocus='window.broken = 1'></form>",
  "<a id=page name=page>x</a><div id=view></div><style>*{display:none}</style>",
  "<p style='position:fixed;inset:0;background:red'>over everything</p>",
  "[click](javascript:window.broken=1)",
  "[click](JaVaScRiPt:window.broken=1)",
  "[click](java\u0000script:window.broken=1)",
  "[click](&#106;avascript:window.broken=1)",
  "[click](data:text/html,<script>window.broken=1</script>)",
  "[click](vbscript:x) [other](file:///etc/passwd) [rel](/healthz) [proto](//evil.test/x)",
  "![picture](https://evil.test/pixel.png) ![x](javascript:window.broken=1)",
  "[title](https://example.com \"' onmouseover='window.broken=1\")",
  '<https://example.com/"onclick="window.broken=1>',
  '```"onload=window.broken=1\n</code></pre><script>window.broken = 1</script>\n```',
  "| <script>window.broken=1</script> |\n|---|\n| <img src=x onerror=window.broken=1> |",
  "</bdi></li></ol><h1>Out of its place</h1>",
  "{{constructor.constructor('window.broken=1')()}} ${window.broken=1}",
];

/** Each text would keep a careless parser or the layout busy for a long time. */
const HEAVY = [
  "x".repeat(1_000_000),
  ">".repeat(10_000),
  "[".repeat(10_000) + "]".repeat(10_000),
  "![".repeat(10_000),
  "- ".repeat(10_000),
  Array.from({ length: 400 }, (_, depth) => `${" ".repeat(depth * 2)}- x`).join("\n"),
  "*_~`".repeat(10_000),
  `a${" ".repeat(50_000)}b`,
  "`".repeat(20_000),
  `|${"a|".repeat(5_000)}\n|${"-|".repeat(5_000)}`,
  "<a ".repeat(10_000),
  "\n".repeat(50_000),
];

/** Collects the harm that a text could have done to the page. */
function harm(page: Page) {
  return page.evaluate(() => {
    const box = document.querySelector(".entries") as HTMLElement;
    const all = [...box.querySelectorAll("*")];
    return {
      broken: "broken" in window,
      elements: all
        .map((one) => one.localName)
        .filter((name) =>
          /^(script|style|img|svg|math|iframe|object|embed|form|input|link|meta|base|h1|video)$/.test(name),
        ),
      handlers: all
        .flatMap((one) => one.getAttributeNames())
        .filter((name) => /^on|^style$|^id$|^name$|^src/.test(name)),
      links: [...box.querySelectorAll("a")]
        .map((link) => link.href)
        .filter((href) =>
          href.startsWith(location.origin) ? !href.includes("/#/sessions/") : !/^(https?|mailto):/.test(href),
        ),
      elsewhere: document.querySelectorAll("#page").length,
    };
  });
}

const HARMLESS = { broken: false, elements: [], handlers: [], links: [], elsewhere: 1 };

describeInBrowser("hostile text", () => {
  test("MD1: hostile messages, names, tool calls, results and thinking run no script, load nothing and stay in their area", async () => {
    const house = await openHouse();
    const tool = (text: string, n: number): Message[] => [
      {
        ...assistantMessage(`call ${n}`, ""),
        content: [
          { type: "thinking", thinking: text },
          {
            type: "toolCall",
            id: `c${n}`,
            name: text.slice(0, 60),
            arguments: { message: text, [text]: text },
          },
        ],
      },
      { ...toolResult(`result ${n}`, text), toolCallId: `c${n}`, isError: n % 2 === 0 },
    ];
    await hold(
      house,
      TEXTS.flatMap((text, n): Message[] => [
        { ...userMessage(`user ${n}`, text), senderName: text },
        { ...assistantMessage(`said ${n}`, text), errorMessage: text },
        ...tool(text, n),
        {
          ...userMessage(`sent ${n}`, text),
          provenance: {
            ...{ kind: "inter_session", sourceSessionKey: text, sourceTool: text, chainId: text, hop: 1 },
          },
        },
      ]),
    );
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await page.locator(".tool").first().waitFor();
    await page.evaluate(() => {
      for (const one of document.querySelectorAll("details")) one.open = true;
    });
    await page.locator(".code-text").first().waitFor();
    await page.getByText("Out of its place").first().waitFor();
    expect(await harm(page)).toEqual(HARMLESS);
    await page.locator(".prose a").first().hover();
    expect(await harm(page)).toEqual(HARMLESS);
  });

  test("characters that reorder or hide the text around them are shown as escapes", async () => {
    const house = await openHouse();
    const text = "pay \u202e0001\u202c EUR\u2066\u200b now";
    await hold(house, [{ ...userMessage("m", text), senderName: text }]);
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const shown = await page.locator(".entry").innerText();
    expect(shown).toContain("pay \\u{202e}0001\\u{202c} EUR\\u{2066}\\u{200b} now");
    expect(shown).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b]/);
  });

  test("TM1: the page stays responsive with a line of a megabyte, and with deeply nested quotes, brackets and lists", async () => {
    const house = await openHouse();
    await hold(
      house,
      HEAVY.flatMap((text, n) => [userMessage(`u${n}`, text), assistantMessage(`a${n}`, text)]),
    );
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    // An answer of empty lines only has no entry.
    await expect.poll(() => page.locator(".entry").count()).toBe(2 * HEAVY.length - 1);
    await page.getByRole("textbox", { name: "Message" }).fill("still here");
    const long = page.locator("[data-id=u0]");
    await long.getByRole("button", { name: "Show more (960 kB left)" }).click();
    await long.getByRole("button", { name: "Show more (920 kB left)" }).waitFor();
    expect(await sideways(page)).toBe(0);
  });

  test("streamed hostile text is as harmless as stored hostile text", async () => {
    const all = [...TEXTS, ...HEAVY.map((text) => text.slice(0, 20_000))].join("\n\n");
    const house = await openHouse({
      play: async (handle) => {
        for (let end = 0; end < all.length; end += 4_000) {
          handle.text(whole(all.slice(0, end)));
          await new Promise((done) => setImmediate(done));
        }
        return all;
      },
    });
    const client = await house.client();
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await client.agent({ sessionKey: MAIN, message: "go" }).done;
    await page.locator(".run-end").waitFor();
    expect(await harm(page)).toEqual(HARMLESS);
  });
});
