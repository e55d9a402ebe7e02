// The session list of the page, in a real browser against a real gateway.

import type { Page } from "playwright-core";
import { afterAll, describe, expect, test } from "vitest";
import { insertRun } from "../../src/store/runs.ts";
import { insertWait } from "../../src/store/waits.ts";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { accessibilityProblems, browserPath, closeBrowser, PHONE, visit } from "../kit/browser.ts";
import { sampleRun } from "../store/samples.ts";
import { manySessions, type Seed, seedSessions } from "./session-seed.ts";

afterAll(closeBrowser);

const MAINS = ["writer", "research", "main"];
const NEWEST = Date.UTC(2020, 0, 1);

/** The names in the list, from the top down, as far as they are drawn. */
const names = (page: Page) => page.locator(".session-name").allInnerTexts();
const row = (page: Page, name: string | RegExp) => page.getByRole("treeitem", { name }).first();
const tree = (page: Page) => page.getByRole("tree");

/** A small family: two conversations, sub-agents below the first, one more below one of those. */
const FAMILY: readonly Seed[] = [
  { key: "agent:main:chat:plan", label: "plan", updatedAt: 900, totalTokens: 12_345, cost: 0.5 },
  {
    key: "agent:main:telegram:group:7",
    label: "the group",
    kind: "group",
    groupChannel: "telegram",
    updatedAt: 800,
  },
  {
    key: "agent:research:subagent:one",
    label: "look it up",
    spawnedBy: "agent:main:chat:plan",
    updatedAt: 700,
  },
  { key: "agent:main:subagent:two", label: "write it", spawnedBy: "agent:main:chat:plan", updatedAt: 600 },
  {
    key: "agent:main:subagent:deep",
    label: "check it",
    spawnedBy: "agent:main:subagent:two",
    updatedAt: 500,
  },
  { key: "agent:main:chat:past", label: "long past", archivedAt: 400, updatedAt: 400 },
];

