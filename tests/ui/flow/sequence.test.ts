// The flow view in a real browser with a real gateway: the diagram of each kind of chain, and its actions.

import { expect, test } from "vitest";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { describeInBrowser } from "../../kit/browser.ts";
import { doing, sending, spawning, talkingModel } from "../../kit/talking-model.ts";
import { house, MAIN, open, RESEARCH, rules, stepNamed, tell, WRITER } from "./house.ts";

const EVIL = `<img src=x onerror="document.title='evil'">\u202egnp.exe`;

describeInBrowser("the flow view", () => {
  test("the diagram of a conversation has its reply turns and its announcement, and every step opens its message", async () => {
    const here = await house({ choices: rules({ maxPingPongTurns: 5 }) });
    const lastRoute = { channel: "webchat", to: "people" };
    await here.store.transaction((tx) => updateSession(tx, RESEARCH, { lastRoute }));
    await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here);
    await stepNamed(page, /^main asked research, answered after .*: what is new\?$/).waitFor();
    for (const name of [
      /^a person wrote to main/,
      /^main waits for research: answered after/,
      /^research replied to main, turn 1 of 5/,
      /^main replied to research, turn 2 of 5/,
      /^research replied to main, turn 5 of 5/,
      /^research announces the result: The people/,
      /^delivery from research to webchat people/,
    ])
      await expect.poll(() => stepNamed(page, name).count()).toBe(1);
    const rows = await here.store.db.selectFrom("messages").select(["id", "session_key"]).execute();
    const known = rows.map((row) => `#/sessions/${encodeURIComponent(row.session_key)}/${row.id}`);
    const steps = page.locator(".step");
    // Each fact has a name: the first step has no hop, which is not a fact without one.
    const facts = page.getByRole("complementary", { name: "Selected step" }).locator("dl.facts");
    const unnamed = () =>
      facts.evaluate((list) =>
        [...list.childNodes].flatMap((one) => (one instanceof Text ? one.data : [])).join(""),
      );
    for (let at = 0; at < (await steps.count()); at++) {
      await steps.nth(at).locator(".step-hit").click();
      await expect.poll(unnamed).toBe("");
      expect(known).toContain(await page.getByRole("link", { name: "Open message" }).getAttribute("href"));
    }
    await stepNamed(page, /^research announces/).click();
    const details = page.getByRole("complementary", { name: "Selected step" });
    await expect.poll(() => details.innerText()).toMatch(/Sent to\s+webchat people \((sent|pending)\)/);
    await page.getByRole("link", { name: "Open message" }).click();
    expect(page.url()).toContain(`#/sessions/${encodeURIComponent(RESEARCH)}/`);
  });

  test("parallel jobs have separate columns, and show their results", async () => {
    const here = await house();
    await tell(here, doing(...["one", "two", "three"].map((label) => spawning(`job ${label}`, { label }))));
    const page = await open(here);
    await stepNamed(page, /^main gave one a job: job one$/).waitFor();
    for (const label of ["main", "one", "two", "three"])
      await expect
        .poll(() => page.locator(".flow-head").getByRole("link", { name: label, exact: true }).count())
        .toBe(1);
    await expect.poll(() => stepNamed(page, /brought main its result/).count()).toBe(3);
  });

  test("a refused circular wait and a refused hop have a text and an arrow that does not reach its target", async () => {
    const here = await house({ choices: rules({ maxHops: 2 }) });
    const round = doing(sending(RESEARCH, doing(sending(WRITER, doing(sending(MAIN, "may we?"))))));
    await tell(here, round);
    const page = await open(here);
    const refused = stepNamed(page, /^writer was refused a message to main; refused: hop limit 2$/);
    await refused.waitFor();
    await expect.poll(() => refused.locator(".step-cross").count()).toBe(1);
    await expect.poll(() => refused.locator(".step-head").count()).toBe(0);
    await expect.poll(() => page.locator(".chain-row").first().innerText()).toContain("1 refused");
    const wide = await house();
    await tell(wide, round);
    const second = await open(wide);
    await stepNamed(second, /refused: circular wait writer → main → research → writer$/).waitFor();
    await expect
      .poll(() => second.locator(".flow-picture").textContent())
      .toContain("refused: circular wait");
    // On one line it would be written across the line of another session.
    await expect.poll(() => second.locator(".words.kind-refused text").count()).toBe(2);
  });

  test("a chain shows how much of its budgets it has used, and that a budget is used up", async () => {
    // Simulates that the chain uses up its budget while the first message is answered.
    const model = talkingModel((input) => (input === "one" ? useUp() : undefined));
    const here = await house({ model, choices: rules({ maxChainTokens: 100_000, maxChainCost: 2 }) });
    const useUp = async (): Promise<void> => {
      await here.store.transaction((tx) => tx.updateTable("chains").set({ tokens: 100_000 }).execute());
    };
    await tell(here, doing(sending(RESEARCH, "one"), sending(RESEARCH, "two")));
    const page = await open(here);
    const head = page.locator(".chain-title");
    await head.getByText(/of 100k tokens, used up/).waitFor();
    await expect
      .poll(() => head.getByRole("meter", { name: "Cost of the chain" }).getAttribute("aria-valuetext"))
      .toBe("$0 of $2.00");
  });

  test("DG3: a diagram that grows keeps the selected step and the scroll position", async () => {
    const hold = Promise.withResolvers<void>();
    const model = talkingModel((input) => (input === "wait for it" ? hold.promise : undefined));
    const here = await house({ model });
    const page = await open(here);
    await page.getByText("No conversations between sessions in the last 30 days").waitFor();
    const accepted = await here.engine.accept({
      sessionKey: MAIN,
      input: { text: doing(sending(RESEARCH, "wait for it")) },
    });
    if (!accepted.ok) throw new Error(accepted.error);
    const sent = stepNamed(page, /^main asked research, waits; running: wait for it$/);
    await sent.click();
    await page.locator(".chain-title").getByText("active").waitFor();
    hold.resolve();
    await stepNamed(page, /^main asked research, answered after .*: wait for it$/).waitFor();
    await expect
      .poll(() => page.locator(".step.chosen").getAttribute("aria-label"))
      .toMatch(/^main asked research, answered/);
    await page.locator(".chain-title").getByText(/ended/).waitFor();
    await page.goto(`${here.http}/#/flow/${accepted.value.run.chainId}`);
    await tell(here, doing(sending(WRITER, "another one")));
    await page.locator(".chain-row").nth(1).waitFor();
    await page.locator(".flow-head").getByText("research").waitFor();
  });

  test("hostile names and texts stay text on one line, and do not damage the diagram", async () => {
    const here = await house();
    await here.store.transaction((tx) => updateSession(tx, RESEARCH, { label: EVIL }));
    const chainId = await tell(here, doing(sending(RESEARCH, EVIL)));
    const page = await open(here, `flow/${chainId}`);
    await stepNamed(page, /asked .*onerror/).click();
    expect(await page.title()).not.toContain("evil");
    await expect
      .poll(() => page.locator("img[src=x], .flow-picture img, foreignObject, #page script").count())
      .toBe(0);
    for (const text of [
      await page.locator(".flow-picture").innerHTML(),
      await page.locator(".flow").innerText(),
    ]) {
      expect(text).not.toContain("\u202e");
      expect(text).toContain("x{202e}".replace("x", "\\u"));
    }
  });

  test("I9: a token for one session sees only that another session takes part", async () => {
    const tokens = [
      {
        token: "main-only",
        role: "operator" as const,
        scopes: ["operator.read" as const],
        sessions: ["agent:main:*"],
      },
    ];
    const here = await house({ gateway: { tokens } });
    const chainId = await tell(here, `ask ${doing(sending(RESEARCH, "the secret plan"))}`);
    const page = await open(here, `flow/${chainId}`, { token: "main-only" });
    const sent = stepNamed(page, /^main asked \(not visible\)|^main told \(not visible\)/);
    await sent.click();
    const head = page.locator(".flow-head", { hasText: "(not visible)" });
    await expect.poll(() => head.getByRole("link").count()).toBe(0);
    await page.getByText("only visible steps").waitFor();
    await page.getByText("Message not available").waitFor();
    await expect.poll(() => page.locator(".flow-heads").innerText()).not.toContain("research");
  });

  test("DG2: the Tab key reaches one step, the arrow keys move to others, and Enter opens the step", async () => {
    const here = await house({ choices: rules({ maxPingPongTurns: 3 }) });
    await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here);
    const first = page.locator(".step[tabindex='0']");
    await first.waitFor();
    await expect.poll(() => first.count()).toBe(1);
    await first.focus();
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
    expect(await focused()).toMatch(/^a person wrote to main/);
    await page.keyboard.press("ArrowDown");
    expect(await focused()).toMatch(/^main asked research/);
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Selected step" }).waitFor();
    await page.keyboard.press("End");
    expect(await focused()).toMatch(/replied to/);
    await page.keyboard.press("Home");
    expect(await focused()).toMatch(/^a person wrote/);
    await expect.poll(() => page.locator(".step[tabindex='0']").count()).toBe(1);
  });
});
