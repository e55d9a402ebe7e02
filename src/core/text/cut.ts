// Shortens texts without splitting a character.

/** Returns the text without half a surrogate pair at its end. */
export function withoutHalf(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

/** Returns at most the first `charsMax` UTF-16 units of a text. Lone surrogates in it become U+FFFD. */
export function head(text: string, charsMax: number): string {
  return withoutHalf(text.slice(0, Math.max(0, charsMax))).toWellFormed();
}

/** Shortens a text to at most `charsMax` UTF-16 units, with an ellipsis in place of the rest. */
export function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${head(text, charsMax - 1)}…`;
}

/** Formats a name or value for an error: shortened to `charsMax` UTF-16 units, then as JSON. */
export function quoted(text: string, charsMax: number): string {
  return JSON.stringify(cut(text, charsMax));
}
