// Defines how a text that grows is told: by what is new, and where that stands. Pure.

/** A change of a text under way: all that stood at `offset` and behind it is replaced by `text`. */
export interface TextDelta {
  /** In UTF-16 units; the length of the text so far where the text only grows. */
  readonly offset: number;
  readonly text: string;
}

/** A text that grows is made flat again each time that it has grown by so much. */
export const FLAT_EVERY_CHARS = 32 * 1024;

/**
 * The same text, stored in one piece. The runtime joins strings as trees: one of many leaves keeps them all
 * in memory, and takes long to read for the first time.
 */
export function flat(text: string): string {
  // A search makes one piece of it. Its answer has to matter, or the search is left out.
  return text.indexOf("\u0000", text.length - 1) < 0 ? text : text.slice(0);
}

/** Two texts joined, at a cost that does not grow with the first. */
export function grown(text: string, more: string): string {
  const after = text + more;
  const isDue = Math.floor(after.length / FLAT_EVERY_CHARS) > Math.floor(text.length / FLAT_EVERY_CHARS);
  return isDue ? flat(after) : after;
}

/** The text after the change. Undefined: something before the change is missing. */
export function withDelta(text: string, delta: TextDelta): string | undefined {
  if (delta.offset > text.length) return undefined;
  return grown(delta.offset === text.length ? text : text.slice(0, delta.offset), delta.text);
}

/** Two changes that follow each other as one. Undefined: something between them is missing. */
export function joinedDeltas(first: TextDelta, second: TextDelta): TextDelta | undefined {
  if (second.offset <= first.offset) return second;
  const text = withDelta(first.text, { offset: second.offset - first.offset, text: second.text });
  return text === undefined ? undefined : { offset: first.offset, text };
}
