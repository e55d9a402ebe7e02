// Opened tool calls are shown as what they are: a terminal, a change, a file, a table, a message.

import { expect, test } from "vitest";
import type { Message } from "../../../src/core/shapes/message.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { accessibilityProblems, describeInBrowser, PHONE, sideways, visit } from "../../kit/browser.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { doing, inTurn, sending, talkingModel } from "../../kit/talking-model.ts";
import { assistantMessage, toolResult } from "../../store/samples.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { hold } from "./transcript.ts";

const MAIN = "agent:main:main";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const CODE = "export const answer = 41;\n";
const HOSTILE = "<img src=x onerror=alert(1)>\u202etxt.exe\n```\n# not a heading";

describeInBrowser("opened tool calls", () => {
  test("an opened call is a terminal, a change, a file, a table or a message; JSON is shown on demand", async () => {
    const workspace = temporaryFolder();
    const house = await openHouse({
      model: talkingModel(),
      choices: {
        agents: [agentSettings("main", { workspace }), agentSettings("research")],
        tools: { exec: { ...settingsWith().tools.exec, approval: "never" } },
        labels: { mode: "off" },
      },
    });
    const client = await house.client();
    const message = inTurn(
      doing({ name: "write", arguments: { path: "src/answer.ts", content: CODE } }),
      doing({ name: "write", arguments: { path: "evil.md", content: HOSTILE } }),
      doing({
        name: "edit",
        arguments: { path: "src/answer.ts", edits: [{ oldText: "41", newText: "42" }] },
      }),
      doing({
        name: "exec",
        arguments: { command: "printf '\\033[31mred\\033[0m plain <b>'; exit 3" },
      }),
      doing({ name: "grep", arguments: { pattern: "answer", path: "src" } }),
      doing({ name: "edit", arguments: { path: "nothing.ts", edits: [{ oldText: "a", newText: "b" }] } }),
      doing(sending("agent:research:main", "what is **new**?")),
    );
    const { runId } = await client.request("chat.send", { sessionKey: MAIN, message });
    await client.request("agent.wait", { runId, timeoutMs: 60_000 });
    const { page, complaints } = await visit(house.http, {
      token: TOKEN,
      viewport: PHONE,
      at: `sessions/${encodeURIComponent(MAIN)}`,
    });
    const rows = page.locator(".steps .tool");
    await expect.poll(() => rows.count()).toBe(7);
    for (let at = 0; at < 7; at += 1) await rows.nth(at).locator("summary").click();
    const [write, evil, edit, exec, grep, failed, send] = Array.from({ length: 7 }, (_, at) => rows.nth(at));

    await write?.locator("code .hl-keyword", { hasText: "export" }).first().waitFor();
    await expect.poll(() => write?.locator("figcaption").innerText()).toBe("src/answer.ts");
    await expect.poll(() => evil?.locator("pre").innerText()).toContain("<img src=x onerror=alert(1)>");
    await expect.poll(() => evil?.locator("pre").innerText()).toContain("\\u{202e}");
    await expect.poll(() => evil?.locator("img, h1").count()).toBe(0);
    await expect.poll(() => edit?.locator("del").allInnerTexts()).toEqual(["- 41\n"]);
    await expect.poll(() => edit?.locator("ins").allInnerTexts()).toEqual(["+ 42\n"]);
    await expect.poll(() => exec?.locator(".ansi-red").innerText()).toBe("red");
    const terminal = exec?.getByRole("group", { name: "Terminal" });
    await expect.poll(() => terminal?.innerText()).toMatch(/^\$ printf .*\nred plain <b>$/s);
    await exec?.locator(".terminal").getByText("exit code 3").waitFor();
    await grep?.getByRole("cell", { name: "src/answer.ts" }).waitFor();
    await grep?.locator("summary").getByText("answer in src").waitFor();
    await failed?.getByRole("group", { name: "Error" }).getByText("nothing.ts").waitFor();
    await send?.locator("strong", { hasText: "new" }).first().waitFor();
    await send?.getByText("Reply", { exact: true }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await sideways(page)).toBe(0);

    await expect.poll(() => grep?.getByRole("group", { name: "Arguments" }).count()).toBe(0);
    await grep?.getByRole("button", { name: "JSON" }).click();
    await grep?.getByRole("group", { name: "Arguments" }).getByText('"pattern": "answer"').waitFor();
    await grep?.getByRole("group", { name: "Result" }).waitFor();
    expect(complaints).toEqual([]);
  });

  test("a call of any tool is facts; a failure its reason, an empty result words, and a row its exit code", async () => {
    const workspace = temporaryFolder();
    const house = await openHouse({
      model: talkingModel(),
      choices: {
        agents: [agentSettings("main", { workspace })],
        tools: { exec: { ...settingsWith().tools.exec, approval: "never" } },
      },
    });
    const client = await house.client();
    const message = doing(
      { name: "read", arguments: { path: "missing.txt" } },
      { name: "cron", arguments: { action: "add", job: { schedule: { everyMs: 60_000 } } } },
      { name: "glob", arguments: { pattern: "**/*.zzz" } },
      { name: "session_status", arguments: {} },
      { name: "exec", arguments: { command: "exit 3" } },
    );
    const { runId } = await client.request("chat.send", { sessionKey: MAIN, message });
    await client.request("agent.wait", { runId, timeoutMs: 60_000 });
    const at = `sessions/${encodeURIComponent(MAIN)}`;
    const { page, complaints } = await visit(house.http, { token: TOKEN, viewport: PHONE, at });
    const rows = page.locator(".steps .tool");
    await expect.poll(() => rows.count()).toBe(5);
    await rows.nth(4).locator("summary").getByText("exit code 3").waitFor();
    await rows.nth(1).locator("summary").getByText("add schedule: every ms: 60000").waitFor();
    for (let at = 0; at < 5; at += 1) await rows.nth(at).locator("summary").click();
    const [read, cron, glob, status] = Array.from({ length: 4 }, (_, at) => rows.nth(at));

    await read?.getByText("missing.txt does not exist").waitFor();
    const hint = read?.getByText("List the folder with exec: ls -la.");
    await expect.poll(() => hint?.count()).toBe(0);
    await expect.poll(() => read?.getByText("file_not_found").count()).toBe(0);
    await cron?.locator("dt", { hasText: "every ms" }).waitFor();
    await cron
      ?.getByRole("group", { name: "Error" })
      .getByText(/unknown argument "job"$/)
      .waitFor();
    await glob?.getByText("No paths").waitFor();
    await status?.locator("dt", { hasText: "agent id" }).waitFor();
    await status?.getByRole("cell", { name: /\d:\d\d:\d\d/ }).waitFor();
    for (let at = 0; at < 5; at += 1)
      await expect
        .poll(() => rows.nth(at).locator(".step-inside").innerText())
        .not.toMatch(/[{}]|1[67]\d{11}/);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await sideways(page)).toBe(0);

    await read?.getByRole("button", { name: "JSON" }).click();
    await read?.getByRole("group", { name: "Error" }).getByText('"code": "file_not_found"').waitFor();
    await hint?.waitFor();
    expect(complaints).toEqual([]);
  });

  test("a cut command has an unknown outcome, a picture is drawn, and an address opens only if it is one of the web", async () => {
    const house = await openHouse();
    const call = (id: string, name: string, args: object, result: object): Message[] => [
      {
        ...assistantMessage(`call ${id}`, ""),
        content: [{ type: "toolCall", id, name, arguments: { ...args } }],
      },
      { ...toolResult(`result ${id}`, ""), toolCallId: id, toolName: name, ...result },
    ];
    const saying = (value: object) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });
    const page = { title: "A page", url: "https://example.com/a" };
    const script = { title: "A script", url: "javascript:window.broken=1" };
    await hold(house, [
      ...call(
        "cut",
        "exec",
        { command: "deploy" },
        {
          ...saying({ code: "outcome_unknown", error: "The process ended during the call." }),
          isError: true,
        },
      ),
      ...call("drawn", "screenshot", {}, { content: [{ type: "image", mimeType: "image/png", data: PNG }] }),
      ...call("linked", "fetch", {}, saying(page)),
      ...call("listed", "search", {}, saying({ results: [page, script] })),
    ]);
    const { page: view } = await visit(house.http, {
      token: TOKEN,
      at: `sessions/${encodeURIComponent(MAIN)}`,
    });
    const rows = view.locator(".steps .tool");
    await expect.poll(() => rows.count()).toBe(4);
    for (let at = 0; at < 4; at += 1) await rows.nth(at).locator("summary").click();
    await rows.nth(0).locator("summary").getByText("outcome unknown").waitFor();
    await expect.poll(() => rows.nth(0).getByText("failed").count()).toBe(0);
    const picture = rows.nth(1).locator("img");
    await expect.poll(() => picture.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBe(1);
    for (const at of [2, 3]) {
      const link = rows.nth(at).getByRole("link");
      await expect.poll(() => link.getAttribute("href")).toBe(page.url);
      await expect.poll(() => link.getAttribute("rel")).toBe("noopener noreferrer");
    }
    await rows.nth(3).getByText("A script").waitFor();
    await expect.poll(() => view.locator("a[href^='javascript:']").count()).toBe(0);
  });
});
