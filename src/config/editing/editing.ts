// Reads and writes the configuration file for a remote editor, such as the web page.
// ED1: a text is written only if it is valid, and if the file has not changed since the editor read it.
// ED2: the editor gets secrets only in hidden form, and sends them back in the same form (`hidden.ts`).
// ED3: the file keeps its byte order mark and its line ends. The editor gets only `\n`.

import { mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { configPathOf, type LoadOptions } from "../../config.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { unescaped } from "../../core/text/json5-places.ts";
import { type Compared, compare } from "../check.ts";
import { replacing } from "../problems.ts";
import { replaceFile } from "../replace-file.ts";
import { configKeys, type KeyWords, keyWords } from "../schema/keys.ts";
import { type HiddenText, hideSecrets, revealSecrets, type Sealing } from "./hidden.ts";

/**
 * Maximum size of a file that can be edited remotely, because an editor has the whole text checked again and
 * again. A larger file must be edited on the gateway's machine.
 */
const EDITED_BYTES_MAX = 128 * 1024;
const PROBLEMS_MAX = 100;
/** A shorter secret is not replaced in an error message, because it could be part of an ordinary word. */
const SECRET_CHARS_MIN = 4;
const BOM = "\uFEFF";
const ELSEWHERE = "Edit it with an editor on the gateway's machine.";
const EMPTY = "// Settings of the gateway. Every setting has a default.\n{\n}\n";

/** The description of every setting. Built when it is first needed, because that takes long. */
let words: KeyWords[] | undefined;

interface OnDisk extends HiddenText {
  readonly exists: boolean;
  /** The bytes of the file. Empty if it does not exist. */
  readonly bytes: Buffer;
  readonly revision: string;
  readonly begin: "" | typeof BOM;
  readonly lineEnd: "\n" | "\r\n";
}

/** Returns the revision of a file. Two files with the same revision have the same bytes. */
function revisionOf(bytes: Buffer | undefined, { seal }: Sealing): string {
  return bytes === undefined ? "none" : seal(`file\n${bytes.toString("base64")}`);
}

function readBytes(path: string): Result<Buffer | undefined> {
  try {
    const { size } = statSync(path);
    if (size > EDITED_BYTES_MAX) return tooLarge(path, size);
    return ok(readFileSync(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return ok(undefined);
    return fail("file_problem", `cannot read ${path}: ${message}`);
  }
}

function textOf(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function readDisk(path: string, sealing: Sealing): Result<OnDisk> {
  const read = readBytes(path);
  if (!read.ok) return read;
  const bytes = read.value ?? Buffer.alloc(0);
  const text = textOf(bytes);
  if (text === undefined) return fail("file_problem", `${path} is not UTF-8 text`, { hint: ELSEWHERE });
  const begin = text.startsWith(BOM) ? BOM : "";
  const ends = text.match(/\r?\n/g) ?? [];
  const lineEnd = ends.filter((end) => end === "\r\n").length * 2 > ends.length ? "\r\n" : "\n";
  const hidden = hideSecrets(text.slice(begin.length).replaceAll(/\r\n?/g, "\n"), sealing);
  if (!hidden.ok) return hidden;
  const exists = read.value !== undefined;
  return ok({ ...hidden.value, exists, bytes, begin, lineEnd, revision: revisionOf(read.value, sealing) });
}

/** Returns the edited text as it is written: with the file's secrets, byte order mark and line ends. */
function toBytes(edited: string, disk: OnDisk): Result<string> {
  const whole = revealSecrets(edited.replaceAll(/\r\n?/g, "\n"), disk);
  if (!whole.ok) return whole;
  const text = disk.begin + whole.value.replaceAll("\n", disk.lineEnd);
  const bytes = Buffer.byteLength(text);
  return bytes > EDITED_BYTES_MAX ? tooLarge("the text", bytes) : ok(text);
}

const tooLarge = (name: string, bytes: number): Result<never> =>
  fail("too_large", `${name} has ${bytes} bytes, but the editor accepts at most ${EDITED_BYTES_MAX}`, {
    hint: ELSEWHERE,
  });

/** Returns a function that masks the file's secrets in a text, for example in an error message (ED2). */
function hiderOf({ values }: HiddenText): (text: string) => string {
  const forms = [...values].flatMap(([shown, { raw }]) => {
    const value = unescaped(raw);
    return [raw, value, JSON.stringify(value).slice(1, -1)].map((form) => [form, shown] as const);
  });
  return replacing(forms.filter(([form]) => form.length >= SECRET_CHARS_MIN));
}

/** Returns the first `PROBLEMS_MAX` problems, with the file's secrets masked. */
function shownProblems(problems: readonly string[], hide: (text: string) => string): string[] {
  const shown = problems.slice(0, PROBLEMS_MAX).map(hide);
  const more = problems.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}

/** Returns the failure for a write that threw an exception. In that case the file is unchanged. */
function unwritten(path: string, error: unknown): Result<never> {
  return fail("file_problem", `${path} could not be written and is unchanged: ${(error as Error).message}`, {
    hint: "The gateway replaces the whole file, so the folder must be writable and the disk must have space.",
  });
}

/** The functions of the gateway that the editor needs. */
interface EditorParts extends Sealing {
  /** Returns a sentence for each change that people must know to connect again after a start with `next`. */
  readonly reachOf: (next: Settings) => readonly string[];
}

/** The result of a check. */
interface Checked extends Omit<Compared, "next"> {
  readonly reach?: readonly string[];
  readonly settings: Record<string, never>;
}

/** The result of a write. */
interface Written {
  readonly path: string;
  readonly revision: string;
  readonly changed: readonly string[];
  readonly warnings: readonly string[];
  readonly reach: readonly string[];
}

const changedFile = fail("config_changed", "the file has changed since you read it, so nothing was written");

export function openConfigFile(options: LoadOptions, running: Settings) {
  const path = configPathOf(options);
  return {
    settings: () => (words ??= configKeys().map(keyWords)),
    /** Returns the text of the file with hidden secrets. If there is no file, returns a template. */
    read(sealing: Sealing) {
      const disk = readDisk(path, sealing);
      if (!disk.ok) return disk;
      const { exists, revision, text, values } = disk.value;
      return ok({ path, exists, revision, text: exists ? text : EMPTY, hidden: values.size });
    },
    /** Checks a text as if it were the file's content. */
    check(edited: string, parts: EditorParts): Result<Checked> {
      const disk = readDisk(path, parts);
      if (!disk.ok) return disk;
      const { exists } = disk.value;
      const whole = toBytes(edited, disk.value);
      if (!whole.ok) {
        const wrong = { ok: false, errors: [whole.error], warnings: [], differs: false, changed: [] };
        return ok({ path, exists, ...wrong, settings: {} });
      }
      const { next, ...found } = compare(options, running, whole.value);
      const hide = hiderOf(disk.value);
      const [errors, warnings] = [shownProblems(found.errors, hide), shownProblems(found.warnings, hide)];
      const reach = next && parts.reachOf(next).map(hide);
      return ok({ ...found, errors, warnings, exists, ...optional({ reach }), settings: {} });
    },
    /** Writes an edited text (ED1). A text that equals the file is not written. */
    write(edited: string, revision: string, parts: EditorParts): Result<Written> {
      const disk = readDisk(path, parts);
      if (!disk.ok) return disk;
      const whole = toBytes(edited, disk.value);
      const isSame = disk.value.exists && whole.ok && disk.value.bytes.equals(Buffer.from(whole.value));
      if (!isSame && disk.value.revision !== revision) return changedFile;
      if (!whole.ok) return whole;
      const hide = hiderOf(disk.value);
      const { errors, warnings, changed, next } = compare(options, running, whole.value);
      if (next === undefined)
        return fail("invalid_config", `nothing was written: ${shownProblems(errors, hide).join("\n")}`);
      try {
        if (!isSame) {
          // The check takes time, so somebody else may have saved the file since it was read.
          const now = readBytes(path);
          if (now.ok && revisionOf(now.value, parts) !== disk.value.revision) return changedFile;
          mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
          replaceFile(path, whole.value);
        }
      } catch (error) {
        return unwritten(path, error);
      }
      const reach = parts.reachOf(next).map(hide);
      const written = revisionOf(Buffer.from(whole.value), parts);
      return ok({ path, revision: written, changed, warnings: shownProblems(warnings, hide), reach });
    },
  };
}
