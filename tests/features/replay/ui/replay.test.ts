// Replaying and comparing chains on the page, in a real browser with a real gateway and a scripted model.

import { expect, test } from "vitest";
import { accessibilityProblems, DESKTOP, describeInBrowser, PHONE, sideways } from "../../../kit/browser.ts";
import { cleanup } from "../../../kit/engine/engine.ts";
import { startModelServer, TEST_MODEL } from "../../../kit/model-server/server.ts";
import { doing, sending } from "../../../kit/talking-model.ts";
import { house, open, RESEARCH, rules, tell, WRITER } from "../../../ui/flow/house.ts";

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
      await page.getByRole("button", { name: "Replay" }).click();
      const dialog = page.getByRole("dialog", { name: "Replay" });
      const submit = dialog.getByRole("button", { name: "Start" });
      await submit.click();
      await dialog.getByText("No difference").waitFor();
      await dialog.getByRole("button", { name: "Change and replay again" }).click();
      const research = dialog.getByRole("group", { name: "research" });
      await research.getByText("research", { exact: true }).click();
      await research.getByLabel("Model").selectOption("openai/test-model");
      await research.getByLabel("Instructions").fill("Answer in French.");
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await submit.click();
      await dialog.getByText("First difference").waitFor();
      const answer = dialog.getByRole("listitem").filter({ hasText: "research · answer" });
      await answer.getByText("une autre réponse").waitFor();
      await expect.poll(() => answer.innerText()).toContain("what is new?");
      expect(server.requests.at(-1)?.system).toContain("Answer in French.");
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await dialog.getByLabel("Only differences").uncheck();
      await dialog.getByRole("listitem").filter({ hasText: "main · message" }).waitFor();
      await page.keyboard.press("Escape");
      await expect.poll(() => dialog.count()).toBe(0);
    },
  );

  test("a replay shows its progress, can be stopped, and a refusal is shown in words", async () => {
    const server = await startModelServer(() => new Promise(() => {}));
    cleanup(() => server.close());
    const providers = [server.provider("openai-completions")];
    const here = await house({ choices: { ...rules(), providers }, models: [OTHER] });
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("button", { name: "Replay" }).click();
    const dialog = page.getByRole("dialog", { name: "Replay" });
    await dialog.getByLabel("Model of every agent").selectOption("openai/test-model");
    await dialog.getByRole("button", { name: "Start" }).click();
    await dialog.getByRole("progressbar").waitFor();
    await expect.poll(() => server.requests.length).toBeGreaterThan(0);
    await dialog.getByRole("button", { name: "Stop" }).click();
    await dialog.getByText(/the replay was stopped/).waitFor();
    await dialog.getByLabel("From step").fill("nowhere");
    await dialog.getByRole("button", { name: "Start" }).click();
    await dialog.getByText(/no step "nowhere"/).waitFor();
  });

  test.each([
    ["desktop", DESKTOP],
    ["phone", PHONE],
  ])("two chains are laid over each other in one sequence: %s", async (_, viewport) => {
    const here = await house({});
    await tell(here, doing(sending(RESEARCH, "and later?")));
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?"), sending(WRITER, "write it")));
    const page = await open(here, `flow/${chainId}`, { viewport });
    await page.getByRole("button", { name: "Compare" }).click();
    const dialog = page.getByRole("dialog", { name: "Compare" });
    await dialog.getByLabel("Compare with").selectOption({ index: 1 });
    await dialog.getByRole("button", { name: "In the sequence" }).click();
    const steps = dialog.locator(".step");
    const only = dialog.getByRole("button", { name: /^only in A: main asked writer/ });
    await only.waitFor();
    const differs = dialog.getByRole("button", {
      name: /^differs\. A: main asked research.*what is new\?.*B: main asked research.*and later\?/,
    });
    await expect.poll(() => differs.count()).toBe(1);
    await expect.poll(() => steps.filter({ hasText: "asked research" }).count()).toBe(1);
    await dialog.locator("text", { hasText: /^A write it/ }).waitFor();
    await dialog.locator("text", { hasText: /^≠ what is new/ }).waitFor();
    const legend = dialog.getByRole("list", { name: "Legend" });
    await expect
      .poll(() => legend.innerText())
      .toMatch(/same in both\s+≠ differs\s+A only in A\s+B only in B/);
    await differs.focus();
    await page.keyboard.press("Enter");
    await dialog.locator('.side[data-name^="A"]', { hasText: "what is new?" }).waitFor();
    await dialog.locator('.side[data-name^="B"]', { hasText: "and later?" }).waitFor();
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Two columns" }).click();
    await dialog.getByRole("listitem").filter({ hasText: "writer · message" }).waitFor();
  });

  test("two chains are compared side by side, and tokens without the right get neither action", async () => {
    const tokens = [{ token: "reads", role: "operator" as const, scopes: ["operator.read" as const] }];
    const here = await house({ gateway: { tokens } });
    await tell(here, doing(sending(RESEARCH, "and later?")));
    const chainId = await tell(here, doing(sending(RESEARCH, "what is new?")));
    const page = await open(here, `flow/${chainId}`);
    await page.getByRole("button", { name: "Compare" }).click();
    const dialog = page.getByRole("dialog", { name: "Compare" });
    await dialog.getByLabel("Compare with").selectOption({ index: 1 });
    const message = dialog.getByRole("listitem").filter({ hasText: "research · message" });
    await message.getByText("what is new?").waitFor();
    await message.getByText("and later?").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press("Escape");
    const reader = await open(here, `flow/${chainId}`, { token: "reads" });
    await reader.getByRole("button", { name: "Legend" }).waitFor();
    await expect.poll(() => reader.getByRole("button", { name: /Replay|Compare/ }).count()).toBe(0);
  });
});
