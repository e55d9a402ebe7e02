// Shortens texts without splitting a grapheme, which is what people see as one character: an emoji of several
// code points, a flag, a letter with its accents, or CR LF.
// CU1: only the surroundings of a cut are read, and of a row of flags everything before the cut.
// CU2: a grapheme that is longer than any that people write is cut, but no surrogate pair is.

/** The longest grapheme that is kept whole, in UTF-16 units. The longest emoji has less than 20. */
const GRAPHEME_CHARS_MAX = 128;
/** Matches two characters between which every text may be cut, so that most cuts need no segmenter. */
const PLAIN = /^(?!\r\n)[\0-\u02ff\u0370-\u0482\u048a-\u0590\u3041-\u3096\u30a0-\u30ff\u3400-\u9fff]{2}$/;

/** Created when it is needed, because its tables take memory. */
let segmenter: Intl.Segmenter | undefined;

function isPlainAt(text: string, at: number): boolean {
  return PLAIN.test(text.slice(at - 1, at + 1));
}

/** A flag has two letters of its own, so where it begins depends on the whole row of such letters. */
function isFlagUnit(code: number): boolean {
  return code === 0xd83c || (code >= 0xdde6 && code <= 0xddff);
}

/** Returns the text without half a surrogate pair at its end. */
export function withoutHalf(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

/**
 * Returns the last offset, at most `at`, at which a text may be cut. `from`: an earlier offset at which a
 * grapheme begins.
 */
export function cutAt(text: string, at: number, from = 0): number {
  if (at <= from || at >= text.length) return Math.min(Math.max(at, from), text.length);
  if (isPlainAt(text, at)) return at;
  let start = at - 1;
  const isFar = (): boolean => at - start >= GRAPHEME_CHARS_MAX && !isFlagUnit(text.charCodeAt(start));
  while (start > from && !isFar() && !isPlainAt(text, start)) start -= 1;
  segmenter ??= new Intl.Segmenter();
  const index = segmenter.segment(text.slice(start, at + 2)).containing(at - start)?.index ?? 0;
  if (at - start - index < GRAPHEME_CHARS_MAX) return start + index;
  return from + withoutHalf(text.slice(from, at)).length;
}

/** Returns the beginning of a text, at most `charsMax` UTF-16 units. Lone surrogates become U+FFFD. */
export function head(text: string, charsMax: number): string {
  return withoutHalf(text.slice(0, cutAt(text, charsMax))).toWellFormed();
}

/** Shortens a text to at most `charsMax` UTF-16 units. An ellipsis replaces the rest. */
export function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${head(text, charsMax - 1)}…`;
}

/** Formats a name or value for an error: shortens it to `charsMax` UTF-16 units, and quotes it as JSON. */
export function quoted(text: string, charsMax: number): string {
  return JSON.stringify(cut(text, charsMax));
}
