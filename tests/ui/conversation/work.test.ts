// The work of an agent in a conversation, in a real browser against a real gateway: rows of tool calls,
// folded turns, tables of jobs, results of jobs.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";
import { doing, spawning, talkingModel } from "../../kit/talking-model.ts";

const MAIN = "agent:main:main";
const at = (key: string) => `sessions/${encodeURIComponent(key)}`;
const ROUNDS = 10;
const CALLS_PER_ROUND = 30;

/** Returns a model that calls tools in several rounds, says something in the middle, and answers. */
function worker(): ReturnType<typeof scriptedModel> {
  let round = 0;
  return scriptedModel((): ScriptedAnswer => {
    round += 1;
    if (round > ROUNDS) return "All of it is read.";
    const toolCalls = Array.from({ length: CALLS_PER_ROUND }, (_, n) => ({
      ...{ name: "read", arguments: { path: `notes/${round}-${n}.md` } },
    }));
    return round === 2 ? { text: "Half of it is missing.", toolCalls } : { toolCalls };
  });
}

const JOBS = ["the first one", "\u202egnp.exe<b>", "سجل الأخطاء", "the broken one"];

/** Returns a model that spawns jobs, one of which fails. */
function foreman(): ReturnType<typeof scriptedModel> {
  return scriptedModel(({ entries }): ScriptedAnswer => {
    const last = JSON.stringify(entries.at(-1));
    const part = /do part (\d)/.exec(last)?.[1];
    if (part === "3") return { error: "401 no such key" };
    if (part !== undefined) return `I have **part ${part}**.`;
    // The announce step returns no text, so the runtime announces the result itself.
    if (last.includes("announce step")) return "";
    if (last.includes("toolResult")) return "All are at work.";
    if (!last.includes("spawn them")) return "Noted.";
    return {
      toolCalls: JOBS.map((label, n) => ({
        ...{ name: "sessions_spawn", arguments: { label, task: `do part ${n}` } },
      })),
    };
  });
}

const steps = (page: Page) => page.locator(".steps > li").count();

