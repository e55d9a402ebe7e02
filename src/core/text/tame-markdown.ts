// Decides which texts are parsed as markdown.
// TM1: text that would keep a parser or the layout busy for long is shown as plain text: limits on length,
// depth and repetition.

/** Longer texts are shown as plain text. */
const MARKDOWN_MAX_CHARS = 40_000;
/** Levels of quotes and lists, runs of spaces, backticks and brackets beyond normal use. */
const TOO_WILD = [
  /(?:>[ \t]*){16}/,
  /^(?:[ \t]*(?:[-*+]|\d+[.)])){16}/m,
  /^[ \t]{80}/m,
  /[^\S\n]{400}/,
  /`{32}/,
  /(?:[[(!*_~<][^\w\n]{0,2}){64}/,
];

/** Returns whether a text may be parsed as markdown. */
export function isTame(text: string): boolean {
  return text.length <= MARKDOWN_MAX_CHARS && !TOO_WILD.some((wild) => wild.test(text));
}
