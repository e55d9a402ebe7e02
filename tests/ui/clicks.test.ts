// The number of clicks to what people do most. A click is a press of the pointer on a link, a button or a field.
// Typing, Enter after it, and the chooser of the operating system are none. tests/ui/agents/agents.test.ts counts
// those to the cost of today, a chat with an agent, and another model.

import { expect, test } from "vitest";
import { openHouse, quiet, TOKEN } from "../gateway/kit.ts";
import { clicksOn, DESKTOP, describeInBrowser, visit } from "../kit/browser.ts";
import { quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { scriptedModel } from "../kit/scripted-model.ts";
import { doing, sending, talkingModel } from "../kit/talking-model.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";
import { group, rowIn, say, settled } from "./inbox/kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const WEEK_MS = 7 * 86_400_000;
const LINES = Array.from({ length: 60 }, (_, n) => `echo line ${n}`);

/** A gateway on which a command waits, a run failed, another one runs, and a message is a week old. */
async function openDesk() {
  const world = quietWorld();
  let laterMs = -WEEK_MS;
  const { clock } = world;
  const moved: typeof clock = {
    ...clock,
    now: () => clock.now() + laterMs,
    at: (ms, ...more) => clock.at(ms - laterMs, ...more),
  };
  const talking = talkingModel((text) => (text === "hold" ? new Promise(() => {}) : undefined));
  const failing = scriptedModel(() => ({ error: "the disk is full" }));
  const house = await openHouse({
    world: { ...world, clock: moved },
    model: {
      call: (request, ...more) =>
        (JSON.stringify(request.entries.at(-1)).includes("print it") ? failing : talking).call(
          request,
          ...more,
        ),
    },
    choices: {
      agents: ["main", "research", "writer", "printer", "ops"].map((id) =>
        agentSettings(id, { workspace: temporaryFolder() }),
      ),
      tools: { exec: { ...settingsWith().tools.exec, approval: "always" } },
      labels: { mode: "off" },
    },
  });
  for (const text of ["hello", "the ripe tomatoes"]) {
    await say(house, "agent:writer:main", text);
    await quiet(house);
  }
  laterMs = 0;
  await say(house, "agent:printer:main", "print it");
  await say(house, MAIN, doing(sending("agent:writer:main", "water them")));
  await quiet(house);
  await say(house, RESEARCH, "hold");
  await say(house, "agent:ops:main", doing({ name: "exec", arguments: { command: LINES.join("\n") } }));
  return house;
}

describeInBrowser("clicks", () => {
  test("from the inbox: what needs me 0, why it failed 0, approve after reading all 1, attach 2, today's waterfall 2", async () => {
    const house = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN });
    const home = async () => {
      await page.goto(`${house.http}/#/inbox`);
      return clicksOn();
    };
    const { y = Number.NaN } =
      (await group(page, "Needs you").getByRole("listitem").first().boundingBox()) ?? {};
    expect(y).toBeLessThan(DESKTOP.height);
    await page.locator(".nav-count", { hasText: "2 need you" }).waitFor();
    const failed = rowIn(page, "Needs you", "printer");
    await failed.getByText("the disk is full").waitFor();
    await expect.poll(() => failed.locator("[aria-expanded=true]").count()).toBe(0);

    const attach = await home();
    await attach.click(failed.getByRole("link", { name: "printer" }));
    const chooser = page.waitForEvent("filechooser");
    await attach.click(page.getByRole("button", { name: "Add picture" }));
    await chooser;
    expect(attach.count()).toBe(2);

    const waterfall = await home();
    await waterfall.click(
      page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Flow" }),
    );
    await waterfall.click(page.getByRole("button", { name: "Waterfall" }));
    await page
      .getByRole("treeitem", { name: /^model call/ })
      .first()
      .waitFor();
    expect(waterfall.count()).toBe(2);

    const approve = await home();
    const permission = rowIn(page, "Needs you", "ops");
    const command = permission.locator(".inbox-summary code");
    await expect.poll(() => command.innerText()).toBe(LINES.join("⏎\n"));
    const showsLastLine = await command.evaluate((code) => {
      code.scrollIntoView({ block: "end" });
      const { left, bottom } = [...code.getClientRects()].at(-1) ?? new DOMRect();
      return code.contains(document.elementFromPoint(left + 3, bottom - 3));
    });
    expect(showsLastLine).toBe(true);
    const allow = permission.getByRole("button", { name: /^Allow/ });
    await settled(allow);
    await approve.click(allow);
    await page.getByText(/^Allowed: exec/).waitFor();
    expect(approve.count()).toBe(1);
  });

  test("last week's message is two clicks away, and from the open session steering and stopping are one each", async () => {
    const house = await openDesk();
    const { page } = await visit(house.http, { token: TOKEN });
    const old = clicksOn();
    const field = page.getByRole("searchbox", { name: "Search sessions" });
    await old.click(field);
    await field.fill("ripe tomatoes");
    await page.keyboard.press("Enter");
    const hit = page.getByRole("dialog", { name: "Search messages" }).getByRole("listitem").last();
    const sent = Date.parse((await hit.locator("time").getAttribute("datetime")) ?? "");
    expect(Date.now() - sent).toBeGreaterThanOrEqual(WEEK_MS);
    await old.click(hit.getByRole("link", { name: "the ripe tomatoes" }));
    await page.locator(".entry-marked").getByText("the ripe tomatoes").waitFor();
    expect(old.count()).toBe(2);

    await page.goto(`${house.http}/#/sessions/${encodeURIComponent(RESEARCH)}`);
    const steer = clicksOn();
    await page.getByRole("textbox", { name: "Message" }).fill("only at the north side");
    await steer.click(page.getByRole("button", { name: "Steer" }));
    await page.locator(".entry-queued", { hasText: "north side" }).waitFor();
    expect(steer.count()).toBe(1);
    const stop = clicksOn();
    await stop.click(page.getByRole("button", { name: "Stop", exact: true }));
    await page.locator(".run-end", { hasText: "stopped" }).waitFor();
    expect(stop.count()).toBe(1);
  });
});
