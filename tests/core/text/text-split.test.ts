import { expect } from "vitest";
import { splitText } from "../../../src/core/text/text-split.ts";
import { checkSplit } from "../../fuzz/targets/texts.ts";
import { both as test } from "../../kit/deep.ts";

const check = (text: string, max: number): string[] => checkSplit({ text, max });

test("a text that fits is returned unchanged, and a text that contains only blanks gives no part", () => {
  const text = "  keep\n\n```js\nopen fence";
  expect(splitText(text, 32)).toEqual([text]);
  expect(splitText("", 100)).toEqual([]);
  expect(splitText(" \n\t ", 100)).toEqual([]);
  expect(splitText("\n".repeat(5000), 100)).toEqual([]);
});

test("blanks that would fill a whole part are dropped, before, between and within lines", () => {
  for (const blanks of [" ".repeat(31), " ".repeat(32), "\t".repeat(33), " ".repeat(500)]) {
    for (const word of ["x", "😀", "```\na\n```"]) {
      for (const text of [
        `${blanks}${word}`,
        `a\n${blanks}${word}`,
        `${word}\n\n${blanks}b`,
        `a${blanks}${word}`,
      ]) {
        check(text, 32);
      }
    }
  }
  expect(splitText(`${" ".repeat(300_000)}x`, 32)).toEqual(["x"]);
});

test("TS4: a text is split after a paragraph if possible, else after a line, else after a word", () => {
  const a = "a".repeat(20);
  expect(splitText(`${a}\n${a}\n\n${a}\n${a}`, 70)).toEqual([`${a}\n${a}`, `${a}\n${a}`]);
  expect(splitText(`${a}\n${a}\n${a}`, 50)).toEqual([`${a}\n${a}`, a]);
  expect(splitText(`${a} ${a} ${a}`, 50)).toEqual([`${a} ${a}`, a]);
});

test("TS4: a word is split only if it is longer than a part", () => {
  expect(splitText(`hi ${"x".repeat(40)} end`, 40)).toEqual(["hi", "x".repeat(40), "end"]);
  expect(splitText("x".repeat(100), 40)).toEqual(["x".repeat(40), "x".repeat(40), "x".repeat(20)]);
});

test("TS3: if a code block is split, it is closed in one part and opened again in the next, with its language", () => {
  const lines = Array.from({ length: 6 }, (_, at) => `line number ${at}`);
  const parts = splitText(["```python", ...lines, "```"].join("\n"), 60);
  expect(parts).toEqual([
    "```python\nline number 0\nline number 1\nline number 2\n```",
    "```python\nline number 3\nline number 4\nline number 5\n```",
  ]);
});

test("TS2: indentation and blank lines inside code are kept", () => {
  const text = ["```", "if a:", "    b()", "", "    c()", "else:", "    d()", "```"].join("\n");
  const code = splitText(text, 34).map((part) => part.split("\n").slice(1, -1).join("\n"));
  expect(code.join("\n")).toBe(text.split("\n").slice(1, -1).join("\n"));
});

test("TS2: blank lines at a cut within code are kept", () => {
  const line = "a".repeat(20);
  expect(check(`word word\n\`\`\`\n${line}\n\n\n\n\`\`\``, 40)).toEqual([
    `word word\n\`\`\`\n${line}\n\n\n\`\`\``,
    "```\n\n```",
  ]);
});

test("TS3: a code block that fits into a part is not split if the part can end before it", () => {
  const block = "```\none\ntwo\n```";
  expect(splitText(`${"word ".repeat(10)}\n\n${block}`, 60)).toEqual(["word ".repeat(10).trim(), block]);
});

test("TS1: a long text is split in one pass", () => {
  const text = "word ".repeat(100_000);
  expect(check(text.slice(0, 20_000), 500).length).toBe(40);
  expect(splitText(text, 4000).join(" ")).toBe(text);
});

test.each([
  ["\n", 60],
  ["\r\n", 60],
  ["    \n", 60],
])(
  "TS2: empty lines (%j) in a fence become separate parts if they do not fit into one part",
  (blank, count) => {
    for (const text of [
      `\`\`\`\n${blank.repeat(count)}x\n\`\`\``,
      `\`\`\`js\na\n${blank.repeat(count)}> \`\`\``,
    ])
      check(text, 32);
  },
);

test("TS3: a fence line may contain a line separator or a carriage return", () => {
  for (const sign of ["\u2028", "\u2029", "\r"]) {
    const parts = splitText(`\`\`\`js${sign}x\n${"word\n".repeat(20)}\`\`\``, 32);
    for (const part of parts) expect(part.split("```")).toHaveLength(3);
  }
});

const FAMILY = "👨‍👩‍👧‍👦";

test.each([
  ["a family", FAMILY],
  ["a flag", "🇩🇪"],
  ["a flag after a letter", "🇫🇷", "a"],
  ["a flag of a region", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"],
  ["a skin tone", "👍🏽"],
  ["a heart with its form", "❤️"],
  ["a letter with two accents", "o\u0302\u0301"],
  ["a syllable of Devanagari", "क्षि"],
  ["a syllable of Hangul letters", "각"],
])("TS1: no part ends within %s", (_, sign, before = "") => {
  for (const max of [32, 33, 1_900, 4_000]) {
    const text = before + sign.repeat(700);
    const parts = splitText(text, max);
    expect(parts.join("")).toBe(text);
    for (const part of parts) {
      expect(part.length).toBeLessThanOrEqual(max);
      expect(part.replace(before, "").replaceAll(sign, "")).toBe("");
    }
    check(`\`\`\`\n${text}\n\`\`\``, Math.max(max, 64));
  }
});

test("TS1: a sign that is too long for a part is split, and its text is whole", () => {
  for (const text of [`o${"\u0301".repeat(100_000)}`, `a ${"\u200d🎉".repeat(30_000)}`]) {
    const parts = check(text, 4_000);
    expect(parts.length).toBeLessThan(40);
  }
  for (const part of check(FAMILY.repeat(9), 32)) expect(part).toMatch(/^(?:👨‍👩‍👧‍👦)+$/u);
});
