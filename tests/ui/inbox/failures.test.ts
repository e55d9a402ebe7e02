// Failed and stopped runs in the inbox: their reason, their agent, and what a retry does.

import { expect, test } from "vitest";
import { openHouse, type Play, TOKEN } from "../../gateway/kit.ts";
import { describeInBrowser, PHONE, visit } from "../../kit/browser.ts";
import { agentSettings } from "../../tools/app.ts";
import { group, MAIN, player, rowIn, say } from "./kit.ts";

describeInBrowser("failures in the inbox", () => {
  test("a retried row says that it runs, that it failed again, and how often", async () => {
    const held = Promise.withResolvers<void>();
    let tries = 0;
    const play: Play = async () => {
      tries += 1;
      if (tries === 2) await held.promise;
      throw new Error("no paper");
    };
    const house = await openHouse({ play });
    const client = await house.client();
    const ask = async (label: string, text: string) => {
      const { key } = await client.request("sessions.create", { label, agentId: "main" });
      await say(house, key, text);
    };
    await ask("printed", "print it");
    const { page } = await visit(house.http, { token: TOKEN });
    const row = rowIn(page, "Needs you", "printed");
    await row.getByText("no paper").waitFor();
    await expect.poll(() => row.getByText("attempt").count()).toBe(0);
    await row.getByRole("button", { name: "Retry" }).click();
    await rowIn(page, "Running", "printed").getByText("attempt 2", { exact: true }).waitFor();
    held.resolve();
    await row.getByText("failed again (attempt 2)").waitFor();
    await row.getByRole("button", { name: "Retry" }).click();
    await row.getByText("failed again (attempt 3)").waitFor();
  });

  test("a row of a refused key names its agent", async () => {
    const house = await openHouse({
      model: {
        call: async () => ({ kind: "failed", error: "the key is wrong", code: "model_unauthorized" }),
      },
      choices: { agents: [agentSettings("main"), agentSettings("writer")] },
    });
    const client = await house.client();
    const { key } = await client.request("sessions.create", { label: "Release notes", agentId: "writer" });
    await say(house, key, "translate them");
    const { page } = await visit(house.http, { token: TOKEN });
    const row = rowIn(page, "Needs you", "Release notes");
    await row.getByText("writer", { exact: true }).waitFor();
  });

  test("a stopped run says so once, with its message, and its notice names it without covering a row", async () => {
    const { play, release } = player();
    const house = await openHouse({ play });
    await say(house, MAIN, "hold on to it");
    const { page } = await visit(house.http, { token: TOKEN, viewport: PHONE });
    await rowIn(page, "Running", "hold on").getByRole("button", { name: "Stop" }).click();
    const row = rowIn(page, "Done", "hold on to it");
    await expect.poll(async () => (await row.innerText()).match(/stopped/gi)).toHaveLength(1);
    const notice = page.getByText("Stopped: main");
    await notice.waitFor();
    const { y = 0, height = 0 } = (await page.locator(".notice").boundingBox()) ?? {};
    const first = await group(page, "Needs you").boundingBox();
    expect(y + height).toBeLessThanOrEqual(first?.y ?? 0);
    release();
  });
});
