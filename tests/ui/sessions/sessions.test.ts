// The session list of the page, in a real browser with a real gateway.

import { expect, test } from "vitest";
import { insertRun } from "../../../src/store/queries/runs/runs.ts";
import { insertWait } from "../../../src/store/queries/runs/waits.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, PHONE, visit } from "../../kit/browser.ts";
import { sampleRun } from "../../store/samples.ts";
import { FAMILY, MAINS, manySessions, NEWEST, names, openFilters, row, seedSessions, tree } from "./seed.ts";

describeInBrowser("sessions", () => {
  test("the tree shows roots, and the children of open rows, at any depth", async () => {
    const house = await openHouse();
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /plan/).waitFor();
    expect((await names(page)).toSorted()).toEqual([...MAINS, "plan", "the group"].toSorted());
    const plan = row(page, /^Open plan/);
    await expect.poll(() => plan.getAttribute("aria-expanded")).toBe("false");
    await expect.poll(() => plan.innerText()).toContain("12.3k tok · $0.50");
    await expect.poll(() => row(page, /the group/).innerText()).toContain("main · group · telegram");
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
    await expect.poll(() => row(page, /^check it/).getAttribute("aria-level")).toBe("3");
    await page.getByRole("button", { name: "Close plan" }).click();
    await expect.poll(() => names(page)).toHaveLength(5);
  });

  test("a row shows its session's state, and a link to the session for which it waits", async () => {
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
        kind: "run",
        targetId: "t",
        targetSessionKey: "agent:main:telegram:group:7",
        state: "open",
        deadlineAt: 9e15,
      });
    });
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /plan/).waitFor();
    await expect.poll(() => row(page, /the group.*running/).innerText()).toContain("running, 1 queued");
    await expect.poll(() => row(page, /^main/).innerText()).toContain("queued 1");
    await row(page, /plan/).getByRole("link", { name: "the group" }).click();
    await expect.poll(() => page.url()).toContain(encodeURIComponent("agent:main:telegram:group:7"));
    await expect.poll(() => row(page, /^the group/).getAttribute("aria-selected")).toBe("true");
  });

  test("the session panel shows the list, search results, filtered and archived sessions, all from the gateway", async () => {
    const house = await openHouse();
    await seedSessions(house.store, [...FAMILY, ...manySessions(40, NEWEST)]);
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /conversation 3/).waitFor();
    await expect.poll(() => names(page)).not.toContain("part 0 of 0");
    await openFilters(page);
    await page.getByRole("button", { name: "List" }).click();
    await row(page, /part 0 of 0/).waitFor();
    const search = page.getByLabel("Search sessions");
    await search.fill("WRITE it");
    await expect.poll(() => names(page)).toEqual(["write it"]);
    await expect.poll(() => row(page, /write it/).innerText()).toContain("main · sub-agent of plan");
    await search.fill("no such thing");
    await page.getByText("No matches").waitFor();
    await search.fill("");
    await openFilters(page);
    await page.getByRole("button", { name: "Tree" }).click();
    await page.getByLabel("Kind").selectOption("main");
    await expect.poll(async () => (await names(page)).toSorted()).toEqual([...MAINS].toSorted());
    await page.getByLabel("Agent").selectOption("research");
    await expect.poll(() => names(page)).toEqual(["research"]);
    await page.getByLabel("Kind").selectOption("");
    await row(page, /look it up/).waitFor();
    await page.getByLabel("Agent").selectOption("");
    await search.fill("long past");
    await page.getByText("No matches").waitFor();
    await openFilters(page);
    await page.getByLabel("Archived").check();
    await expect.poll(() => names(page)).toEqual(["long past"]);
    await expect.poll(() => row(page, /long past/).innerText()).toContain("archived");
  });

  test("the keyboard moves in the tree, opens, closes and selects, and the list keeps the focus", async () => {
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
    await expect
      .poll(async () => {
        const active = await tree(page).getAttribute("aria-activedescendant");
        return active === (await page.locator(".session-row.active").getAttribute("id"));
      })
      .toBe(true);
    await press("Enter");
    await expect.poll(() => page.url()).toContain(encodeURIComponent("agent:main:subagent:two"));
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("tree");
    expect(await press("ArrowLeft")).toBe("plan");
    expect(await press("ArrowLeft")).toBe("plan");
    await expect.poll(() => names(page)).toHaveLength(5);
    expect(await press("Home", "ArrowUp")).toBe((await names(page))[0]);
  });

  test("rows move and change as runs start and end; sessions appear, disappear and return from the archive", async () => {
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
    const made = await client.request("sessions.create", {
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

  test("FO1: rows do not move while the pointer is over the list; a button counts the changes, which follow when it leaves", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(40, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN });
    await row(page, /conversation 3/).hover();
    const before = await names(page);
    const client = await house.client();
    const key = "agent:main:chat:c9";
    await client.agent({ message: "go", sessionKey: key, idempotencyKey: "go" }).done;
    await client.call("sessions.delete", { key: "agent:main:chat:c6" });
    await page.getByRole("button", { name: "Show 2 changes" }).waitFor();
    await expect.poll(() => names(page)).toEqual(before);
    await expect.poll(() => row(page, /conversation 6/).innerText()).toContain("gone");
    await page.mouse.move(900, 400);
    await expect.poll(async () => (await names(page))[0]).toBe("conversation 9");
    await expect.poll(() => names(page)).not.toContain("conversation 6");
    await row(page, /conversation 3/).hover();
    await client.agent({ message: "go", sessionKey: "agent:research:chat:c1", idempotencyKey: "2" }).done;
    await page.getByRole("button", { name: "Show 1 change" }).click();
    await expect.poll(async () => (await names(page))[0]).toBe("conversation 1");
  });

  test("SP2: of thousands of sessions few rows are in the document; scrolling loads pages, and visible rows stay in place", async () => {
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
    await expect.poll(() => page.getByRole("treeitem").count()).toBeLessThan(60);
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
      element.scrollTop = 4_400;
    });
    await expect.poll(async () => (await names(page)).includes("conversation 100")).toBe(true);
    const before = await inSight();
    const rowInSight = await row(page, /conversation 100/).elementHandle();
    const client = await house.client();
    for (const n of [5, 299]) {
      const key = manySessions(300, NEWEST).find(({ label }) => label === `conversation ${n}`)?.key ?? "";
      await client.agent({ message: "go", sessionKey: key, idempotencyKey: `${n}` }).done;
    }
    // Rows do not move for a moment after a key press.
    await expect.poll(() => box.evaluate((element) => element.scrollTop)).toBe(4_444);
    expect(await inSight()).toEqual(before);
    expect(await rowInSight?.evaluate((element) => element.isConnected)).toBe(true);
    await box.evaluate((element) => {
      element.scrollTop = 0;
    });
    await expect
      .poll(async () => (await names(page)).slice(0, 2))
      .toEqual(["conversation 299", "conversation 5"]);
  });

  test("a link to a session deep in the tree opens its ancestors and scrolls to it", async () => {
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

  test("on a phone the list keeps its scroll position during a visit to a conversation", async () => {
    const house = await openHouse();
    await seedSessions(house.store, manySessions(200, NEWEST));
    const { page } = await visit(house.http, { token: TOKEN, at: "sessions", viewport: PHONE });
    await row(page, /conversation 1\b/).waitFor();
    await tree(page).evaluate((element) => {
      element.scrollTop = 2_000;
    });
    await row(page, /conversation 50\b/).click();
    await expect.poll(() => page.url()).toContain("c50");
    await expect.poll(() => tree(page).isVisible()).toBe(false);
    await page.goBack();
    await row(page, /conversation 50\b/).waitFor();
    expect(await tree(page).evaluate((element) => element.scrollTop)).toBe(2_000);
  });
});
