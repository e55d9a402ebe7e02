// The tabs Deliveries, Channels, Rights and Permissions of the view Operations.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { TokenSettings } from "../../src/core/shapes/settings/settings.ts";
import {
  type AttemptOutcome,
  beginAttempt,
  endAttempt,
  insertDelivery,
  type NewDelivery,
} from "../../src/store/queries/channels/deliveries.ts";
import { listRules } from "../../src/store/queries/permission-rules.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import { type House, type HouseOptions, openHouse, TOKEN } from "../gateway/kit.ts";
import { describeInBrowser, sideways, visit } from "../kit/browser.ts";
import { askIn } from "../kit/engine/asking.ts";
import { agentSettings } from "../tools/app.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const HOSTILE = `<img src=x onerror="document.title='owned'"> \u202Egnp.exe\u202C <script>1</script> **b** `;
const HOOK = { name: "news", url: "http://127.0.0.1:1/x", events: [], secret: "s", enabled: true };
const TOKENS: TokenSettings[] = [
  { token: "scoped", role: "operator", scopes: ["operator.admin"], sessions: ["agent:research:*"] },
  { token: "reader", role: "operator", scopes: ["operator.read"] },
];
const AGENTS = [
  agentSettings("main", { tools: { allow: [], deny: ["exec"] } }),
  agentSettings("research"),
  agentSettings("writer"),
];

const open = (more: HouseOptions = {}): Promise<House> =>
  openHouse({
    gateway: { tokens: TOKENS },
    choices: { agents: AGENTS, features: { hooks: { outgoing: [HOOK] } } },
    ...more,
  });

const failed = (code: string, error: string): AttemptOutcome => ({ kind: "failed", code, error });

/** Adds an outbox row, with the outcome of the first attempt. */
async function deliver(house: House, id: string, over: Partial<NewDelivery>, outcome?: AttemptOutcome) {
  await house.store.transaction(async (tx) => {
    await insertDelivery(tx, {
      ...{ id, sessionKey: MAIN, kind: "send", route: { channel: "pigeon", to: "loft" }, text: id },
      ...{ state: "pending", createdAt: Date.now() - 60_000 },
      ...over,
    });
    if (outcome === undefined) return;
    await beginAttempt(tx, { id, partsSent: 0 }, "p");
    await endAttempt(tx, { id, owner: "p" }, outcome, Date.now() - 30_000);
  });
}

const rowOf = (page: Page, text: string) => page.getByRole("listitem").filter({ hasText: text });

async function settledOutbox(house: House): Promise<void> {
  await deliver(house, "arrived", {}, { kind: "sent" });
  await deliver(house, "d-hostile", { text: HOSTILE.repeat(400) }, failed("refused", HOSTILE));
  await deliver(house, "unclear", { sessionKey: RESEARCH }, failed("ambiguous", "The gateway stopped"));
}

