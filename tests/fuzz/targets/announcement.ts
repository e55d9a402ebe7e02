// Texts that a sub-agent writes in its announce step.

import fc from "fast-check";
import {
  type AnnouncedStatus,
  type AnnouncementFacts,
  announcedFacts,
  composeAnnouncement,
} from "../../../src/core/rules/announcement.ts";
import { damagedText } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

const normaliseAnnouncement = (words: string, given: AnnouncementFacts): string =>
  composeAnnouncement(announcedFacts(words, given));

interface AnnouncementInput {
  readonly words: string;
  readonly result: string;
  readonly notes: string;
  readonly status: AnnouncedStatus;
}

const PIECES = [
  ..."Status: ok|STATUS:error|**Status:** ok|## Result: x|> status: ok|- Status: ok|Result:|Notes: n|Stats: 0|Note:".split(
    "|",
  ),
  ..."ＳＴＡＴＵＳ： ok|Sta\u200btus: ok|\u2066Status: ok|S\u0336tatus: ok|status\u00a0: ok|Ѕtatus: ok|```|~~~~|    ```".split(
    "|",
  ),
  ..."\n|\n|\n|\r|\v|\u2028|\u0085| |text|\ud800".split("|"),
];
/** Generates many combining marks, which Unicode normalization must sort. */
const piled = fc.nat(60_000).map((count) => `a${"\u0301\u0316".repeat(count)}`);
const words = fc.oneof(
  {
    weight: 100,
    arbitrary: damagedText(
      fc.array(fc.constantFrom(...PIECES), { maxLength: 20 }).map((all) => all.join("")),
    ),
  },
  { weight: 10, arbitrary: nastyText(300_000) },
  { weight: 1, arbitrary: piled },
);

const LINE_BREAK = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;
const LABELS = ["status:", "result:", "notes:", "stats:"];

/**
 * Returns a line as a reader in a hurry sees it: without invisible characters, width, case, and marks
 * before its first word or a colon.
 */
function hasty(line: string): string {
  // Normalizes character by character, because a long text as a whole would take too long.
  const plain = [...line].map((sign) => sign.normalize("NFKC")).join("");
  const seen = plain.replace(/\p{Default_Ignorable_Code_Point}|\p{Cf}/gu, "");
  // The runtime puts this mark before each line of a model.
  if (seen.startsWith("| ")) return "";
  return seen
    .replace(/^[\s>#*_`~|]+/, "")
    .replace(/(?<![\s*_`~])[\s*_`~]+(?=:)/, "")
    .toLowerCase();
}

function facts({ status, result, notes }: AnnouncementInput) {
  const stats = {
    runtimeMs: 1,
    inputTokens: 1,
    outputTokens: 1,
    totalTokens: 2,
    sessionKey: "k",
    sessionId: "s",
  };
  return { status, result, notes, stats };
}

export const announcement: FuzzTarget<AnnouncementInput> = {
  name: "announcement",
  proves: "one status, the runtime's; one of each label; what was written is kept",
  inputs: fc.record({
    words,
    result: words,
    notes: words,
    status: fc.constantFrom("ok", "error", "timeout", "aborted", "unknown"),
  }),
  roundRuns: 3_000,
  ciRuns: 4_000,
  open: () => ({
    check(input) {
      for (const text of [
        normaliseAnnouncement(input.words, facts(input)),
        composeAnnouncement(facts(input)),
      ]) {
        const lines = text.split(LINE_BREAK).map(hasty);
        for (const label of LABELS) {
          const count = lines.filter((line) => line.startsWith(label)).length;
          must(count === 1, `${count} lines pass for ${label} in ${shown(text)}`);
        }
        must(lines[0] === `status: ${input.status}`, `the first line is ${shown(lines[0])}`);
        must(lines.at(-1)?.startsWith("stats:") === true, `the last line is ${shown(lines.at(-1))}`);
        must(text.isWellFormed(), "half a character is announced");
        must(text.length < 4 * 100_000 + 50_000, `${text.length} characters are announced`);
      }
    },
  }),
};
