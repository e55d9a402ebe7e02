// Owns what an import tells about things that it did not take over, or not as they were: counted and named.
// RM1: bounded: whatever the source holds, the list stays short enough to be read.
// RM2: no secret and nothing that a terminal would obey is in it (I14): values are never noted, names are
//      masked.

import { Redactor } from "../core/redact.ts";

const KINDS_MAX = 120;
const EXAMPLES_MAX = 5;
const EXAMPLE_CHARS_MAX = 160;

/** One kind of thing, how often it was met, and where, for the first few. */
export interface Remark {
  readonly what: string;
  readonly count: number;
  readonly examples: readonly string[];
}

export class Remarks {
  readonly #kinds = new Map<string, { count: number; examples: string[] }>();
  #others = 0;

  /** `what`: a fixed sentence. `example`: where, or which one. */
  note(what: string, example?: string, count = 1): void {
    const known = this.#kinds.get(what);
    if (known === undefined && this.#kinds.size >= KINDS_MAX) {
      this.#others += count;
      return;
    }
    const kind = known ?? { count: 0, examples: [] };
    kind.count += count;
    const shown = example === undefined ? undefined : shorten(example);
    if (shown !== undefined && kind.examples.length < EXAMPLES_MAX && !kind.examples.includes(shown)) {
      kind.examples.push(shown);
    }
    this.#kinds.set(what, kind);
  }

  list(): Remark[] {
    const listed = [...this.#kinds].map(([what, { count, examples }]) => ({ what, count, examples }));
    return this.#others === 0
      ? listed
      : [...listed, { what: "things of further kinds", count: this.#others, examples: [] }];
  }
}

/** A name of the source as it may be shown. */
function shorten(text: string): string {
  // None of the source's values are known as secrets of this program.
  const { text: cut, whole } = new Redactor([]).beginning(text, EXAMPLE_CHARS_MAX);
  const shown = cut.toWellFormed().replace(/[\p{Cc}\u2028\u2029]/gu, "\u{FFFD}");
  return whole ? shown : `${shown}…`;
}
