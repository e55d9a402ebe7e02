// The editor of the configuration file, in a real browser with a real file.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openHouse, TOKEN } from "../gateway/kit.ts";
import { TOKEN as FOLLOWING_TOKEN, openFollowing } from "../gateway/reload/kit.ts";
import { accessibilityProblems, describeInBrowser, type PHONE, visit } from "../kit/browser.ts";
import { configFileWith } from "../kit/config-file.ts";
import { clickBefore, codeBox, codeText, replaceCode } from "./code-box.ts";

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";
const FILE = `// Our gateway.
{
  session: {
    queueMax: 200, // enough
  },
  models: {
    providers: {
      local: { api: "openai-completions", baseUrl: "http://127.0.0.1:9/v1", apiKey: "${KEY}", models: [{ id: "m" }] },
    },
  },
  agents: { defaults: { model: "local/m" } },
}
`;
async function opened(text: string | undefined = FILE, viewport?: typeof PHONE) {
  const file = configFileWith(text);
  const house = await openHouse({ checkConfig: file.checkConfig, configFile: file.configFile });
  const more = viewport === undefined ? {} : { viewport };
  const { page, context, complaints } = await visit(house.http, {
    token: TOKEN,
    at: "operations/configuration",
    ...more,
  });
  await codeBox(page).waitFor();
  return { file, house, page, context, complaints };
}

const button = (page: Page, name: string) => page.getByRole("button", { name });

async function save(page: Page): Promise<void> {
  await button(page, "Review and save").click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
}

/** Returns the selected text. */
const selected = (page: Page) =>
  codeBox(page).evaluate((box) => {
    const root = box.getRootNode() as ShadowRoot & { getSelection(): Selection };
    return root.getSelection().toString();
  });

const isFocused = (page: Page) =>
  codeBox(page).evaluate((box) => (box.getRootNode() as ShadowRoot).activeElement === box);

const dialog = (page: Page) => page.getByRole("dialog", { name: "Save these changes?" });

