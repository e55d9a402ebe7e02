// Connecting a model on the first visit: a whole gateway with its file, a model server and a real browser.

import { readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import { openWith, TOKEN } from "../../gateway/reload/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { type ModelServer, startModelServer } from "../../kit/model-server/server.ts";

const KEY = "sk-typed-by-a-person-0123456789";
const UNCONFIGURED = { models: {}, agents: {} };

const found = (model: ModelServer) => ({ OLLAMA_HOST: model.url.replace("http://", "") });

async function firstVisit(
  viewport: { width: number; height: number },
  env?: (model: ModelServer) => { OLLAMA_HOST: string },
) {
  const model = await startModelServer(({ headers }) => {
    if (env !== undefined) return "pong without a key";
    const isKnown = headers.authorization === `Bearer ${KEY}`;
    return isKnown ? "pong" : { status: 401, headers: {}, body: "invalid api key" };
  });
  cleanup(() => model.close());
  const house = await openWith(model, UNCONFIGURED, optional({ env: env?.(model) }));
  const { page } = await visit(`http://127.0.0.1:${house.app.port}`, { token: TOKEN, viewport });
  await page.getByRole("button", { name: "Connect a model" }).click();
  const dialog = page.getByRole("dialog", { name: "Connect a model" });
  await dialog.waitFor();
  return { house, page, dialog };
}

describeInBrowser("connecting a model on the first visit", () => {
  for (const viewport of [{ width: 1280, height: 800 }, PHONE]) {
    test(`a model is tested before the agents use it, and a key that failed leaves the file, ${viewport.width} px wide`, async () => {
      const { house, page, dialog } = await firstVisit(viewport);
      const before = readFileSync(house.path, "utf8");
      expect(await accessibilityProblems(page)).toEqual([]);
      await dialog.getByLabel("Provider").selectOption("server");
      await dialog.getByLabel("Address, up to the version").fill(`${house.model.url}/openai/v1/`);
      await dialog.getByLabel("Id of the model").fill("first");
      await dialog.getByLabel("Key", { exact: true }).fill("wrong");
      expect(await sideways(page)).toBe(0);
      await dialog.getByRole("button", { name: "Continue" }).click();
      const use = dialog.getByRole("button", { name: "Test and use" });
      await use.click();
      await dialog.getByRole("alert").getByText("invalid api key").waitFor();
      const described = async () => (await house.client.request("agents.list", {})).agents[0]?.model;
      expect(await described()).toMatch(/^offline\//);
      expect(await accessibilityProblems(page)).toEqual([]);

      if (viewport === PHONE) {
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
        await page.getByRole("button", { name: "Connect a model" }).click();
      } else await dialog.getByRole("button", { name: "Change the provider or the key" }).click();
      await expect.poll(() => readFileSync(house.path, "utf8")).toBe(before);
      await dialog.getByLabel("Provider").selectOption("server");
      await dialog.getByLabel("Address, up to the version").fill(`${house.model.url}/openai/v1`);
      await dialog.getByLabel("Id of the model").fill("first");
      await dialog.getByLabel("Key", { exact: true }).fill(KEY);
      await dialog.getByRole("button", { name: "Continue" }).click();
      // The file is applied a moment after it was saved.
      await expect
        .poll(async () => (await house.client.request("models.test", { model: "server/first" })).ok)
        .toBe(true);
      await use.click();
      await page.getByText("The agents use server/first now.").waitFor();
      await dialog.waitFor({ state: "detached" });
      await expect.poll(() => page.getByRole("button", { name: "Connect a model" }).count()).toBe(0);
      await expect.poll(described).toBe("server/first");
      expect(await house.says("hello")).toBe("pong");
      const file = readFileSync(house.path, "utf8");
      expect(file).toContain(KEY);
      expect(statSync(house.path).mode & 0o777).toBe(0o600);
    });
  }

  test("a model server on the gateway's machine is offered first, and needs no key", async () => {
    const { house, page, dialog } = await firstVisit(PHONE, found);
    const provider = dialog.getByLabel("Provider");
    await expect.poll(() => provider.inputValue()).toBe("ollama");
    await expect.poll(() => dialog.getByLabel("Key", { exact: true }).count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Continue" }).click();
    const model = dialog.getByLabel("Model");
    await expect.poll(() => model.inputValue()).not.toBe("");
    const ref = `ollama/${await model.inputValue()}`;
    await dialog.getByRole("button", { name: "Test and use" }).click();
    await page.getByText(`The agents use ${ref} now.`).waitFor();
    await expect.poll(async () => (await house.client.request("agents.list", {})).agents[0]?.model).toBe(ref);
    expect(await house.says("hello")).toBe("pong without a key");
  });

  test("a provider's models are listed after its key; a typed key is never a variable", async () => {
    const { house, dialog } = await firstVisit({ width: 1280, height: 800 });
    await dialog.getByLabel("Key", { exact: true }).fill("${HOME}");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await expect.poll(() => dialog.getByRole("combobox").innerText()).toContain("Claude");
    expect(readFileSync(house.path, "utf8")).toContain("$${HOME}");
  });
});
