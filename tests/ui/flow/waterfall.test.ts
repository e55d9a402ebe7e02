// The waterfall of a chain in a real browser, and the actions for a step.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways } from "../../kit/browser.ts";
import { doing, sending, spawning, talkingModel } from "../../kit/talking-model.ts";
import { house, MAIN, open, RESEARCH, rules, stepNamed, tell, WRITER } from "./house.ts";

/** Makes a model that answers this message only after `release`. */
function holding(text: string) {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  return { model: talkingModel((input) => (input === text ? promise : undefined)), release };
}

describeInBrowser("the waterfall", () => {
  test("runs, model calls, tool calls and waits are nested rows with their figures, in words and as bars", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("button", { name: "Waterfall" }).click();
    const row = (name: RegExp) => page.getByRole("treeitem", { name });
    await row(/^model call rehearsal, begins at .* took .*, 15 tokens/)
      .first()
      .waitFor();
    await expect
      .poll(() => row(/^a person wrote to main, .*, 30 tokens/).getAttribute("aria-level"))
      .toBe("1");
    for (const name of [
      /^tool call sessions_send, /,
      /^main asked research, /,
      /^waits for research: answered/,
    ])
      await expect.poll(() => row(name).getAttribute("aria-level")).toBe("2");
    await expect
      .poll(() =>
        row(/^model call/)
          .nth(2)
          .getAttribute("aria-level"),
      )
      .toBe("2");
    const bars = page.locator(".waterfall-bars .bar-of");
    await expect.poll(async () => (await bars.count()) - (await page.getByRole("treeitem").count())).toBe(0);
    const [run, wait] = [bars.first(), page.locator(".bar-of.kind-wait")];
    const [outer, inner] = [await run.boundingBox(), await wait.boundingBox()];
    expect(inner?.x).toBeGreaterThanOrEqual(outer?.x ?? Number.NaN);
    await row(/^tool call sessions_send/).click();
    const details = page.getByRole("complementary", { name: "Selected step" });
    await expect.poll(() => details.innerText()).toContain("Tool call\n\nsessions_send: ");
  });

  test("a row names what happened without its time and its sender, and a phone has room for all of it", async () => {
    const here = await house();
    const deep = doing(sending(WRITER, "what is new?"));
    const chainId = await tell(here, doing(sending(RESEARCH, deep)));
    for (const viewport of [DESKTOP, PHONE]) {
      const page = await open(here, `flow/${chainId}`, { viewport });
      await page.getByRole("button", { name: "Waterfall" }).click();
      const names = page.locator(".waterfall-text");
      await names.getByText("asked writer", { exact: true }).waitFor();
      await names.getByText("waits for writer", { exact: true }).waitFor();
      await names.getByText("a person wrote to main", { exact: true }).waitFor();
      const cut = names.evaluateAll((all) =>
        all.filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight),
      );
      expect(await cut).toEqual([]);
      const row = await page.getByRole("treeitem").first().boundingBox();
      expect(row?.height).toBeGreaterThanOrEqual(viewport === PHONE ? 40 : 26);
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
    }
  });

  test("the slowest call is marked, but not a call that waits for another session; so is the slowest run in the list", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here);
    await page.routeWebSocket(/^ws:/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((text) => {
        const frame = JSON.parse(String(text));
        // The model of the tests answers at once.
        for (const [at, call] of (frame.payload?.calls ?? []).entries())
          call.endAt = call.at + (call.kind === "tool" ? 90_000 : 500 + at);
        for (const step of frame.payload?.steps ?? [])
          if (step.kind === "send") step.endAt = step.startedAt + 90_000;
        socket.send(JSON.stringify(frame));
      });
    });
    await page.goto(`${here.http}/#/flow/${chainId}`);
    await page.reload();
    await page.getByRole("button", { name: "Waterfall" }).click();
    const slowest = page.getByRole("treeitem", { name: /slowest call of the chain/ });
    await expect.poll(() => slowest.innerText()).toMatch(/^model call.*slowest/s);
    await expect.poll(() => page.locator(".bar-of.is-slowest").count()).toBe(1);
    await page.getByRole("button", { name: "Steps" }).click();
    await page.getByRole("button", { name: /^main asked research.*Slowest run of the chain/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("WV2: the arrow keys move between rows, and close and open a run", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("button", { name: "Waterfall" }).click();
    const first = page.getByRole("treeitem", { name: /^a person wrote to main/ });
    await page
      .getByRole("treeitem", { name: /^model call/ })
      .first()
      .waitFor();
    const all = await page.getByRole("treeitem").count();
    await first.focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(1);
    await expect.poll(() => first.getAttribute("aria-expanded")).toBe("false");
    // A closed run shows its calls within its bar.
    await expect.poll(() => page.locator(".bar-of.kind-model, .bar-of.kind-tool").count()).toBe(3);
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(all);
    await page.keyboard.press("ArrowDown");
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    expect(await focused()).toMatch(/^model call/);
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Selected step" }).waitFor();
    await expect.poll(() => page.locator("[role=treeitem][tabindex='0']").count()).toBe(1);
  });

  test("a run in progress is stopped from its step", async () => {
    const { model, release } = holding("wait for it");
    const here = await house({ model });
    const accepted = await here.engine.accept({
      sessionKey: MAIN,
      input: { text: doing(sending(RESEARCH, "wait for it")) },
    });
    if (!accepted.ok) throw new Error(accepted.error);
    const page = await open(here, `flow/${accepted.value.run.chainId}`);
    await stepNamed(page, /^main asked research, waits/).click();
    const details = page.getByRole("complementary", { name: "Selected step" });
    await details.getByRole("link", { name: "Open session" }).waitFor();
    await details.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped.").waitFor();
    const stopped = stepNamed(page, /^main asked research, .*aborted/);
    await stopped.waitFor();
    expect(await stopped.getAttribute("class")).not.toContain("is-failed");
    expect(await page.locator(".chain-title").innerText()).not.toContain("failed");
    release();
    await details.getByRole("link", { name: "Open session" }).click();
    expect(page.url()).toContain(`#/sessions/${encodeURIComponent(RESEARCH)}`);
  });

  test("a failed run is red and is retried from its step; a job's failure is reported to its requester instead", async () => {
    let broken = true;
    const model = talkingModel((input) => {
      if (broken && input === "break") throw new Error("the provider is down");
      return undefined;
    });
    const here = await house({ model });
    const chainId = await tell(here, "break");
    const page = await open(here, `flow/${chainId}`);
    const step = stepNamed(page, /^a person wrote to main; error/);
    await step.click();
    await expect.poll(() => step.getAttribute("class")).toContain("is-failed");
    broken = false;
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByRole("button", { name: "Retried" }).waitFor();
    await expect.poll(() => page.locator(".notice").count()).toBe(0);
    broken = true;
    const failed = await tell(here, doing(sending(RESEARCH, "break")));
    await page.goto(`${here.http}/#/flow/${failed}`);
    await stepNamed(page, /^main waits for research: failed after/).waitFor();
    await stepNamed(page, /^main asked research, failed after .*; error/).click();
    await expect.poll(() => page.getByRole("button", { name: "Retry" }).count()).toBe(0);
  });

  test("thirty jobs share one column and one row, which can be opened; jobs in progress are cancelled together", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const model = talkingModel((input) => (/part (7|9)$/.test(input) ? promise : undefined));
    const here = await house({ model, choices: { ...rules(), subagents: { maxChildren: 40 } } });
    const jobs = Array.from({ length: 30 }, (_, at) => spawning(`part ${at}`, { label: `part ${at}` }));
    const accepted = await here.engine.accept({ sessionKey: MAIN, input: { text: doing(...jobs) } });
    if (!accepted.ok) throw new Error(accepted.error);
    const page = await open(here, `flow/${accepted.value.run.chainId}`);
    const spawned = stepNamed(page, /^main gave 30 jobs: 28 ok, 2 running/);
    await spawned.waitFor();
    await expect.poll(() => page.locator(".flow-head").count()).toBe(2);
    await page.getByRole("button", { name: "Waterfall" }).click();
    const row = page.getByRole("treeitem", { name: /^jobs × 30: 28 ok, 2 running/ });
    await row.click();
    await page.getByRole("treeitem", { name: /gave part 0 a job/ }).waitFor();
    await page.getByRole("button", { name: "Sequence" }).click();
    await spawned.click();
    await page.getByRole("button", { name: "Cancel 2 jobs" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel 2 jobs" }).click();
    await stepNamed(page, /^main gave 30 jobs: 28 ok, 2 aborted/).waitFor();
    await page.getByRole("button", { name: "30 jobs", exact: true }).click();
    await page.locator(".flow-head").getByText("part 5", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Collapse" }).click();
    await expect.poll(() => page.locator(".flow-head").count()).toBe(2);
    resolve();
  });
});
