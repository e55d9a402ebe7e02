// Joining the deltas of a growing text.

import { expect, test } from "vitest";
import { grown, isFlatDue } from "../../../src/core/text/text-delta.ts";

const TOKEN = "word00042\n";
const ANSWER_CHARS = 4 * 1024 * 1024;

test("all copies of a growing text together are at most twenty times as long as the text", () => {
  let copiedChars = 0;
  for (let at = TOKEN.length; at <= ANSWER_CHARS; at += TOKEN.length)
    if (isFlatDue(at - TOKEN.length, at)) copiedChars += at;
  expect(copiedChars).toBeGreaterThan(ANSWER_CHARS);
  expect(copiedChars).toBeLessThan(ANSWER_CHARS * 20);
});

test("a text that is stored again in one piece does not change", () => {
  const tokens = 50_000;
  let text = "";
  for (let at = 0; at < tokens; at += 1) text = grown(text, TOKEN);
  expect(text).toBe(TOKEN.repeat(tokens));
});
