// The page with a gateway that violates the protocol, and attacks that the browser prevents.

import type { Page, WebSocketRoute } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { describeInBrowser, visit } from "../kit/browser.ts";
import { withoutFirstRows } from "./relay.ts";

const views = (page: Page) => page.getByRole("navigation", { name: "Views" });
const MAIN = "agent:main:main";
const AT_MAIN = `sessions/${encodeURIComponent(MAIN)}`;
/** Matches the page's own messages about a view or listener that failed. */
const OWN_WORDS = /console: |TypeError/;

interface Frame {
  readonly type?: string;
  readonly id?: string;
  readonly method?: string;
  readonly ok?: boolean;
}

/** Relays between a page and its gateway. If `garble` returns a text, that replaces the gateway's answer. */
async function between(
  page: Page,
  garble: (method: string) => unknown,
): Promise<{ socket: () => WebSocketRoute }> {
  let last: WebSocketRoute | undefined;
  await withoutFirstRows(page);
  await page.routeWebSocket(/^ws:/, (socket) => {
    last = socket;
    const asked = new Map<string, string>();
    const server = socket.connectToServer();
    socket.onMessage((text) => {
      const { id, method } = JSON.parse(String(text)) as Frame;
      if (id !== undefined && method !== undefined) asked.set(id, method);
      server.send(text);
    });
    server.onMessage((text) => {
      const frame = JSON.parse(String(text)) as Frame;
      const payload = frame.id === undefined || !frame.ok ? undefined : garble(asked.get(frame.id) ?? "");
      socket.send(payload === undefined ? text : JSON.stringify({ ...frame, payload }));
    });
  });
  const socket = (): WebSocketRoute => {
    if (last === undefined) throw new Error("the page has not connected");
    return last;
  };
  return { socket };
}

const NESTED = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
const FRAMES: readonly string[] = [
  "this is no JSON",
  "null",
  "[]",
  "42",
  NESTED,
  '{"type":"event"}',
  '{"type":"event","event":"__proto__","payload":{}}',
  '{"type":"event","event":"sessions","payload":null}',
  '{"type":"event","event":"sessions","payload":{"key":42}}',
  '{"type":"event","event":"chat","payload":{"sessionKey":null,"state":"delta"}}',
  '{"type":"event","event":"chat","payload":{"runId":"x","sessionKey":"agent:main:main","state":"final","message":{"content":"text"}}}',
  '{"type":"event","event":"agent","payload":{"stream":"flow"}}',
  '{"type":"event","event":"shutdown","payload":{}}',
  '{"type":"res","id":"nobody asked","ok":true}',
  '{"type":"res","id":"1","ok":false}',
];

