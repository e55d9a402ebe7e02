// Formats Markdown for WhatsApp, which has other marks and no escape characters.

import { expect, test } from "vitest";
import { formatText } from "../../../src/features/whatsapp/format.ts";
import { seenText } from "../../kit/platforms/whatsapp-server.ts";
import { fakeWorld } from "../../kit/world.ts";

const J = "\u2060";

const TEXTS: [string, string][] = [
  ["**bold** and _slanted_ and ~~struck~~", "*bold* and _slanted_ and ~struck~"],
  ["**bold _both_ bold**", "*bold _both_ bold*"],
  ["***all***", "_*all*_"],
  ["# A title", "*A title*"],
  ["`x < y`", "`x < y`"],
  ["`` a`b ``", "```a`b```"],
  ["```ts\nconst x = 2 * 3;\n```", "```const x = 2 * 3;```"],
  ["[here](https://example.org/a_b_c)", "here (https://example.org/a_b_c)"],
  ["https://example.org/_x_/*y*", "https://example.org/_x_/*y*"],
  ["> said\n> twice\n\nanswer", "> said\n> twice\n\nanswer"],
  ["- one\n- **two**", "• one\n• *two*"],
  ["a < b & c > d", "a < b & c > d"],
  // WF2: text that is not a mark in WhatsApp stays unchanged.
  ["2 * 3 * 4", "2 * 3 * 4"],
  ["snake_case_name and a * b", "snake_case_name and a * b"],
  ["*.ts and *.js", "*.ts and *.js"],
  ["5 * x, y*", "5 * x, y*"],
  // WF2: text that WhatsApp would treat as formatting is escaped.
  ["\\*not bold\\*", `${J}*${J}not bold${J}*${J}`],
  ["call `f()` with \\_x\\_", `call \`f()\` with ${J}_${J}x${J}_${J}`],
  ["\\`a\\` b", `\`${J}a\`${J} b`],
  // WF1: marks are placed only around whole words, within a line.
  ["un**frigging**believable", "unfriggingbelievable"],
  ["**two\nlines**", "*two*\n*lines*"],
  ["**a\\* b**", `*a${J}*${J} b*`],
];
test.each(TEXTS)("WF: %j", (markdown, wanted) => {
  expect(formatText(markdown).sent).toBe(wanted);
});

test("WF3: if formatting makes a text too long, the text is sent without formatting", () => {
  const markdown = "**a** ".repeat(660);
  expect(formatText(markdown).sent.length).toBeLessThanOrEqual(4096);
  const dense = "\\*a\\* ".repeat(660);
  const { sent, seen } = formatText(dense);
  expect(sent.length).toBeLessThanOrEqual(4096);
  expect(seen).not.toContain("\\");
});

test("for every text, people see exactly its words", () => {
  const world = fakeWorld({ seed: 7 });
  const pieces = [
    "*",
    "**",
    "_",
    "~",
    "~~",
    "`",
    "```",
    "\\*",
    "\\_",
    " ",
    " ",
    "\n",
    "a",
    "bc",
    "é",
    "1",
    ".",
    "> ",
    "- ",
    "😀",
  ];
  const pick = (): string => pieces[Math.floor(world.random() * pieces.length)] ?? "";
  for (let round = 0; round < 3_000; round += 1) {
    const markdown = Array.from({ length: 1 + Math.floor(world.random() * 16) }, pick).join("");
    const { sent, seen } = formatText(markdown);
    expect({ markdown, seen: seenText(sent) }).toEqual({ markdown, seen });
  }
});

test("a text full of formatting marks is converted in linear time", () => {
  for (const text of ["*a ".repeat(1_300), "_*~`".repeat(1_000), "`".repeat(4_000), "> ".repeat(2_000)]) {
    expect(formatText(text).sent.length).toBeLessThanOrEqual(4096);
  }
});
