// Shortens texts without splitting a surrogate pair.

/** Returns the text without half a surrogate pair at its end. */
export function withoutHalf(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

/** Returns the beginning of a text, at most `charsMax` UTF-16 units. Lone surrogates become U+FFFD. */
export function head(text: string, charsMax: number): string {
  return withoutHalf(text.slice(0, Math.max(0, charsMax))).toWellFormed();
}

/** Shortens a text to at most `charsMax` UTF-16 units. An ellipsis replaces the rest. */
export function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${head(text, charsMax - 1)}…`;
}

/** Formats a name or value for an error: shortens it to `charsMax` UTF-16 units, and quotes it as JSON. */
export function quoted(text: string, charsMax: number): string {
  return JSON.stringify(cut(text, charsMax));
}
