// Owns which texts are read as markdown at all.
// TM1: what would keep a parser or the layout busy for long is shown as plain text: bounded by length, depth
//      and repetition, whoever wrote it.

/** Characters of one text that are parsed; a longer one is plain. */
const MARKDOWN_MAX_CHARS = 40_000;
/** Levels of quotes and lists, runs of spaces, backticks and brackets: more than anyone writes. */
const TOO_WILD = [
  /(?:>[ \t]*){16}/,
  /^(?:[ \t]*(?:[-*+]|\d+[.)])){16}/m,
  /^[ \t]{80}/m,
  /[^\S\n]{400}/,
  /`{32}/,
  /(?:[[(!*_~<][^\w\n]{0,2}){64}/,
];

/** Whether a text may be parsed as markdown. */
export function isTame(text: string): boolean {
  return text.length <= MARKDOWN_MAX_CHARS && !TOO_WILD.some((wild) => wild.test(text));
}
