// Compares two texts line by line.

import { diffArrays } from "diff/lib/diff/array.js";

export interface DiffLine {
  readonly kind: "same" | "removed" | "added" | "skipped";
  readonly text: string;
}

/** Texts that differ in more lines are shown as removed and added whole. */
const CHANGES_MAX = 4_000;

/** Returns the lines of both texts in one list. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const whole = [
    { value: a, removed: true, added: false },
    { value: b, removed: false, added: true },
  ];
  const parts = diffArrays(a, b, { maxEditLength: CHANGES_MAX }) ?? whole;
  return parts.flatMap(({ value, removed, added }) =>
    value.map((text) => ({ kind: removed ? "removed" : added ? "added" : "same", text })),
  );
}

/** Replaces unchanged lines that are far from any change by one line with their number. */
export function foldLines(lines: readonly DiffLine[], around: number): DiffLine[] {
  const near = new Set<number>();
  for (const [at, { kind }] of lines.entries())
    if (kind !== "same") for (let by = -around; by <= around; by += 1) near.add(at + by);
  const shown: DiffLine[] = [];
  let skipped = 0;
  for (const [at, line] of lines.entries()) {
    if (!near.has(at)) skipped += 1;
    if (skipped > 0 && (near.has(at) || at === lines.length - 1)) {
      shown.push({ kind: "skipped", text: String(skipped) });
      skipped = 0;
    }
    if (near.has(at)) shown.push(line);
  }
  return shown;
}

/** Number of unchanged lines around each change of a unified diff. */
const CONTEXT_LINES = 3;

/** Returns the changes as lines of a unified diff, without file names. */
export function unifiedDiff(before: string, after: string): string[] {
  const shown: string[] = [];
  let hunk: string[] = [];
  let [left, right, ofLeft, ofRight] = [1, 1, 0, 0];
  const close = (): void => {
    const at = `@@ -${left - ofLeft},${ofLeft} +${right - ofRight},${ofRight} @@`;
    if (hunk.length > 0) shown.push(at, ...hunk);
    [hunk, ofLeft, ofRight] = [[], 0, 0];
  };
  for (const { kind, text } of foldLines(diffLines(before, after), CONTEXT_LINES)) {
    if (kind === "skipped") {
      close();
      left += Number(text);
      right += Number(text);
      continue;
    }
    hunk.push(`${kind === "same" ? " " : kind === "added" ? "+" : "-"}${text}`);
    const [inLeft, inRight] = [kind === "added" ? 0 : 1, kind === "removed" ? 0 : 1];
    [left, ofLeft, right, ofRight] = [left + inLeft, ofLeft + inLeft, right + inRight, ofRight + inRight];
  }
  close();
  return shown;
}
