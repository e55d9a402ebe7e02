// Files that a model attaches to a task: names, encodings, sizes.

import fc from "fast-check";
import {
  checkAttachments,
  contentsWereLeftOut,
  withoutContents,
} from "../../../src/core/rules/attachment-rules.ts";
import { CODES } from "../../../src/core/shapes/errors.ts";
import { damagedText, damagedTree } from "../mutate.ts";
import { nastyText } from "../nasty.ts";
import { type FuzzTarget, must, shown } from "../target.ts";

const LIMITS = {
  enabled: true,
  maxFiles: 4,
  maxFileBytes: 2_000,
  maxTotalBytes: 3_000,
  retainOnSessionKeep: false,
};
const NAMES = [
  "a.txt",
  "A.TXT",
  "ﬁle",
  "FILE",
  "e\u0301",
  "é",
  "con.txt",
  "manifest.json",
  "K",
  "\u212a",
  "..",
  "a/b",
  "½",
  "a\u200b.txt",
  "a.",
  "straße",
  "STRASSE",
  "ı.txt",
  "I.TXT",
  "i̇.txt",
];
const name = damagedText(fc.constantFrom(...NAMES), 2);
const base64 = fc.oneof(
  damagedText(fc.base64String({ maxLength: 60 }), 2),
  fc.string({ unit: fc.constantFrom(..."AaQgw+/=- \n_".split("")), maxLength: 9 }),
);
const file = fc.oneof(
  fc.record({ name, content: base64, encoding: fc.constant("base64") }),
  fc.record({ name, content: nastyText(6_000) }),
  fc.record({
    name,
    content: nastyText(100),
    encoding: fc.constantFrom("utf8", "hex"),
    mimeType: damagedText(fc.constant("image/png; q=1")),
  }),
);
const list = fc.array(file, { maxLength: 5 });

interface File {
  readonly name: string;
  readonly content: string;
  readonly encoding?: string;
}

/**
 * Checks a file name with a second implementation of the rule: both the system and a reader see a single path
 * component.
 */
function checkName(given: string): void {
  for (const form of [
    given,
    given.normalize("NFC"),
    given.normalize("NFD"),
    given.normalize("NFKC"),
    given.normalize("NFKD"),
  ]) {
    // A fraction contains a character that looks like a separator, but it is not one on any system, so it is
    // allowed.
    const plain = form.replaceAll("\u2044", "");
    must(!/[/\\:\p{Cc}]/u.test(plain), `${shown(given)} is accepted, and is ${shown(form)}`);
    must(!/^[\s.]*$/.test(plain), `${shown(given)} is accepted, and names a folder or nothing`);
    must(!/[. ]$/.test(plain), `${shown(given)} is accepted, and loses its end on Windows`);
  }
  must(Buffer.byteLength(given) <= 255 && given.isWellFormed(), `${shown(given)} is no name of a file`);
  must(!/[\u202a-\u202e\u2066-\u2069]/.test(given), `${shown(given)} turns the reading direction`);
  must(given.toLowerCase() !== "manifest.json", "the manifest can be replaced");
}

function bytesOf({ content, encoding }: File): number {
  if (encoding !== "base64") return Buffer.byteLength(content);
  const decoded = Buffer.from(content, "base64");
  must(decoded.toString("base64") === content, `${shown(content)} is accepted, and is not strict base64`);
  return decoded.length;
}

function checkAccepted(files: readonly File[], sizes: readonly number[]): void {
  const folds = files.map(({ name: one }) => one.normalize("NFKC").toUpperCase().toLowerCase());
  must(new Set(folds).size === files.length, `two of ${shown(folds)} are one file somewhere`);
  must(files.length <= LIMITS.maxFiles, `${files.length} files are accepted`);
  let total = 0;
  for (const [index, one] of files.entries()) {
    checkName(one.name);
    must(one.content.isWellFormed(), "a text that is not Unicode is accepted");
    const bytes = bytesOf(one);
    must(bytes === sizes[index], `${sizes[index]} bytes are counted where there are ${bytes}`);
    must(bytes <= LIMITS.maxFileBytes, `a file of ${bytes} bytes is accepted`);
    total += bytes;
  }
  must(total <= LIMITS.maxTotalBytes, `${total} bytes in all are accepted`);
}

const LEFT_OUT = "(content not kept)";

/** Checks that in a stored transcript only the field for the encoding has content. */
function checkKept(kept: unknown): void {
  for (const item of Array.isArray(kept) ? (kept as unknown[]) : [kept]) {
    if (item === LEFT_OUT) continue;
    must(typeof item === "object" && item !== null, `${shown(item)} is kept`);
    for (const [field, value] of Object.entries(item)) {
      const told = typeof value === "string" && Buffer.byteLength(value) <= 255;
      const isHead = told && ["name", "encoding", "mimeType"].includes(field);
      must(value === LEFT_OUT || isHead, `${field} is kept`);
    }
  }
}

export const attachments: FuzzTarget<unknown> = {
  name: "attachments",
  proves: "what is accepted is plain names, strict encodings and counted sizes; no content is kept",
  inputs: damagedTree(list, ["name", "content", "encoding", "mimeType"], 2),
  roundRuns: 5_000,
  ciRuns: 12_500,
  open: () => ({
    check(input) {
      const checked = checkAttachments(input, LIMITS);
      if (checked.ok) {
        checkAccepted(
          input as readonly File[],
          checked.value.map(({ bytes }) => bytes),
        );
      } else {
        must(checked.code in CODES && checked.error.length < 2_000, `refused with ${shown(checked)}`);
        must(
          checked.error.startsWith("attachments"),
          `a refusal names the attachment: ${shown(checked.error)}`,
        );
      }
      const kept = withoutContents({ task: "t", attachments: input }).attachments;
      checkKept(kept);
      if (Array.isArray(input) && input.length > 0 && checked.ok)
        must(contentsWereLeftOut(kept), "not marked as left out");
    },
  }),
};
