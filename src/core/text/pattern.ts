// Matches patterns with `*`, for allow lists, tool filters and token scopes.
// P1: `*` matches any text, including the empty one. Every other character matches itself. The matcher does
//     not backtrack.

/** Returns whether `pattern` matches the whole `text`. Case matters. */
export function matchesPattern(pattern: string, text: string): boolean {
  const pieces = pattern.split("*");
  const first = pieces[0] ?? "";
  if (pieces.length === 1) return text === first;
  const last = pieces[pieces.length - 1] ?? "";
  if (text.length < first.length + last.length) return false;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  // Taking the earliest match of each middle piece leaves the most text for the next ones.
  const end = text.length - last.length;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** Returns whether one of the patterns matches `text`. */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, text));
}

/** Returns whether one of the patterns may match any text that starts with `beginning`. */
export function mayMatchBeginning(patterns: readonly string[], beginning: string): boolean {
  return patterns.some((pattern) => {
    const [head = "", ...more] = pattern.split("*");
    return head.startsWith(beginning) || (more.length > 0 && beginning.startsWith(head));
  });
}
