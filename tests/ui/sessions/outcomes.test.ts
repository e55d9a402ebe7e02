// Rows of the session list show failures and the states of jobs, in a real browser.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, visit } from "../../kit/browser.ts";
import { FAMILY, row, type Seed, seedSessions } from "./seed.ts";

const PLAN = "agent:main:chat:plan";
const KEY = "sk-abcdefghijklmnopqrstuvwxyz123456";

const toneOf = (page: Page, name: RegExp) => row(page, name).locator(".state").first().getAttribute("class");

describeInBrowser("session rows", () => {
  test("a failed session is red with its reason and age, until a retry succeeds", async () => {
    const play: Play = ({ run: { input } }) => {
      if (input.text === "fail") throw new Error(`401 invalid key ${KEY}\n<b>bold</b>`);
      return "done";
    };
    const house = await openHouse({ play });
    await seedSessions(house.store, FAMILY);
    const { page } = await visit(house.http, { token: TOKEN });
    const client = await house.client();
    const say = (message: string) =>
      client.agent({ message, sessionKey: PLAN, idempotencyKey: message }).done.catch(() => undefined);
    await say("fail");
    const failed = row(page, /plan.*failed/);
    await failed.waitFor();
    await expect.poll(() => failed.innerText()).toMatch(/failed (just now|\d+ s ago): 401 invalid key/);
    await expect.poll(() => failed.innerText()).not.toContain("idle");
    expect(await page.content()).not.toContain(KEY);
    await expect.poll(() => failed.locator("b").count()).toBe(0);
    await expect.poll(() => toneOf(page, /plan/)).toContain("tone-bad");
    await page.reload();
    await row(page, /plan.*failed/).waitFor();
    await say("fine");
    await expect.poll(() => row(page, /plan/).innerText()).not.toContain("failed");
  });

  test("the row of a session whose children are hidden counts its jobs by state, and is updated as they end", async () => {
    const gates = new Map<string, PromiseWithResolvers<void>>();
    const play: Play = async ({ run }) => {
      await gates.get(run.sessionKey)?.promise;
      if (run.input.text === "fail") throw new Error("no");
      return "done";
    };
    const house = await openHouse({ play });
    const jobs = ["a", "b", "c"].map(
      (name): Seed => ({ key: `agent:main:subagent:${name}`, spawnedBy: PLAN, label: name, updatedAt: 5 }),
    );
    await seedSessions(house.store, [{ key: PLAN, label: "plan", updatedAt: 900 }, ...jobs]);
    const client = await house.client();
    const start = async ({ key }: Seed, message: string) => {
      gates.set(key, Promise.withResolvers());
      const sent = client.agent({ message, sessionKey: key, idempotencyKey: `${key} ${message}` });
      await sent.accepted;
      return sent.done.catch(() => undefined);
    };
    const { page } = await visit(house.http, { token: TOKEN });
    const words = () => row(page, /plan/).locator(".session-jobs").innerText();
    await expect.poll(words).toBe("3 done");
    const [first, second] = jobs.map((job, at) => start(job, at === 0 ? "fail" : "go"));
    await expect.poll(words).toBe("3 running");
    gates.get(jobs[0]?.key ?? "")?.resolve();
    await first;
    await expect.poll(words).toBe("2 running · 1 failed");
    gates.get(jobs[1]?.key ?? "")?.resolve();
    await second;
    await expect.poll(words).toBe("1 running · 1 done · 1 failed");
    await page.getByRole("button", { name: "Open plan" }).click();
    await row(page, /^a\b.*failed/).waitFor();
    expect(await words()).toBe("1 running · 1 done · 1 failed");
    await expect.poll(() => row(page, /plan/).innerText()).not.toContain("idle");
    for (const gate of gates.values()) gate.resolve();
    await expect.poll(words).toBe("2 done · 1 failed");
    const stopped = start(jobs[1] ?? { key: "" }, "stop me");
    await expect.poll(words).toBe("1 running · 1 done · 1 failed");
    await client.request("chat.abort", { sessionKey: jobs[1]?.key ?? "" });
    gates.get(jobs[1]?.key ?? "")?.resolve();
    await stopped;
    await expect.poll(words).toBe("1 done · 1 stopped · 1 failed");
  });

  test("a closed tree shows the tokens and the cost of all its levels, and an open one those of its root", async () => {
    const house = await openHouse();
    await seedSessions(
      house.store,
      FAMILY.map((seed) => ({ totalTokens: 1_000, cost: 0.5, ...seed })),
    );
    const { page } = await visit(house.http, { token: TOKEN });
    const used = (name: RegExp) => row(page, name).locator(".session-used").innerText();
    await expect.poll(() => used(/plan/)).toBe("all 15.3k tok · $2.00");
    await expect
      .poll(() => row(page, /plan/).locator(".session-used").getAttribute("title"))
      .toBe("15,345 tokens, $2.00 since the last reset, with 3 sessions below");
    const deep = "agent:main:subagent:deep";
    await house.store.transaction((tx) => updateSession(tx, deep, { totalTokens: 1_500, cost: 0.75 }));
    const rightOf = (part: string) =>
      row(page, /plan/)
        .locator(part)
        .evaluate((one) => one.getBoundingClientRect().right);
    expect(await rightOf(".session-used")).toBeCloseTo(await rightOf(".session-age"), 0);
    const client = await house.client();
    await client.agent({ sessionKey: deep, message: "hello" }).done;
    await expect.poll(() => used(/plan/)).toBe("all 15.8k tok · $2.25");
    await page.getByRole("button", { name: "Open plan" }).click();
    await expect.poll(() => used(/plan/)).toBe("12.3k tok · $0.50");
    await expect.poll(() => used(/write it/)).toBe("all 2.5k tok · $1.25");
  });
});
