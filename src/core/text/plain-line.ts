// Removes the marks of Markdown from a text, for places that show it on one line. Pure.
// PL1: a text without marks stays as it is, except for its white space. So does the content of code.

/** Characters of which at least one is in each mark. */
const MARK = /[*_~`#>[]/;
/** Captures the backticks around code, and the code. A block may lack its end, because texts are cut. */
const CODE = /(`{3,9})[^\n`]*\n([^`]*)(?:\1|$)|(`{1,9})([^`\n]+)\3/g;
const HEADING = /^ {0,3}(?:#{1,6}|>)[ \t]+/gm;
const LINK = /!?\[([^[\]\n]*)\]\([^()\s]*(?: "[^"\n]*")?\)/g;
const STARS = /(?<![\w\\*])(\*{1,3})(?![\s*])([^*\n]*[^*\s])\1(?![\w*])/g;
/** An underscore inside a word is not a mark. */
const UNDERSCORES = /(?<![\w\\])(_{1,2})(?![\s_])([^_\n]*[^_\s])\1(?!\w)/g;
const STRUCK = /~~(?![\s~])([^~\n]*[^~\s])~~/g;
/** Maximum depth of emphasis inside of emphasis. */
const DEPTH_MAX = 3;

function withoutMarks(text: string): string {
  let plain = text.replace(HEADING, "").replace(LINK, "$1").replace(STRUCK, "$1");
  for (let depth = 0; depth < DEPTH_MAX; depth += 1)
    plain = plain.replace(STARS, "$2").replace(UNDERSCORES, "$2");
  return plain;
}

/** Returns a text on one line, without the marks of Markdown. */
export function plainLine(text: string): string {
  if (!MARK.test(text)) return text.replaceAll(/\s+/g, " ");
  const codes: string[] = [];
  // A private character takes the place of the code, so that emphasis may include code.
  const outside = text.replaceAll("\ue000", "").replace(CODE, (_, _block, block, _span, span) => {
    codes.push(block ?? span);
    return "\ue000";
  });
  const plain = withoutMarks(outside).replaceAll("\ue000", () => codes.shift() ?? "");
  return plain.replaceAll(/\s+/g, " ").trim();
}
