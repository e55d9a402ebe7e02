// Reads and writes the configuration file for a remote editor, such as the web page.
// ED1: a text is written only if it is valid, and if the file has not changed since the editor read it.
// ED2: the editor gets secrets only in hidden form, and sends them back in the same form (`hidden.ts`).
// ED3: the file keeps its byte order mark and its line ends. The editor gets only `\n`.

import { isUtf8 } from "node:buffer";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { configPathOf, type LoadOptions } from "../../config.ts";
import type { ConfigChange, ConfigCheck, ConfigSaved } from "../../contract/methods/configuration.ts";
import { jsonWithin } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { unescapeText } from "../../core/text/json5-places.ts";
import { unifiedDiff } from "../../core/text/line-diff.ts";
import { type Path, parsePath } from "../../core/text/value-path.ts";
import { compare } from "../check.ts";
import { pathProblem, replacing, tell } from "../problems.ts";
import { replaceFile } from "../replace-file.ts";
import { configKeys, type KeyWords, keyWords } from "../schema/keys.ts";
import { parseText, valueAt } from "../source.ts";
import { settingsOf, withPlaces } from "./entries.ts";
import { type HiddenText, hideSecrets, revealSecrets, type Sealing } from "./hidden.ts";
import { changeAt } from "./text.ts";

/**
 * Maximum size of a file that can be edited remotely, because an editor has the whole text checked again and
 * again. A larger file must be edited on the gateway's machine.
 */
const EDITED_BYTES_MAX = 128 * 1024;
const PROBLEMS_MAX = 100;
/** Maximum number of lines of a diff in an answer. */
const DIFF_LINES_MAX = 2_000;
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
  /** The text of the file with its secrets, and with `\n` as line ends. */
  readonly whole: string;
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

/** Returns a text without the byte order mark `begin`, and with `\n` as line ends. */
const plainLines = (text: string, begin = ""): string => text.slice(begin.length).replaceAll(/\r\n?/g, "\n");

function readDisk(path: string, sealing: Sealing): Result<OnDisk> {
  const read = readBytes(path);
  if (!read.ok) return read;
  const bytes = read.value ?? Buffer.alloc(0);
  if (!isUtf8(bytes)) return fail("file_problem", `${path} is not UTF-8 text`, { hint: ELSEWHERE });
  const text = bytes.toString();
  const begin = text.startsWith(BOM) ? BOM : "";
  const ends = text.match(/\r?\n/g) ?? [];
  const lineEnd = ends.filter((end) => end === "\r\n").length * 2 > ends.length ? "\r\n" : "\n";
  const whole = plainLines(text, begin);
  const hidden = hideSecrets(whole, sealing);
  if (!hidden.ok) return hidden;
  const exists = read.value !== undefined;
  const revision = revisionOf(read.value, sealing);
  return ok({ ...hidden.value, exists, bytes, whole, begin, lineEnd, revision });
}

/** Returns the edited text as it is written: with the file's secrets, byte order mark and line ends. */
function toBytes(edited: string, disk: OnDisk): Result<string> {
  const whole = revealSecrets(plainLines(edited), disk);
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
    const value = unescapeText(raw);
    return [raw, value, jsonWithin(value)].map((form) => [form, shown] as const);
  });
  return replacing(forms.filter(([form]) => form.length >= SECRET_CHARS_MIN));
}

/** Returns the first `PROBLEMS_MAX` problems, with the file's secrets masked. */
function shownProblems(problems: readonly string[], hide: (text: string) => string): string[] {
  const shown = problems.slice(0, PROBLEMS_MAX).map(hide);
  const more = problems.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}

function applyOne(text: string, change: ConfigChange, file: string): Result<string> {
  const named = parsePath(change.path);
  if (named === undefined || "value" in change === (change.unset === true))
    return fail("invalid_argument", `the change of ${JSON.stringify(change.path)} is not valid`, {
      hint: "Give a path like agents.list.main.model, and either a value or unset: true.",
    });
  const before = parseText(text, file);
  if (!before.ok) return before;
  if (change.unset === true) {
    const place = withPlaces(before.value, named);
    return place.ok ? applyAt(text, place.value, { unset: true }, file) : place;
  }
  const settings = settingsOf(before.value, named, change.value);
  if (!settings.ok) return settings;
  let result: Result<string> = ok(text);
  for (const [path, value] of settings.value)
    if (result.ok) result = applyAt(result.value, path, { value }, file);
  return result;
}

function applyAt(text: string, path: Path, change: Omit<ConfigChange, "path">, file: string): Result<string> {
  const before = parseText(text, file);
  if (!before.ok) return before;
  const isSet = valueAt(before.value, path) !== undefined;
  const wrong = isSet ? undefined : pathProblem(path);
  return wrong === undefined
    ? changeAt(text, path, change, file)
    : fail("invalid_config", tell([wrong]).join());
}

/** Returns the text with all changes, in their order. */
function changeText(text: string, changes: readonly ConfigChange[], file: string): Result<string> {
  let result: Result<string> = ok(text);
  for (const change of changes) if (result.ok) result = applyOne(result.value, change, file);
  return result;
}

/** The functions of the gateway that the editor needs. */
export interface EditorParts extends Sealing {
  /** Returns a sentence for each change that people must know to connect again after a start with `next`. */
  readonly reachOf: (next: Settings) => readonly string[];
}

