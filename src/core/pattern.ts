// Owns patterns with `*`, as used in allow lists, tool filters and token scopes.
// P1: `*` stands for any text, also none; every other character stands for itself. No backtracking.

/** True if the whole of `text` fits `pattern`. Case counts. */
export function matchesPattern(pattern: string, text: string): boolean {
  const pieces = pattern.split("*");
  const first = pieces[0] ?? "";
  if (pieces.length === 1) return text === first;
  const last = pieces[pieces.length - 1] ?? "";
  if (text.length < first.length + last.length) return false;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  // The earliest place for each middle piece leaves the most room for those that follow.
  const end = text.length - last.length;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** True if `text` fits one of the patterns. */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, text));
}

/** True if one of the patterns may fit a text that begins so. */
export function mayMatchBeginning(patterns: readonly string[], beginning: string): boolean {
  return patterns.some((pattern) => {
    const [head = "", ...more] = pattern.split("*");
    return head.startsWith(beginning) || (more.length > 0 && beginning.startsWith(head));
  });
}
