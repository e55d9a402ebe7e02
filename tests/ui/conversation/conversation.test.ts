// A conversation and the actions on its session, in a real browser against a real gateway.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import type { TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type House, type HouseOptions, openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";

const MAIN = "agent:main:main";
const at = (key: string) => `sessions/${encodeURIComponent(key)}`;
const OPEN = { session: { agentToAgent: { maxPingPongTurns: 5, maxHops: 16, maxChainRuns: 200 } } };
const TOKENS: TokenSettings[] = [
  { token: "reader", role: "operator", scopes: ["operator.read"] },
  { token: "writer", role: "operator", scopes: ["operator.write"] },
];

const REPLY = `Found **two** things, see [the page](https://example.com/x):

\`\`\`ts
const answer = 42;
\`\`\`

| a | b |
|---|---|
| 1 | 2 |`;

const ASK = { sessionKey: "agent:research:main", message: "what do you know?", timeoutSeconds: 30 };

function answer(asked: string): ScriptedAnswer {
  if (asked.includes("ask research"))
    return { text: "I ask.", toolCalls: [{ name: "sessions_send", arguments: ASK }] };
  if (asked.includes("spawn it")) {
    const attachments = [{ name: "notes.txt", content: "hello" }];
    const call = { name: "sessions_spawn", arguments: { task: "read the notes", attachments } };
    return { toolCalls: [call] };
  }
  if (asked.includes("read nothing"))
    return { toolCalls: [{ name: "read", arguments: { path: "no/such" } }] };
  if (asked.includes("fail")) return { error: "401 the provider says no" };
  return REPLY;
}

async function openStory(more: HouseOptions = {}): Promise<House> {
  const model = scriptedModel((request) => answer(JSON.stringify(request.entries.at(-1))));
  return openHouse({ model, choices: OPEN, gateway: { tokens: TOKENS }, ...more });
}

const entry = (page: Page, text: string | RegExp) => page.locator(".entry", { hasText: text });

describeInBrowser("a view whose code could not be loaded", () => {
  test("appears after the next connect", async () => {
    const house = await openHouse();
    const sockets: { close(): Promise<void> }[] = [];
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions", allow: /Failed to load/ });
    await page.routeWebSocket(/^ws:/, (socket) => {
      socket.connectToServer();
      sockets.push(socket);
    });
    await page.reload();
    await page.getByRole("button", { name: "New session" }).waitFor();
    await page.route(/\.(js|css)$/, (route) => route.abort());
    await page.getByRole("link", { name: "Operations" }).click();
    await page.getByRole("button", { name: "Retry" }).waitFor();
    await page.unroute(/\.(js|css)$/);
    await Promise.all(sockets.map((socket) => socket.close()));
    await page.getByRole("link", { name: "Status" }).waitFor();
  });
});