/** An edit of the file: its whole new text, or changes of single settings. */
type Edit = string | readonly ConfigChange[];

const changedFile = fail("config_changed", "the file has changed since you read it, so nothing was written");

interface Place {
  readonly path: string;
  readonly options: LoadOptions;
  readonly running: Settings;
}

/** Returns the text that an edit makes of the file, with its problems and effects. */
function planOf(
  edit: Edit,
  { path, options, running }: Place,
  disk: OnDisk,
  parts: EditorParts,
): Result<Omit<ConfigSaved, "path" | "saved" | "revision"> & { readonly text: string }> {
  const edited = typeof edit === "string" ? ok(edit) : changeText(disk.whole, edit, path);
  const text = edited.ok ? toBytes(edited.value, disk) : edited;
  if (!text.ok) return text;
  const after = hideSecrets(plainLines(text.value, disk.begin), parts);
  if (!after.ok) return after;
  const [hideOld, hideNew] = [hiderOf(disk), hiderOf(after.value)];
  const hide = (line: string): string => hideNew(hideOld(line));
  const { errors, warnings, changed, restart, next } = compare(options, running, text.value);
  return ok({
    text: text.value,
    diff: unifiedDiff(disk.exists ? disk.text : "", after.value.text).slice(0, DIFF_LINES_MAX),
    errors: shownProblems(errors, hide),
    ...{ changed, restart },
    warnings: shownProblems(warnings, hide),
    reach: next === undefined ? [] : parts.reachOf(next).map(hide),
  });
}

export function openConfigFile(options: LoadOptions, running: Settings) {
  const path = configPathOf(options);
  return {
    settings: () => (words ??= configKeys().map(keyWords)),
    /** Returns the text of the file. If there is no file, returns a template. */
    read(sealing: Sealing, { secrets = false } = {}) {
      const disk = readDisk(path, sealing);
      if (!disk.ok) return disk;
      const { exists, revision, values } = disk.value;
      const text = secrets ? disk.value.whole : disk.value.text;
      return ok({ path, exists, revision, text: exists ? text : EMPTY, hidden: values.size });
    },
    /** Returns the settings as they would be after these changes. Writes nothing. */
    settingsAfter(changes: readonly ConfigChange[], parts: EditorParts): Result<Settings> {
      const disk = readDisk(path, parts);
      if (!disk.ok) return disk;
      const text = changeText(disk.value.whole, changes, path);
      if (!text.ok) return text;
      const { next, errors } = compare(options, running, text.value);
      if (next !== undefined) return ok(next);
      return fail("invalid_config", shownProblems(errors, hiderOf(disk.value)).join("\n"));
    },
    /** Checks a text as if it were the file's content. */
    check(edited: string, parts: EditorParts): Result<ConfigCheck> {
      const disk = readDisk(path, parts);
      if (!disk.ok) return disk;
      const { exists } = disk.value;
      const whole = toBytes(edited, disk.value);
      if (!whole.ok) {
        const wrong = {
          ok: false,
          errors: [whole.error],
          warnings: [],
          differs: false,
          changed: [],
          restart: [],
        };
        return ok({ path, exists, ...wrong, settings: {} });
      }
      const { next, ...found } = compare(options, running, whole.value);
      const hide = hiderOf(disk.value);
      const [errors, warnings] = [shownProblems(found.errors, hide), shownProblems(found.warnings, hide)];
      const reach = next && parts.reachOf(next).map(hide);
      return ok({ ...found, errors, warnings, exists, ...optional({ reach }), settings: {} });
    },
    /**
     * Saves an edit (ED1). A text that equals the file is not written. With `dryRun`, nothing is written, and
     * problems are part of the answer.
     */
    save(edit: Edit, { revision, dryRun }: { revision: string; dryRun: boolean }, parts: EditorParts) {
      const read = readDisk(path, parts);
      if (!read.ok) return read;
      const disk = read.value;
      const planned = planOf(edit, { path, options, running }, disk, parts);
      const isSame = disk.exists && planned.ok && disk.bytes.equals(Buffer.from(planned.value.text));
      if (!isSame && disk.revision !== revision) return changedFile;
      const empty = { diff: [], changed: [], restart: [], warnings: [], reach: [] };
      const base = { path, saved: false, revision: disk.revision };
      if (!planned.ok)
        return dryRun ? ok({ ...base, ...empty, errors: [hiderOf(disk)(planned.error)] }) : planned;
      const { text, ...found } = planned.value;
      if (dryRun) return ok({ ...base, ...found });
      if (found.errors.length > 0)
        return fail("invalid_config", `nothing was written: ${found.errors.join("\n")}`);
      try {
        if (!isSame) {
          // The check takes time, so somebody else may have saved the file since it was read.
          const now = readBytes(path);
          if (now.ok && revisionOf(now.value, parts) !== disk.revision) return changedFile;
          mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
          replaceFile(path, text);
        }
      } catch (error) {
        const why = `could not be written and is unchanged: ${(error as Error).message}`;
        return fail("file_problem", `${path} ${why}`, {
          hint:
            "The gateway replaces the whole file, so the folder must be writable and the disk must have " +
            "space.",
        });
      }
      return ok({ path, saved: true, revision: revisionOf(Buffer.from(text), parts), ...found });
    },
  };
}
