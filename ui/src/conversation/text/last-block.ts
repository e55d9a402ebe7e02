// Finds the position at which a growing text can be split. Pure.
// LB1: a growing text is split only at the end of a markdown block that later text cannot change. The parts
//      together are exactly the text.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * Returns the start of the last block. It is the line after the last empty line that is outside of code
 * blocks, if this line is not indented and cannot continue a list, a quote or a table. Returns `from` if
 * there is only one block.
 */
export function lastBlockAt(text: string, from = 0): number {
  let at = from;
  let open: string | undefined;
  let wasEmpty = false;
  let found = from;
  while (at < text.length) {
    const end = text.indexOf("\n", at);
    // Ignore an unfinished line, because it may still become any kind of block.
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
