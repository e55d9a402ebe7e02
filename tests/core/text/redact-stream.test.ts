import fc from "fast-check";
import { expect } from "vitest";
import { Redactor } from "../../../src/core/text/redact/redact.ts";
import { rounds, both as test } from "../../kit/deep.ts";

const letters = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbCdEfGhIjKlMn";
const SECRETS = [
  `sk-proj-${letters}`,
  `AKIA${"ABCDEFGH12345678"}`,
  `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${letters.slice(0, 30)}`,
  `123456789:AA${letters.slice(0, 33)}`,
  `password="${letters} two words"`,
  `{\\"token\\":\\"${letters}\\"}`,
  `Authorization: Bearer ${letters}`,
  `Cookie: sid=${letters}; b=2`,
  `postgres://me:${letters}@host/db`,
  `-----BEGIN PRIVATE KEY-----\n${letters}\n${letters}\n-----END PRIVATE KEY-----`,
  `-----BEGIN PRIVATE KEY-----\n${letters}\n${letters}\n`,
  `--api-key ${letters}`,
  `password=${letters}\\`,
];

function inPieces(redactor: Redactor, text: string, sizes: readonly number[]): string {
  const stream = redactor.stream();
  let out = "";
  for (let at = 0, turn = 0; at < text.length; turn += 1) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1);
    out += stream.push(text.slice(at, at + size));
    at += size;
  }
  return out + stream.end();
}

test.each(SECRETS)("I14: no piece shows a part of %j", (secret) => {
  const redactor = new Redactor([]);
  const text = `before ${secret} after it\n`;
  const whole = redactor.mask(text);
  const stream = redactor.stream();
  let shown = "";
  for (const char of text) {
    shown += stream.push(char);
    expect(whole.startsWith(shown)).toBe(true);
  }
});

test("I14: a known secret is redacted across pieces, even if secrets overlap or repeat", () => {
  const redactor = new Redactor(["hunter-two", "two-hunter", "ababab"]);
  for (const text of ["hunter-two-hunter", "abababababab!", "x hunter-tw", "[redacted]hunter-two[redac"]) {
    for (const size of [1, 2, 3, 7]) expect(inPieces(redactor, text, [size])).toBe(redactor.mask(text));
  }
});

const part = fc.oneof(
  fc.constantFrom(...SECRETS, "[redacted]", "[redac", "hunter-two", "hunter-", "\\", '"', " ", "\n", "word "),
  fc.constantFrom(...SECRETS).chain((secret) => fc.nat(secret.length).map((end) => secret.slice(0, end))),
  fc.string({ maxLength: 12 }),
);

test("ordinary text is returned at once, except its last word", () => {
  const stream = new Redactor(["a-known-secret"]).stream();
  let shown = "";
  let text = "";
  for (const word of "The task of Monday is to read a note, and to answer it: maybe at 10 or 11.".split(
    " ",
  )) {
    text += `${word} `;
    shown += stream.push(`${word} `);
    expect(text.length - shown.length).toBeLessThanOrEqual(word.length + 1);
  }
});

test("RD6, I14: redacting a long text in pieces gives the same result as at once, and lets other work run", async () => {
  const redactor = new Redactor(["hunter-two"]);
  let turns = 0;
  redactor.pacedBy(() => async () => {
    turns += 1;
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { maxLength: 40 }),
      fc.integer({ min: 65_400, max: 66_000 }),
      fc.integer({ min: 1, max: 140_000 }),
      async (parts, lead, charsMax) => {
        const text = `${"word ".repeat(lead / 5)}${parts.join("")}${"\nmore".repeat(14_000)}`;
        const before = turns;
        const masked = redactor.mask(text);
        expect(await redactor.whole(text)).toBe(masked);
        expect(turns - before).toBeGreaterThan(1);
        const start = await redactor.start(text, charsMax);
        expect(start.whole).toBe(masked.length <= charsMax);
        expect(masked.startsWith(start.text)).toBe(true);
        expect(start.text.length).toBe(Math.min(masked.length, charsMax));
      },
    ),
    { numRuns: rounds(5, 30) },
  );
});
