// Describes a change of a growing text: new text and its position.

/** A change of a growing text. `text` replaces everything from `offset` on. */
export interface TextDelta {
  /** Offset in UTF-16 units. If text is only appended, it equals the current length. */
  readonly offset: number;
  readonly text: string;
}

/**
 * A growing text is stored in one piece again each time it has grown by this number of characters. A long
 * text waits for more characters (`COPIES_PER_DOUBLING`).
 */
const FLAT_EVERY_CHARS = 32 * 1024;
/** Number of times that a long text is copied while its length doubles. */
const COPIES_PER_DOUBLING = 8;

/**
 * Returns the same text, stored in one piece. JavaScript engines store concatenated strings as trees. A tree
 * with many leaves takes much memory and is slow when it is first read.
 */
export function flat(text: string): string {
  // Searching a string flattens it. The result must be used, or the engine would skip the search.
  return text.indexOf("\u0000", text.length - 1) < 0 ? text : text.slice(0);
}

/**
 * Returns whether a text that grew from `before` to `after` characters is stored in one piece again. The time
 * for all copies together is proportional to the length of the text.
 */
export function isFlatDue(before: number, after: number): boolean {
  const every = Math.max(FLAT_EVERY_CHARS, 2 ** Math.floor(Math.log2(after)) / COPIES_PER_DOUBLING);
  return Math.floor(after / every) > Math.floor(before / every);
}

/** A text that grows. It is stored in one piece again from time to time (`isFlatDue`). */
export class LongText {
  #text: string;

  constructor(text = "") {
    this.#text = text;
  }

  get length(): number {
    return this.#text.length;
  }

  get text(): string {
    return this.#text;
  }

  /** Returns whether a text begins with this one. */
  begins(whole: string): boolean {
    return whole.startsWith(this.#text);
  }

  /** Returns whether a text is this one. */
  is(whole: string): boolean {
    return whole === this.#text;
  }

  append(more: string): void {
    const { length } = this.#text;
    this.#text += more;
    if (isFlatDue(length, this.#text.length)) this.#text = flat(this.#text);
  }

  /** Makes a change. Returns false, and changes nothing, if an earlier change is missing. */
  change({ offset, text }: TextDelta): boolean {
    if (offset > this.length) return false;
    if (offset < this.length) this.#text = this.#text.slice(0, offset);
    this.append(text);
    return true;
  }
}

/** Merges two consecutive changes, or returns undefined if a change between them is missing. */
export function joinedDeltas(first: TextDelta, second: TextDelta): TextDelta | undefined {
  const { offset, text } = first;
  if (second.offset <= offset) return second;
  if (second.offset > offset + text.length) return undefined;
  return { offset, text: text.slice(0, second.offset - offset) + second.text };
}
