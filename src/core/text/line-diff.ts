// Compares two texts line by line.

export interface DiffLine {
  readonly kind: "same" | "removed" | "added" | "skipped";
  readonly text: string;
}

/**
 * Maximum number of pairs of lines that are compared. If there are more, all changed lines are shown as
 * removed and added.
 */
const PAIRS_MAX = 4_000_000;

/** Returns the lines of both texts in one list. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const keep = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...a.slice(0, start).map(keep),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(keep),
  ];
}

/** Compares the part between the first and the last changed line, by its longest common subsequence. */
function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const width = b.length + 1;
  const isLarge = a.length * b.length > PAIRS_MAX;
  const common = new Uint32Array(isLarge ? 0 : (a.length + 1) * width);
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  if (!isLarge)
    for (let i = a.length - 1; i >= 0; i -= 1)
      for (let j = b.length - 1; j >= 0; j -= 1)
        common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]];
    if (!isLarge && left !== undefined && left === right) {
      lines.push({ kind: "same", text: left });
      i += 1;
      j += 1;
    } else if (left !== undefined && (right === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: "removed", text: left });
      i += 1;
    } else {
      lines.push({ kind: "added", text: right ?? "" });
      j += 1;
    }
  }
  return lines;
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
