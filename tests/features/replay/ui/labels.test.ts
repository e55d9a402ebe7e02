// The labels that differ between two chains, and between a chain and its replay, on the page.

import { expect, test } from "vitest";
import { accessibilityProblems, describeInBrowser, PHONE, sideways } from "../../../kit/browser.ts";
import { cleanup } from "../../../kit/engine/engine.ts";
import { serveHttp } from "../../../kit/loopback.ts";
import { startModelServer, TEST_MODEL } from "../../../kit/model-server/server.ts";
import { doing } from "../../../kit/talking-model.ts";
import { house, open, rules, tell } from "../../../ui/flow/house.ts";

const OTHER = { ...TEST_MODEL, name: "Test model", provider: "openai" };

describeInBrowser("labels of compared chains", () => {
  test("a comparison and a replay list the sources that one side has only", async () => {
    const web = await serveHttp((_, response) => void response.end("a page"));
    const server = await startModelServer(() => "I do not fetch");
    cleanup(() => web.close());
    cleanup(() => server.close());
    const host = `127.0.0.1:${web.port}`;
    const here = await house({
      choices: {
        ...rules(),
        tools: { fetch: { allowHosts: [host] } },
        providers: [server.provider("openai-completions")],
      },
      models: [OTHER],
    });
    const plain = await tell(here, "hello");
    const chainId = await tell(here, doing({ name: "fetch", arguments: { url: `http://${host}/page` } }));
    const page = await open(here, `flow/${chainId}/compare/${plain}`, { viewport: PHONE });
    const labels = page.getByRole("list", { name: "Labels that differ" });
    const source = `outside: web ${host}`;
    await expect.poll(() => labels.innerText()).toContain("only in A: this chain · main");
    await expect.poll(() => labels.locator(".label-chip").allInnerTexts()).toEqual([source]);
    await page.getByRole("button", { name: "In the sequence" }).click();
    await labels.waitFor();
    expect(await sideways(page)).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto(`${here.http}/#/flow/${chainId}/replay`);
    await page.getByLabel("Model of every agent").selectOption("openai/test-model");
    await page.getByRole("button", { name: "Start" }).click();
    await expect.poll(() => labels.innerText()).toContain("only in Record · main");
    await expect.poll(() => labels.locator(".label-chip").allInnerTexts()).toEqual([source]);
  });
});