// Without a Chromium at /usr/bin/chromium there is nothing to drive; in CI there is one.
describe.skipIf(browserPath === undefined)("sessions", () => {
  test("the tree shows roots, and below an opened one what it spawned, at any depth", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /plan/).waitFor();
    expect((await names(page)).toSorted()).toEqual([...MAINS, "plan", "the group"].toSorted());
    const plan = row(page, /^Open plan/);
    expect(await plan.getAttribute("aria-expanded")).toBe("false");
    expect(await plan.innerText()).toContain("12.3k tok · $0.50");
    expect(await row(page, /the group/).innerText()).toContain("main · group · telegram");
    await page.getByRole("button", { name: "Open plan" }).click();
    await page.getByRole("button", { name: "Open write it" }).click();
    await row(page, /check it/).waitFor();
    expect((await names(page)).slice(-5)).toEqual([
      "plan",
      "look it up",
      "write it",
      "check it",
      "the group",
    ]);
    expect(await row(page, /^check it/).getAttribute("aria-level")).toBe("3");
    await page.getByRole("button", { name: "Close plan" }).click();
    expect(await names(page)).toHaveLength(5);
  });

  test("a row says what its session does, and on whom it waits, with a way there", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    const run = (sessionKey: string, state: "queued" | "running" | "waiting", laneSeq = 1) =>
      sampleRun({ runId: `${sessionKey} ${laneSeq}`, sessionKey, state, laneSeq });
    await house.store.transaction(async (tx) => {
      await insertRun(tx, run("agent:main:chat:plan", "waiting"));
      await insertRun(tx, run("agent:main:telegram:group:7", "running"));
      await insertRun(tx, run("agent:main:telegram:group:7", "queued", 2));
      await insertRun(tx, run("agent:main:main", "queued"));
      await insertWait(tx, {
        callId: "c",
        waiterRunId: "agent:main:chat:plan 1",
        waiterSessionKey: "agent:main:chat:plan",
        targetRunId: "t",
        targetSessionKey: "agent:main:telegram:group:7",
        state: "open",
        deadlineAt: 9e15,
      });
    });
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /plan/).waitFor();
    expect(await row(page, /the group.*running/).innerText()).toContain("running, 1 queued");
    expect(await row(page, /^main/).innerText()).toContain("queued 1");
    await row(page, /plan/).getByRole("link", { name: "the group" }).click();
    await expect.poll(() => page.url()).toContain(encodeURIComponent("agent:main:telegram:group:7"));
    await expect.poll(() => row(page, /^the group/).getAttribute("aria-selected")).toBe("true");
  });

  test("the list, the search, the filters and the archived ones are the gateway's, in one list", async () => {
    const house = await openHouse();
    await seedSessions(house.store, [...FAMILY, ...manySessions(40, NEWEST)]);
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /conversation 3/).waitFor();
    expect(await names(page)).not.toContain("part 0 of 0");
    await page.getByRole("button", { name: "List" }).click();
    await row(page, /part 0 of 0/).waitFor();
    const search = page.getByLabel("Search sessions");
    await search.fill("WRITE it");
    await expect.poll(() => names(page)).toEqual(["write it"]);
    await search.fill("no such thing");
    await page.getByText("Nothing matches.").waitFor();
    await search.fill("");
    await page.getByRole("button", { name: "Tree" }).click();
    await page.getByLabel("Kind").selectOption("main");
    await expect.poll(async () => (await names(page)).toSorted()).toEqual([...MAINS].toSorted());
    await page.getByLabel("Agent").selectOption("research");
    await expect.poll(() => names(page)).toEqual(["research"]);
    await page.getByLabel("Kind").selectOption("");
    await row(page, /look it up/).waitFor();
    await page.getByLabel("Agent").selectOption("");
    await search.fill("long past");
    await page.getByText("Nothing matches.").waitFor();
    await page.getByLabel("Archived").check();
    await expect.poll(() => names(page)).toEqual(["long past"]);
    expect(await row(page, /long past/).innerText()).toContain("archived");
  });

  test("the keyboard walks the tree, opens, closes and chooses, and the list keeps the focus", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /plan/).waitFor();
    await tree(page).focus();
    const active = () => page.locator(".session-row.active .session-name").innerText();
    const press = async (...keys: string[]): Promise<string> => {
      for (const key of keys) await page.keyboard.press(key);
      return await active();
    };
    expect(await press("End")).toBe("the group");
    expect(await press("ArrowUp")).toBe("plan");
    expect(await press("ArrowRight")).toBe("plan");
    await row(page, /look it up/).waitFor();
    expect(await press("ArrowRight")).toBe("look it up");
    expect(await press("ArrowDown")).toBe("write it");
    expect(await tree(page).getAttribute("aria-activedescendant")).toBe(
      await page.locator(".session-row.active").getAttribute("id"),
    );
    await press("Enter");
    await expect.poll(() => page.url()).toContain(encodeURIComponent("agent:main:subagent:two"));
    expect(await page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("tree");
    expect(await press("ArrowLeft")).toBe("plan");
    expect(await press("ArrowLeft")).toBe("plan");
    expect(await names(page)).toHaveLength(5);
    expect(await press("Home", "ArrowUp")).toBe((await names(page))[0]);
  });

  test("rows move to the top and change as runs start and end; sessions come, go and come back from the archive", async () => {
    const gate = Promise.withResolvers<void>();
    const house = await openHouse({
      play: async () => {
        await gate.promise;
        return "done";
      },
    });
    await seedSessions(house.store, [...FAMILY, ...manySessions(40, NEWEST)]);
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /conversation 7/).waitFor();
    const client = await house.client();
    const key = "agent:research:chat:c7";
    const sent = client.agent({ message: "go", sessionKey: key, idempotencyKey: "go" });
    await sent.accepted;
    await expect.poll(async () => (await names(page))[0]).toBe("conversation 7");
    await expect.poll(() => row(page, /^conversation 7/).innerText()).toContain("running");
    gate.resolve();
    await sent.done;
    await expect.poll(() => row(page, /^conversation 7/).innerText()).not.toContain("running");
    const made = await client.call<{ key: string }>("sessions.create", {
      label: "fresh",
      idempotencyKey: "f",
    });
    await expect.poll(async () => (await names(page))[0]).toBe("fresh");
    await client.call("sessions.patch", { key: made.key, label: "renamed" });
    await expect.poll(() => names(page)).toContain("renamed");
    await client.call("sessions.delete", { key: made.key });
    await expect.poll(() => names(page)).not.toContain("renamed");
    await client.call("sessions.patch", { key: "agent:main:chat:past", archived: false });
    await expect.poll(() => names(page)).toContain("long past");
  });

  test("FO1: while the pointer is above the list no row moves; it says so, and they move once it has left", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(40, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /conversation 3/).hover();
    const before = await names(page);
    const client = await house.client();
    const key = "agent:main:chat:c9";
    await client.agent({ message: "go", sessionKey: key, idempotencyKey: "go" }).done;
    await client.call("sessions.delete", { key: "agent:main:chat:c6" });
    await page.getByRole("button", { name: "2 rows to move, show now" }).waitFor();
    expect(await names(page)).toEqual(before);
    expect(await row(page, /conversation 6/).innerText()).toContain("gone");
    await page.mouse.move(900, 400);
    await expect.poll(async () => (await names(page))[0]).toBe("conversation 9");
    expect(await names(page)).not.toContain("conversation 6");
    await row(page, /conversation 3/).hover();
    await client.agent({ message: "go", sessionKey: "agent:research:chat:c1", idempotencyKey: "2" }).done;
    await page.getByRole("button", { name: "1 row to move, show now" }).click();
    await expect.poll(async () => (await names(page))[0]).toBe("conversation 1");
  });

  test("SP2: thousands of sessions: few rows in the document, pages as one scrolls, and what is in sight stays", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(3_000, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /conversation 1\b/).waitFor();
    await tree(page).focus();
    const last = () => page.locator(".session-name").last().innerText();
    for (let pages = 0; pages < 5; pages++) {
      const before = await last();
      await page.keyboard.press("End");
      await expect.poll(last).not.toBe(before);
    }
    expect(await page.getByRole("treeitem").count()).toBeLessThan(60);
    const box = tree(page);
    const inSight = () =>
      page.evaluate(() => {
        const list = document.querySelector(".session-list")?.getBoundingClientRect();
        return [...document.querySelectorAll(".session-row")].flatMap((element) => {
          const { top, bottom } = element.getBoundingClientRect();
          return list && top >= list.top && bottom <= list.bottom
            ? [`${element.querySelector(".session-name")?.textContent} ${Math.round(top)}`]
            : [];
        });
      });
    await box.evaluate((element) => {
      element.scrollTop = 5_000;
    });
    await expect.poll(async () => (await names(page)).includes("conversation 100")).toBe(true);
    const before = await inSight();
    const rowInSight = await row(page, /conversation 100/).elementHandle();
    const client = await house.client();
    for (const n of [5, 299]) {
      const key = manySessions(300, NEWEST).find(({ label }) => label === `conversation ${n}`)?.key ?? "";
      await client.agent({ message: "go", sessionKey: key, idempotencyKey: `${n}` }).done;
    }
    // The keys that were pressed hold the rows for a moment.
    await expect.poll(() => box.evaluate((element) => element.scrollTop), { timeout: 10_000 }).toBe(5_050);
    expect(await inSight()).toEqual(before);
    expect(await rowInSight?.evaluate((element) => element.isConnected)).toBe(true);
    await box.evaluate((element) => {
      element.scrollTop = 0;
    });
    await expect
      .poll(async () => (await names(page)).slice(0, 2))
      .toEqual(["conversation 299", "conversation 5"]);
  });

  test("a link to a session deep in the tree opens what is above it, and brings it into sight", async () => {
    const house = await openHouse();
    await seedSessions(house.store, [...manySessions(60, NEWEST), ...FAMILY]);
    const at = `sessions/${encodeURIComponent("agent:main:subagent:deep")}`;
    const { page } = await visit(house.http, { token: TOKEN, at });
    await row(page, /^check it/).waitFor();
    await expect.poll(() => row(page, /^check it/).getAttribute("aria-selected")).toBe("true");
    const inSight = () =>
      row(page, /^check it/).evaluate((element) => {
        const list = document.querySelector(".session-list")?.getBoundingClientRect();
        const { top, bottom } = element.getBoundingClientRect();
        return list !== undefined && top >= list.top && bottom <= list.bottom;
      });
    await expect.poll(inSight).toBe(true);
  });

  test("I9: a scoped token sees the sessions that it covers, and may make none where it may not write", async () => {
    const scoped = {
      token: "scoped",
      role: "operator" as const,
      scopes: ["operator.read" as const],
      sessions: ["agent:research:*"],
    };
    const house = await openHouse({ gateway: { tokens: [scoped] } });
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: "scoped" });
    await row(page, /look it up/).waitFor();
    expect(await names(page)).toEqual(["research", "look it up"]);
    expect(await page.getByRole("button", { name: "New session" }).count()).toBe(0);
    const client = await house.client();
    for (const sessionKey of ["agent:main:chat:plan", "agent:research:subagent:one"]) {
      await client.agent({ message: "go", sessionKey, idempotencyKey: sessionKey }).done;
    }
    await expect.poll(async () => (await names(page))[0]).toBe("look it up");
    expect(await names(page)).toHaveLength(2);
    expect(await page.content()).not.toContain("agent:main:chat:plan");
  });

  test("a new session is made for the agent that is chosen, and shown", async () => {
    const house = await openHouse();
    const { page } = await visit(house.http, { token: TOKEN });
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByRole("dialog").getByLabel("Agent").selectOption("writer");
    await page.getByRole("dialog").getByLabel("Label").fill("by hand");
    await page.getByRole("button", { name: "Create" }).click();
    await expect.poll(() => page.url()).toContain(encodeURIComponent("agent:writer:chat:"));
    await expect.poll(async () => (await names(page))[0]).toBe("by hand");
    await expect.poll(() => row(page, /by hand/).getAttribute("aria-selected")).toBe("true");
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
      const { page } = await visit(house.http, { token: TOKEN, viewport });
      await row(page, /gnp\.exe/).waitFor();
      expect(await page.title()).toBe("Sessions · Parley");
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
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(wide).toBeLessThanOrEqual(0);
    }
  });

  test("after the gateway was gone and is back, what is shown is read again, as open as it was", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: TOKEN, allow: /WebSocket|ERR_/ });
    await page.getByRole("button", { name: "Open plan" }).click();
    await row(page, /look it up/).waitFor();
    await page.mouse.move(900, 400);
    const { port, dir } = house;
    await house.stop();
    const again = await openHouse({ dir, gateway: { port } });
    await seedSessions(again.store, [
      { key: "agent:main:chat:later", label: "later", updatedAt: 2_000 },
      {
        key: "agent:main:subagent:later",
        label: "later below",
        spawnedBy: "agent:main:chat:plan",
        updatedAt: 650,
      },
    ]);
    await row(page, /^later below/).waitFor();
    expect(await names(page)).toContain("later");
    expect(await names(page)).toContain("look it up");
  });

  test("axe-core finds nothing on the list, open and closed, on desktop and phone, light and dark", async () => {
    const house = await openHouse();
    await seedSessions(house.store, [...FAMILY, ...manySessions(30, 300)]);
    for (const dark of [false, true]) {
      for (const viewport of [{ width: 1280, height: 800 }, PHONE]) {
        const { page } = await visit(house.http, { token: TOKEN, dark, viewport });
        await page.getByRole("button", { name: "Open plan" }).click();
        await row(page, /look it up/).waitFor();
        await page.getByLabel("Archived").check();
        await row(page, /archived/).waitFor();
        expect(await accessibilityProblems(page)).toEqual([]);
        await page.getByRole("button", { name: "New session" }).click();
        expect(await accessibilityProblems(page)).toEqual([]);
      }
    }
  });
});
