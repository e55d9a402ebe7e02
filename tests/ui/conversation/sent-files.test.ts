// Files that agents sent, in a real browser: pictures are shown, other files are downloaded unchanged.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { doing, talkingModel } from "../../kit/talking-model.ts";
import { agentSettings } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const AT = `sessions/${encodeURIComponent(MAIN)}`;
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const sending = (path: string, caption?: string) => ({ name: "send_file", arguments: { path, caption } });

describeInBrowser("files that an agent sent", () => {
  test("a picture is shown with its caption, and another file can be downloaded", async () => {
    const workspace = join(temporaryFolder(), "workspace");
    mkdirSync(workspace);
    const script = Buffer.from(`<script>document.title = "bad"</script>${"x".repeat(3_000_000)}`);
    writeFileSync(join(workspace, "plan.png"), Buffer.from(PNG, "base64"));
    writeFileSync(join(workspace, "page.html"), script);
    const agents = [agentSettings("main", { workspace })];
    const house = await openHouse({ model: talkingModel(), choices: { agents } });
    const client = await house.client();
    const calls = doing(sending("plan.png", "**The** plan"), sending("page.html"), sending("gone.txt"));
    await client.agent({ sessionKey: MAIN, message: calls }).done;
    for (const viewport of [undefined, PHONE]) {
      const { page } = await visit(house.http, {
        ...{ token: TOKEN, at: AT },
        ...(viewport === undefined ? {} : { viewport }),
      });
      const picture = page.getByRole("button", { name: "Enlarge picture, plan.png, 70 B" }).locator("img");
      await picture.waitFor();
      expect(await picture.evaluate((one) => (one as HTMLImageElement).naturalWidth)).toBe(1);
      await page.locator(".sent-file strong", { hasText: "The" }).waitFor();
      await expect.poll(() => page.locator(".sent-file").count()).toBe(2);
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download page.html, 3.0 MB" }).click();
      const download = await saved;
      expect(download.suggestedFilename()).toBe("page.html");
      expect(readFileSync(await download.path()).equals(script)).toBe(true);
      expect(await page.title()).not.toBe("bad");
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await sideways(page)).toBe(0);
    }
  });
});
