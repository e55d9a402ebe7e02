// The plugin for opencode, with a fake client of opencode and a command that replaces the hook.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { openCodePlugin } from "../../../src/features/join/opencode-plugin.ts";

interface Plugin {
  "chat.message"(message: { sessionID: string; agent: string; model: string }): Promise<void>;
}

/** Loads the plugin. Its hook prints the text once, and nothing later. */
async function load(text: string, promptAsync: (prompt: object) => Promise<object>): Promise<Plugin> {
  const folder = mkdtempSync(join(tmpdir(), "parley-plugin-"));
  const once = `const { writeFileSync } = require("node:fs");
    try { writeFileSync(${JSON.stringify(join(folder, "told"))}, "", { flag: "wx" }); } catch { process.exit(); }
    process.stdout.write(${JSON.stringify(text)});`;
  const file = join(folder, "plugin.mjs");
  writeFileSync(file, openCodePlugin([process.execPath, "-e", once]));
  const { Parley } = (await import(pathToFileURL(file).href)) as {
    Parley(parts: object): Promise<Plugin>;
  };
  return Parley({ client: { session: { get: async () => ({ data: {} }), promptAsync } } });
}

test.each([
  ["returns an error", async () => ({ error: { name: "NotFoundError" } })],
  ["throws", () => Promise.reject(new Error("fetch failed"))],
] as const)("if opencode %s, the messages go to the next conversation", async (_, fail) => {
  const prompts: object[] = [];
  const plugin = await load("which port?", async (prompt) => {
    prompts.push(prompt);
    return prompts.length === 1 ? fail() : {};
  });
  const say = (sessionID: string) => plugin["chat.message"]({ sessionID, agent: "build", model: "m" });
  await say("deleted");
  await expect.poll(() => prompts.length).toBe(1);
  await say("next");
  await expect.poll(() => prompts.length).toBe(2);
  const parts = [{ type: "text", text: "which port?" }];
  expect(prompts[1]).toMatchObject({ path: { id: "next" }, body: { parts } });
  await say("next");
  await say("another");
  expect(prompts).toHaveLength(2);
});
