// No shortened text ends inside a character, which would leave a lone surrogate or a replacement character.

import { expect, test } from "vitest";
import type { Result } from "../../../src/core/shapes/errors.ts";
import { renderTemplate } from "../../../src/core/shapes/incoming-hook.ts";
import { parseKey } from "../../../src/core/shapes/session-key.ts";
import { readArguments } from "../../../src/tools/arguments.ts";
import { resolvePath } from "../../../src/tools/files/workspace.ts";
import { plainWords } from "../../../src/tools/mcp/plain-text.ts";
import { readSchedule } from "../../../src/triggers/dates.ts";
import { plainRedactor } from "../../kit/redactor.ts";

const EVEN = "🙂".repeat(30_000);
const ODD = `a${EVEN}`;
const HALF = /[\ud800-\udfff]|\\ud[89a-f]/;

const errorOf = (result: Result<unknown>): string => (result.ok ? "" : result.error);
const SCHEMA = { type: "object", properties: { mode: { type: "string", enum: ["a", "b"] } } };

test.each<[string, (text: string) => string | Promise<string>]>([
  ["a field of a web hook", (text) => renderTemplate("{{body.x}}", { body: { x: text } })],
  ["an invalid session key", (text) => errorOf(parseKey(text))],
  ["an unknown argument", async (text) => errorOf(await readArguments(SCHEMA, { [text]: 1 }))],
  ["an invalid value", async (text) => errorOf(await readArguments(SCHEMA, { mode: text }))],
  ["a path", async (text) => errorOf(await resolvePath("/tmp", text, { createFolders: false }))],
  [
    "a time zone",
    async (text) =>
      errorOf(await readSchedule({ kind: "cron", expr: "0 7 * * *", tz: text }, { now: 0, zone: "UTC" })),
  ],
  ["the words of an MCP server", (text) => plainWords(text, 11)],
  ["the words of an MCP server", (text) => plainWords(text, 12)],
  ["the redacted beginning", (text) => plainRedactor.beginning(text, 100).text],
  ["the redacted beginning", (text) => plainRedactor.beginning(text, 101).text],
])("%s is cut without splitting a surrogate pair", async (_, shorten) => {
  for (const text of [EVEN, ODD]) {
    const shown = await shorten(text);
    expect(shown).toContain("🙂");
    expect(shown.length).toBeLessThan(20_000);
    expect(shown.replaceAll(/[\ud800-\udbff][\udc00-\udfff]/g, "")).not.toMatch(HALF);
    expect(shown).not.toContain("\ufffd");
  }
});
