// Plans, shows, makes and undoes changes of the configuration files of other programs.
// JC1: the rest of a file stays unchanged, byte for byte, and a JSON file that cannot be parsed is not
//      changed. TOML is not parsed: a table is added at the end of the file, and only if the file does not
//      already contain the table's name.
// JC2: undoing a change restores the earlier file exactly. If the file was edited since, only the added
//      values are removed, with lists and objects that only they needed. An added value that was edited
//      itself is kept and reported.

import { mkdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { changeAt, insertAt, removeAt } from "../../config/editing/text.ts";
import { replaceFile } from "../../config/replace-file.ts";
import { parseText, valueAt } from "../../config/source.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";

/** A value to add to a JSON file. New items of a list are put before the existing items. */
export interface Insertion {
  readonly path: readonly string[];
  readonly value: unknown;
}

/**
 * A planned change of one file: values to add to a JSON file, a table to add to a TOML file, or a new file.
 */
export type Edit = { readonly file: string } & (
  | { readonly kind: "json"; readonly insertions: readonly Insertion[] }
  | { readonly kind: "toml"; readonly table: readonly [string, string]; readonly text: string }
  | { readonly kind: "new"; readonly text: string }
);

/** A planned or made edit, with the text of the file before and after it. */
export interface Change {
  readonly edit: Edit;
  /** Text of the file before the edit. Absent if the file did not exist. */
  readonly before?: string;
  readonly after: string;
  /** Folders that were created for the file, deepest folder first. */
  readonly folders: readonly string[];
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Returns whether a TOML file might already contain this table. A second table of the same name would make
 * the file invalid.
 */
function mayHave(text: string, [outer, inner]: readonly [string, string]): boolean {
  const lines = text.split("\n").filter((line) => !/^\s*#/.test(line));
  const isInline = new RegExp(`^\\s*["']?${outer}["']?\\s*=`);
  const isBelow = new RegExp(`^\\s*["']?${inner}["']?\\s*[.=]`);
  const isNamed = new RegExp(`${outer}["']?\\s*\\.\\s*["']?${inner}\\b`);
  return lines.some((line) => isInline.test(line) || isBelow.test(line) || isNamed.test(line));
}

/** Returns the text of a TOML file with one more table at its end. */
function withTable(before: string, text: string): string {
  return `${before}${before === "" || before.endsWith("\n") ? "" : "\n"}${before === "" ? "" : "\n"}${text}`;
}

function editedText(edit: Edit, before: string | undefined): Result<string> {
  const { file } = edit;
  if (edit.kind === "toml") {
    if (!mayHave(before ?? "", edit.table)) return ok(withTable(before ?? "", edit.text));
    const name = edit.table.join(".");
    return fail("invalid_config", `${file} might already contain ${name}. Add this by hand:\n${edit.text}`);
  }
  if (edit.kind === "new")
    return before === undefined
      ? ok(edit.text)
      : fail("invalid_config", `${file} already exists. Add this to it by hand:\n${edit.text}`);
  let text = before ?? "";
  for (const { path, value } of edit.insertions) {
    const next = insertAt(text, path, value, "json", file);
    if (!next.ok) return next.error.includes(file) ? next : fail("invalid_config", `${file}: ${next.error}`);
    text = next.value;
  }
  return ok(text);
}

/** Returns the changes that the edits would make. Writes nothing. */
export function planChanges(edits: readonly Edit[]): Result<Change[]> {
  const changes: Change[] = [];
  for (const edit of edits) {
    const before = textOf(edit.file);
    const after = editedText(edit, before);
    if (!after.ok) return after;
    const folders: string[] = [];
    for (
      let folder = dirname(edit.file);
      statSync(folder, { throwIfNoEntry: false }) === undefined;
      folder = dirname(folder)
    )
      folders.push(folder);
    changes.push({ edit, ...optional({ before }), after: after.value, folders });
  }
  return ok(changes);
}

/** Formats a change as a diff: `-` and `+` lines, with two unchanged lines before and after. */
export function diffOf({ edit, before = "", after }: Pick<Change, "edit" | "before" | "after">): string[] {
  const [old, now] = [before, after].map((text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n")));
  if (old === undefined || now === undefined) return [];
  const last = Math.min(old.length, now.length);
  let top = 0;
  while (top < last && old[top] === now[top]) top += 1;
  let bottom = 0;
  while (bottom < last - top && old.at(-1 - bottom) === now.at(-1 - bottom)) bottom += 1;
  const around = 2;
  return [
    `${before === "" ? "new file" : "change"} ${edit.file}`,
    ...old.slice(Math.max(0, top - around), top).map((line) => `  ${line}`),
    ...old.slice(top, old.length - bottom).map((line) => `- ${line}`),
    ...now.slice(top, now.length - bottom).map((line) => `+ ${line}`),
    ...now.slice(now.length - bottom, now.length - bottom + around).map((line) => `  ${line}`),
  ];
}

export function makeChange({ edit, after }: Change): void {
  mkdirSync(dirname(edit.file), { recursive: true });
  replaceFile(edit.file, after, 0o644);
}

/**
 * The plan to undo a change. `text`: the text of the file afterwards; if absent, the file will be deleted.
 * `problems`: parts of the change that cannot be undone.
 */
export type Undo = { readonly text?: string; readonly problems: readonly string[] };

function undoneText({ edit, before }: Change, now: string): Undo {
  const { file } = edit;
  if (edit.kind === "toml") {
    const [rest = "", behind, ...more] = now.split(edit.text);
    if (behind === undefined || more.length > 0)
      return {
        text: now,
        problems: [`${file}: ${edit.table.join(".")} was changed since. Remove it by hand.`],
      };
    const text = rest.replace(/\n\n$/, "\n") + behind;
    return before === undefined && text.trim() === "" ? { problems: [] } : { text, problems: [] };
  }
  if (edit.kind === "new") return { text: now, problems: [`${file} was changed since. Remove it by hand.`] };
  const problems: string[] = [];
  let text = now;
  for (const { path, value } of edit.insertions.toReversed()) {
    const next = removeAt(text, path, value, file);
    if (next.ok) text = withoutEmptyBoxes(next.value, before, path, file);
    else problems.push(next.error);
  }
  return before === undefined && /^\s*\{\s*\}\s*$/.test(text) ? { problems } : { text, problems };
}

/** Returns the text without the lists and objects on this path that are empty and were not there before. */
function withoutEmptyBoxes(text: string, before = "{}", path: readonly string[], file: string): string {
  let left = text;
  for (let depth = path.length; depth > 0; depth -= 1) {
    const box = path.slice(0, depth);
    const [now, old] = [left, before].map((one) => parseText(one, file));
    if (now?.ok !== true || (old?.ok === true && valueAt(old.value, box) !== undefined)) break;
    const found = valueAt(now.value, box);
    if (found === undefined) continue;
    if (typeof found !== "object" || found === null || Object.keys(found).length > 0) break;
    const next = changeAt(left, box, { unset: true }, file);
    if (!next.ok) break;
    left = next.value;
  }
  return left;
}

/** Returns how a change can be undone, without undoing it. Returns undefined if the file no longer exists. */
export function planUndo(change: Change): Undo | undefined {
  const { edit, before, after } = change;
  const now = textOf(edit.file);
  if (now === undefined) return undefined;
  if (now === after) return { ...optional({ text: before }), problems: [] };
  return undoneText(change, now);
}

/** Undoes a change. Removes folders that the change created, if they are empty. */
export function undoChange({ edit, folders }: Change, { text }: Undo): void {
  if (text !== undefined) {
    replaceFile(edit.file, text);
    return;
  }
  rmSync(edit.file);
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch {
      return;
    }
  }
}
