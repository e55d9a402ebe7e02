// No shortened text ends inside a character, which would leave a lone surrogate or a replacement character.

import { expect, test } from "vitest";
import type { Result } from "../../../src/core/shapes/errors.ts";
import { parseKey } from "../../../src/core/shapes/session-key.ts";
import { cut, head } from "../../../src/core/text/cut.ts";
import { firstBytes } from "../../../src/core/text/inbound-text.ts";
import { readArguments } from "../../../src/tools/arguments.ts";
import { resolvePath } from "../../../src/tools/files/workspace.ts";
import { plainWords } from "../../../src/tools/mcp/plain-text.ts";
import { plainRedactor } from "../../kit/redactor.ts";

const EVEN = "🙂".repeat(30_000);
const ODD = `a${EVEN}`;
const HALF = /[\ud800-\udfff]|\\ud[89a-f]/;

const errorOf = (result: Result<unknown>): string => (result.ok ? "" : result.error);
const SCHEMA = { type: "object", properties: { mode: { type: "string", enum: ["a", "b"] } } };

test.each<[string, (text: string) => string | Promise<string>]>([
  ["an invalid session key", (text) => errorOf(parseKey(text))],
  ["an unknown argument", async (text) => errorOf(await readArguments(SCHEMA, { [text]: 1 }))],
  ["an invalid value", async (text) => errorOf(await readArguments(SCHEMA, { mode: text }))],
  ["a path", async (text) => errorOf(await resolvePath("/tmp", text, { createFolders: false }))],
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

const SIGNS = ["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "क्षि", "각", "☎️", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "\r\n", "a", "©", "中", "ж"];

test("a beginning ends with a whole sign, wherever the limit is", () => {
  const mixed = SIGNS.flatMap((one) => SIGNS.map((other) => one + other + one)).join("");
  for (const text of [mixed, ...SIGNS.map((sign) => sign.repeat(150))]) {
    const ends = new Set([...new Intl.Segmenter().segment(text)].map(({ index }) => index));
    for (let limit = 0; limit < text.length - 1; limit += 1) {
      const kept = head(text, limit);
      expect(text.startsWith(kept) && ends.has(kept.length)).toBe(true);
      expect(limit - kept.length).toBeLessThan(20);
      expect(cut(text, limit + 1)).toBe(`${kept}…`);
      expect(ends.has(firstBytes(text, limit).length)).toBe(true);
    }
  }
});

test("a sign of 100,000 code points is cut, because a limit holds for it, too", () => {
  const text = `o${"\u0301".repeat(100_000)}`;
  expect(head(text, 4_000)).toBe(text.slice(0, 4_000));
});
