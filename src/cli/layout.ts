// Formats lists and numbers for people. All functions are pure.

import { cut } from "../core/text/cut.ts";
import { safeLine, safeText } from "../core/text/safe-text.ts";

const CELL_CHARS_MAX = 100;

/** Returns the beginning of a text as one line. */
export function excerpt(text: string, max: number): string {
  return cut(safeLine(text.trim().replaceAll(/\s+/g, " ")), max);
}

/** Returns a text that a person has to see whole. Indents the lines after the first. */
export function wholeText(text: string, indent: string): string {
  return safeText(text).replaceAll("\n", `\n${indent}`);
}

/** Wraps the text to lines of at most `width` characters. A word that is longer gets its own line. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of safeLine(text).split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** The columns of a table by their names. Each returns the cell of a row, undefined for an empty one. */
export type Columns<R> = Readonly<Record<string, (row: R, at: number) => string | number | undefined>>;

export const columnsOf = <R>(rows: readonly R[], columns: Columns<R>): string[][] =>
  rows.map((row, at) => Object.values(columns).map((cell) => String(cell(row, at) ?? "")));

/** Aligns the columns below their names. Leaves out empty columns. */
export function table(names: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const cells = rows.map((row) => row.map((cell) => cut(safeLine(cell), CELL_CHARS_MAX)));
  const used = names.map((_, at) => at).filter((at) => cells.some((row) => (row[at] ?? "") !== ""));
  const widths = used.map((at) => Math.max(...[names, ...cells].map((row) => [...(row[at] ?? "")].length)));
  return [names, ...cells].map((row) =>
    used
      .map((at, column) => {
        const cell = row[at] ?? "";
        return cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - [...cell].length));
      })
      .join("  ")
      .trimEnd(),
  );
}

const AGES: readonly (readonly [unit: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

/** Formats the time since `atMs` in one unit: `3 min`. */
export function age(atMs: number, nowMs: number): string {
  const pastMs = Math.max(0, nowMs - atMs);
  const [unit, ms] = AGES.find(([, size]) => pastMs >= size) ?? ["s", 1_000];
  return `${Math.floor(pastMs / ms)} ${unit}`;
}

const SIZES = ["bytes", "KB", "MB", "GB", "TB"];

/** Formats a size: `312 bytes`, `1.5 MB`. */
export function size(bytes: number): string {
  const power = Math.min(SIZES.length - 1, Math.max(0, Math.floor(Math.log2(bytes) / 10)));
  const number = bytes / 1024 ** power;
  return `${power === 0 || number >= 100 ? Math.round(number) : number.toFixed(1)} ${SIZES[power]}`;
}

/** Formats a number with its noun: `1 agent`, `3 agents`. */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}
