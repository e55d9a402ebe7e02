// Texts of strangers at their maximum size: each reader's work grows with the size, not with its square. With
// a regular expression that tries each start again, these calls would take many minutes.

import { expect, test } from "vitest";
import { opinion } from "../../../src/agent/offline/phrases.ts";
import { readMarkdown } from "../../../src/channels/markdown.ts";
import { Redactor } from "../../../src/core/text/redact/redact.ts";
import { TITLE_MAX_CHARS, titleIn } from "../../../src/core/text/title.ts";
import { readArguments } from "../../../src/tools/arguments.ts";
import { htmlToText } from "../../../src/tools/web/html.ts";

const long = (sign: string): string => sign.repeat(1024 * 1024);

test("a number of a tool call with a million digits and a letter is refused as a text", async () => {
  const schema = { type: "object", properties: { limit: { type: "number" } } };
  expect(await readArguments(schema, { limit: `${long("0")}x` })).toMatchObject({ ok: false });
});

test.each(["[", "<", "![", "`", "> "])("a title of many signs %j is read to its end", (sign) => {
  expect(titleIn(`${long(sign)}x`).length).toBeLessThan(2_000);
  expect(titleIn(`Plan ${long("x ")}`).length).toBeGreaterThan(TITLE_MAX_CHARS);
});

test("the offline model answers a question with many blanks", () => {
  expect(opinion(`a${long(" ")}b`)).toContain("offline model");
});

test("a page with many blanks keeps its text", () => {
  expect(htmlToText(`<p>a</p><pre>${long(" ")}b</pre>`, "http://a.test/").text).toMatch(/^a\s+b$/);
});

test("the size of a picture with many signs of padding is computed", () => {
  const image = { type: "image" as const, data: `${long("=")}A`, mimeType: "image/png" };
  const shown = new Redactor([]).message({ id: "m", role: "user", content: [image], timestamp: 1 });
  expect(shown.content).toMatchObject([{ data: "", bytes: Math.floor(((1024 * 1024 + 1) * 3) / 4) }]);
});

test("a comment with many empty lines in Markdown stays as it is written", () => {
  expect(readMarkdown(`<!--${"\n".repeat(30_000)}a-->`).text).toMatch(/a-->$/);
});
