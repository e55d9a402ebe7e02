// Parses Markdown into text with marks. Text without markup stays unchanged, marks are valid, and hostile
// text has limits.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MarkedText, plainText, readMarkdown, spelledOut } from "../../src/channels/markdown.ts";
import { anyCharacter } from "../fuzz/nasty.ts";

/** Formats each mark as `kind "text"`, with its other fields. */
function said({ text, marks }: MarkedText): string[] {
  return marks.map(({ kind, from, to, href, language }) =>
    [kind, JSON.stringify(text.slice(from, to)), href ?? language].filter(Boolean).join(" "),
  );
}

function shapeProblems({ text, marks }: MarkedText): string[] {
  const half = (at: number): boolean => /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(at - 1, at + 1));
  return marks.flatMap((mark, index) => {
    const { from, to, kind } = mark;
    const problems: string[] = [];
    if (!(from >= 0 && from < to && to <= text.length))
      problems.push(`${kind} ${from}-${to} is out of bounds`);
    if (half(from) || half(to)) problems.push(`${kind} ${from}-${to} cuts a character`);
    for (const before of marks.slice(0, index)) {
      if (before.from > from || (before.from === from && before.to < to)) problems.push("not sorted");
      if (before.to > from && before.to < to) problems.push(`${before.kind} and ${kind} overlap`);
      if (before.to > from && before.kind === kind) problems.push(`${kind} is inside its own kind`);
    }
    return problems;
  });
}

const word = fc.string({
  unit: fc.constantFrom(
    ..."abcXYZ019.,;:?()'\"/%$§äßжあ字",
    "\u{1F469}\u200D\u{1F4BB}",
    "\u{1F600}",
    "\u0301",
  ),
  minLength: 1,
  maxLength: 8,
});
const line = fc
  .array(word, { minLength: 1, maxLength: 6 })
  .map((words) => `x${words.join(" ")}`)
  // Skips texts with addresses, because addresses get marks.
  .filter((text) => !/:\/\/|www\./i.test(text));
const unmarked = fc
  .array(fc.tuple(line, fc.constantFrom("\n", "\n\n")), { minLength: 1, maxLength: 6 })
  .map((lines) =>
    lines
      .map(([text, end]) => text + end)
      .join("")
      .trimEnd(),
  );

describe("MK1: text without markup stays unchanged", () => {
  test("any text without markup is returned unchanged", () => {
    fc.assert(
      fc.property(unmarked, (text) => {
        expect(readMarkdown(text)).toEqual({ text, marks: [] });
      }),
    );
  });

  test.each([
    "2 * 3 * 4",
    "a_b_c and snake_case_name",
    "a < b & c > d",
    "<b>bold?</b> &lt;i&gt; &amp; &copy;",
    "<div>\n<p>two lines</p>\n</div>",
    "#hashtag, +1, -5 and 3.14",
    "C:\\Users\\x",
    "** not bold ** and * not slanted *",
    "an [open bracket, and a (closed) one]",
    "trailing # and | and ~ and ^",
    "[1]: https://example.org/a-footnote-that-nothing-refers-to",
    "\u202Eevil\u200B \u0000 \u{1F469}\u200D\u{1F4BB}",
  ])("%j", (text) => {
    expect(readMarkdown(text)).toMatchObject({ text });
    expect(readMarkdown(text).marks.filter(({ kind }) => kind !== "link")).toEqual([]);
  });

  test("several empty lines become one, and line ends are normalized", () => {
    expect(readMarkdown("one\r\n\r\n\r\n\r\ntwo\r\nthree\n\n\n").text).toBe("one\n\ntwo\nthree");
  });

  test("a lone surrogate becomes a replacement character", () => {
    expect(readMarkdown("a\uD83Db").text).toBe("a\uFFFDb");
  });

  test.each(["", "\n", "-", "***", "#"])("text that consists of markup only is not empty: %j", (text) => {
    const shown = readMarkdown(text).text;
    expect([text, "———"]).toContain(shown);
  });
});

describe("what becomes of markup", () => {
  const CASES: [string, string, string[]][] = [
    [
      "**bold** and _slanted_ and ~~gone~~",
      "bold and slanted and gone",
      ['bold "bold"', 'italic "slanted"', 'strike "gone"'],
    ],
    ["***both***", "both", ['italic "both"', 'bold "both"']],
    ["`x < y` and ``a ` b``", "x < y and a ` b", ['code "x < y"', 'code "a ` b"']],
    ["# Head *line*\ntext", "Head line\ntext", ['bold "Head line"', 'italic "line"']],
    ["```ts title=x\nlet **a**;\n\nb\n```\nafter", "let **a**;\n\nb\nafter", ['pre "let **a**;\\n\\nb" ts']],
    ["```\nnever closed", "never closed", ['pre "never closed"']],
    ["- a\n- b\n  - c\n\n3) x\n4) y", "• a\n• b\n  • c\n\n3) x\n4) y", []],
    ["1. one\n   goes on\n\n   and on\n2. two", "1. one\n   goes on\n\n   and on\n\n2. two", []],
    ["- [ ] open\n- [x] done", "• ☐ open\n• ☑ done", []],
    ["|a|b|\n|-|-|\n|`x`|**y**|", "a | b\nx | y", ['bold "a | b"', 'code "x"', 'bold "y"']],
    ["above\n\n---\n\nbelow", "above\n\n———\n\nbelow", []],
    ["\\*no\\* \\_no\\_", "*no* _no_", []],
    ["one  \ntwo\\\nthree", "one\ntwo\nthree", []],
    ["[here](https://e.org/x_y)", "here", ['link "here" https://e.org/x_y']],
    ["[**a** b](mailto:a@e.org)", "a b", ['link "a b" mailto:a@e.org', 'bold "a"']],
    ["![a cat](https://e.org/c.png)", "a cat", ['link "a cat" https://e.org/c.png']],
    ["[![badge](https://e.org/i)](https://e.org/l)", "badge", ['link "badge" https://e.org/l']],
    ["[](https://e.org)", "https://e.org", ['link "https://e.org" https://e.org']],
    ["[x](javascript:alert(1)) [f](src/a.ts)", "x (javascript:alert(1)) f (src/a.ts)", []],
    ["> q **b**\n> > deep\n\ntext", "q b\ndeep\n\ntext", ['quote "q b\\ndeep"', 'bold "b"']],
    ["**a [b](https://e.org)**", "a b", ['bold "a b"', 'link "b" https://e.org']],
    [
      "- item\n  ```\n  code\n    more\n  ```\n  after",
      "• item\ncode\n  more\n  after",
      ['pre "code\\n  more"'],
    ],
  ];
  test.each(CASES)("%j", (markdown, text, marks) => {
    const read = readMarkdown(markdown);
    expect(read.text).toBe(text);
    expect(said(read)).toEqual(marks);
    expect(shapeProblems(read)).toEqual([]);
  });
});