describeInBrowser("the work of an agent", () => {
  test("a run of 300 tool calls has one header and rows that can be opened; at first only the last rows are shown", async () => {
    const house = await openHouse({ model: worker() });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "read all notes" }).done;
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: at(MAIN) },
        ...(viewport === undefined ? {} : { viewport }),
      });
      await page.getByText("All of it is read.").waitFor();
      const more = page.getByRole("button", { name: /earlier steps/ }).last();
      await more.waitFor();
      await expect.poll(() => more.innerText()).toMatch(/Show \d+ earlier steps · \d+ failed/);
      await expect.poll(() => steps(page)).toBeLessThan(20);
      await expect.poll(() => page.locator(".entry-agent .byline").count()).toBeLessThanOrEqual(1);
      const last = page.locator(".tool", { hasText: `notes/${ROUNDS}-${CALLS_PER_ROUND - 1}.md` });
      await last.getByText("failed").waitFor();
      const [row] = await last.evaluateAll((found) => found.map((one) => one.clientHeight));
      expect(row).toBeLessThanOrEqual(viewport === undefined ? 30 : 48);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
      // The keyboard alone opens the folded rows, and one of them.
      await more.focus();
      await page.keyboard.press("Enter");
      await expect.poll(() => steps(page)).toBeGreaterThan(50);
      await last.locator("summary").focus();
      await page.keyboard.press("Enter");
      await last.getByRole("group", { name: "Error" }).waitFor();
      expect(await sideways(page)).toBe(0);
    }
  });

  test("the table of jobs says why a spawn was refused", async () => {
    const house = await openHouse({ model: talkingModel() });
    const client = await house.client();
    const message = doing(spawning("a"), spawning("b", { agentId: "nobody", label: "for nobody" }));
    const { runId } = await client.request("chat.send", { sessionKey: MAIN, message });
    await client.request("agent.wait", { runId });
    const { page } = await visit(house.http, { token: TOKEN, at: at(MAIN) });
    const job = page.locator(".jobs tr").filter({ hasText: "for nobody" });
    await expect.poll(() => job.locator(".state").innerText()).toMatch(/^refused: [a-z ]+$/);
    await expect.poll(() => page.locator(".jobs tbody tr").count()).toBe(2);
    await page.getByRole("button", { name: "1 failed" }).click();
    await page.locator(".job-result").getByRole("group", { name: "Error" }).waitFor();
    // The failed job and its error. The other job is hidden.
    await expect.poll(() => page.locator(".jobs tbody tr").count()).toBe(2);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("button", { name: "1 failed" }).click();
    await page.locator(".job-result").waitFor({ state: "detached" });
  });

  test("silent turns of a schedule become one line that can be opened", async () => {
    const house = await openHouse({ model: scriptedModel(() => "REPLY_SKIP") });
    const client = await house.client();
    const { job } = await client.request("cron.add", {
      ...{ name: "Is the site up?", message: "say it is", schedule: { kind: "every", everyMs: 3_600_000 } },
    });
    for (let turn = 0; turn < 3; turn += 1) {
      const { runId } = await client.request("cron.run", { id: job.id });
      await client.request("agent.wait", { runId });
    }
    const { page } = await visit(house.http, { token: TOKEN, at: at(job.key) });
    const fold = page.locator(".quiet-turns");
    await fold.getByText("3 silent turns").waitFor();
    await expect.poll(() => page.locator(".entry").count()).toBe(0);
    await fold.locator("summary").click();
    await expect.poll(() => page.locator(".entry").count()).toBe(3);
    await expect
      .poll(() => page.locator(".run-end").allInnerTexts())
      .toEqual([
        expect.stringMatching(/^no reply/),
        expect.stringMatching(/^no reply/),
        expect.stringMatching(/^no reply/),
      ]);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("the jobs of a run form a table, in which a click shows a job's result; each result that arrives is a card", async () => {
    const house = await openHouse({ model: foreman() });
    const client = await house.client();
    await client.agent({ sessionKey: MAIN, message: "spawn them" }).done;
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: at(MAIN) },
        ...(viewport === undefined ? {} : { viewport }),
      });
      const jobs = page.locator(".jobs");
      await jobs.getByText("3 done").waitFor();
      await jobs.getByText("1 failed").waitFor();
      const rows = jobs.locator("tbody tr");
      await expect.poll(() => rows.count()).toBe(JOBS.length);
      const failed = rows.filter({ hasText: "the broken one" });
      await expect.poll(() => failed.innerText()).toMatch(/failed: 401 no such key/);
      await expect.poll(() => rows.nth(1).getByRole("link").innerText()).toBe("\\u{202e}gnp.exe<b>");
      await expect.poll(() => rows.nth(2).getByRole("link").innerText()).toBe("سجل الأخطاء");
      const open = rows.nth(0).getByRole("button", { name: "Result of the first one" });
      await open.focus();
      await page.keyboard.press("Enter");
      await jobs.locator("strong", { hasText: "part 0" }).waitFor();
      const card = page.locator(".job-card", { hasText: "part 0" });
      await card.getByRole("link", { name: "the first one" }).waitFor();
      await card.getByText("done", { exact: true }).waitFor();
      const key = card.getByText(/agent:main:subagent:/);
      await expect.poll(() => key.count()).toBe(1);
      await expect.poll(() => key.isVisible()).toBe(false);
      await card.getByText("Details").click();
      await key.waitFor();
      await page.locator(".job-card", { hasText: "401 no such key" }).getByText("failed").waitFor();
      await expect.poll(() => page.locator("bdi", { hasText: "Stats:" }).count()).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
    }
  });

  test("a running job is stopped from its row, which offers a result only when the job has ended", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const model = talkingModel((input) => (input === "hold on" ? promise : undefined));
    const house = await openHouse({ model });
    const client = await house.client();
    const jobs = [spawning("hold on", { label: "slow" }), spawning("be quick", { label: "fast" })];
    await client.agent({ sessionKey: MAIN, message: doing(...jobs) }).done;
    const { page } = await visit(house.http, { token: TOKEN, at: at(MAIN) });
    const row = page.locator(".jobs tbody tr").filter({ hasText: "slow" });
    const buttons = row.getByRole("button");
    await expect.poll(() => buttons.allInnerTexts()).toEqual(["Stop"]);
    await buttons.focus();
    await page.keyboard.press("Enter");
    await row.getByText("stopped").waitFor();
    await page.locator(".jobs-sum").getByText("1 stopped").waitFor();
    await expect.poll(() => buttons.allInnerTexts()).toEqual(["Result"]);
    expect(await buttons.evaluate((one) => one === document.activeElement)).toBe(true);
    resolve();
    await quiet(house);
  });
});
