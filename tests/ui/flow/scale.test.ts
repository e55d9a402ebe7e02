// The flow view with many sessions and steps, and the ways to find one of them, in a real browser.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE } from "../../kit/browser.ts";
import { doing, sending } from "../../kit/talking-model.ts";
import { fill } from "./fill.ts";
import { house, open, RESEARCH, rules, stepNamed, tell, WRITER } from "./house.ts";

describeInBrowser("a large flow", () => {
  test("DG1, WV1: of 5,000 steps and 500 sessions only the visible ones are in the document", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 5_000, sessions: 500 });
    const page = await open(here, `flow/${chainId}`);
    await page.getByText("only the newest steps are shown").waitFor();
    const drawn = (): Promise<number> => page.locator(".flow-scroll *").count();
    for (const [view, row] of [
      ["Sequence", ".step"],
      ["Waterfall", ".waterfall-name"],
      ["Steps", ".flow-row"],
    ] as const) {
      await page.getByRole("button", { name: view, exact: true }).click();
      await page.locator(row).nth(2).waitFor();
      expect(await drawn()).toBeLessThan(900);
      const box = page.locator(".flow-scroll");
      await box.evaluate((one) => one.scrollTo(0, one.scrollHeight / 2));
      await expect.poll(() => page.locator(row).count()).toBeGreaterThan(5);
      expect(await drawn()).toBeLessThan(900);
    }
    await page.getByRole("button", { name: "Latest" }).click();
    await page.getByRole("button", { name: /message 4999/ }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Latest" }).count()).toBe(0);
  });

  test("DG4: names and times stay in view while the diagram scrolls; Fit shows every column", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 60, sessions: 20 });
    const page = await open(here, `flow/${chainId}`);
    await page.locator(".flow-head").first().waitFor();
    const box = page.locator(".flow-scroll");
    const near = await box.boundingBox();
    await box.evaluate((one) => one.scrollTo(900, 700));
    await expect.poll(() => page.locator(".flow-head").getByText("room-9").count()).toBe(1);
    expect((await page.locator(".flow-heads").boundingBox())?.y).toBe(near?.y);
    const times = page.locator(".flow-times");
    expect((await times.boundingBox())?.x).toBe(near?.x);
    const longest = await times
      .locator("span")
      .last()
      .evaluate((one) => {
        one.textContent = "12:57:00 PM";
        return one.getBoundingClientRect().x;
      });
    expect(longest).toBeGreaterThanOrEqual(near?.x ?? 0);
    await page.getByRole("button", { name: "Fit" }).click();
    await expect.poll(() => page.locator(".flow-head").count()).toBe(22);
    expect(await box.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  });

  test("a search goes from match to match, in the diagram and in the list", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "the first")));
    await fill(here.store, here.engine.now(), chainId, { steps: 300, sessions: 5 });
    const page = await open(here, `flow/${chainId}`);
    const find = page.getByRole("searchbox", { name: "Find in steps" });
    await find.fill("message 29");
    const status = page.locator(".flow-find").getByRole("status");
    await expect.poll(() => status.innerText()).toBe("11 found");
    await find.press("Enter");
    await find.press("Enter");
    await expect.poll(() => status.innerText()).toBe("2 of 11");
    await expect.poll(() => page.locator(".step.chosen").getAttribute("aria-label")).toContain("message 290");
    await expect.poll(() => page.locator(".step.chosen").isVisible()).toBe(true);
    await find.press("Shift+Enter");
    await find.press("Shift+Enter");
    await expect.poll(() => status.innerText()).toBe("11 of 11");
    await page.getByRole("button", { name: "Steps", exact: true }).click();
    await find.press("Enter");
    await expect.poll(() => page.locator(".flow-row.chosen").innerText()).toContain("message 29:");
  });

  test("a long name of a session does not make the list of chains wider", async () => {
    const here = await house();
    await tell(here, doing(sending(RESEARCH, "the first")));
    const label = "look through every open ticket of the last quarter and say which";
    await (await here.client()).request("sessions.patch", { key: RESEARCH, label });
    const page = await open(here);
    await page.locator(".chain-row").getByText(label).waitFor();
    const list = page.locator(".chain-list");
    expect(await list.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  });

  test("a step shows its text on at most two lines beside its arrow, and in full as a tooltip", async () => {
    const here = await house();
    const long =
      "which of the three candidates should we look at before the meeting on Thursday afternoon, and who decides?";
    const chainId = await tell(here, doing(sending(RESEARCH, long)));
    const page = await open(here, `flow/${chainId}`, { viewport: { width: 1_000, height: 800 } });
    const step = stepNamed(page, /^main asked research/);
    await step.waitFor();
    await expect.poll(() => step.locator("title").textContent()).toContain(long);
    const lines = page.locator(".words.kind-send text");
    await expect.poll(() => lines.count()).toBe(2);
    await expect.poll(() => lines.first().textContent()).toMatch(/^which of the three/);
    await page.getByRole("button", { name: "Legend" }).click();
    for (const name of [
      "job",
      "wait, answer",
      "refused",
      "failed",
      "queued",
      "run that waits",
      "silent: no reply",
    ])
      await page.getByRole("list", { name: "Legend" }).getByText(name, { exact: true }).waitFor();
  });

  test("the legend has the colour and the line of each kind of arrow that is drawn, and each mark of the waterfall", async () => {
    const kinds = ["send", "reply", "spawn", "result", "announce", "delivery", "notice", "refused", "wait"];
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here);
    await page.routeWebSocket(/^ws:/, (socket) => {
      socket.connectToServer().onMessage((text) => {
        const frame = JSON.parse(String(text));
        const { steps } = frame.payload ?? {};
        const sent = steps?.find(({ kind }: { kind: string }) => kind === "send");
        if (sent !== undefined)
          for (const [n, kind] of kinds.entries()) {
            const notice = kind === "notice" ? { kind: "result", source: "notice" } : { kind };
            const refused = kind === "refused" ? { state: kind, tool: "sessions_send", code: "cycle" } : {};
            steps.push({ ...sent, ...notice, ...refused, error: "no", id: `${sent.id}${n}` });
          }
        socket.send(JSON.stringify(frame));
      });
    });
    await page.goto(`${here.http}/#/flow/${chainId}`);
    await page.reload();
    await page.getByRole("button", { name: "Legend" }).click();
    for (const kind of [...kinds, "message"])
      await page.locator(`.step.kind-${kind}`).first().waitFor({ state: "attached" });
    const drawn = await page.locator(".step .step-line").evaluateAll((all) => {
      const looks = all.map((one) => getComputedStyle(one));
      return [
        ...new Set(
          looks.map((look) => `${look.stroke} ${look.strokeDasharray === "none" ? "solid" : "dashed"}`),
        ),
      ];
    });
    const explained = await page
      .locator(".legend-arrow")
      .evaluateAll((all) =>
        all.map((one) => `${getComputedStyle(one).borderTopColor} ${getComputedStyle(one).borderTopStyle}`),
      );
    expect(drawn.length).toBeGreaterThan(6);
    expect(drawn.filter((look) => !explained.includes(look))).toEqual([]);
    await page.getByRole("button", { name: "Waterfall" }).click();
    for (const mark of ["kind-run", "kind-model", "kind-tool", "kind-wait", "is-slowest", "is-failed"])
      await expect.poll(() => page.locator(`.legend .${mark}`).count()).toBeGreaterThan(0);
  });

  test("a new chain neither replaces the shown one nor moves sessions of the overview; the overview can be hidden", async () => {
    const here = await house();
    await tell(here, doing(sending(WRITER, "a")));
    await tell(here, doing(sending(RESEARCH, "b")));
    const page = await open(here);
    await page.locator(".flow-head").getByText("research").waitFor();
    const nodes = page.locator(".flow-overview .node");
    const order = () =>
      nodes.evaluateAll((all) => all.map((one) => (one.getAttribute("aria-label") ?? "").split(":")[0]));
    const before = await order();
    // The writer now has more steps than the other session. If the overview did not keep its order, the
    // writer would move.
    for (let more = 0; more < 3; more++) await tell(here, doing(sending(WRITER, "c")));
    await expect.poll(() => page.locator(".chain-row").count()).toBe(5);
    expect(await order()).toEqual(before);
    await expect.poll(() => page.locator(".flow-head").allInnerTexts()).toEqual(["main", "research"]);
    await page.getByRole("button", { name: "Overview" }).click();
    await expect.poll(() => page.locator(".flow-overview").count()).toBe(0);
  });

  test("ten equal refusals of a run are one row in the sequence and in the list of steps; opened, each has a row", async () => {
    const here = await house({ choices: rules({ maxHops: 1 }) });
    const ten = Array.from({ length: 10 }, (_, at) => sending(WRITER, `may I? ${at}`));
    const chainId = await tell(here, doing(sending(RESEARCH, doing(...ten))));
    for (const viewport of [DESKTOP, PHONE]) {
      const page = await open(here, `flow/${chainId}`, { viewport });
      const refused = page.locator(".step.kind-refused");
      await stepNamed(page, /^research was refused a message to writer × 10; refused: hop limit 1/).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await expect.poll(() => refused.count()).toBe(1);
      const words = page.locator(":is(.flow-row.kind-refused .flow-row-text, .words.kind-refused)");
      await expect.poll(() => words.textContent()).toBe("× 10 refused: hop limit 1");
      await refused.click();
      await page.getByRole("button", { name: "Show one by one" }).click();
      await expect.poll(() => refused.count()).toBe(10);
      await page.getByRole("button", { name: "Collapse" }).click();
      await expect.poll(() => refused.count()).toBe(1);
    }
  });

  test("on a phone a chain is a list of steps, and each step can be opened", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const phone = await open(here, `flow/${chainId}`, { viewport: PHONE });
    await phone
      .getByRole("button", { name: /^main asked research, answered after .*: what is new\?/ })
      .click();
    const details = phone.getByRole("complementary", { name: "Selected step" });
    await details.getByRole("link", { name: "Open message" }).waitFor();
    await expect.poll(() => phone.locator(".flow-picture").count()).toBe(0);
    await expect.poll(() => phone.getByRole("button", { name: "Legend" }).count()).toBe(0);
  });
});