describeInBrowser("deliveries", () => {
  test("DV1: the tab shows new deliveries live, and failed ones can be dismissed or retried", async () => {
    const house = await open();
    await settledOutbox(house);
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/deliveries" });
    await rowOf(page, "arrived").getByText("sent").waitFor();
    const client = await house.client();
    await client.call("send", { to: MAIN, message: "hello you", idempotencyKey: "1" });
    await rowOf(page, "hello you").getByText("sent", { exact: true }).waitFor();
    await rowOf(page, "unclear").getByRole("button", { name: "Retry" }).click();
    const question = page.getByRole("dialog", { name: "Retry this delivery?" });
    await question.getByText("A retry may send it a second time").waitFor();
    await question.getByRole("button", { name: "Retry" }).click();
    // The channel `pigeon` does not exist, so the retry fails for another reason, which the page shows.
    await rowOf(page, "unclear").getByText('no channel "pigeon" is connected').waitFor();
    await rowOf(page, "unclear").getByRole("button", { name: "Dismiss" }).click();
    const dismissing = page.getByRole("dialog", { name: "Dismiss this delivery?" });
    await dismissing.waitFor();
    await page.keyboard.press("Escape");
    await dismissing.waitFor({ state: "detached" });
    await rowOf(page, "unclear").getByRole("button", { name: "Dismiss" }).click();
    await dismissing.getByRole("button", { name: "Dismiss" }).click();
    await rowOf(page, "unclear").waitFor({ state: "detached" });
    await page.getByLabel("Include dismissed").check();
    await rowOf(page, "unclear").getByText("dismissed", { exact: true }).waitFor();
    await expect.poll(() => rowOf(page, "unclear").getByRole("button", { name: "Retry" }).count()).toBe(0);
  });

  test("a next attempt whose time has come is due", async () => {
    const house = await open();
    await deliver(house, "late", {}, { kind: "retry", error: "busy", nextAttemptAt: Date.now() + 600_000 });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/deliveries" });
    await rowOf(page, "late")
      .getByText(/next attempt in \d/)
      .waitFor();
    await page.clock.install();
    await page.clock.fastForward(660_000);
    await rowOf(page, "late").getByText("next attempt is due").waitFor();
    await expect.poll(() => rowOf(page, "late").innerText()).not.toContain("0 ms");
  });

  test("a second click in the same place does not act on the delivery that has moved there", async () => {
    const house = await open();
    for (const id of ["first", "second"]) await deliver(house, id, {}, failed("refused", "no"));
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/deliveries" });
    const rows = page.getByRole("list", { name: "Deliveries" }).getByRole("listitem");
    await expect.poll(() => rows.count()).toBe(2);
    // Clicks as soon as the other row is there.
    const second = page.evaluate(`new Promise((clicked) => {
      const list = document.querySelector("[aria-label=Deliveries]");
      new MutationObserver((_, observer) => {
        if (list.children.length !== 1) return;
        observer.disconnect();
        requestAnimationFrame(() => {
          list.querySelector("button.quiet").click();
          requestAnimationFrame(() => requestAnimationFrame(clicked));
        });
      }).observe(list, { childList: true });
    })`);
    await rows.first().getByRole("button", { name: "Dismiss" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dismiss" }).click();
    await second;
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    const left = rows.getByRole("button", { name: "Dismiss" });
    await left.click();
    await page.getByRole("dialog").getByText("can't be retried").waitFor();
  });

  test("a hostile text is cut in its row, shown longer when the row is opened, and never interpreted as markup", async () => {
    const house = await open();
    await settledOutbox(house);
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/deliveries" });
    const row = rowOf(page, "onerror");
    await row.getByRole("button", { expanded: false }).click();
    await row.getByText("(cut here)").waitFor();
    await expect.poll(() => row.innerText()).toContain("\\u{202e}gnp.exe");
    await expect.poll(() => page.locator("img[src=x], main script").count()).toBe(0);
    expect(await page.title()).not.toContain("owned");
    expect(await sideways(page)).toBe(0);
  });

  test("the outbox can be filtered by state and session, and older rows are loaded page by page", async () => {
    const house = await open();
    for (let at = 0; at < 120; at++) await deliver(house, `n${at}.`, {}, { kind: "sent" });
    await settledOutbox(house);
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/deliveries" });
    const rows = page.getByRole("list", { name: "Deliveries" }).getByRole("listitem");
    await expect.poll(() => rows.count()).toBe(50);
    const older = page.getByRole("button", { name: "Show more" });
    await older.click();
    await expect.poll(() => rows.count()).toBe(100);
    await older.click();
    await expect.poll(() => rows.count()).toBe(123);
    await expect.poll(() => older.count()).toBe(0);
    await page.getByLabel("State").selectOption("failed");
    await expect.poll(() => rows.count()).toBe(2);
    const session = page.getByRole("combobox", { name: "Session" });
    await session.fill("resea");
    await page.getByRole("option", { name: /research/ }).waitFor();
    await session.press("ArrowDown");
    await session.press("Enter");
    await expect.poll(() => rows.count()).toBe(1);
    await session.fill("");
    await expect.poll(() => rows.count()).toBe(2);
  });

  test("I9: a token for some sessions sees only their deliveries; without operator.admin there is no tab with deliveries", async () => {
    const house = await open();
    await settledOutbox(house);
    const scoped = await visit(house.http, { token: "scoped", at: "operations/deliveries" });
    await rowOf(scoped.page, "unclear").waitFor();
    await expect
      .poll(() => scoped.page.getByRole("list", { name: "Deliveries" }).innerText())
      .not.toContain("arrived");
    const reader = await visit(house.http, { token: "reader", at: "operations/deliveries" });
    const tabs = reader.page.getByRole("navigation", { name: "Operations" });
    await tabs.getByText("Channels").waitFor();
    await expect.poll(() => tabs.innerText()).not.toContain("Deliveries");
  });
});

describeInBrowser("channels", () => {
  test("the tab lists every channel with its error, and follows changes of the outbox", async () => {
    const house = await open();
    const route = { channel: "webhook", to: "news" };
    await deliver(house, "a", { route, kind: "hook" }, failed("x", `the receiver said ${HOSTILE}`));
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/channels" });
    await rowOf(page, "news").getByText("failing").waitFor();
    await expect.poll(() => rowOf(page, "news").innerText()).toContain("1 failed");
    await expect.poll(() => rowOf(page, "news").innerText()).toContain("\\u{202e}");
    await rowOf(page, "webchat").getByText("ready").waitFor();
    await (await house.client()).call("deliveries.dismiss", { id: "a" });
    await expect.poll(() => rowOf(page, "news").innerText()).not.toContain("1 failed");
    const scoped = await visit(house.http, { token: "scoped", at: "operations/channels" });
    await rowOf(scoped.page, "news").getByText("configured").waitFor();
    await expect.poll(() => scoped.page.locator("main").innerText()).not.toContain("receiver");
  });
});

describeInBrowser("rights", () => {
  test("the tab lists the tools of a session with the setting that allows or denies each", async () => {
    const house = await open();
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/rights" });
    const card = page.getByRole("region", { name: "Tools of a session" });
    const picker = card.getByRole("combobox");
    await picker.fill("main");
    await card.getByRole("option").filter({ hasText: MAIN }).click();
    const tools = card.getByRole("list", { name: "Tools of a session" }).getByRole("listitem");
    const exec = tools.filter({ has: page.getByText("exec", { exact: true }) });
    await exec.getByText("denied", { exact: true }).waitFor();
    await expect.poll(() => exec.innerText()).toContain('agents.list[main].tools.deny has "exec"');
    await card.getByLabel("Find").fill("sessions_s list");
    await expect.poll(() => tools.count()).toBeLessThan(5);
    await expect.poll(() => card.innerText()).toContain("no filter denies it");
    await card.getByLabel("Show").selectOption("denied");
    await card.getByText("No matching tools").waitFor();
    expect(page.url()).toContain(encodeURIComponent(MAIN));
  });

  test("the tab shows each kind of access from A to B with its rule and the needed settings, in both directions", async () => {
    const tools = { visibility: "tree" as const, agentToAgent: { enabled: false, allow: [] } };
    const house = await open({ choices: { agents: AGENTS, tools } });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/rights" });
    const card = page.getByRole("region", { name: "Access between two sessions" });
    const [from, to] = [card.getByLabel("From session"), card.getByLabel("To session")];
    await from.first().fill(MAIN);
    await from.first().press("Enter");
    await to.first().fill("agent:research:main");
    await to.first().press("Enter");
    const answers = card.getByRole("list", { name: "Answers" }).getByRole("listitem");
    await expect.poll(() => answers.filter({ hasText: "spawn its agent" }).count()).toBe(1);
    const read = answers.filter({ hasText: "read its history" });
    await expect.poll(() => read.innerText()).toContain('tools.sessions.visibility: "all"');
    await expect.poll(() => read.innerText()).toContain("tools.agentToAgent.enabled: true");
    await read.getByText("All rules").click();
    await read.getByText('tool "sessions_history": no filter denies it').waitFor();
    await card.getByRole("button", { name: "Swap the sessions" }).click();
    await expect.poll(() => from.first().inputValue()).toBe(RESEARCH);
    await to.first().fill("agent:writer:chat:00000000-0000-4000-8000-000000000000");
    await to.first().press("Enter");
    await card.getByText("no such session").waitFor();
    await page.reload();
    await card.getByText("no such session").waitFor();
  });

  test("the access check is hidden from a token without its scope, and refuses a session that the token does not cover", async () => {
    const house = await open();
    const reader = await visit(house.http, { token: "reader", at: "operations/rights" });
    await reader.page.getByRole("region", { name: "Tools of a session" }).waitFor();
    await expect.poll(() => reader.page.getByText("Access between two").count()).toBe(0);
    const at = `operations/rights/${encodeURIComponent(`${RESEARCH}\n${MAIN}`)}`;
    const scoped = await visit(house.http, { token: "scoped", at });
    await scoped.page.getByRole("alert").getByText("does not cover").waitFor();
  });
});

describeInBrowser("permissions", () => {
  test("a permission request appears live, and only a token with the scope can answer it", async () => {
    const house: House = await open({
      play: (handle) =>
        askIn({ engine: house.engine }, handle, {
          title: `rm ${HOSTILE}`,
          kind: "execute",
          rawInput: HOSTILE.repeat(10),
          askMs: 120_000,
        }),
    });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/permissions" });
    const reader = await visit(house.http, { token: "reader", at: "operations/permissions" });
    await page.getByText("No open requests").waitFor();
    const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "clean up" } });
    await rowOf(page, "onerror").getByText("denied in").waitFor();
    await rowOf(reader.page, "onerror").waitFor();
    await expect.poll(() => reader.page.getByRole("button", { name: "Allow" }).count()).toBe(0);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByText("No open requests").waitFor();
    const { runId = "" } = accepted.ok ? accepted.value.run : {};
    await expect.poll(() => getRun(house.store.db, runId)).toMatchObject({ reply: "deny" });
  });

  test.each([
    ["Allow this command in this session", "in this session", "main"],
    ["Always allow this command", "always", "main"],
  ])("%s adds a rule to the allowed commands, and Forget deletes it", async (button, scope, where) => {
    const house: House = await open({
      play: (handle) =>
        askIn({ engine: house.engine }, handle, {
          title: "$ make",
          about: { callId: undefined, folder: "/project", files: [] },
        }),
    });
    const { page } = await visit(house.http, { token: TOKEN, at: "operations/permissions" });
    const reader = await visit(house.http, { token: "reader", at: "operations/permissions" });
    await page.getByText("No allowed commands").waitFor();
    const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "build" } });
    await page.getByText("Allow for longer").click();
    await page.getByRole("button", { name: `${button}…` }).click();
    await page.getByRole("button", { name: button, exact: true }).click();
    const rules = page.getByRole("list", { name: "Allowed commands" }).getByRole("listitem");
    await expect.poll(() => rules.allInnerTexts()).toEqual([expect.stringContaining("$ make")]);
    await expect.poll(() => rules.innerText()).toContain(scope);
    await expect.poll(() => rules.innerText()).toContain(where);
    await expect.poll(() => rules.innerText()).toContain("in /project, allowed by ");
    await page.getByText("No open requests").waitFor();
    const { runId = "" } = accepted.ok ? accepted.value.run : {};
    await expect.poll(() => getRun(house.store.db, runId)).toMatchObject({ reply: "allow" });
    await reader.page.reload();
    await rowOf(reader.page, "$ make").waitFor();
    await expect.poll(() => reader.page.getByRole("button", { name: "Forget" }).count()).toBe(0);
    await rules.getByRole("button", { name: "Forget" }).click();
    await page.getByText("No allowed commands").waitFor();
    await expect.poll(() => listRules(house.store.db)).toEqual([]);
  });
});
