// Decides which files may be attached to a spawn: their names, encodings and sizes.
// AT1: a name identifies one file in one folder, on every file system and for every reader.
// Sizes are known and checked before anything is decoded.
// AT3: every refusal names the attachment, the problem and a correct form.

import { isObject } from "../json.ts";
import { fail, ok, type Result } from "../shapes/errors.ts";
import type { AttachmentSettings } from "../shapes/settings/settings.ts";
import { base64Parts } from "../text/base64.ts";
import { quoted } from "../text/cut.ts";

/** A valid attachment whose content is not decoded yet. */
export interface CheckedAttachment {
  readonly name: string;
  readonly encoding: "utf8" | "base64";
  readonly content: string;
  /** Size after decoding. */
  readonly bytes: number;
  readonly mimeType: string;
}

/** File name of the list of attachments, which is stored in their folder. */
export const MANIFEST_NAME = "manifest.json";

const NAME_MAX_BYTES = 255;
const MIME_MAX_CHARS = 255;
const FIELDS: readonly string[] = ["name", "content", "encoding", "mimeType"];
const SETTINGS = "tools.sessions_spawn.attachments";

/** Characters that look like `/` or `\` but that normalisation does not turn into them. */
const SEPARATOR_LIKE = /[\u2044\u2215\u2216\u2571\u2572\u27cb\u27cd\u29f5\u29f8\u29f9\u3033\u3035]/u;
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u;
/** Characters that change the reading direction. With them `txt.exe` can look like `exe.txt`. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const UNSEEN = /\p{Default_Ignorable_Code_Point}/gu;
const DEVICE = /^(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[0-9])$/;

/**
 * Returns a key that is the same for all names that a file system or a reader could confuse. The key ignores
 * normalisation form, letter case and invisible characters.
 */
export function foldName(name: string): string {
  const plain = name.normalize("NFKC").replace(UNSEEN, "");
  return plain.toUpperCase().toLowerCase().normalize("NFKC");
}

/** Returns the problem of a file name as the end of a sentence. Returns undefined if the name is valid. */
export function nameProblem(name: string): string | undefined {
  if (name === "") return "has an empty name";
  if (!name.isWellFormed()) return "has a name that is not valid Unicode";
  const bytes = Buffer.byteLength(name);
  if (bytes > NAME_MAX_BYTES) return `has a name of ${bytes} bytes; at most ${NAME_MAX_BYTES} are allowed`;
  if (CONTROL.test(name)) return "has a control character in its name";
  if (DIRECTION.test(name)) return "has a character in its name that changes the reading direction";
  // A file system or a reader may turn the name into its folded form, so both forms are checked.
  const fold = foldName(name);
  for (const form of [name, fold]) {
    if (/[/\\]/.test(form)) return "must be a plain file name, without / or \\ or characters like them";
    if (form.includes(":")) return "must be a plain file name, without : or characters like it";
    if (/^\.{1,2}$/.test(form)) return "must be the name of a file, not of a folder";
    if (form === "" || /^\s+$/.test(form)) return "has a name without a visible character";
    if (/[.\s]$/.test(form)) return "must not end in a dot or a space";
  }
  if (SEPARATOR_LIKE.test(name)) return "has a character in its name that looks like a path separator";
  const stem = (fold.split(".")[0] ?? "").trim();
  if (DEVICE.test(stem)) return `has the name of a device on Windows (${stem})`;
  if (fold === MANIFEST_NAME) return `must not be ${MANIFEST_NAME}: the list of attachments has that name`;
  return undefined;
}

/** Returns the decoded length of strict base64 text, or the problem as a text. */
function base64Bytes(text: string): number | string {
  const { digits, padding, wrongAt } = base64Parts(text);
  if (wrongAt !== undefined) {
    const wrong = text.charAt(wrongAt);
    const what =
      wrong === "="
        ? "padding before its end"
        : /\s/.test(wrong)
          ? "white space"
          : "a character outside A-Z a-z 0-9 + /";
    return `is not strict base64: it has ${what} at position ${wrongAt}`;
  }
  if (text.length % 4 !== 0) {
    return `is not strict base64: its length, ${text.length}, is not a multiple of 4 (pad it with =)`;
  }
  // Unused bits of the last digit must be 0, so that each content has only one encoding.
  const last = digits.at(-1) ?? "";
  if (padding > 0 && !(padding === 1 ? "AEIMQUYcgkosw048" : "AQgw").includes(last)) {
    return "is not strict base64: its last digit has unused bits that are not 0";
  }
  return (text.length / 4) * 3 - padding;
}

