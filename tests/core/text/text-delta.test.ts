// Texts that grow.

import { expect, test } from "vitest";
import { isFlatDue, joinedDeltas, LongText } from "../../../src/core/text/text-delta.ts";
import { dice } from "../../kit/dice.ts";

const TOKEN = "word00042\n";
const ANSWER_CHARS = 4 * 1024 * 1024;

test("all copies of a growing text together are at most twenty times as long as the text", () => {
  let copiedChars = 0;
  for (let at = TOKEN.length; at <= ANSWER_CHARS; at += TOKEN.length)
    if (isFlatDue(at - TOKEN.length, at)) copiedChars += at;
  expect(copiedChars).toBeGreaterThan(ANSWER_CHARS);
  expect(copiedChars).toBeLessThan(ANSWER_CHARS * 20);
});

test("a text that grows by small pieces is the text of all pieces", () => {
  const tokens = 50_000;
  const text = new LongText();
  for (let at = 0; at < tokens; at += 1) text.append(TOKEN);
  expect(text.length).toBe(tokens * TOKEN.length);
  expect(text.text).toBe(TOKEN.repeat(tokens));
});

test("a text after any changes is the same as a string after them, whenever it is read", () => {
  const seed = process.env.PARLEY_SEED ?? String(Date.now());
  const luck = dice(seed);
  for (let story = 0; story < 30; story += 1) {
    const long = new LongText();
    let plain = "";
    for (let step = 0; step < 60; step += 1) {
      const text = String(step).repeat(luck.of([0, 1, 5, 9_000, 40_000]));
      const offset = luck.chance(0.8) ? plain.length : luck.below(plain.length + 10);
      const fits = offset <= plain.length;
      expect(long.change({ offset, text }), `PARLEY_SEED=${seed}`).toBe(fits);
      if (fits) plain = plain.slice(0, offset) + text;
      expect(long.length, `PARLEY_SEED=${seed}`).toBe(plain.length);
      if (luck.chance(0.3))
        expect(long.text === plain, `PARLEY_SEED=${seed}, story ${story}, step ${step}`).toBe(true);
    }
    expect(long.text === plain, `PARLEY_SEED=${seed}, story ${story}`).toBe(true);
  }
});

test("a long text knows whether it is the beginning of another, without being copied", () => {
  const text = new LongText("a");
  for (let at = 0; at < 10; at += 1) text.append(String(at).repeat(10_000));
  const whole = text.text;
  for (const more of ["", "b"]) expect(text.begins(whole + more)).toBe(true);
  for (const at of [0, 1, 50_000, whole.length - 1])
    expect(text.begins(`${whole.slice(0, at)}x${whole.slice(at + 1)}`), String(at)).toBe(false);
  expect(text.begins(whole.slice(0, -1))).toBe(false);
  text.append("c");
  expect(text.begins(`${whole}c`)).toBe(true);
  expect(text.begins(`${whole}d`)).toBe(false);
  expect(new LongText().begins("")).toBe(true);
});

test("two changes are merged, unless one between them is missing", () => {
  const first = { offset: 4, text: "abc" };
  expect(joinedDeltas(first, { offset: 7, text: "de" })).toEqual({ offset: 4, text: "abcde" });
  expect(joinedDeltas(first, { offset: 5, text: "x" })).toEqual({ offset: 4, text: "ax" });
  expect(joinedDeltas(first, { offset: 2, text: "y" })).toEqual({ offset: 2, text: "y" });
  expect(joinedDeltas(first, { offset: 8, text: "z" })).toBeUndefined();
});