describeInBrowser("the editor of the configuration", () => {
  test("the editor shows problems with their lines during typing, then the changes; saving changes nothing else in the file", async () => {
    const { page, file } = await opened();
    await expect.poll(() => codeText(page)).not.toContain(KEY);
    await expect.poll(() => button(page, "Review and save").isDisabled()).toBe(true);
    await replaceCode(page, "queueMax: 200", "queueMx: 7");
    await page.getByText("1 problem: this text can't be saved.").waitFor();
    await expect
      .poll(() => page.getByLabel("Problems in this text").innerText())
      .toContain("session.queueMax");
    await expect.poll(() => page.locator(".cm-lint-marker-error").count()).toBe(1);
    await button(page, "Line 4").click();
    await expect.poll(() => selected(page)).toBe("    queueMx: 7, // enough");
    await button(page, "Review and save").click();
    await dialog(page).getByText("An invalid text cannot be saved:").waitFor();
    await expect.poll(() => dialog(page).getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await page.keyboard.press("Escape");
    await replaceCode(page, "queueMx: 7", "queueMax: 8");
    await page.getByText("No problems", { exact: true }).waitFor();
    await button(page, "Review and save").click();
    const changes = dialog(page).getByRole("region", { name: "Changes" });
    await expect
      .poll(() => changes.locator(".diff-removed, .diff-added").allInnerTexts())
      .toEqual([
        expect.stringContaining("queueMax: 200, // enough"),
        expect.stringContaining("queueMax: 8, // enough"),
      ]);
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.", { exact: true }).waitFor();
    await page.locator(".editor-done").getByText("New runs use these settings at once.").waitFor();
    expect(file.read()).toBe(FILE.replace("queueMax: 200", "queueMax: 8"));
    await expect.poll(() => button(page, "Review and save").isDisabled()).toBe(true);
  });

  test("the editor explains the setting at the caret, and finds settings by name and by meaning", async () => {
    const { page } = await opened();
    const here = page.getByRole("region", { name: "Setting at the caret" });
    await here.getByText("Groups of settings: gateway, store").waitFor();
    await clickBefore(page, "200");
    await here.getByText("Maximum number of runs that wait for one session.").waitFor();
    await expect.poll(() => here.innerText()).toContain("integer 1 to 100000 · count · default 200");
    await clickBefore(page, "apiKey");
    await here.getByText("models.providers.<name>.apiKey", { exact: true }).waitFor();
    await page.getByRole("searchbox", { name: "Search all settings" }).fill("wait one session");
    await page.getByText("1 setting found").waitFor();
    await expect
      .poll(() => page.getByRole("region", { name: "Settings found" }).innerText())
      .toContain("session.queueMax");
    await button(page, "Go to session.queueMax, line 4").click();
    await expect.poll(() => selected(page)).toBe("    queueMax: 200, // enough");
    await page.getByRole("searchbox", { name: "Search all settings" }).fill("<name>.apiKey");
    await button(page, "Go to models.providers.<name>.apiKey, line 8").waitFor();
    await page.getByRole("searchbox", { name: "Search all settings" }).fill("logging.level");
    await page.getByText("Not in this file").first().waitFor();
  });

  test("typing replaces the selected text, and the page's policy has nothing to forbid", async () => {
    const { page, complaints } = await opened();
    await codeBox(page).press("Control+a");
    await page.keyboard.type("{ }");
    await expect.poll(() => codeText(page)).toBe("{ }");
    await page.keyboard.press("Control+z");
    await expect.poll(() => codeText(page)).toContain("queueMax");
    expect(complaints).toEqual([]);
  });

  test("the editor works with the keyboard: Tab leaves the text, Ctrl+S opens the review, Escape returns to the text", async () => {
    const { page, file } = await opened();
    await codeBox(page).focus();
    await page.keyboard.press("Tab");
    expect(await isFocused(page)).toBe(false);
    await page.keyboard.press("Shift+Tab");
    expect(await isFocused(page)).toBe(true);
    await expect.poll(() => codeText(page)).not.toContain("\t");
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("// by keyboard");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Control+s");
    await dialog(page).getByText("New runs use these settings at once.").waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => isFocused(page)).toBe(true);
    await page.keyboard.press("Control+s");
    await expect.poll(() => dialog(page).getByRole("button", { name: "Save" }).isEnabled()).toBe(true);
    await dialog(page).getByRole("button", { name: "Cancel" }).focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("Saved.", { exact: true }).waitFor();
    expect(file.read()).toBe(`// by keyboard\n${FILE}`);
  });

  test("the editor completes the names of settings, undoes with Ctrl+Z, and keeps the line ends of the file", async () => {
    const windows = FILE.replaceAll("\n", "\r\n");
    const { page, file } = await opened(windows);
    await page.getByText("Groups of settings: gateway, store").waitFor();
    await clickBefore(page, "queueMax");
    await page.keyboard.type("mainK");
    await page.getByRole("option", { name: "mainKey" }).click();
    await page.keyboard.type('"hub", ');
    await expect.poll(() => codeText(page)).toContain('    mainKey: "hub", queueMax');
    await page.keyboard.press("Control+z");
    await expect.poll(() => codeText(page)).not.toContain("hub");
    await page.keyboard.press("Control+y");
    await save(page);
    await page.getByText("Saved.", { exact: true }).waitFor();
    const saved = windows.replace("queueMax", 'mainKey: "hub", queueMax');
    expect(file.read()).toBe(saved);
    // Pasted lines end as those of the file do.
    await replaceCode(page, "// enough", "// enough\n    // for now");
    await page.getByText("No problems", { exact: true }).waitFor();
    await expect.poll(() => codeText(page)).toContain("// enough\n    // for now");
    await save(page);
    await page.getByText("Saved.", { exact: true }).waitFor();
    expect(file.read()).toBe(saved.replace("// enough", "// enough\r\n    // for now"));
  });

  test("ES1: if two pages edit the file, the second one to save sees both changes and chooses; nothing is overwritten before", async () => {
    const first = await opened();
    const { page: second } = await visit(first.house.http, { token: TOKEN, at: "operations/configuration" });
    await codeBox(second).waitFor();
    await replaceCode(first.page, "// enough", "// from the first page");
    await replaceCode(second, "Our gateway", "Their gateway");
    await save(first.page);
    await first.page.getByText("Saved.", { exact: true }).waitFor();
    await save(second);
    await second.getByText("The file has changed since you began").waitFor();
    await expect
      .poll(() => second.getByRole("region", { name: "Changes in the file" }).innerText())
      .toContain("from the first page");
    await expect
      .poll(() => second.getByRole("region", { name: "Your changes" }).innerText())
      .toContain("Their gateway");
    expect(first.file.read()).toBe(FILE.replace("// enough", "// from the first page"));
    expect(await accessibilityProblems(second)).toEqual([]);
    await button(second, "Keep mine, review again").click();
    await button(second, "Review and save").click();
    await dialog(second).getByText("Their gateway").waitFor();
    await dialog(second).getByRole("button", { name: "Save" }).click();
    await second.getByText("Saved.", { exact: true }).waitFor();
    expect(first.file.read()).toBe(FILE.replace("Our", "Their"));
    await replaceCode(first.page, "// Our", "// My");
    await save(first.page);
    await button(first.page, "Take the file, drop mine").click();
    await expect.poll(() => codeText(first.page)).toContain("Their gateway");
    expect(first.file.read()).toBe(FILE.replace("Our", "Their"));
  });

  test("a file that was mended elsewhere replaces its unedited text; the next edit is checked against it", async () => {
    const file = await openFollowing(() => "an answer");
    writeFileSync(file.path, readFileSync(file.path, "utf8").replace("{", '{"visiblity":"all",'));
    const { page } = await visit(`http://127.0.0.1:${file.app.port}`, {
      token: FOLLOWING_TOKEN,
      at: "operations/configuration",
    });
    await page.getByText("The file has 1 problem").waitFor();
    await expect.poll(() => codeText(page)).toContain("visiblity");
    file.put({});
    await page.getByText("No problems. The file is in effect.").waitFor();
    await expect.poll(() => codeText(page)).not.toContain("visiblity");
    await replaceCode(page, "{", '{"tools":{},');
    await page.locator(".editor-verdict").getByText("No problems").waitFor();
  });

  test("unsaved edits remain during a visit to another view, and can be discarded", async () => {
    const { page, file } = await opened();
    await replaceCode(page, "// enough", "// not enough");
    await page.getByRole("navigation", { name: "Operations" }).getByText("Log").click();
    await page.getByRole("heading", { name: "Log" }).waitFor();
    await page.getByRole("navigation", { name: "Operations" }).getByText("Configuration").click();
    await expect.poll(() => codeText(page)).toContain("// not enough");
    await button(page, "Discard").click();
    await expect.poll(() => codeText(page)).toContain("// enough");
    expect(file.read()).toBe(FILE);
  });

  test("if there is no configuration file, the editor offers a new one, and saving creates it", async () => {
    const { page, file } = await opened("");
    rmSync(file.path);
    await page.reload();
    await page.getByText("There is no file yet: saving creates it.").waitFor();
    await replaceCode(page, "{\n", "{\n  session: { queueMax: 9 },\n");
    await save(page);
    await page.getByText("Saved.", { exact: true }).waitFor();
    expect(file.read()).toContain("queueMax: 9");
  });

  test("NM1: hostile text in the file is shown as plain text; if the file is too large to edit, the page says so", async () => {
    const hostile = `// </textarea><img src=x onerror="document.title=1">\u202Egpj.exe\n${FILE}`;
    const { page, file } = await opened(hostile);
    await replaceCode(page, "// enough", "// <b>enough</b>");
    await button(page, "Review and save").click();
    await dialog(page).getByText("<b>enough</b>").waitFor();
    await expect.poll(() => page.locator(".config b, .config img").count()).toBe(0);
    await expect.poll(() => dialog(page).innerText()).not.toContain("\u202E");
    await page.keyboard.press("Escape");
    await button(page, "Discard").click();
    writeFileSync(file.path, `{}${" ".repeat(300_000)}`);
    await page.reload();
    await page.getByText(/the editor accepts at most 131072/).waitFor();
    await expect.poll(() => page.getByText("Effective configuration").count()).toBe(1);
  });
});
