// Defines how a text that grows is told: by what is new, and where that stands. Pure.

/** A change of a text under way: all that stood at `offset` and behind it is replaced by `text`. */
export interface TextDelta {
  /** In UTF-16 units; the length of the text so far where the text only grows. */
  readonly offset: number;
  readonly text: string;
}

/** The text after the change. Undefined: something before the change is missing. */
export function withDelta(text: string, delta: TextDelta): string | undefined {
  if (delta.offset > text.length) return undefined;
  // Joining costs the same however long the text is; cutting happens only where a text is withdrawn.
  return (delta.offset === text.length ? text : text.slice(0, delta.offset)) + delta.text;
}

/** Two changes that follow each other as one. Undefined: something between them is missing. */
export function joinedDeltas(first: TextDelta, second: TextDelta): TextDelta | undefined {
  if (second.offset <= first.offset) return second;
  const text = withDelta(first.text, { offset: second.offset - first.offset, text: second.text });
  return text === undefined ? undefined : { offset: first.offset, text };
}