describeInBrowser("a hostile gateway", () => {
  test("the page stays usable after frames that violate the protocol", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { allow: OWN_WORDS });
    const { socket } = await between(page, () => undefined);
    await page.goto(`${house.http}/#token=${TOKEN}`);
    await page.reload();
    await views(page).waitFor();
    await page.goto(`${house.http}/#/sessions/${encodeURIComponent("agent:main:main")}`);
    for (const frame of FRAMES) socket().send(frame);
    const text = "x".repeat(5_000_000);
    const delta = { runId: "y", sessionKey: "agent:main:main", seq: 1, state: "delta" };
    const message = { role: "assistant", content: [{ type: "text", text }] };
    socket().send(JSON.stringify({ type: "event", event: "chat", payload: { ...delta, message } }));
    await views(page).getByRole("link", { name: "Operations" }).click();
    await page.getByRole("heading", { name: "Operations" }).first().waitFor();
    await views(page).waitFor();
  });

  test("LV2: live text of a stored message is shown once, although its events arrive late and in parts", async () => {
    const house = await openHouse({ play: () => Promise.resolve("all of the answer") });
    const client = await house.client();
    const { page } = await visit(house.http, { token: TOKEN, at: AT_MAIN });
    const { socket } = await between(page, () => undefined);
    await page.reload();
    const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: "tell me" });
    await page.locator(".entry").getByText("all of the answer").waitFor();
    const say = (run: string, text: string): void => {
      const message = { role: "assistant", content: [{ type: "text", text }] };
      const payload = { runId: run, sessionKey: MAIN, seq: 1, state: "delta", message };
      socket().send(JSON.stringify({ type: "event", event: "chat", payload }));
    };
    for (const [part, other] of [
      ["all of", "another run"],
      ["all of the answer", "another run goes on"],
    ] as const) {
      say(runId, part);
      say("other", other);
      await page.getByText(other, { exact: true }).waitFor();
      await expect
        .poll(() => page.locator(".entry-live").allInnerTexts())
        .toEqual([expect.stringContaining(other)]);
    }
  });

  test("after an answer that violates the protocol, the page shows an error with a retry button, never a blank page", async () => {
    const house = await openHouse();
    const broken: { value: unknown } = { value: undefined };
    const { page } = await visit(house.http, { allow: OWN_WORDS });
    await between(page, (method) => (method === "connect" ? undefined : broken.value));
    await page.goto(`${house.http}/#token=${TOKEN}`);
    await page.reload();
    await views(page).waitFor();
    for (const value of [null, {}, [], "text", { sessions: 42, chains: 42, messages: 42, agents: 42 }]) {
      for (const at of ["sessions", "sessions/agent%3Amain%3Amain", "flow", "operations/status"]) {
        broken.value = value;
        await page.goto(`${house.http}/#/${at}`);
        await page.reload();
        await views(page).waitFor();
        await expect.poll(() => page.locator("#view").innerText()).not.toBe("");
      }
    }
    broken.value = undefined;
    await page.goto(`${house.http}/#/flow`);
    await page.reload();
    await views(page).waitFor();
    await expect.poll(() => page.getByText("This view failed").count()).toBe(0);
  });

  test("a view that throws is replaced by a message and a button, and all other parts work", async () => {
    const house = await openHouse();
    let isBroken = true;
    const { page } = await visit(house.http, { allow: OWN_WORDS });
    await between(page, (method) =>
      method === "status" && isBroken ? { ok: true, store: null } : undefined,
    );
    await page.goto(`${house.http}/#token=${TOKEN}`);
    await page.reload();
    await page.goto(`${house.http}/#/operations/status`);
    await page.getByRole("heading", { name: "This view failed" }).waitFor();
    await views(page).getByRole("link", { name: "Sessions" }).click();
    await page.getByRole("heading", { name: "This view failed" }).waitFor({ state: "detached" });
    await page.goBack();
    await page.getByRole("heading", { name: "This view failed" }).waitFor();
    isBroken = false;
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByText("0.0.0-test").first().waitFor();
  });
});

describeInBrowser("the page's policy", () => {
  test("the browser does not run scripts that were inserted into the page's HTML", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { allow: /Content Security Policy|TrustedHTML|TrustedScript/ });
    const planted = [
      "<script>window.planted = 1</script>",
      '<img src="data:," onerror="window.planted = 2">',
      '<iframe srcdoc="<script>parent.planted = 3</script>"></iframe>',
    ].join("");
    await page.route(`${house.http}/`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({
        response,
        body: (await response.text()).replace("<div id", `${planted}<div id`),
      });
    });
    await page.reload();
    await page.getByLabel("Token or link").waitFor();
    await expect.poll(() => page.locator("img[src='data:,'], iframe").count()).toBe(2);
    expect(await page.evaluate(() => Reflect.get(window, "planted"))).toBeUndefined();
    const tried = await page.evaluate(() => {
      const refusals: string[] = [];
      const attempts = [
        () => document.body.insertAdjacentHTML("beforeend", "<b>text</b>"),
        () => {
          document.createElement("script").text = "window.planted = 4";
        },
      ];
      for (const attempt of attempts) {
        try {
          attempt();
        } catch (error) {
          refusals.push(String(error));
        }
      }
      return refusals;
    });
    expect(tried).toHaveLength(2);
    expect(await page.evaluate(() => Reflect.get(window, "planted"))).toBeUndefined();
  });
});
