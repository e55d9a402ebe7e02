// Unfinished runs in a real browser with a real gateway.
// Hard cases: a run that ends before its stop; a job that was already stopped together with its requester; a
// row that ends while it is selected; a read-only token; a late list; the keyboard alone.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { TokenSettings } from "../../src/core/shapes/settings/settings.ts";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import { insertWait } from "../../src/store/queries/runs/waits.ts";
import { type House, openHouse, TOKEN } from "../gateway/kit.ts";
import { describeInBrowser, PHONE, visit } from "../kit/browser.ts";
import { sampleRun } from "../store/samples.ts";
import { player, say } from "./inbox/kit.ts";
import { relayOf } from "./relay.ts";
import { seedSessions } from "./sessions/seed.ts";

const AT = "operations/runs";
const TOKENS: TokenSettings[] = [
  { token: "reader-token", role: "operator", scopes: ["operator.read"] },
  { token: "scoped-token", role: "operator", scopes: ["operator.write"], sessions: ["agent:main:chat:2"] },
];

/** Opens a gateway with an unfinished run in each of `count` sessions. "room 1" is the oldest. */
async function busy(count: number): Promise<{ house: House; release: () => void }> {
  const { play, release } = player();
  const house = await openHouse({ play, gateway: { tokens: TOKENS } });
  const keys = Array.from({ length: count }, (_, at) => `agent:main:chat:${at + 1}`);
  await seedSessions(
    house.store,
    keys.map((key, at) => ({ key, label: `room ${at + 1}` })),
  );
  for (const key of keys) await say(house, key, "hold on");
  return { house, release };
}

const rows = (page: Page) => page.locator(".runs-table tbody tr");
const names = (page: Page) => rows(page).locator("th > .session-link").allInnerTexts();
const box = (page: Page, name: string) => page.getByRole("checkbox", { name: `Select ${name}` });
const heading = (page: Page, name: string) =>
  page.getByRole("columnheader", { name, exact: true }).getByRole("button");

