// The processes of a cluster on the page: two gateways over one database, and a real browser.

import { expect, test } from "vitest";
import { openWith, TOKEN } from "../../gateway/reload/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { takeSchema } from "../../kit/store/postgres.ts";

describeInBrowser("the processes of a cluster", () => {
  test("the page says when processes run different settings", async () => {
    const schema = await takeSchema();
    const model = await startModelServer(() => "an answer");
    cleanup(async () => {
      await model.close();
      await schema.give();
    });
    const store = { store: { postgresUrl: schema.url } };
    const [first, second] = [await openWith(model, store), await openWith(model, store)];
    second.put({ ...store, cron: { enabled: false } });
    second.reload();
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(`http://127.0.0.1:${first.app.port}`, {
        ...{ token: TOKEN, at: "operations/status" },
        ...(viewport === undefined ? {} : { viewport }),
      });
      await page.getByText("The processes run different settings.").waitFor();
      const rows = page.getByRole("region", { name: "Processes" }).locator("tbody tr");
      const revisions = await rows.locator("td:nth-child(4)").allInnerTexts();
      expect(new Set(revisions).size).toBe(2);
      expect(revisions.join(" ")).toMatch(/^[0-9a-f]{12} [0-9a-f]{12}$/);
      expect(await sideways(page)).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
    }
    second.put(store);
    second.reload();
    const { page } = await visit(`http://127.0.0.1:${first.app.port}`, {
      ...{ token: TOKEN, at: "operations/status" },
    });
    await page.getByRole("region", { name: "Processes" }).waitFor();
    await expect.poll(() => page.getByText("different settings").count()).toBe(0);
  });
});
