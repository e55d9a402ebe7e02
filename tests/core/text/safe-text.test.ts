import fc from "fast-check";
import { expect, test } from "vitest";
import { growingText, safeJson, safeLine, safeText, visibleText } from "../../../src/core/text/safe-text.ts";
import { anyCharacter } from "../../fuzz/nasty.ts";

const anyText = fc.string({
  unit: fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 1 }),
    fc.constantFrom("\r", "\n", "\x1b", "\u009b", "😀"),
  ),
});
// All characters that control a terminal, except line breaks and tabs.
const OBEYED = /[^\P{Cc}\t\n]/u;

test("an escape sequence in a text is shown, not executed", () => {
  expect(safeText("\x1b]0;title\x07 \x1b[2J \u009b31m")).toBe("\\x1b]0;title\\x07 \\x1b[2J \\x9b31m");
});

test("a carriage return cannot overwrite the text before it", () => {
  expect(safeText("balance: 5\rbalance: 9\r\n")).toBe("balance: 5balance: 9\n");
});

test("reversed or hidden text is shown escaped", () => {
  expect(safeText("\u202egnp.exe \u200b \u2028")).toBe("\\u{202e}gnp.exe \\u{200b} \\u{2028}");
});

test("letters of all scripts, and emoji, stay unchanged", () => {
  for (const text of ["Grüße", "日本語", "می‌خواهم", "👩‍💻 ok", "a\tb\nc"]) expect(safeText(text)).toBe(text);
});

test("a key or a label never has more than one line", () => {
  expect(safeLine("a\nb\tc")).toBe("a\\nb c");
  expect(safeLine(visibleText("a\n\tb"))).toBe("a⏎ ⇥ b");
});

test("ST1: for any text, no character that controls a terminal remains", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(OBEYED.test(safeText(text))).toBe(false);
      expect(OBEYED.test(safeJson({ [text]: text }))).toBe(false);
    }),
  );
});

test("ST1: JSON has the same value before and after escaping", () => {
  fc.assert(
    fc.property(fc.jsonValue(), anyText, (value, text) => {
      const document = { value, text: text.toWellFormed() };
      expect(JSON.parse(safeJson(document))).toEqual(JSON.parse(JSON.stringify(document)));
    }),
  );
});

test("ST2: the escaped text of a stream only grows, and at the end equals the escaped whole text", () => {
  fc.assert(
    fc.property(anyText, fc.nat(), (text, at) => {
      const whole = text.toWellFormed();
      const begun = growingText(whole.slice(0, at % (whole.length + 1)));
      expect(growingText(whole).startsWith(begun)).toBe(true);
      expect(growingText(whole)).toBe(safeText(whole));
    }),
  );
});

test("escaping a safe text again changes nothing", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(safeText(safeText(text))).toBe(safeText(text));
    }),
  );
});