describeInBrowser("unfinished runs", () => {
  test("several selected runs are stopped together, with one result; runs that had already ended are counted separately", async () => {
    const { house, release } = await busy(4);
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "runs.list");
    await page.goto(`${house.http}/#/${AT}`);
    await page.reload();
    await expect.poll(() => rows(page).count()).toBe(4);
    await heading(page, "Session").click();
    await expect.poll(() => names(page)).toEqual(["room 1", "room 2", "room 3", "room 4"]);
    await box(page, "room 1").click();
    await box(page, "room 3").click({ modifiers: ["Shift"] });
    await page.getByText("3 runs selected").waitFor();
    relay.hold();
    const client = await house.client();
    await client.request("chat.abort", { sessionKey: "agent:main:chat:2" });
    await page.getByRole("button", { name: "Stop 3" }).click();
    const dialog = page.getByRole("dialog", { name: "Stop 3 runs?" });
    await dialog.getByRole("button", { name: "Stop 3" }).click();
    await page.getByText("2 runs stopped, 1 had already ended.").waitFor();
    relay.release();
    await expect.poll(() => names(page)).toEqual(["room 4"]);
    const advice = page.getByText("Select runs to stop them together");
    await expect.poll(() => advice.innerText()).toContain("a range with Shift");
    await page.setViewportSize(PHONE);
    await expect.poll(() => advice.innerText()).toBe("Select runs to stop them together.");
    release();
    await page.getByText("Nothing is running").waitFor();
  });

  test("a second click after Stop does not stop the run that has moved below the pointer", async () => {
    const { house, release } = await busy(4);
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await expect.poll(() => rows(page).count()).toBe(4);
    const stop = (name: string) => page.getByRole("button", { name: `Stop ${name}`, exact: true });
    const [first = ""] = await names(page);
    const { x = 0, y = 0 } = (await stop(first).boundingBox()) ?? {};
    await stop(first).click();
    await stop(first).waitFor({ state: "detached" });
    await page.mouse.click(x + 4, y + 4);
    const [second = "", third = ""] = await names(page);
    await stop(third).click();
    await stop(third).waitFor({ state: "detached" });
    expect(await names(page)).toContain(second);
    release();
  });

  test("ST1: a selected run that was stopped together with another one, as its job, counts as stopped", async () => {
    const { house, release } = await busy(2);
    const { page } = await visit(house.http, { token: TOKEN });
    await page.routeWebSocket(/^ws:/, (socket) => {
      const server = socket.connectToServer();
      const aborts: { id: string; params: { runId: string } }[] = [];
      socket.onMessage((text) => {
        const frame = JSON.parse(String(text));
        if (frame.method !== "chat.abort") return server.send(text);
        aborts.push(frame);
        if (aborts.length < 2) return;
        // The first stop has also stopped the other run and another job, so the second stop finds nothing to
        // stop.
        const all = [...aborts.map(({ params }) => params.runId), "another job"];
        for (const [at, { id }] of aborts.entries()) {
          const payload = { ok: true, aborted: at === 0, runIds: at === 0 ? all : [] };
          socket.send(JSON.stringify({ type: "res", id, ok: true, payload }));
        }
      });
    });
    await page.goto(`${house.http}/#/${AT}`);
    await page.reload();
    await page.getByRole("checkbox", { name: "Select all runs" }).click();
    await page.getByRole("button", { name: "Stop 2" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop 2" }).click();
    await page.getByText("2 runs stopped, 1 other run of their jobs stopped too.").waitFor();
    release();
  });

  test("a row shows for whom its run waits, and has links to conversation and flow; rows can be sorted by age", async () => {
    const { house, release } = await busy(1);
    await house.store.transaction(async (tx) => {
      const waiter = { runId: "waiter", sessionKey: "agent:writer:main", agentId: "writer", chainId: "c-1" };
      await insertRun(tx, sampleRun({ ...waiter, owner: "elsewhere", state: "waiting", acceptedAt: 5 }));
      await insertWait(tx, {
        ...{
          callId: "call",
          deadlineAt: Number.MAX_SAFE_INTEGER,
          state: "open",
          kind: "run",
          targetId: "unknown",
        },
        ...{
          waiterRunId: "waiter",
          waiterSessionKey: waiter.sessionKey,
          targetSessionKey: "agent:main:chat:1",
        },
      });
    });
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await expect.poll(() => names(page)).toEqual(["room 1", "writer"]);
    const waiting = rows(page).nth(1);
    await expect.poll(() => waiting.locator(".runs-waits").innerText()).toBe("waits for room 1");
    await expect
      .poll(() => waiting.getByRole("link", { name: "Flow of writer" }).getAttribute("href"))
      .toBe("#/flow/c-1");
    await expect
      .poll(() => rows(page).first().getByRole("link").first().getAttribute("href"))
      .toContain("#/sessions/agent");
    await heading(page, "Age").click();
    await heading(page, "Age").click();
    await expect.poll(() => names(page)).toEqual(["writer", "room 1"]);
    await expect
      .poll(() => page.getByRole("columnheader", { name: "Age", exact: true }).getAttribute("aria-sort"))
      .toBe("descending");
    release();
  });

  test("the age of a run is in its row once, and how long it has waited only if that differs", async () => {
    const house = await openHouse();
    const [hour, at] = [3_600_000, house.engine.now()];
    const ages = { plan: [9, 9], talk: [20, 9] } as const;
    await seedSessions(
      house.store,
      Object.keys(ages).map((label) => ({ key: `agent:main:chat:${label}`, label })),
    );
    for (const [label, [accepted, started]] of Object.entries(ages)) {
      const times = { acceptedAt: at - accepted * hour, startedAt: at - started * hour };
      const place = { sessionKey: `agent:main:chat:${label}`, owner: "elsewhere", runId: label };
      await house.store.transaction((tx) =>
        insertRun(tx, sampleRun({ ...place, ...times, state: "running", chainId: label })),
      );
    }
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    const ageIn = (label: string) => async () =>
      (await rows(page).filter({ hasText: label }).innerText()).match(/\d+ h\w*/g);
    await expect.poll(ageIn("plan")).toEqual(["9 h"]);
    await expect.poll(ageIn("talk")).toEqual(["9 h", "20 h"]);
    await page.setViewportSize(PHONE);
    await expect.poll(ageIn("plan")).toEqual(["9 h"]);
    await expect.poll(ageIn("talk")).toEqual(["9 h"]);
  });

  test("the list follows starts and ends of runs without a reload; the selection remains, and late answers block nothing", async () => {
    const { house, release } = await busy(2);
    const { page } = await visit(house.http, { token: TOKEN });
    const relay = await relayOf(page, "runs.list");
    await page.goto(`${house.http}/#/${AT}`);
    await page.reload();
    await box(page, "room 1").click();
    await rows(page)
      .first()
      .evaluate((row) => row.setAttribute("data-same", "yes"));
    await seedSessions(house.store, [{ key: "agent:main:chat:9", label: "room 9" }]);
    await say(house, "agent:main:chat:9", "hold this");
    await expect.poll(() => rows(page).count()).toBe(3);
    await expect.poll(() => page.locator("[data-same]").count()).toBe(1);
    await page.getByText("1 run selected").waitFor();
    relay.hold();
    const asked = relay.asked();
    await box(page, "room 2").click();
    await page.getByText("2 runs selected").waitFor();
    await rows(page).filter({ hasText: "room 9" }).getByRole("button", { name: "Stop room 9" }).click();
    await page.getByText("1 run stopped.").waitFor();
    await expect.poll(relay.asked).toBeGreaterThan(asked);
    relay.release();
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.getByText("2 runs selected").waitFor();
    release();
  });

  test("the list works with the keyboard: arrow keys move, Space selects, Shift selects a range, Enter confirms", async () => {
    const { house, release } = await busy(3);
    const { page } = await visit(house.http, { token: TOKEN, at: AT });
    await expect.poll(() => rows(page).count()).toBe(3);
    await page.getByRole("checkbox", { name: "Select all runs" }).focus();
    await page.keyboard.press("Tab");
    for (let tries = 0; tries < 12; tries += 1) {
      if (await page.locator("tbody input:focus").count()) break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Space");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+Space");
    await page.getByText("3 runs selected").waitFor();
    await page.getByRole("button", { name: "Stop 3" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Stop 3" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("3 runs stopped.").waitFor();
    await page.getByText("Nothing is running").waitFor();
    release();
  });

  test("I9: with a read-only token no run can be selected, and the page says why; a token for a session sees only its run", async () => {
    const { house, release } = await busy(2);
    const reader = (await visit(house.http, { token: "reader-token", at: AT })).page;
    await reader.getByText("Your token lets you see these runs but not stop them.").waitFor();
    await expect.poll(() => rows(reader).count()).toBe(2);
    await expect.poll(() => reader.locator(".runs input, .runs-actions button").count()).toBe(0);
    const scoped = (await visit(house.http, { token: "scoped-token", at: AT })).page;
    await expect.poll(() => names(scoped)).toEqual(["room 2"]);
    await scoped.getByRole("button", { name: "Stop room 2" }).click();
    await scoped.getByText("1 run stopped.").waitFor();
    release();
  });
});
