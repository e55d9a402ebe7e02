// Texts inside the gateway: split into messages of a channel, redacted, and checked for skip tokens.

import fc from "fast-check";
import {
  announceContext,
  heldChars,
  isSilent,
  messageContext,
  spokenText,
  subagentAnnounceContext,
  TOKEN_TAIL_CHARS,
} from "../../../src/core/rules/turn-rules.ts";
import { formatKey } from "../../../src/core/shapes/session-key.ts";
import { Redactor } from "../../../src/core/text/redact/redact.ts";
import { splitText } from "../../../src/core/text/text-split.ts";
import { damagedText } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

const MARKS = [
  "`",
  "```",
  "~~~",
  "````",
  "```ts\n",
  "\n```\n",
  "\n~~~~\n",
  "> ```",
  "\n",
  "\n\n",
  " ",
  "\t",
  "\r\n",
  "\u2028",
];
const markdown = fc
  .array(
    fc.oneof(fc.constantFrom(...MARKS), fc.constantFrom("word", "😀", "x".repeat(200)), nastyText(300)),
    {
      maxLength: 40,
    },
  )
  .map((pieces) => pieces.join(""));
const anyText = fc.oneof(
  { weight: 9, arbitrary: damagedText(markdown) },
  { weight: 1, arbitrary: nastyText() },
);

/** Removes blanks: a split may lose only these. */
const solid = (text: string): string => text.replace(/\s+/g, "");

