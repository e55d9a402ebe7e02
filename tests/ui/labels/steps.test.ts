// Labels on the page: chips on the steps that brought a text, and its way through a chain.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { TOKEN } from "../../gateway/kit.ts";
import {
  accessibilityProblems,
  DESKTOP,
  describeInBrowser,
  PHONE,
  sideways,
  visit,
} from "../../kit/browser.ts";
import { GUEST_SESSION, openStage, order, SECRET, type Stage } from "../../labels/stage.ts";

const B = "agent:b:main";
const VIEWPORTS = [
  ["desktop", DESKTOP],
  ["phone", PHONE],
] as const;

async function visitAt({ house }: Stage, at: string, viewport: typeof DESKTOP = DESKTOP): Promise<Page> {
  return (await visit(house.http, { token: TOKEN, at, viewport })).page;
}

async function chainOf({ house }: Stage, runId: string): Promise<string> {
  const rows = house.store.db.selectFrom("runs").select("chain_id").where("run_id", "=", runId);
  return (await rows.executeTakeFirstOrThrow()).chain_id;
}

const chipsIn = (page: Page, within: string): Promise<string[]> =>
  page.locator(`${within} .label-chip`).allInnerTexts();

describeInBrowser("labels", () => {
  test.each(VIEWPORTS)(
    "a message and a step that brought a text show its source: %s",
    async (_, viewport) => {
      const stage = await openStage();
      writeFileSync(join(stage.workspace, "notes.md"), "nothing new");
      await stage.ended(await stage.guest(order("read", { path: "notes.md" })));
      await stage.ended(await stage.guest(order("fetch", { url: stage.evil.url("/a") })));
      await stage.ended(await stage.guest("thanks"));
      const page = await visitAt(stage, `sessions/${encodeURIComponent(GUEST_SESSION)}`, viewport);
      const guest = "outside: guest telegram:222";
      await expect.poll(() => chipsIn(page, ".byline")).toEqual([guest, guest, guest]);
      await expect
        .poll(() => chipsIn(page, ".tool"))
        .toEqual(["private: file notes.md", `outside: web ${stage.evil.host}`]);
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
    },
  );

  test("a chain says since when it is outside, and by which steps; each leads to its step", async () => {
    const stage = await openStage();
    const runId = await stage.guest(order("sessions_send", { sessionKey: B, message: "hello" }));
    await stage.ended(runId);
    const page = await visitAt(stage, `flow/${await chainOf(stage, runId)}`);
    const summary = page.locator(".chain-labels > summary");
    await expect
      .poll(() => summary.innerText())
      .toMatch(/^outside since .* from guest telegram:222, in .* → b.*; private$/);
    await summary.focus();
    await page.keyboard.press("Enter");
    const way = page
      .getByRole("list", { name: "Sources" })
      .getByRole("listitem")
      .filter({ hasText: "guest telegram:222" });
    await expect
      .poll(() => way.first().innerText())
      .toMatch(/^outside: guest telegram:222\s+since .*\s+by\s+.* wrote to/);
    await way.first().getByRole("button").nth(1).focus();
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Selected step" });
    await details.getByText("outside: guest telegram:222").waitFor();
    await expect.poll(() => page.locator(".lane-outside").count()).toBe(2);
    await expect.poll(() => page.locator(".lane-mark").allTextContents()).toEqual(["outside", "outside"]);
    await page.getByRole("button", { name: /; outside: guest telegram:222: hello$/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("the list of a chain's steps has the chips, and the chain lists the decisions of owners", async () => {
    const stage = await openStage();
    writeFileSync(join(stage.workspace, "notes.md"), "My secret is secret-4711.");
    await stage.ended(await stage.guest(order("read", { path: "notes.md" })));
    const runId = await stage.guest(order("mcp__mail__send", { to: "thief", text: SECRET }));
    await stage.question();
    await stage.answer("deny");
    await stage.ended(runId);
    const page = await visitAt(stage, `flow/${await chainOf(stage, runId)}`, PHONE);
    await expect.poll(() => chipsIn(page, ".flow-row")).toContain("outside: guest telegram:222");
    await page.locator(".chain-labels > summary").click();
    const decisions = page.getByRole("list", { name: "Decisions" });
    await expect.poll(() => decisions.getByRole("listitem").count()).toBe(1);
    for (const part of [
      "denied by",
      "call mcp__mail__send",
      "outside: guest telegram:222",
      "private: file notes.md",
    ])
      await expect.poll(() => decisions.innerText()).toContain(part);
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("a chain without content from outside shows no labels", async () => {
    const stage = await openStage();
    const runId = await stage.tell("hello");
    await stage.ended(runId);
    const page = await visitAt(stage, `flow/${await chainOf(stage, runId)}`);
    await page.getByRole("button", { name: /^a person wrote to/ }).waitFor();
    await expect.poll(() => page.locator(".chain-labels, .label-chip, .lane-outside").count()).toBe(0);
  });
});
