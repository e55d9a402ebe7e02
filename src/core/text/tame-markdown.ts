// Decides which texts are parsed as Markdown.
// TM1: text that would take a parser or the layout too long is shown as plain text. There are limits on
//      length, depth and repetition.

/** Maximum length. Longer texts are shown as plain text. */
const MARKDOWN_MAX_CHARS = 40_000;
/**
 * Maximum product of the length and the number of marks for emphasis: for each mark, the parser may search
 * the rest of the text.
 */
const MARK_STEPS_MAX = 60_000_000;
const MARK = /[*_~]+/g;
/**
 * Matches texts with unusually many levels of quotes or lists, or with unusually long sequences of spaces,
 * backticks or brackets.
 */
const TOO_WILD = [
  /(?:>[ \t]*){16}/,
  /^(?:[ \t]*(?:[-*+]|\d+[.)])){16}/m,
  /^[ \t]{80}/m,
  /[^\S\n]{400}/,
  /`{32}/,
  /(?:[[(!*_~<][^\w\n]{0,2}){64}/,
];

/** Returns whether a text can safely be parsed as Markdown. */
export function isTame(text: string): boolean {
  if (text.length > MARKDOWN_MAX_CHARS) return false;
  const marks = text.match(MARK)?.length ?? 0;
  return marks * text.length <= MARK_STEPS_MAX && !TOO_WILD.some((wild) => wild.test(text));
}
