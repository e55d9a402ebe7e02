// Owns what text is shown as markdown, and where a growing text can be parted. Pure.
// TM1: what would keep a parser or the layout busy for long is shown as plain text: bounded by length, depth
//      and repetition, whoever wrote it.
// TM2: a growing text is parted only where markdown ends a block whatever follows; its parts together are the
//      text.

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

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * Where the last block of a text begins: behind the last empty line that is in no code block and that nothing
 * indented or of the same list follows. 0: there is one block only.
 */
export function lastBlockAt(text: string, from = 0): number {
  let at = from;
  let open: string | undefined;
  let wasEmpty = false;
  let found = from;
  while (at < text.length) {
    const end = text.indexOf("\n", at);
    // A line that has not ended may become anything.
    if (end < 0) break;
    const line = text.slice(at, end);
    const mark = FENCE.exec(line)?.[1];
    if (open === undefined && wasEmpty && /^(?![ \t]|[-*+>|]|\d)\S/.test(line)) found = at;
    if (mark !== undefined) {
      if (open === undefined) open = mark;
      else if (mark.startsWith(open) && line.trim() === mark) open = undefined;
    }
    wasEmpty = open === undefined && line.trim() === "";
    at = end + 1;
  }
  return found;
}