/** Quotes a name for an error message. Removes characters that could make the message misleading. */
function quoteName(name: unknown): string {
  if (typeof name !== "string") return "";
  const escaped = quoted(name, 80).replace(
    /[^\x20-\x7e\p{L}\p{N}]/gu,
    (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`,
  );
  return ` ${escaped}`;
}

function checkOne(item: unknown, index: number, limits: AttachmentSettings): Result<CheckedAttachment> {
  const at = `attachments[${index}]`;
  if (!isObject(item)) return fail("invalid_argument", `${at} must be an object with name and content`);
  const label = `${at}${quoteName(item.name)}`;
  const unknown = Object.keys(item).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) {
    const error = `${label} has the unknown field${quoteName(unknown)}; fields are ${FIELDS.join(", ")}`;
    return fail("unknown_argument", error);
  }
  const { name, content, encoding = "utf8", mimeType } = item;
  if (typeof name !== "string") return fail("invalid_argument", `${label} must have a name, as a string`);
  const wrong = nameProblem(name);
  if (wrong !== undefined) return fail("invalid_argument", `${label} ${wrong}`);
  if (encoding !== "utf8" && encoding !== "base64") {
    return fail("invalid_argument", `${label} has an unknown encoding; valid are utf8 and base64`);
  }
  if (typeof content !== "string") return fail("invalid_argument", `${label} must have content, as a string`);
  const mime = encoding === "utf8" ? "text/plain; charset=utf-8" : "application/octet-stream";
  if (mimeType !== undefined && !isMimeType(mimeType)) {
    return fail("invalid_argument", `${label} has an invalid mimeType; write it like image/png`);
  }
  const size = sizeOf(content, encoding, limits.maxFileBytes);
  if (typeof size === "string") return fail("invalid_argument", `${label} ${size}`);
  if (size > limits.maxFileBytes) {
    const most = `${SETTINGS}.maxFileBytes is ${limits.maxFileBytes}`;
    return fail("too_large", `${label} has ${size} bytes or more; ${most}`);
  }
  return ok({ name, encoding, content, bytes: size, mimeType: mimeType ?? mime });
}

function isMimeType(value: unknown): value is string {
  if (typeof value !== "string" || value.length > MIME_MAX_CHARS) return false;
  return /^[\w.+!#$&^-]+\/[\w.+!#$&^-]+(?: ?; ?[\w.+-]+=[\w.+"-]+)*$/.test(value);
}

/**
 * Returns the decoded size in bytes, or the problem as a text. If the content is too large, the size is only
 * a lower bound.
 */
function sizeOf(content: string, encoding: "utf8" | "base64", maxBytes: number): number | string {
  const least = encoding === "utf8" ? content.length : Math.floor(content.length / 4) * 3 - 2;
  if (least > maxBytes) return least;
  if (encoding === "base64")
    return content === "" ? "is empty; base64 of a file has content" : base64Bytes(content);
  return content.isWellFormed() ? Buffer.byteLength(content) : "is not valid Unicode; send it as base64";
}

/** Returns all attachments of a call, or the first problem. */
export function checkAttachments(
  input: unknown,
  limits: AttachmentSettings,
): Result<readonly CheckedAttachment[]> {
  if (!Array.isArray(input)) return fail("invalid_argument", "attachments must be a list of objects");
  if (input.length > 0 && !limits.enabled) {
    return fail("tool_denied", `attachments are switched off: ${SETTINGS}.enabled is false`, {
      hint: "Put the important content into the task instead.",
    });
  }
  if (input.length > limits.maxFiles) {
    const most = `${SETTINGS}.maxFiles is ${limits.maxFiles}`;
    return fail("too_large", `attachments has ${input.length} files; ${most}`);
  }
  const files: CheckedAttachment[] = [];
  const names = new Map<string, string>();
  let totalBytes = 0;
  for (const [index, item] of input.entries()) {
    const checked = checkOne(item, index, limits);
    if (!checked.ok) return checked;
    const { name, bytes } = checked.value;
    const fold = foldName(name);
    const same = names.get(fold);
    if (same !== undefined) {
      const error = `attachments[${index}]${quoteName(name)} has the same name as${quoteName(same)}`;
      const hint =
        "Letter case and similar-looking characters are ignored. Give each attachment a different name.";
      return fail("invalid_argument", error, { hint });
    }
    names.set(fold, name);
    totalBytes += bytes;
    if (totalBytes > limits.maxTotalBytes) {
      const most = `${SETTINGS}.maxTotalBytes is ${limits.maxTotalBytes}`;
      return fail(
        "too_large",
        `attachments[${index}]${quoteName(name)} brings the total to ${totalBytes} bytes; ${most}`,
      );
    }
    files.push(checked.value);
  }
  return ok(files);
}

const LEFT_OUT = "(content not kept)";

/** Returns the arguments of a `sessions_spawn` call for the transcript, without file contents (I14). */
export function withoutContents(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (!Object.hasOwn(args, "attachments")) return { ...args };
  const { attachments } = args;
  const list = Array.isArray(attachments) ? attachments.map(withoutContent) : LEFT_OUT;
  return { ...args, attachments: list };
}

/** Returns whether these attachments are from a transcript, where their contents have been removed. */
export function contentsWereLeftOut(attachments: unknown): boolean {
  return (
    Array.isArray(attachments) && attachments.some((item) => isObject(item) && item.content === LEFT_OUT)
  );
}

/** Keeps only known fields of the right type, because any other field could contain file contents. */
function withoutContent(item: unknown): unknown {
  if (!isObject(item)) return LEFT_OUT;
  const keeps = (field: string, value: unknown): boolean => {
    if (field === "encoding") return value === "utf8" || value === "base64";
    if (field === "mimeType") return isMimeType(value);
    return field === "name" && typeof value === "string" && Buffer.byteLength(value) <= NAME_MAX_BYTES;
  };
  return Object.fromEntries(
    Object.entries(item).map(([field, value]) => [field, keeps(field, value) ? value : LEFT_OUT]),
  );
}
