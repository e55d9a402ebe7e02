import { expect, test } from "vitest";
import {
  checkAttachments,
  contentsWereLeftOut,
  foldName,
  nameProblem,
  withoutContents,
} from "../../../src/core/rules/attachment-rules.ts";
import type { AttachmentSettings } from "../../../src/core/shapes/settings/settings.ts";

const LIMITS: AttachmentSettings = {
  enabled: true,
  maxFiles: 3,
  maxFileBytes: 100,
  maxTotalBytes: 150,
  retainOnSessionKeep: false,
};
const file = (more: Record<string, unknown> = {}) => ({ name: "a.txt", content: "hello", ...more });

test.each([
  ["../../etc/passwd", "plain file name"],
  ["..", "not of a folder"],
  [".", "not of a folder"],
  ["...", "must not end in a dot"],
  ["/etc/passwd", "plain file name"],
  ["\\\\server\\share", "plain file name"],
  ["C:\\Windows\\win.ini", "plain file name"],
  ["C:evil.txt", "without :"],
  ["file.txt:stream", "without :"],
  ["~/x", "plain file name"],
  ["a/b", "plain file name"],
  ["a\\b", "plain file name"],
  ["a／b", "plain file name"],
  ["a＼b", "plain file name"],
  ["a﹨b", "plain file name"],
  ["℀.txt", "plain file name"],
  ["a：b", "without :"],
  ["a∕b", "looks like a path separator"],
  ["a⁄b", "looks like a path separator"],
  ["a∖b", "looks like a path separator"],
  ["a⧵b", "looks like a path separator"],
  ["a╱b", "looks like a path separator"],
  ["．．", "not of a folder"],
  ["‥", "not of a folder"],
  ["․", "not of a folder"],
  ["a\0.txt", "control character"],
  ["a\nb", "control character"],
  ["a\u0085b", "control character"],
  ["a\u2028b", "control character"],
  ["a\x7fb", "control character"],
  ["photo\u202egpj.exe", "reading direction"],
  ["a\u2066b", "reading direction"],
  ["CON", "device on Windows (con)"],
  ["nul.txt", "device on Windows"],
  ["Aux.tar.gz", "device on Windows"],
  ["prn .txt", "device on Windows"],
  ["com1", "device on Windows"],
  ["LPT9.log", "device on Windows"],
  ["com¹.txt", "device on Windows"],
  ["ＣＯＮ.txt", "device on Windows"],
  ["CONIN$", "device on Windows"],
  ["n\u200dul.txt", "device on Windows"],
  ["a.txt.", "end in a dot or a space"],
  ["a.txt ", "end in a dot or a space"],
  ["a.txt\u00a0", "end in a dot or a space"],
  ["a.txt\u3000", "end in a dot or a space"],
  ["a.txt。", undefined],
  ["a.txt．", "end in a dot or a space"],
  ["a.\u200b", "end in a dot or a space"],
  ["", "empty name"],
  [" ", "without a visible character"],
  ["\u200b", "without a visible character"],
  ["\ud800.txt", "not valid Unicode"],
  ["x".repeat(300), "300 bytes; at most 255"],
  ["é".repeat(128), "256 bytes; at most 255"],
  ["manifest.json", "must not be manifest.json"],
  ["Manifest.JSON", "must not be manifest.json"],
  ["x".repeat(255), undefined],
  [".env", undefined],
  ["..a", undefined],
  ["a..b.txt", undefined],
  ["Übersicht (1) – final.pdf", undefined],
  ["報告書.docx", undefined],
  ["½ cup.txt", undefined],
  ["👩‍👩‍👧.png", undefined],
  ["console.log", undefined],
  ["com10.txt", undefined],
  ["null", undefined],
])("AT1: the name %j: %s", (name, problem) => {
  const found = nameProblem(name);
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(problem);
});

test.each([
  ["a.txt", "A.TXT"],
  ["ﬁle", "file"],
  ["é", "e\u0301"],
  ["straße", "STRASSE"],
  ["a\u200db", "ab"],
  ["K", "k"],
  ["ΟΔΟΣ", "οδος"],
])("AT1: %j and %j are the same file name", (one, other) => {
  expect(foldName(one)).toBe(foldName(other));
  const checked = checkAttachments([file({ name: one }), file({ name: other })], LIMITS);
  expect(checked).toMatchObject({ ok: false, code: "invalid_argument" });
  if (!checked.ok) expect(checked.error).toMatch(/^attachments\[1\] .* has the same name as /);
});

test.each([
  ["aGVsbG8=", 5],
  ["aGVsbG8h", 6],
  ["aGVsbA==", 4],
])("base64 %j has %i bytes", (content, bytes) => {
  const checked = checkAttachments([file({ content, encoding: "base64" })], LIMITS);
  expect(checked).toMatchObject({ ok: true, value: [{ bytes, mimeType: "application/octet-stream" }] });
});

