// Describes the changes of a growing text: the new part and its position. Pure.

/** A change of a growing text: `text` replaces everything from `offset` on. */
export interface TextDelta {
  /** Offset in UTF-16 units. Equals the current length if the text only grows. */
  readonly offset: number;
  readonly text: string;
}

/** A growing text is made flat after this number of new characters. */
export const FLAT_EVERY_CHARS = 32 * 1024;

/**
 * Returns the same text, stored in one piece. The runtime stores joined strings as trees: one of many leaves
 * keeps them all in memory and is slow to read the first time.
 */
export function flat(text: string): string {
  // The search flattens the string. Its result must be used, or the search is optimised away.
  return text.indexOf("\u0000", text.length - 1) < 0 ? text : text.slice(0);
}

/** Joins two texts at a cost that does not grow with the first. */
export function grown(text: string, more: string): string {
  const after = text + more;
  const isDue = Math.floor(after.length / FLAT_EVERY_CHARS) > Math.floor(text.length / FLAT_EVERY_CHARS);
  return isDue ? flat(after) : after;
}

/** Returns the text after the change. undefined: an earlier change is missing. */
export function withDelta(text: string, delta: TextDelta): string | undefined {
  if (delta.offset > text.length) return undefined;
  return grown(delta.offset === text.length ? text : text.slice(0, delta.offset), delta.text);
}

/** Merges two consecutive changes into one. undefined: a change between them is missing. */
export function joinedDeltas(first: TextDelta, second: TextDelta): TextDelta | undefined {
  if (second.offset <= first.offset) return second;
  const text = withDelta(first.text, { offset: second.offset - first.offset, text: second.text });
  return text === undefined ? undefined : { offset: first.offset, text };
}