/** Returns true if `whole` contains all characters of `part` in the same order. */
function isWithin(part: string, whole: string): boolean {
  let at = 0;
  for (let from = 0; from < part.length; from += 1) {
    at = whole.indexOf(part.charAt(from), at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/**
 * Returns the code fence that is open at the end of a text. For the splitter, a line that fills much of a
 * part is ordinary text.
 */
function openFence(text: string, max: number): string {
  let open = "";
  for (const line of text.split("\n").map((one) => one.trimEnd())) {
    const [, indent = "", marker = "", info = ""] = /^([ \t]*)(`{3,}|~{3,})(.*)$/s.exec(line) ?? [];
    if (marker === "" || line.length > max / 2 || indent.length > max / 8 || marker.length > max / 8)
      continue;
    if (marker.startsWith("`") && info.includes("`")) continue;
    if (open === "") open = marker;
    else if (info.trim() === "" && marker.startsWith(open)) open = "";
  }
  return open;
}

interface SplitInput {
  readonly text: string;
  readonly max: number;
}

/** Splits a text and checks the parts. Returns them. */
export function checkSplit({ text, max }: SplitInput): string[] {
  const parts = splitText(text, max);
  const whole = parts.join("\n");
  for (const [index, part] of parts.entries()) {
    must(part.length <= max, `part ${index} has ${part.length} of ${max} characters`);
    must(solid(part) !== "", `part ${index} is empty`);
    must(part.isWellFormed() || !text.isWellFormed(), `part ${index} holds half a character`);
    if (index < parts.length - 1)
      must(openFence(part, max) === "", `part ${index} leaves its fence open: ${shown(part)}`);
  }
  must(isWithin(solid(text), solid(whole)), "a part of the text is in none of the parts");
  if (!/```|~~~/.test(text)) must(solid(whole) === solid(text), "the parts hold what the text does not");
  if (text.length <= max && solid(text) !== "")
    must(parts.length === 1 && parts[0] === text, "what fits was changed");
  return parts;
}

export const textSplit: FuzzTarget<SplitInput> = {
  name: "text-split",
  proves: "the parts hold the text, each within the limit, none with half a character or an open fence",
  inputs: fc.record({
    text: anyText,
    max: fc.oneof(fc.integer({ min: 32, max: 100 }), fc.integer({ min: 32, max: 4_096 })),
  }),
  roundRuns: 2_000,
  ciRuns: 3_000,
  open: () => ({
    check(input) {
      checkSplit(input);
    },
  }),
};

const LETTERS = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbCdEfGhIjKlMn";
const some = (least: number, most: number) =>
  fc.string({ unit: fc.constantFrom(...LETTERS.split("")), minLength: least, maxLength: most });
const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789abcdef".split("")), minLength: length, maxLength: length });
/**
 * Generates secrets with the words before them that mark them as secrets. Assembled from parts, so that no
 * secret scanner reports this file.
 */
const secret: fc.Arbitrary<readonly [string, string]> = fc.oneof(
  fc.tuple(
    fc.constantFrom("", "key ", "("),
    some(20, 60).map((tail) => `sk-ant-1${tail}`),
  ),
  fc.tuple(
    fc.constantFrom("", '"', "="),
    some(36, 36).map((tail) => `ghp_${tail}`),
  ),
  fc.tuple(
    fc.constant(""),
    some(40, 80).map((tail) => `eyJhbGciOiJI.eyJzdWIiOiIx.${tail}`),
  ),
  fc.tuple(
    fc.constant(""),
    some(16, 16).map((tail) => `AKIA${tail.toUpperCase()}`),
  ),
  fc.tuple(
    fc.constant(""),
    some(30, 40).map((tail) => `xoxb-${tail}`),
  ),
  fc.tuple(
    fc.constant("Authorization: Bearer "),
    some(24, 48).map((tail) => `7${tail}`),
  ),
  fc.tuple(
    fc.constantFrom("password=", "DB_PASSWORD=", "api_key: ", "--token "),
    some(24, 40).map((tail) => `4${tail}`),
  ),
  fc.tuple(
    fc.constantFrom('"clientSecret":"', 'token = "'),
    some(24, 40).map((tail) => `${tail}9`),
  ),
  fc.tuple(
    fc.constantFrom("https://me:", "postgres://u:"),
    hex(24).map((tail) => `${tail}`),
  ),
);

/** Repeated beginnings of secrets, which would make a backtracking search slow. */
const BEGINNINGS = [
  "-----BEGIN PRIVATE KEY-----\n",
  "-----BEGIN RSA PRIVATE KEY-----",
  "eyJaaaaaaaa.",
  "eyJaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
  "a://b:",
  "sk-a-",
  "password",
  "password=",
  "password: ",
  '"token":"',
  '\\"token\\":\\"',
  "bearer ",
  "cookie: a=",
  "--a-token ",
  "https://hooks.slack.com/services/",
  "12345678:",
  "M".repeat(30),
  "Authorization: Bearer ",
  "\\",
  " ",
  "[redacted]",
];
const monotonous = fc
  .tuple(fc.constantFrom(...BEGINNINGS), fc.constantFrom(...BEGINNINGS, "", "x", "\n"), fc.nat(300_000))
  .map(([one, other, length]) => (one + other).repeat(Math.ceil(length / (one.length + other.length))));

/** Generates known secrets: any text, values with a common beginning, values that contain each other. */
const knownValues = fc.oneof(
  fc.array(some(6, 40), { minLength: 1, maxLength: 6 }),
  fc.tuple(some(6, 30), some(1, 8), some(1, 8)).map(([a, b, c]) => [a + b, a + c, b + a, a, a + a]),
  fc.array(nastyText(60), { minLength: 1, maxLength: 3 }),
  fc
    .tuple(fc.constantFrom("a", "ab", "-", "="), fc.integer({ min: 6, max: 400 }))
    .map(([unit, length]) => [unit.repeat(length), `${unit.repeat(length)}b`]),
);

interface SecretInput {
  readonly before: string;
  readonly secret: readonly [string, string];
  readonly after: string;
  readonly hostile: string;
  readonly known: readonly string[];
  /** Positions at which texts are cut. */
  readonly cutAt: number;
}

/** Maximum number of inspected characters for each character of a text, in all passes together. */
const STEPS_PER_CHARACTER = 60;
const STEPS_ANYWAY = 20_000;
/**
 * Maximum for a text in pieces. It is larger, because held-back text is inspected again whenever it has grown
 * by an eighth.
 */
const STREAM_STEPS_PER_CHARACTER = 20 * STEPS_PER_CHARACTER;
const STEPS_PER_PIECE = 2_000;

function maskedIn(redactor: Redactor, text: string): string {
  const work = { steps: 0 };
  const masked = redactor.mask(text, work);
  const most = STEPS_ANYWAY + STEPS_PER_CHARACTER * text.length;
  must(work.steps <= most, () => `${work.steps} steps for ${text.length} characters of ${shown(text)}`);
  must(redactor.mask(masked) === masked, () => `masking again changes ${shown(masked)}`);
  return masked;
}

/** Checks that a known secret between unrelated characters is redacted, wherever the text is cut. */
function checkKnown(redactor: Redactor, value: string, { before, after, cutAt }: SecretInput): void {
  if (value.length < 6 || value.includes("\u0001")) return;
  if (value.includes("[redacted]") || "[redacted]".includes(value)) return;
  const text = `${before}\u0001${value}\u0001${after}`.replaceAll("[redacted]", "");
  if (!text.includes(`\u0001${value}\u0001`)) return;
  const middle = maskedIn(redactor, text);
  must(!middle.includes(`\u0001${value}\u0001`), () => `${shown(value)} survives: ${shown(middle)}`);
  for (const form of [JSON.stringify(text), encodeURIComponent(text.toWellFormed())]) {
    must(!maskedIn(redactor, form).includes(value), () => `${shown(value)} survives in ${shown(form)}`);
  }
  checkBeginning(redactor, `${"x ".repeat(cutAt % 40)}${value}${"y ".repeat(3_000)}`, cutAt, value);
}

/**
 * Checks that the redacted beginning of a text contains no beginning of a secret, and that it is a
 * beginning of the whole redacted text, if that is known.
 */
function checkBeginning(redactor: Redactor, text: string, cutAt: number, planted: string): void {
  const work = { steps: 0 };
  const { text: begin, whole } = redactor.beginning(text, cutAt, work);
  must(begin.length <= Math.max(cutAt, 0), () => `${begin.length} characters, not ${cutAt}`);
  must(!whole || begin === redactor.mask(text), "a beginning that says it is whole is not");
  const read = 16 * (cutAt + 1_024 + 6 * 400);
  const most = STEPS_ANYWAY + STEPS_PER_CHARACTER * Math.min(text.length, read);
  must(work.steps <= most, () => `${work.steps} steps for the first ${cutAt} characters of ${shown(text)}`);
  const others = text.replace(planted, "\u0001");
  for (const part of [planted, planted.slice(0, Math.max(8, planted.length >> 1))]) {
    must(
      part.length < 8 || !begin.includes(part) || others.includes(part),
      () => `${shown(part)} is left at ${cutAt} of ${shown(text)}`,
    );
  }
}

/**
 * Checks that a text in pieces is redacted like the whole text, with a number of steps that is linear in its
 * length.
 */
function checkStream(redactor: Redactor, text: string, seed: number): void {
  const work = { steps: 0 };
  const stream = redactor.stream(work);
  let [out, at, state, pieces] = ["", 0, seed + 1, 0];
  while (at < text.length) {
    state = (state * 48_271) % 2_147_483_647;
    const length = 1 + (state % (text.length > 20_000 ? 2_000 : 30));
    out += stream.push(text.slice(at, at + length));
    at += length;
    pieces += 1;
  }
  out += stream.end();
  must(out === redactor.mask(text), () => `in pieces (${seed}) ${shown(text)} becomes ${shown(out)}`);
  const most = STEPS_ANYWAY + STREAM_STEPS_PER_CHARACTER * text.length + STEPS_PER_PIECE * pieces;
  must(work.steps <= most, () => `${work.steps} steps for ${pieces} pieces of ${shown(text)}`);
}

export const redaction: FuzzTarget<SecretInput> = {
  name: "redaction",
  proves:
    "masking twice is masking once, nothing of a planted or known secret is left, wherever a text is cut, a text " +
    "in pieces is masked like the whole, and the steps are linear in the text",
  inputs: fc.record({
    before: nastyText(2_000),
    secret,
    after: nastyText(2_000),
    hostile: fc.oneof(
      {
        weight: 8,
        arbitrary: damagedText(
          fc.array(fc.constantFrom(...BEGINNINGS), { maxLength: 30 }).map((all) => all.join("")),
        ),
      },
      { weight: 1, arbitrary: monotonous },
    ),
    known: knownValues,
    cutAt: fc.integer({ min: 0, max: 3_000 }),
  }),
  roundRuns: 500,
  ciRuns: 350,
  open: () => ({
    check(input) {
      const { before, secret, after, hostile, known, cutAt } = input;
      const [lead, planted] = secret;
      const plain = new Redactor([]);
      maskedIn(plain, hostile);
      const end = lead.includes("://") ? "@host/ " : lead.endsWith('"') ? '" ' : " ";
      const masked = maskedIn(plain, `${before}\n${lead}${planted}${end}${after}`);
      must(!masked.includes(planted), () => `${shown(lead + planted)} survives: ${shown(masked)}`);
      const cut = `${". ".repeat(cutAt % 500)}\n${lead}${planted}${end}${after}${". ".repeat(2_000)}`;
      checkBeginning(plain, cut, cutAt, planted);
      const knowing = new Redactor(known);
      for (const value of known) checkKnown(knowing, value, input);
      maskedIn(knowing, hostile);
      checkStream(knowing, hostile, cutAt);
      checkStream(plain, cut, cutAt);
      maskedIn(knowing, (known[0] ?? "").repeat(200) + hostile);
    },
  }),
};

const TOKENS = ["REPLY_SKIP", "ANNOUNCE_SKIP"];
const nearlySilent = damagedText(
  fc
    .tuple(
      fc.constantFrom("", " ", "\n\t", "\ufeff"),
      fc.constantFrom(...TOKENS, ""),
      fc.constantFrom("", "\n", " ."),
    )
    .map((all) => all.join("")),
  2,
);

interface StepInput {
  readonly reply: string;
  readonly label: string;
  readonly text: string;
}

const LINE_BREAK = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** Returns the lines in a context that the runtime wrote, without the note about a cut quotation. */
function spoken(context: string): string {
  const own = context.split(LINE_BREAK).filter((line) => !line.startsWith("| "));
  return own.filter((line) => !/^\(\d+ more characters are left out here\.\)$/.test(line)).join("\n");
}

export const turnSteps: FuzzTarget<StepInput> = {
  name: "turn-steps",
  proves:
    "only a skip token alone or nothing is silence, no stream shows one, and no text passes for the runtime's",
  inputs: fc.record({
    reply: fc.oneof(nearlySilent, nastyText(300)),
    label: nastyText(400),
    text: fc.oneof(nastyText(40_000), markdown),
  }),
  roundRuns: 5_000,
  ciRuns: 10_000,
  open: () => ({
    check({ reply, label, text }) {
      // Behind more blanks than this, a token is not looked for.
      const silent = ["", ...TOKENS].includes(reply.trim()) && reply.length < TOKEN_TAIL_CHARS;
      must(!silent || isSilent(reply), `${shown(reply)} is taken for words`);
      const letters = reply
        .replace(/[`~]{3,}\w*/g, "")
        .replace(/[^\p{L}\p{N}_]/gu, "")
        .toUpperCase();
      const isTokens = TOKENS.reduce((rest, token) => rest.replaceAll(token, ""), letters);
      must(!isSilent(reply) || /^_*$/.test(isTokens), `${shown(reply)} is taken for silence`);
      // Text that is shown at any point must be part of the final text.
      const final = spokenText(reply);
      for (let end = 0; end <= Math.min(reply.length, 60); end += 1) {
        const begun = reply.slice(0, end);
        const part = begun.slice(0, begun.length - heldChars(begun, true));
        must(final.startsWith(part), `the beginning ${shown(part)} would be shown`);
      }
      const key = formatKey({ form: "cron", id: `x${text.slice(0, 100)}` });
      // Characters that are refused in a label.
      const party = { key, channel: "telegram", label: label.replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, "") };
      const parties = { requester: party, self: party };
      const message = messageContext(parties);
      const plain = messageContext({ requester: { ...party, label: "a" }, self: { ...party, label: "a" } });
      const lines = (context: string): number => context.split(LINE_BREAK).length;
      must(lines(message) === lines(plain), "a name broke out of its line");
      const told = announceContext({ ...parties, request: text, round1Reply: label, latestReply: reply });
      const empty = announceContext({ ...parties, request: "", round1Reply: "", latestReply: "" });
      must(spoken(told) === spoken(empty), "a quoted text speaks as the runtime");
      const job = subagentAnnounceContext({ ...parties, task: text, status: "ok", result: reply });
      const none = subagentAnnounceContext({ ...parties, task: "", status: "ok", result: "" });
      must(spoken(job) === spoken(none), "a task or a result speaks as the runtime");
    },
  }),
};
