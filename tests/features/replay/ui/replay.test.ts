// Replaying and comparing chains on the page, in a real browser with a real gateway and a scripted model.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways } from "../../../kit/browser.ts";
import { cleanup } from "../../../kit/engine/engine.ts";
import { startModelServer, TEST_MODEL } from "../../../kit/model-server/server.ts";
import { doing, sending } from "../../../kit/talking-model.ts";
import { age, HOUR_MS, house, open, RESEARCH, rules, tell, WRITER } from "../../../ui/flow/house.ts";

const OTHER = { ...TEST_MODEL, name: "Test model", provider: "openai" };

describeInBrowser("replays on the page", () => {
  test.each([
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ])(
    "a chain replays without a difference, then with changed instructions, side by side: %s",
    async (_, viewport) => {
      const server = await startModelServer(() => "une autre réponse");
      cleanup(() => server.close());
      const providers = [server.provider("openai-completions")];
      const here = await house({ choices: { ...rules(), providers }, models: [OTHER] });
      const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
      const page = await open(here, `flow/${chainId}`, { viewport });
      await page.getByRole("link", { name: "Replay" }).click();
      const view = page.getByRole("region", { name: "Replay" });
      const submit = view.getByRole("button", { name: "Start" });
      await submit.click();
      await view.getByText("No difference").waitFor();
      const research = view.getByRole("group", { name: "research" });
      await research.getByText("research", { exact: true }).click();
      await research.getByLabel("Model").selectOption("openai/test-model");
      await research.getByLabel("Instructions").fill("Answer in French.");
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await submit.click();
      await view.getByText("First difference").waitFor();
      const answer = view.getByRole("listitem").filter({ hasText: "research · answer" });
      await answer.locator("ins", { hasText: "une autre réponse" }).waitFor();
      await answer.locator("del", { hasText: "echo what is new?" }).waitFor();
      expect(server.requests.at(-1)?.system).toContain("Answer in French.");
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await view.getByLabel("Only differences").uncheck();
      await view.getByRole("listitem").filter({ hasText: "main · message" }).waitFor();
      await page.goBack();
      await expect.poll(() => view.count()).toBe(0);
      await page.getByRole("link", { name: "Replay" }).waitFor();
    },
  );

  test("a replay begins at a step that the reader picks, and the address keeps it", async () => {
    const server = await startModelServer(() => "une réponse");
    cleanup(() => server.close());
    const providers = [server.provider("openai-completions")];
    const here = await house({ choices: { ...rules(), providers }, models: [OTHER] });
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("button", { name: /^main asked research/ }).click();
    await page.getByRole("link", { name: "Replay from here" }).click();
    const from = page.getByLabel("From step");
    const picked = () => from.locator("option:checked").textContent();
    await expect.poll(picked).toContain("main asked research");
    await page.reload();
    await expect.poll(picked).toContain("main asked research");
    await page.getByLabel("Model of every agent").selectOption("openai/test-model");
    await page.getByRole("button", { name: "Start" }).click();
    const answer = page.getByRole("listitem").filter({ hasText: "research · answer" });
    await answer.locator("ins", { hasText: "une réponse" }).waitFor();
    // Only steps from the picked one on were answered by the model.
    await expect.poll(() => page.getByText(/^Models gave/).innerText()).toContain("Models gave 2 answers");
    await expect.poll(() => page.getByLabel("First message").count()).toBe(0);
    await from.selectOption("");
    await page.getByLabel("First message").waitFor();
    expect(page.url()).toMatch(/\/replay$/);
  });

  test("a reload shows the result and the changes again, and says so if the replay had not ended", async () => {
    const held = Promise.withResolvers<string>();
    const answers = [Promise.resolve("une réponse"), Promise.resolve("oui"), held.promise];
    const server = await startModelServer(() => answers.shift() ?? "fin");
    cleanup(() => server.close());
    const providers = [server.provider("openai-completions")];
    const here = await house({ choices: { ...rules(), providers }, models: [OTHER] });
    const chainId = await tell(here, "what is new?");
    const page = await open(here, `flow/${chainId}/replay`);
    const view = page.getByRole("region", { name: "Replay" });
    const model = view.getByLabel("Model of every agent");
    const result = view.locator("ins", { hasText: "une réponse" });
    const lost = view.getByText("was lost with the reload. Start it again.");
    await model.selectOption("openai/test-model");
    await view.getByRole("button", { name: "Start" }).click();
    await result.waitFor();
    await page.reload();
    await result.waitFor();
    await expect.poll(() => model.inputValue()).toBe("openai/test-model");
    await view.getByLabel("Replays").fill("2");
    await view.getByRole("button", { name: "Start" }).click();
    await expect.poll(() => server.requests.length).toBe(3);
    await page.reload();
    await lost.waitFor();
    await expect.poll(() => result.count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    held.resolve("too late");
    await view.getByLabel("Replays").fill("11");
    await view.getByRole("button", { name: "Start" }).click();
    await view.getByRole("alert").waitFor();
    await page.reload();
    await model.waitFor();
    await expect.poll(() => lost.count()).toBe(0);
  });

  test("a replay shows its progress, can be stopped, and a refusal is shown in words", async () => {
    const server = await startModelServer(() => new Promise(() => {}));
    cleanup(() => server.close());
    const providers = [server.provider("openai-completions")];
    const here = await house({ choices: { ...rules(), providers }, models: [OTHER] });
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("link", { name: "Replay" }).click();
    const view = page.getByRole("region", { name: "Replay" });
    await view.getByLabel("Model of every agent").selectOption("openai/test-model");
    await view.getByRole("button", { name: "Start" }).click();
    await view.getByRole("progressbar").waitFor();
    await expect.poll(() => server.requests.length).toBeGreaterThan(0);
    await view.getByRole("button", { name: "Stop" }).click();
    await view.getByText(/the replay was stopped/).waitFor();
    await page.goto(`${here.http}/#/flow/${chainId}/replay/nowhere`);
    await view.getByRole("button", { name: "Start" }).click();
    await view.getByText(/no step "nowhere"/).waitFor();
  });

  test.each([
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ])("two chains are laid over each other in one sequence: %s", async (_, viewport) => {
    const here = await house({});
    await tell(here, doing(sending(RESEARCH, "and later?")));
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?"), sending(WRITER, "write it")));
    const page = await open(here, `flow/${chainId}`, { viewport });
    await page.getByRole("link", { name: "Compare" }).click();
    const view = page.getByRole("region", { name: "Compare" });
    await view.getByLabel("Compare with").selectOption({ index: 1 });
    await view.getByRole("button", { name: "In the sequence" }).click();
    const steps = view.locator(".step");
    const only = view.getByRole("button", { name: /^only in A: main asked writer/ });
    await only.waitFor();
    const differs = view.getByRole("button", {
      name: /^differs\. A: main asked research.*what is new\?.*B: main asked research.*and later\?/,
    });
    await expect.poll(() => differs.count()).toBe(1);
    await expect.poll(() => steps.filter({ hasText: "asked research" }).count()).toBe(1);
    await view.locator("text", { hasText: /^A write it/ }).waitFor();
    await view.locator("text", { hasText: /^≠ what is new/ }).waitFor();
    const legend = view.getByRole("list", { name: "Legend" });
    await expect
      .poll(() => legend.innerText())
      .toMatch(/same in both\s+≠ differs\s+A only in A\s+B only in B/);
    await differs.focus();
    await page.keyboard.press("Enter");
    await view.locator('.side[data-name^="A"]', { hasText: "what is new?" }).waitFor();
    await view.locator('.side[data-name^="B"]', { hasText: "and later?" }).waitFor();
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await view.getByRole("button", { name: "Two columns" }).click();
    await view.getByRole("listitem").filter({ hasText: "writer · message" }).waitFor();
  });

  test("without another chain in the last 7 days, the page offers older ones and says so", async () => {
    const here = await house();
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}/compare`, { viewport: PHONE });
    await page.getByText("No other chain in the last 30 days").waitFor();
    await age(here, await tell(here, doing(sending(WRITER, "and later?"))), 20 * 24 * HOUR_MS);
    await page.reload();
    await page.getByText("None within 7 days. Last 30 days:").waitFor();
    await page.getByLabel("Compare with").selectOption({ index: 1 });
    await page.locator(".columns").waitFor();
    expect(await sideways(page)).toBe(0);
    await tell(here, doing(sending(WRITER, "and now?")));
    await page.reload();
    await page.getByRole("option", { name: /and now/ }).waitFor({ state: "attached" });
    await expect.poll(() => page.getByText("None within 7 days").count()).toBe(0);
  });

  test("two chains are compared side by side, and tokens without the right get neither action", async () => {
    const tokens = [{ token: "reads", role: "operator" as const, scopes: ["operator.read" as const] }];
    const here = await house({ gateway: { tokens } });
    await tell(here, doing(sending(RESEARCH, "and later?")));
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("link", { name: "Compare" }).click();
    const view = page.getByRole("region", { name: "Compare" });
    await view.getByLabel("Compare with").selectOption({ index: 1 });
    const message = view.getByRole("listitem").filter({ hasText: "research · message" });
    await message.locator("del", { hasText: "what is new" }).waitFor();
    await message.locator("ins", { hasText: "and later" }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.reload();
    await message.locator("ins", { hasText: "and later" }).waitFor();
    await page.goBack();
    await expect.poll(() => message.count()).toBe(0);
    await page.goBack();
    await page.locator(".step").first().waitFor();
    await page.goForward();
    await page.goForward();
    await message.locator("ins", { hasText: "and later" }).waitFor();
    const reader = await open(here, `flow/${chainId}`, { token: "reads" });
    await reader.getByRole("button", { name: "Legend" }).waitFor();
    await expect.poll(() => reader.getByRole("link", { name: /Replay|Compare/ }).count()).toBe(0);
  });
});
