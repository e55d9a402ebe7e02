// Owns where a growing text can be parted. Pure.
// LB1: a growing text is parted only where markdown ends a block whatever follows; its parts together are the
//      text.

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
