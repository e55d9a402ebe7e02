// Answers of models that embed thinking or tool calls in their text.

import fc from "fast-check";
import { HiddenText, splitHidden } from "../../../src/core/text/hidden-text.ts";
import { damagedText } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

/** A part of a model's answer, and the visible text in it. */
interface Part {
  readonly written: string;
  readonly seen: string;
  readonly secret?: string;
}

const THINKING = ["think", "thinking", "thought", "THINK", "Thinking"];
const TOOLS = ["invoke", "function_calls", "tool_call", "antml:invoke", "tool_calls"];
const words = fc.stringMatching(/^[a-z0-9 ,.!?äöü😀()]{1,40}$/u);
const number = fc.integer({ min: 1_000_000, max: 9_999_999 });
const markup = fc.constantFrom(
  ...[
    "<think>",
    "</think>",
    "<think>x</think>",
    "<invoke name='a'>",
    "</tool_call>",
    "[Tool Call: a]",
    "[THINK]",
  ],
);

const plain: fc.Arbitrary<Part> = words.map((written) => ({ written, seen: written }));
const hidden: fc.Arbitrary<Part> = fc.oneof(
  fc.tuple(fc.constantFrom(...THINKING), number, words).map(([name, secret, more]) => ({
    written: `<${name}>${more}\nsecret${secret}\n</${name}>`,
    seen: "",
    secret: `secret${secret}`,
  })),
  fc.tuple(fc.constantFrom(...TOOLS), number, words).map(([name, secret, more]) => ({
    written: `<${name} a="b">${more}secret${secret}</${name}>`,
    seen: "",
    secret: `secret${secret}`,
  })),
  number.map((secret) => ({
    written: `[Tool Call: read (ID: 1)]\nArguments: {"path": "secret${secret}", "x": ["}]"]}`,
    seen: "",
    secret: `secret${secret}`,
  })),
  number.map((secret) => ({
    written: `[Tool Result for ID 1]\nsecret${secret}`,
    seen: "",
    secret: `secret${secret}`,
  })),
);
const kept: fc.Arbitrary<Part> = fc.oneof(
  fc.tuple(fc.constantFrom("```", "~~~", "````", "```xml"), markup, words).map(([fence, tag, more]) => {
    const written = `${fence}\n${more}${tag}\n${tag}\n${fence.replace("xml", "")}`;
    return { written, seen: written };
  }),
  fc.tuple(fc.constantFrom("`", "``"), markup, words).map(([mark, tag, more]) => {
    const written = `x${more}${mark}${tag}${mark}${more}`;
    return { written, seen: written };
  }),
  fc
    .tuple(fc.constantFrom('""', "''", "“”", "«»"), fc.constantFrom("<think>", "</think>"))
    .map(([quotes, tag]) => {
      const written = `x ${quotes.charAt(0)}${tag}${quotes.charAt(1)} y`;
      return { written, seen: written };
    }),
);

interface HiddenInput {
  readonly parts: readonly Part[];
  /**
   * Not null if the answer begins inside thinking, because the model's template contains the opening tag.
   */
  readonly opened: number | null;
  /** Not null if the last thinking block is never closed. */
  readonly unclosed: number | null;
  readonly damaged: string;
  readonly cuts: readonly number[];
}

const LINES = "\n\n";
const solid = (text: string): string => text.replace(/\s+/g, "");
const pieces = [
  ...[
    "<think>",
    "</think>",
    "<think ",
    "</",
    ">",
    "<",
    "[",
    "]",
    "/THINK]",
    "`",
    "``",
    "```",
    "~~~",
    "\n",
    " ",
  ],
  ...['"', "\\", "word", "<tool_call>", "</tool_call>", "[Tool Call: x]", "{", "}", "[Tool Result: y]\n"],
];
const marks = fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((all) => all.join(""));
const monotonous = fc
  .tuple(fc.constantFrom(...pieces), fc.constantFrom(...pieces), fc.nat(3_000))
  .map(([one, other, count]) => (one + other).repeat(count));

/** Returns the texts that a reader sees while the answer streams, and at its end. */
function streamed(text: string, cuts: readonly number[]) {
  const split = new HiddenText();
  let seen = "";
  const take = (next: { text: string; restarted: boolean }): void => {
    seen = next.restarted ? next.text : seen + next.text;
    must(seen === split.visible, "the pieces are not the visible text");
  };
  let pushes = 0;
  for (let from = 0; from < text.length; pushes += 1) {
    const size = Math.max(1, cuts[pushes % Math.max(1, cuts.length)] ?? 1);
    take(split.push(text.slice(from, from + size)));
    from += size;
  }
  take(split.end());
  return { seen, hidden: split.hidden, steps: split.steps, pushes };
}

function checkParts({ parts, opened, unclosed, cuts }: HiddenInput): void {
  const head = opened === null ? "" : `words\nsecret${opened}\n</think>`;
  const tail = unclosed === null ? "" : `${LINES}<think>never secret${unclosed}`;
  const text = `${head}${parts.map(({ written }) => `${LINES}${written}`).join("")}${tail}`;
  const secrets = [opened, unclosed].flatMap((secret) => (secret === null ? [] : [`secret${secret}`]));
  const { seen, hidden } = streamed(text, cuts);
  for (const secret of [...secrets, ...parts.flatMap(({ secret }) => secret ?? [])]) {
    must(!seen.includes(secret), `${secret} of ${shown(text)} is seen: ${shown(seen)}`);
    must(hidden.includes(secret), `${secret} of ${shown(text)} is lost`);
  }
  const expected = parts.map(({ seen: part }) => part).join("");
  must(solid(seen) === solid(expected), `${shown(text)} is seen as ${shown(seen)}`);
  for (const part of parts) must(seen.includes(part.seen.trim()), `${shown(part.seen)} was changed`);
}

export const hiddenText: FuzzTarget<HiddenInput> = {
  name: "hidden-text",
  proves:
    "thinking and written tool calls are never seen, code that mentions them is, however the text is cut, in bounded work",
  inputs: fc.record({
    parts: fc.array(fc.oneof(plain, hidden, kept), { maxLength: 8 }),
    opened: fc.option(number, { freq: 4 }),
    unclosed: fc.option(number, { freq: 4 }),
    damaged: fc.oneof(
      { weight: 20, arbitrary: damagedText(marks) },
      { weight: 4, arbitrary: nastyText(20_000) },
      { weight: 1, arbitrary: monotonous },
    ),
    cuts: fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 400 })), {
      minLength: 1,
      maxLength: 6,
    }),
  }),
  roundRuns: 2_000,
  ciRuns: 2_000,
  open: () => ({
    check(input) {
      checkParts(input);
      const { damaged, cuts } = input;
      const whole = splitHidden(damaged);
      const { seen, hidden, steps } = streamed(damaged, cuts);
      must(
        seen === whole.visible,
        `cut up, ${shown(damaged)} is seen as ${shown(seen)}, not ${shown(whole)}`,
      );
      must(hidden === whole.hidden, `cut up, ${shown(damaged)} hides ${shown(hidden)}`);
      must(steps <= 1_000 + damaged.length * 700, `${steps} steps for ${damaged.length} characters`);
      const isPlain = !/[<[]/.test(damaged);
      must(!isPlain || (seen === damaged && hidden === ""), "a text without tags was changed");
    },
  }),
};