describe("MK4: links and quotes written out", () => {
  const CASES: [string, string, string[]][] = [
    ["[here](https://e.org) **b**", "here (https://e.org) b", ['bold "b"']],
    ["[here](https://e.org)**b**", "here (https://e.org)b", ['bold "b"']],
    [
      "https://e.org/ <https://e.org> www.e.org a@e.org",
      "https://e.org/ https://e.org www.e.org a@e.org",
      [],
    ],
    [
      "**x [a](https://e.org) y** _z_",
      "x a (https://e.org) y z",
      ['bold "x a (https://e.org) y"', 'italic "z"'],
    ],
    [
      "> one **two**\n>\n> three\n\n_after_",
      "> one two\n> \n> three\n\nafter",
      ['bold "two"', 'italic "after"'],
    ],
    ["- a\n  > q\n  > r", "• a\n  > q\n  > r", []],
  ];
  test.each(CASES)("%j", (markdown, text, marks) => {
    const out = spelledOut(readMarkdown(markdown));
    expect(out.text).toBe(text);
    expect(said(out)).toEqual(marks);
    expect(plainText(readMarkdown(markdown))).toBe(text);
  });
});

describe("MK2, MK3: any text", () => {
  const piece = fc.constantFrom(
    ...[
      "*",
      "**",
      "_",
      "__",
      "~",
      "~~",
      "`",
      "```",
      "\n",
      "\n\n",
      "> ",
      "- ",
      "1. ",
      "  ",
      "    ",
      "# ",
      "|",
      "|-|",
    ],
    ...[
      "[",
      "](",
      ")",
      "![",
      "](https://e.org)",
      "<",
      ">",
      "&",
      "\\",
      "a",
      "b c",
      "\u{1F600}",
      "\uD83D",
      "\uDE00",
    ],
    ...["---", "=", "[x] ", "https://e.org/a", "<b>", "\t", "\u0000", "é", "\u0301"],
  );
  const wild = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(""));

  test("marks are in bounds, sorted, properly nested, never empty, and never begin or end within a character", () => {
    fc.assert(
      fc.property(fc.oneof(wild, fc.string({ unit: anyCharacter, maxLength: 80 })), (text) => {
        const read = readMarkdown(text);
        expect(shapeProblems(read)).toEqual([]);
        expect(shapeProblems(spelledOut(read))).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  test("without fenced code blocks and tables, a text loses no word", () => {
    const letters = (text: string): number => text.replace(/[^bcé\u{1F600}]/gu, "").length;
    const tame = wild.filter((text) => !/`{3}|~{3}|\|/.test(text));
    fc.assert(
      fc.property(tame, (text) => {
        expect(letters(plainText(readMarkdown(text)))).toBeGreaterThanOrEqual(letters(text.toWellFormed()));
      }),
      { numRuns: 1_000 },
    );
  });

  test.each([
    ["brackets", "[".repeat(10_000)],
    ["pictures", "![".repeat(10_000)],
    ["deep quotes", `${">".repeat(10_000)}a`],
    ["deep lists", `${"- ".repeat(5_000)}a`],
    ["stars", "*a ".repeat(10_000)],
    ["stars without end", "**a*".repeat(5_000)],
    ["a megabyte", "word ".repeat(200_000)],
    ["pairs", `${"*_".repeat(4_000)}a${"_*".repeat(4_000)}`],
  ])("hostile text is either parsed or returned as plain text, and is never cut: %s", (_name, text) => {
    const read = readMarkdown(text);
    expect(shapeProblems(read)).toEqual([]);
    expect(read.text.length).toBeGreaterThan(text.length / 10);
  });
});

test.each(["a__", "a*", "Aa0_", "~a"])(
  "TM1: a long text with a mark %j after each word is plain text",
  (unit) => {
    const text = unit.repeat(40_000 / unit.length);
    expect(readMarkdown(text)).toEqual({ text, marks: [] });
    expect(readMarkdown(`${"word ".repeat(7_000)}**bold**`).marks).toHaveLength(1);
  },
);