describeInBrowser("a conversation", () => {
  test("messages show markdown, tool calls that can be opened, links to the other session, and how each run ended", async () => {
    const house = await openStory({ choices: {} });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "Please ask research" }).done;
    await client.agent({ sessionKey: MAIN, message: "now fail" }).done;
    await client.agent({ sessionKey: MAIN, message: "read nothing" }).done;
    await client.request("chat.inject", { sessionKey: MAIN, message: "A note of an operator" });
    const { page } = await visit(house.http, { token: TOKEN, at: at(MAIN) });
    await entry(page, "A note of an operator").waitFor();
    const link = page.getByRole("link", { name: "the page" }).first();
    await expect.poll(() => link.getAttribute("href")).toBe("https://example.com/x");
    await expect.poll(() => link.getAttribute("rel")).toBe("noopener noreferrer");
    await page.getByRole("table").first().waitFor();
    const card = page.locator(".tool", { hasText: "sessions_send" });
    await card.locator("summary").click();
    await card.getByRole("button", { name: "JSON" }).click();
    await card.getByRole("group", { name: "Arguments" }).getByText('"timeoutSeconds": 30').waitFor();
    await card.getByRole("group", { name: "Result" }).getByText('"status": "ok"').waitFor();
    const failed = page.locator(".tool", { hasText: "no/such" });
    await failed.getByText("failed").waitFor();
    await failed.locator("summary").click();
    await failed.getByRole("group", { name: "Error" }).waitFor();
    await expect
      .poll(() => page.locator(".run-end").allInnerTexts())
      .toEqual([
        expect.stringMatching(/^done\s.*\d+ tokens/s),
        expect.stringMatching(/^failed.*401 the provider says no$/s),
        expect.stringMatching(/^done/),
      ]);
    expect(await accessibilityProblems(page)).toEqual([]);
    await card.getByRole("link", { name: "research" }).click();
    const asked = entry(page, "what do you know?");
    await asked.getByText("asked by").waitFor();
    await asked.getByRole("link", { name: "main" }).click();
    await entry(page, "Please ask research").waitFor();
  });

  test("reply turns, announcements and tasks of sub-agents are marked, with the names of their attachments", async () => {
    const house = await openStory();
    const client = await house.client();
    // A person's message gives the session a chat for its announcements.
    await client.request("chat.send", { sessionKey: ASK.sessionKey, message: "hello" });
    const sent = await client.request("tools.invoke", {
      name: "sessions_send",
      arguments: { ...ASK, timeoutSeconds: 0 },
      sessionKey: MAIN,
    });
    expect(sent.status).toBe("accepted");
    const { page } = await visit(house.http, { token: TOKEN, at: at("agent:research:main") });
    await page.getByText("reply turn 2 of 5").first().waitFor();
    await page.getByText("announce step").first().waitFor();
    await page.getByText("announcement", { exact: true }).waitFor();
    await client.agent({ sessionKey: MAIN, message: "spawn it" }).done;
    await page.goto(`${house.http}/#/${at(MAIN)}`);
    const card = page.locator(".tool", { hasText: "sessions_spawn" });
    await card.getByText("notes.txt").waitFor();
    await card.getByText("5 B").waitFor();
    await card.getByRole("link", { name: "read the notes" }).click();
    await page.getByText("task from").waitFor();
    await page.locator(".conversation-facts").getByRole("link", { name: "main" }).waitFor();
  });

  test("a token's scopes decide which actions are offered: a reader has no composer, a writer no reset", async () => {
    const house = await openStory();
    const reader = await visit(house.http, { token: "reader", at: at(MAIN) });
    await reader.page.getByRole("heading", { name: "main" }).waitFor();
    await expect.poll(() => reader.page.getByRole("textbox", { name: "Message" }).count()).toBe(0);
    await expect.poll(() => reader.page.getByRole("button", { name: "Settings" }).count()).toBe(0);
    const writer = await visit(house.http, { token: "writer", at: at(MAIN) });
    await writer.page.getByRole("button", { name: "Settings" }).click();
    await writer.page.getByLabel("Title").waitFor();
    await expect.poll(() => writer.page.getByRole("button", { name: "Reset…" }).count()).toBe(0);
    await expect.poll(() => writer.page.getByLabel("Sending to this session").count()).toBe(0);
  });

  test("label, send policy, thinking and model can be changed; a refused message shows the reason and stays in the composer", async () => {
    const house = await openStory();
    const client = await house.client();
    const { page } = await visit(house.http, { token: TOKEN, at: at("agent:research:main") });
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Title").fill("the library");
    await page.getByLabel("Sending to this session").selectOption("deny");
    await page.getByLabel("Instructions for the model in this session").fill("Answer in French.");
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "the library" }).waitFor();
    await page.getByText("sending denied").waitFor();
    const told = await client.request("chat.history", { sessionKey: "agent:research:main" });
    expect(told.instructions).toBe("Answer in French.");
    await page.getByRole("button", { name: "Settings" }).click();
    const instructions = page.getByLabel("Instructions for the model in this session");
    await expect.poll(() => instructions.inputValue()).toBe("Answer in French.");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("combobox", { name: "Thinking" }).selectOption("high");
    await page.getByRole("combobox", { name: "Model" }).selectOption("offline/rehearsal");
    const row = async () =>
      (await client.request("sessions.list", { search: "library" })).sessions.find(({ label }) => label);
    await expect.poll(row).toMatchObject({ sendPolicy: "deny", thinkingLevel: "high", model: "rehearsal" });
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill("may I?");
    await field.press("Enter");
    await page.getByText(/send blocked by session policy/).waitFor();
    await expect.poll(() => field.inputValue()).toBe("may I?");
    await page.reload();
    await expect.poll(() => field.inputValue()).toBe("may I?");
  });

  test("reset and delete ask for confirmation; an archived session is read-only until it is restored", async () => {
    const house = await openStory();
    const client = await house.client();
    const { key } = await client.request("sessions.create", { label: "short-lived" });
    await client.agent({ sessionKey: key, message: "hello" }).done;
    const { page } = await visit(house.http, { token: TOKEN, at: at(key) });
    await entry(page, "hello").waitFor();
    const choose = async (what: string) => {
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByRole("button", { name: `${what}…` }).click();
    };
    await choose("Reset");
    await page.getByRole("button", { name: "Cancel" }).click();
    await choose("Reset");
    await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
    await page.getByText("This session was reset.").waitFor();
    await expect.poll(() => page.locator(".entry").count()).toBe(0);
    await house.store.transaction((tx) => updateSession(tx, key, { archivedAt: 5 }));
    await page.reload();
    await page.getByText("archived and read-only").waitFor();
    await page.getByRole("button", { name: "Restore" }).click();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await choose("Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("Choose a session").waitFor();
  });

  test("after a reset the earlier conversation is listed and can be read, on desktop and phone", async () => {
    const house = await openStory();
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "what did we say about tomatoes?" }).done;
    await client.request("sessions.reset", { key: MAIN });
    await client.agent({ sessionKey: MAIN, message: "something new" }).done;
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        token: TOKEN,
        at: at(MAIN),
        ...optional({ viewport }),
      });
      await entry(page, "something new").waitFor();
      await expect.poll(() => entry(page, "tomatoes").count()).toBe(0);
      await page.getByRole("button", { name: "Earlier conversations" }).click();
      const dialog = page.getByRole("dialog", { name: "Earlier conversations" });
      await dialog.getByRole("button", { name: /tomatoes/ }).click();
      await dialog.locator(".entry", { hasText: "Found two things" }).waitFor();
      await expect.poll(() => dialog.locator(".entry").count()).toBe(2);
      await expect.poll(() => dialog.getByRole("textbox").count()).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      await dialog.getByRole("button", { name: "All conversations" }).click();
      await dialog.getByRole("button", { name: /tomatoes/ }).waitFor();
      await dialog.getByRole("button", { name: "Close" }).click();
      await entry(page, "something new").waitFor();
    }
  });
});