test.each([
  ["", "is empty"],
  ["aGVsbG8", "multiple of 4"],
  ["aGVsbG8==", "multiple of 4"],
  ["aGVs bG8=", "white space at position 4"],
  ["aGVsbG8=\n", "padding before its end"],
  ["aGVs\nbG8=", "white space at position 4"],
  ["aGVsb_8=", "outside A-Z a-z 0-9 + /"],
  ["aGVs-G8=", "outside A-Z a-z 0-9 + /"],
  ["data:text/plain;base64,aGVsbG8=", "outside A-Z a-z 0-9 + /"],
  ["aG=sbG8=", "padding before its end"],
  ["====", "padding before its end"],
  ["aGVsbG9=", "unused bits that are not 0"],
  ["aGVsbB==", "unused bits that are not 0"],
  ["A", "multiple of 4"],
  ["=", "multiple of 4"],
])("the base64 text %j is refused: %s", (content, reason) => {
  const checked = checkAttachments([file({ content, encoding: "base64" })], LIMITS);
  expect(checked).toMatchObject({
    ok: false,
    code: "invalid_argument",
    error: expect.stringContaining(reason),
  });
  if (!checked.ok) expect(checked.error).toContain('attachments[0] "a.txt"');
});

test.each<[string, unknown, string, string]>([
  ["no list", "a.txt", "invalid_argument", "attachments must be a list"],
  ["no object", ["a.txt"], "invalid_argument", "attachments[0] must be an object"],
  ["a name that is no text", [file({ name: 7 })], "invalid_argument", "attachments[0] must have a name"],
  ["no content", [{ name: "a.txt" }], "invalid_argument", 'attachments[0] "a.txt" must have content'],
  [
    "an unknown field",
    [file({ path: "/x" })],
    "unknown_argument",
    'unknown field "path"; fields are name, content',
  ],
  ["an unknown encoding", [file({ encoding: "hex" })], "invalid_argument", "valid are utf8 and base64"],
  ["a wrong mime type", [file({ mimeType: "a\r\nb" })], "invalid_argument", "write it like image/png"],
  ["text that is not Unicode", [file({ content: "\ud800" })], "invalid_argument", "send it as base64"],
  ["a text declared too large", [file({ content: "x".repeat(101) })], "too_large", "maxFileBytes is 100"],
  ["a text too large once encoded", [file({ content: "é".repeat(51) })], "too_large", "102 bytes"],
  [
    "base64 declared too large, whatever is in it",
    [file({ content: "!".repeat(400), encoding: "base64" })],
    "too_large",
    "maxFileBytes is 100",
  ],
  [
    "base64 too large once decoded",
    [file({ content: Buffer.alloc(101).toString("base64"), encoding: "base64" })],
    "too_large",
    "101 bytes",
  ],
  [
    "too much in all",
    ["a", "b"].map((name) => file({ name, content: "x".repeat(80) })),
    "too_large",
    'attachments[1] "b" brings the total to 160 bytes; tools.sessions_spawn.attachments.maxTotalBytes is 150',
  ],
  ["too many files", ["a", "b", "c", "d"].map((name) => file({ name })), "too_large", "maxFiles is 3"],
])("AT3: the error about %s names a correct form", (_, input, code, words) => {
  const checked = checkAttachments(input, LIMITS);
  expect(checked).toMatchObject({ ok: false, code, error: expect.stringContaining(words) });
});

test("values exactly at a limit, and empty input, are accepted", () => {
  const content = Buffer.alloc(100).toString("base64");
  expect(checkAttachments([file({ content, encoding: "base64" })], LIMITS).ok).toBe(true);
  expect(checkAttachments([file({ content: "x".repeat(100) })], LIMITS).ok).toBe(true);
  expect(checkAttachments([], { ...LIMITS, enabled: false })).toEqual({ ok: true, value: [] });
  expect(checkAttachments([file()], { ...LIMITS, enabled: false })).toMatchObject({
    code: "tool_denied",
    error: expect.stringContaining("tools.sessions_spawn.attachments.enabled is false"),
  });
});

test("AT3: a hostile file name cannot make an error message misleading", () => {
  const checked = checkAttachments([file({ name: "a\u202eb\u2028\u200b\n" })], LIMITS);
  if (checked.ok) throw new Error("accepted");
  expect(checked.error).toMatch(/^[\x20-\x7e]+$/);
  expect(checked.error).toContain('"a\\u{202e}b\\u{2028}\\u{200b}\\n"');
});

test("I14: a stored tool call keeps the names and types of attachments, but not their content", () => {
  const secret = "secret ".repeat(50);
  const args = {
    task: "t",
    attachments: [
      { name: "a.txt", content: "secret", encoding: "utf8", mimeType: "text/plain" },
      { name: secret, data: "secret", encoding: "secret", mimeType: "secret" },
      "secret",
    ],
  };
  const kept = withoutContents(args);
  expect(JSON.stringify(kept)).not.toContain("secret");
  expect(kept).toMatchObject({
    task: "t",
    attachments: [{ name: "a.txt", encoding: "utf8", mimeType: "text/plain" }, {}, {}],
  });
  expect(JSON.stringify(withoutContents({ attachments: "secret" }))).not.toContain("secret");
  expect(withoutContents({ task: "t" })).toEqual({ task: "t" });
  expect(contentsWereLeftOut(kept.attachments)).toBe(true);
  expect(contentsWereLeftOut(args.attachments)).toBe(false);
});
